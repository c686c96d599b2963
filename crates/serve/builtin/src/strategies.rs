//! The rules of each built-in kind, one row per kind that differs from the defaults.

use crate::kind_strategy::{NameRule, Rules, keep_all_but_status};
use crate::{pod_strategy, prepare, validate, warnings};

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const STORAGE: &str = "storage.k8s.io";

/// Kinds without `metadata.generation`.
const NO_GENERATION: Rules = Rules { generation: false, ..Rules::DEFAULT };

/// Kinds whose updates need a resourceVersion.
const CONDITIONAL: Rules = Rules { generation: false, unconditional_update: false, ..Rules::DEFAULT };

/// RBAC kinds: path segments as names, PUT creates.
const RBAC_RULES: Rules = Rules { name: NameRule::PathSegment, create_on_update: true, ..NO_GENERATION };

const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject.kind", "/involvedObject/kind"),
    ("involvedObject.namespace", "/involvedObject/namespace"),
    ("involvedObject.name", "/involvedObject/name"),
    ("involvedObject.uid", "/involvedObject/uid"),
    ("involvedObject.apiVersion", "/involvedObject/apiVersion"),
    ("involvedObject.resourceVersion", "/involvedObject/resourceVersion"),
    ("involvedObject.fieldPath", "/involvedObject/fieldPath"),
    ("reason", "/reason"),
    ("reportingComponent", "/reportingComponent"),
    ("source", "/source/component|/reportingComponent"),
    ("type", "/type"),
];

const REGARDING_FIELDS: &[(&str, &str)] = &[
    ("regarding.kind", "/regarding/kind"),
    ("regarding.namespace", "/regarding/namespace"),
    ("regarding.name", "/regarding/name"),
    ("regarding.uid", "/regarding/uid"),
    ("regarding.apiVersion", "/regarding/apiVersion"),
    ("regarding.resourceVersion", "/regarding/resourceVersion"),
    ("regarding.fieldPath", "/regarding/fieldPath"),
    ("reason", "/reason"),
    ("reportingController", "/reportingController"),
    ("type", "/type"),
];

const POD_FIELDS: &[(&str, &str)] = &[
    ("spec.nodeName", "/spec/nodeName"),
    ("spec.restartPolicy", "/spec/restartPolicy"),
    ("spec.schedulerName", "/spec/schedulerName"),
    ("spec.serviceAccountName", "/spec/serviceAccountName"),
    ("spec.hostNetwork", "?/spec/hostNetwork"),
    ("status.phase", "/status/phase"),
    ("status.podIP", "/status/podIPs/0/ip|/status/podIP"),
    ("status.podIPs", "/status/podIPs/0/ip|/status/podIP"),
    ("status.nominatedNodeName", "/status/nominatedNodeName"),
];

/// The rules of a kind; `NO_GENERATION` if it has no row.
pub(crate) fn rules(group: &str, kind: &str) -> Rules {
    let found = match group {
        "" => core(kind),
        "apps" | "batch" => workload(kind),
        RBAC => access(kind),
        _ => other(group, kind),
    };
    Rules { group: static_name(group), kind: static_name(kind), ..found }
}

