//! One row per built-in kind that differs from the rest.

use super::rules::{NameRule, Rules};
use super::{pod_strategy, strategy};

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const STORAGE: &str = "storage.k8s.io";

/// Kinds without `metadata.generation`.
const NO_GENERATION: Rules = Rules { generation: false, ..Rules::DEFAULT };

/// Kinds that always ask for a resource version on update.
const CONDITIONAL: Rules = Rules { generation: false, unconditional_update: false, ..Rules::DEFAULT };

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
    ("spec.hostNetwork", "/spec/hostNetwork"),
    ("status.phase", "/status/phase"),
    ("status.podIP", "/status/podIPs/0/ip|/status/podIP"),
    ("status.podIPs", "/status/podIPs/0/ip|/status/podIP"),
    ("status.nominatedNodeName", "/status/nominatedNodeName"),
];

/// The row of a kind, or the rules that most kinds without generation follow.
pub(super) fn rules(group: &str, kind: &str) -> Rules {
    let found = match (group, kind) {
        ("", "Pod") => Rules {
            prepare_create: pod_strategy::prepare_create,
            prepare_status: pod_strategy::prepare_status,
            fields: POD_FIELDS,
            ..Rules::DEFAULT
        },
        ("", "PodTemplate") => Rules::DEFAULT,
        ("", "ReplicationController") => {
            Rules { fields: &[("status.replicas", "/status/replicas")], ..Rules::DEFAULT }
        }
        ("", "Service") => Rules {
            name: NameRule::Label1035,
            create_on_update: true,
            prepare_update: strategy::service_update,
            fields: &[("spec.clusterIP", "/spec/clusterIP"), ("spec.type", "/spec/type")],
            ..NO_GENERATION
        },
        ("", "Namespace") => Rules {
            name: NameRule::Label,
            prepare_create: strategy::namespace_create,
            prepare_update: strategy::namespace_update,
            fields: &[("status.phase", "/status/phase")],
            ..NO_GENERATION
        },
        ("", "Node") => Rules { fields: &[("spec.unschedulable", "/spec/unschedulable")], ..NO_GENERATION },
        ("", "Secret") => {
            Rules { prepare_update: strategy::secret_update, fields: &[("type", "/type")], ..NO_GENERATION }
        }
        ("", "ServiceAccount") => Rules {
            prepare_create: strategy::service_account_create,
            prepare_update: strategy::service_account_update,
            ..NO_GENERATION
        },
        ("", "Endpoints") => Rules { create_on_update: true, ..NO_GENERATION },
        ("", "LimitRange") => Rules { create_on_update: true, ..NO_GENERATION },
        ("", "Event") => Rules { create_on_update: true, fields: EVENT_FIELDS, ..NO_GENERATION },
        ("events.k8s.io", "Event") => {
            Rules { create_on_update: true, fields: REGARDING_FIELDS, ..NO_GENERATION }
        }
        ("", "PersistentVolume") => Rules {
            prepare_create: strategy::volume_create,
            prepare_status: strategy::volume_status,
            ..NO_GENERATION
        },
        ("", "PersistentVolumeClaim") => Rules {
            prepare_create: strategy::claim_create,
            prepare_update: strategy::claim_update,
            ..NO_GENERATION
        },
        ("apps", "Deployment") => Rules { prepare_status: strategy::deployment_status, ..Rules::DEFAULT },
        ("apps", "DaemonSet") => Rules {
            prepare_create: strategy::daemon_set_create,
            prepare_update: strategy::daemon_set_update,
            ..Rules::DEFAULT
        },
        ("apps", "StatefulSet" | "ReplicaSet") => Rules::DEFAULT,
        ("batch", "Job") => Rules {
            prepare_create: strategy::job_create,
            fields: &[("status.successful", "/status/succeeded")],
            ..Rules::DEFAULT
        },
        ("batch", "CronJob") => Rules { name: NameRule::CronJob, ..Rules::DEFAULT },
        ("networking.k8s.io", "Ingress" | "NetworkPolicy" | "IngressClass") => Rules::DEFAULT,
        ("policy", "PodDisruptionBudget") => Rules { unconditional_update: false, ..Rules::DEFAULT },
        ("scheduling.k8s.io", "PriorityClass") => Rules::DEFAULT,
        ("discovery.k8s.io", "EndpointSlice") => Rules::DEFAULT,
        ("flowcontrol.apiserver.k8s.io", _) => Rules::DEFAULT,
        ("resource.k8s.io", "ResourceSlice" | "DeviceClass") => Rules::DEFAULT,
        (ADMISSION, _) => Rules { unconditional_update: false, ..Rules::DEFAULT },
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            Rules { unconditional_update: false, ..Rules::DEFAULT }
        }
        ("apiregistration.k8s.io", "APIService") => Rules { unconditional_update: false, ..NO_GENERATION },
        (RBAC, _) => Rules { name: NameRule::PathSegment, create_on_update: true, ..NO_GENERATION },
        ("coordination.k8s.io", "Lease") => Rules { create_on_update: true, ..CONDITIONAL },
        ("node.k8s.io", "RuntimeClass") => Rules { create_on_update: true, ..CONDITIONAL },
        (STORAGE, "CSIDriver" | "CSIStorageCapacity" | "VolumeAttachment" | "CSINode") => CONDITIONAL,
        ("certificates.k8s.io", "CertificateSigningRequest") => Rules {
            prepare_update: strategy::signing_request_update,
            fields: &[("spec.signerName", "/spec/signerName")],
            ..NO_GENERATION
        },
        _ => NO_GENERATION,
    };
    Rules { group: table_name(group), kind: table_name(kind), ..found }
}

/// The table's own copy of a group or kind name: rows outlive the question.
fn table_name(name: &str) -> &'static str {
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