fn core(kind: &str) -> Rules {
    match kind {
        "Pod" => Rules {
            prepare_create: pod_strategy::prepare_create,
            prepare_update: Some(pod_strategy::prepare_update),
            prepare_status: pod_strategy::prepare_status,
            validate: validate::pod,
            validate_update: validate::pod_update,
            update_alone: true,
            validate_status: validate::pod_status,
            warnings: warnings::pod,
            fields: POD_FIELDS,
            ..Rules::DEFAULT
        },
        "PodTemplate" => {
            Rules { validate: validate::pod_template, warnings: warnings::pod_template, ..Rules::DEFAULT }
        }
        "ReplicationController" => Rules {
            validate: validate::replication_controller,
            validate_status: validate::replica_set_status,
            warnings: warnings::workload,
            fields: &[("status.replicas", "/status/replicas")],
            ..Rules::DEFAULT
        },
        "Service" => Rules {
            name: NameRule::Label1035,
            prepare_create: prepare::service_create,
            create_on_update: true,
            prepare_update: Some(prepare::service_update),
            validate: validate::service,
            validate_update: validate::service_update,
            validate_status: validate::service_status,
            warnings: warnings::service,
            fields: &[("spec.clusterIP", "/spec/clusterIP"), ("spec.type", "/spec/type")],
            ..NO_GENERATION
        },
        "Namespace" => Rules {
            name: NameRule::Label,
            prepare_create: prepare::namespace_create,
            prepare_update: Some(prepare::namespace_update),
            validate: validate::namespace,
            validate_status: validate::namespace_status,
            fields: &[("status.phase", "/status/phase")],
            ..NO_GENERATION
        },
        "Node" => Rules {
            prepare_create: prepare::node_create,
            validate: validate::node,
            warnings: warnings::node,
            fields: &[("spec.unschedulable", "?/spec/unschedulable")],
            ..NO_GENERATION
        },
        "Secret" => Rules {
            prepare_update: Some(prepare::secret_update),
            validate: validate::secret,
            validate_update: validate::secret_update,
            warnings: warnings::secret,
            fields: &[("type", "/type")],
            ..NO_GENERATION
        },
        "ConfigMap" => Rules {
            validate: validate::config_map,
            validate_update: validate::config_map_update,
            ..NO_GENERATION
        },
        "ServiceAccount" => Rules {
            prepare_create: prepare::service_account_create,
            prepare_update: Some(prepare::service_account_update),
            warnings: warnings::service_account,
            ..NO_GENERATION
        },
        "ResourceQuota" => Rules {
            validate: validate::resource_quota,
            validate_update: validate::resource_quota_update,
            ..NO_GENERATION
        },
        "Endpoints" => Rules {
            create_on_update: true,
            validate: validate::endpoints,
            warnings: warnings::endpoints,
            ..NO_GENERATION
        },
        "LimitRange" => Rules { create_on_update: true, validate: validate::limit_range, ..NO_GENERATION },
        "Event" => Rules {
            name: NameRule::Any,
            create_on_update: true,
            validate: validate::event_core,
            fields: EVENT_FIELDS,
            ..NO_GENERATION
        },
        "PersistentVolume" => Rules {
            prepare_create: prepare::volume_create,
            prepare_status: prepare::volume_status,
            validate: validate::persistent_volume,
            validate_update: validate::persistent_volume_update,
            warnings: warnings::volume,
            ..NO_GENERATION
        },
        "PersistentVolumeClaim" => Rules {
            prepare_create: prepare::claim_create,
            prepare_update: Some(prepare::claim_update),
            validate: validate::claim,
            validate_update: validate::claim_update,
            validate_status: validate::claim_status,
            warnings: warnings::claim,
            ..NO_GENERATION
        },
        _ => NO_GENERATION,
    }
}

fn workload(kind: &str) -> Rules {
    let base = Rules { warnings: warnings::workload, ..Rules::DEFAULT };
    match kind {
        "Deployment" => Rules {
            prepare_status: prepare::deployment_status,
            validate: validate::deployment,
            validate_update: validate::deployment_update,
            validate_status: validate::deployment_status,
            ..base
        },
        "DaemonSet" => Rules {
            prepare_create: prepare::daemon_set_create,
            prepare_update: Some(prepare::daemon_set_update),
            validate: validate::daemon_set,
            validate_update: validate::daemon_set_update,
            validate_status: validate::daemon_set_status,
            ..base
        },
        "StatefulSet" => Rules {
            name: NameRule::Label,
            validate: validate::stateful_set,
            validate_update: validate::stateful_set_update,
            validate_status: validate::stateful_set_status,
            update_alone: true,
            ..base
        },
        "ReplicaSet" => Rules {
            validate: validate::replica_set,
            validate_update: validate::replica_set_update,
            validate_status: validate::replica_set_status,
            ..base
        },
        "ControllerRevision" => Rules {
            validate: validate::controller_revision,
            validate_update: validate::controller_revision_update,
            update_alone: true,
            ..NO_GENERATION
        },
        "Job" => Rules {
            prepare_create: prepare::job_create,
            validate: validate::job,
            validate_update: validate::job_update,
            validate_status: validate::job_status,
            fields: &[("status.successful", "#/status/succeeded")],
            ..base
        },
        "CronJob" => Rules {
            name: NameRule::CronJob,
            validate: validate::cron_job,
            validate_update: validate::cron_job_update,
            update_alone: true,
            ..base
        },
        _ => NO_GENERATION,
    }
}

fn access(kind: &str) -> Rules {
    match kind {
        "Role" => Rules { validate: validate::role, ..RBAC_RULES },
        "ClusterRole" => Rules { validate: validate::cluster_role, ..RBAC_RULES },
        "RoleBinding" => Rules {
            validate: validate::role_binding,
            validate_update: validate::role_binding_update,
            ..RBAC_RULES
        },
        "ClusterRoleBinding" => Rules {
            validate: validate::cluster_role_binding,
            validate_update: validate::cluster_role_binding_update,
            ..RBAC_RULES
        },
        _ => RBAC_RULES,
    }
}

fn other(group: &str, kind: &str) -> Rules {
    match (group, kind) {
        ("events.k8s.io", "Event") => Rules {
            create_on_update: true,
            validate: validate::event_events,
            validate_update: validate::event_events_update,
            update_alone: true,
            fields: REGARDING_FIELDS,
            ..NO_GENERATION
        },
        ("networking.k8s.io", "Ingress") => Rules {
            validate: validate::ingress_create,
            validate_update: |errors, new, _| validate::ingress(errors, new),
            update_alone: true,
            validate_status: validate::ingress_status,
            warnings: warnings::ingress,
            ..Rules::DEFAULT
        },
        ("networking.k8s.io", "NetworkPolicy") => {
            Rules { validate: validate::network_policy, warnings: warnings::network_policy, ..Rules::DEFAULT }
        }
        ("networking.k8s.io", "IngressClass") => Rules {
            validate: validate::ingress_class,
            validate_update: validate::ingress_class_update,
            ..Rules::DEFAULT
        },
        ("policy", "PodDisruptionBudget") => Rules {
            // Upstream does not validate these names.
            name: NameRule::Any,
            unconditional_update: false,
            validate: validate::disruption_budget,
            validate_status: validate::disruption_budget_status,
            ..Rules::DEFAULT
        },
        ("autoscaling", "HorizontalPodAutoscaler") => Rules {
            validate: validate::autoscaler,
            validate_status: validate::autoscaler_status,
            ..NO_GENERATION
        },
        ("scheduling.k8s.io", "PriorityClass") => Rules {
            validate: validate::priority_class,
            validate_update: validate::priority_class_update,
            update_alone: true,
            ..Rules::DEFAULT
        },
        ("discovery.k8s.io", "EndpointSlice") => Rules {
            validate: validate::endpoint_slice,
            validate_update: validate::endpoint_slice_update,
            warnings: warnings::endpoint_slice,
            ..Rules::DEFAULT
        },
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => {
            Rules { prepare_status: keep_all_but_status, validate: validate::flow_schema, ..Rules::DEFAULT }
        }
        ("flowcontrol.apiserver.k8s.io", _) => Rules {
            prepare_status: keep_all_but_status,
            validate: validate::priority_level,
            ..Rules::DEFAULT
        },
        ("networking.k8s.io", "ServiceCIDR") => Rules {
            // An update of the object may change its status as well.
            prepare_update: Some(|_, _, _| {}),
            prepare_status: keep_all_but_status,
            ..NO_GENERATION
        },
        ("resource.k8s.io", "ResourceClaim") => {
            Rules { prepare_status: keep_all_but_status, ..NO_GENERATION }
        }
        ("resource.k8s.io", "ResourceSlice" | "DeviceClass") => Rules::DEFAULT,
        (ADMISSION, "ValidatingWebhookConfiguration") => {
            Rules { unconditional_update: false, validate: validate::validating_webhooks, ..Rules::DEFAULT }
        }
        (ADMISSION, "MutatingWebhookConfiguration") => {
            Rules { unconditional_update: false, validate: validate::mutating_webhooks, ..Rules::DEFAULT }
        }
        (ADMISSION, "ValidatingAdmissionPolicy") => Rules {
            unconditional_update: false,
            prepare_status: keep_all_but_status,
            validate: validate::validating_policy,
            ..Rules::DEFAULT
        },
        (ADMISSION, "ValidatingAdmissionPolicyBinding") => {
            Rules { unconditional_update: false, validate: validate::policy_binding, ..Rules::DEFAULT }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            Rules { unconditional_update: false, warnings: warnings::definition, ..Rules::DEFAULT }
        }
        (ADMISSION, _) => Rules { unconditional_update: false, ..Rules::DEFAULT },
        ("apiregistration.k8s.io", "APIService") => Rules {
            name: NameRule::PathSegment,
            unconditional_update: false,
            prepare_status: keep_all_but_status,
            validate: validate::api_service,
            ..NO_GENERATION
        },
        ("coordination.k8s.io", "Lease") => {
            Rules { create_on_update: true, validate: validate::lease, ..CONDITIONAL }
        }
        ("node.k8s.io", "RuntimeClass") => Rules {
            create_on_update: true,
            validate: validate::runtime_class,
            validate_update: validate::runtime_class_update,
            warnings: warnings::runtime_class,
            ..CONDITIONAL
        },
        (STORAGE, "StorageClass") => Rules {
            validate: validate::storage_class,
            validate_update: validate::storage_class_update,
            warnings: warnings::storage_class,
            ..NO_GENERATION
        },
        (STORAGE, "CSIDriver") => Rules {
            validate: validate::csi_driver,
            validate_update: validate::csi_driver_update,
            ..CONDITIONAL
        },
        (STORAGE, "CSINode") => Rules { validate: validate::csi_node, ..CONDITIONAL },
        (STORAGE, "VolumeAttachment") => Rules {
            prepare_status: keep_all_but_status,
            validate: validate::volume_attachment,
            ..CONDITIONAL
        },
        (STORAGE, "CSIStorageCapacity") => Rules {
            validate: validate::storage_capacity,
            validate_update: validate::storage_capacity_update,
            update_alone: true,
            warnings: warnings::storage_capacity,
            ..CONDITIONAL
        },
        (STORAGE, "VolumeAttributesClass") => Rules {
            prepare_create: prepare::attributes_class_create,
            validate: validate::attributes_class,
            validate_update: validate::attributes_class_update,
            ..NO_GENERATION
        },
        ("certificates.k8s.io", "CertificateSigningRequest") => Rules {
            prepare_update: Some(prepare::signing_request_update),
            prepare_status: prepare::signing_request_status,
            validate: validate::signing_request,
            validate_status: validate::signing_request_status,
            fields: &[("spec.signerName", "/spec/signerName")],
            ..NO_GENERATION
        },
        _ => NO_GENERATION,
    }
}

/// The static string for the name of a group or kind.
fn static_name(name: &str) -> &'static str {
    for version in fl_kubeschema::group_versions() {
        if version.group == name {
            return version.group;
        }
        if let Some(resource) = version.resources.iter().find(|r| r.kind == name) {
            return resource.kind;
        }
    }
    ""
}
