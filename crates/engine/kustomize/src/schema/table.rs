//! Facts of the Kubernetes types that decide merging and scope, as kustomize 5.8 holds them (Kubernetes
//! 1.21.2). A generated table: `DATA.md` of this crate says how it was made. Only fields that lead to a list
//! with a merge strategy are listed: for all others the absence of a row means the same as its presence.

use super::{FieldRow, Row};

const NONE: u16 = u16::MAX;

/// Type rows, sorted by definition name; fields sorted by name.
pub(super) static TYPES: &[Row] = &[
    Row {
        name: "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "webhooks", target: NONE, list: true, keys: &["name"] },
        ],
    },
    Row {
        name: "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "webhooks", target: NONE, list: true, keys: &["name"] },
        ],
    },
    Row {
        name: "io.k8s.api.admissionregistration.v1beta1.MutatingWebhookConfiguration",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "webhooks", target: NONE, list: true, keys: &["name"] },
        ],
    },
    Row {
        name: "io.k8s.api.admissionregistration.v1beta1.ValidatingWebhookConfiguration",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "webhooks", target: NONE, list: true, keys: &["name"] },
        ],
    },
    Row {
        name: "io.k8s.api.apps.v1.ControllerRevision",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.apps.v1.DaemonSet",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 6, list: false, keys: &[] },
            FieldRow { name: "status", target: 7, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.apps.v1.DaemonSetSpec",
        fields: &[FieldRow { name: "template", target: 68, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.apps.v1.DaemonSetStatus",
        fields: &[FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] }],
    },
    Row {
        name: "io.k8s.api.apps.v1.Deployment",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 9, list: false, keys: &[] },
            FieldRow { name: "status", target: 10, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.apps.v1.DeploymentSpec",
        fields: &[FieldRow { name: "template", target: 68, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.apps.v1.DeploymentStatus",
        fields: &[FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] }],
    },
    Row {
        name: "io.k8s.api.apps.v1.Kustomization",
        fields: &[
            FieldRow { name: "configMapGenerator", target: NONE, list: true, keys: &["name"] },
            FieldRow { name: "secretGenerator", target: NONE, list: true, keys: &["name"] },
        ],
    },
    Row {
        name: "io.k8s.api.apps.v1.ReplicaSet",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 13, list: false, keys: &[] },
            FieldRow { name: "status", target: 14, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.apps.v1.ReplicaSetSpec",
        fields: &[FieldRow { name: "template", target: 68, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.apps.v1.ReplicaSetStatus",
        fields: &[FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] }],
    },
    Row {
        name: "io.k8s.api.apps.v1.StatefulSet",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 16, list: false, keys: &[] },
            FieldRow { name: "status", target: 17, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.apps.v1.StatefulSetSpec",
        fields: &[FieldRow { name: "template", target: 68, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.apps.v1.StatefulSetStatus",
        fields: &[FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] }],
    },
    Row {
        name: "io.k8s.api.authentication.v1.TokenRequest",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.authentication.v1.TokenReview",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.authentication.v1beta1.TokenReview",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.authorization.v1.SubjectAccessReview",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.authorization.v1beta1.LocalSubjectAccessReview",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.authorization.v1beta1.SelfSubjectAccessReview",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.authorization.v1beta1.SelfSubjectRulesReview",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.authorization.v1beta1.SubjectAccessReview",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.autoscaling.v1.Scale",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.autoscaling.v2beta1.HorizontalPodAutoscaler",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.autoscaling.v2beta2.HorizontalPodAutoscaler",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.batch.v1.CronJob",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 34, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.batch.v1.CronJobSpec",
        fields: &[FieldRow { name: "jobTemplate", target: 38, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.batch.v1.Job",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 36, list: false, keys: &[] },
            FieldRow { name: "status", target: 37, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.batch.v1.JobSpec",
        fields: &[FieldRow { name: "template", target: 68, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.batch.v1.JobStatus",
        fields: &[FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] }],
    },
    Row {
        name: "io.k8s.api.batch.v1.JobTemplateSpec",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 36, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.batch.v1beta1.CronJob",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 40, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.batch.v1beta1.CronJobSpec",
        fields: &[FieldRow { name: "jobTemplate", target: 41, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.batch.v1beta1.JobTemplateSpec",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 36, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.certificates.v1.CertificateSigningRequest",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.certificates.v1beta1.CertificateSigningRequest",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.coordination.v1.Lease",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.coordination.v1beta1.Lease",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.core.v1.Binding",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.core.v1.ComponentStatus",
        fields: &[
            FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] },
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.ConfigMap",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.core.v1.Container",
        fields: &[
            FieldRow { name: "env", target: NONE, list: true, keys: &["name"] },
            FieldRow { name: "ports", target: NONE, list: true, keys: &["containerPort", "protocol"] },
            FieldRow { name: "volumeDevices", target: NONE, list: true, keys: &["devicePath"] },
            FieldRow { name: "volumeMounts", target: NONE, list: true, keys: &["mountPath"] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.Endpoints",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.core.v1.EphemeralContainer",
        fields: &[
            FieldRow { name: "env", target: NONE, list: true, keys: &["name"] },
            FieldRow { name: "volumeDevices", target: NONE, list: true, keys: &["devicePath"] },
            FieldRow { name: "volumeMounts", target: NONE, list: true, keys: &["mountPath"] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.EphemeralVolumeSource",
        fields: &[FieldRow { name: "volumeClaimTemplate", target: 63, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.core.v1.Event",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.core.v1.LimitRange",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.core.v1.Namespace",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "status", target: 56, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.NamespaceStatus",
        fields: &[FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] }],
    },
    Row {
        name: "io.k8s.api.core.v1.Node",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 58, list: false, keys: &[] },
            FieldRow { name: "status", target: 59, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.NodeSpec",
        fields: &[FieldRow { name: "podCIDRs", target: NONE, list: true, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.core.v1.NodeStatus",
        fields: &[
            FieldRow { name: "addresses", target: NONE, list: true, keys: &["type"] },
            FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.PersistentVolume",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.core.v1.PersistentVolumeClaim",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "status", target: 62, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.PersistentVolumeClaimStatus",
        fields: &[FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] }],
    },
    Row {
        name: "io.k8s.api.core.v1.PersistentVolumeClaimTemplate",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.core.v1.Pod",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 65, list: false, keys: &[] },
            FieldRow { name: "status", target: 66, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.PodSpec",
        fields: &[
            FieldRow { name: "containers", target: 49, list: true, keys: &["name"] },
            FieldRow { name: "ephemeralContainers", target: 51, list: true, keys: &["name"] },
            FieldRow { name: "hostAliases", target: NONE, list: true, keys: &["ip"] },
            FieldRow { name: "imagePullSecrets", target: NONE, list: true, keys: &["name"] },
            FieldRow { name: "initContainers", target: 49, list: true, keys: &["name"] },
            FieldRow {
                name: "topologySpreadConstraints",
                target: NONE,
                list: true,
                keys: &["topologyKey", "whenUnsatisfiable"],
            },
            FieldRow { name: "volumes", target: 78, list: true, keys: &["name"] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.PodStatus",
        fields: &[
            FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] },
            FieldRow { name: "podIPs", target: NONE, list: true, keys: &["ip"] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.PodTemplate",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "template", target: 68, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.PodTemplateSpec",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 65, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.ReplicationController",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 70, list: false, keys: &[] },
            FieldRow { name: "status", target: 71, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.ReplicationControllerSpec",
        fields: &[FieldRow { name: "template", target: 68, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.core.v1.ReplicationControllerStatus",
        fields: &[FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] }],
    },
    Row {
        name: "io.k8s.api.core.v1.ResourceQuota",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.core.v1.Secret",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.core.v1.Service",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 76, list: false, keys: &[] },
            FieldRow { name: "status", target: 77, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.ServiceAccount",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "secrets", target: NONE, list: true, keys: &["name"] },
        ],
    },
    Row {
        name: "io.k8s.api.core.v1.ServiceSpec",
        fields: &[FieldRow { name: "ports", target: NONE, list: true, keys: &["port", "protocol"] }],
    },
    Row {
        name: "io.k8s.api.core.v1.ServiceStatus",
        fields: &[FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] }],
    },
    Row {
        name: "io.k8s.api.core.v1.Volume",
        fields: &[FieldRow { name: "ephemeral", target: 52, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.discovery.v1.EndpointSlice",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.discovery.v1beta1.EndpointSlice",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.events.v1.Event",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.events.v1beta1.Event",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.extensions.v1beta1.Ingress",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.flowcontrol.v1beta1.FlowSchema",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.flowcontrol.v1beta1.PriorityLevelConfiguration",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.networking.v1.Ingress",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.networking.v1.IngressClass",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.networking.v1.NetworkPolicy",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.networking.v1beta1.Ingress",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.networking.v1beta1.IngressClass",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.node.v1.RuntimeClass",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.node.v1beta1.RuntimeClass",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.policy.v1.PodDisruptionBudget",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "status", target: 94, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.policy.v1.PodDisruptionBudgetStatus",
        fields: &[FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] }],
    },
    Row {
        name: "io.k8s.api.policy.v1beta1.Eviction",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.policy.v1beta1.PodDisruptionBudget",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "status", target: 97, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.policy.v1beta1.PodDisruptionBudgetStatus",
        fields: &[FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] }],
    },
    Row {
        name: "io.k8s.api.policy.v1beta1.PodSecurityPolicy",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.rbac.v1.ClusterRole",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.rbac.v1.ClusterRoleBinding",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.rbac.v1.Role",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.rbac.v1.RoleBinding",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.rbac.v1beta1.ClusterRole",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.rbac.v1beta1.ClusterRoleBinding",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.rbac.v1beta1.Role",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.rbac.v1beta1.RoleBinding",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.scheduling.v1.PriorityClass",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.scheduling.v1beta1.PriorityClass",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.storage.v1.CSIDriver",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.storage.v1.CSINode",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 111, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.storage.v1.CSINodeSpec",
        fields: &[FieldRow { name: "drivers", target: NONE, list: true, keys: &["name"] }],
    },
    Row {
        name: "io.k8s.api.storage.v1.StorageClass",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.storage.v1.VolumeAttachment",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.storage.v1beta1.CSIDriver",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.storage.v1beta1.CSINode",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "spec", target: 116, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.api.storage.v1beta1.CSINodeSpec",
        fields: &[FieldRow { name: "drivers", target: NONE, list: true, keys: &["name"] }],
    },
    Row {
        name: "io.k8s.api.storage.v1beta1.CSIStorageCapacity",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.storage.v1beta1.StorageClass",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.api.storage.v1beta1.VolumeAttachment",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceDefinition",
        fields: &[FieldRow { name: "metadata", target: 122, list: false, keys: &[] }],
    },
    Row {
        name: "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        fields: &[
            FieldRow { name: "finalizers", target: NONE, list: true, keys: &[] },
            FieldRow { name: "ownerReferences", target: NONE, list: true, keys: &["uid"] },
        ],
    },
    Row {
        name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "status", target: 124, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceStatus",
        fields: &[FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] }],
    },
    Row {
        name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1beta1.APIService",
        fields: &[
            FieldRow { name: "metadata", target: 122, list: false, keys: &[] },
            FieldRow { name: "status", target: 126, list: false, keys: &[] },
        ],
    },
    Row {
        name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1beta1.APIServiceStatus",
        fields: &[FieldRow { name: "conditions", target: NONE, list: true, keys: &["type"] }],
    },
];

/// (apiVersion, kind, row in [`TYPES`]), sorted.
pub(super) static KINDS: &[(&str, &str, u16)] = &[
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", 0),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", 1),
    ("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration", 2),
    ("admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration", 3),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", 120),
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", 121),
    ("apiregistration.k8s.io/v1", "APIService", 123),
    ("apiregistration.k8s.io/v1beta1", "APIService", 125),
    ("apps/v1", "ControllerRevision", 4),
    ("apps/v1", "DaemonSet", 5),
    ("apps/v1", "Deployment", 8),
    ("apps/v1", "ReplicaSet", 12),
    ("apps/v1", "StatefulSet", 15),
    ("authentication.k8s.io/v1", "TokenRequest", 18),
    ("authentication.k8s.io/v1", "TokenReview", 19),
    ("authentication.k8s.io/v1beta1", "TokenReview", 20),
    ("authorization.k8s.io/v1", "LocalSubjectAccessReview", 21),
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview", 22),
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview", 23),
    ("authorization.k8s.io/v1", "SubjectAccessReview", 24),
    ("authorization.k8s.io/v1beta1", "LocalSubjectAccessReview", 25),
    ("authorization.k8s.io/v1beta1", "SelfSubjectAccessReview", 26),
    ("authorization.k8s.io/v1beta1", "SelfSubjectRulesReview", 27),
    ("authorization.k8s.io/v1beta1", "SubjectAccessReview", 28),
    ("autoscaling/v1", "HorizontalPodAutoscaler", 29),
    ("autoscaling/v1", "Scale", 30),
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler", 31),
    ("autoscaling/v2beta2", "HorizontalPodAutoscaler", 32),
    ("batch/v1", "CronJob", 33),
    ("batch/v1", "Job", 35),
    ("batch/v1beta1", "CronJob", 39),
    ("certificates.k8s.io/v1", "CertificateSigningRequest", 42),
    ("certificates.k8s.io/v1beta1", "CertificateSigningRequest", 43),
    ("coordination.k8s.io/v1", "Lease", 44),
    ("coordination.k8s.io/v1beta1", "Lease", 45),
    ("discovery.k8s.io/v1", "EndpointSlice", 79),
    ("discovery.k8s.io/v1beta1", "EndpointSlice", 80),
    ("events.k8s.io/v1", "Event", 81),
    ("events.k8s.io/v1beta1", "Event", 82),
    ("extensions/v1beta1", "Ingress", 83),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema", 84),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "PriorityLevelConfiguration", 85),
    ("kustomize.config.k8s.io/v1beta1", "Kustomization", 11),
    ("networking.k8s.io/v1", "Ingress", 86),
    ("networking.k8s.io/v1", "IngressClass", 87),
    ("networking.k8s.io/v1", "NetworkPolicy", 88),
    ("networking.k8s.io/v1beta1", "Ingress", 89),
    ("networking.k8s.io/v1beta1", "IngressClass", 90),
    ("node.k8s.io/v1", "RuntimeClass", 91),
    ("node.k8s.io/v1beta1", "RuntimeClass", 92),
    ("policy/v1", "PodDisruptionBudget", 93),
    ("policy/v1beta1", "Eviction", 95),
    ("policy/v1beta1", "PodDisruptionBudget", 96),
    ("policy/v1beta1", "PodSecurityPolicy", 98),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", 99),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", 100),
    ("rbac.authorization.k8s.io/v1", "Role", 101),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", 102),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRole", 103),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBinding", 104),
    ("rbac.authorization.k8s.io/v1beta1", "Role", 105),
    ("rbac.authorization.k8s.io/v1beta1", "RoleBinding", 106),
    ("scheduling.k8s.io/v1", "PriorityClass", 107),
    ("scheduling.k8s.io/v1beta1", "PriorityClass", 108),
    ("storage.k8s.io/v1", "CSIDriver", 109),
    ("storage.k8s.io/v1", "CSINode", 110),
    ("storage.k8s.io/v1", "StorageClass", 112),
    ("storage.k8s.io/v1", "VolumeAttachment", 113),
    ("storage.k8s.io/v1beta1", "CSIDriver", 114),
    ("storage.k8s.io/v1beta1", "CSINode", 115),
    ("storage.k8s.io/v1beta1", "CSIStorageCapacity", 117),
    ("storage.k8s.io/v1beta1", "StorageClass", 118),
    ("storage.k8s.io/v1beta1", "VolumeAttachment", 119),
    ("v1", "Binding", 46),
    ("v1", "ComponentStatus", 47),
    ("v1", "ConfigMap", 48),
    ("v1", "Endpoints", 50),
    ("v1", "Event", 53),
    ("v1", "LimitRange", 54),
    ("v1", "Namespace", 55),
    ("v1", "Node", 57),
    ("v1", "PersistentVolume", 60),
    ("v1", "PersistentVolumeClaim", 61),
    ("v1", "Pod", 64),
    ("v1", "PodTemplate", 67),
    ("v1", "ReplicationController", 69),
    ("v1", "ResourceQuota", 72),
    ("v1", "Secret", 73),
    ("v1", "Service", 74),
    ("v1", "ServiceAccount", 75),
];

/// (apiVersion, kind, namespaced), sorted.
pub(super) static SCOPES: &[(&str, &str, bool)] = &[
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", false),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", false),
    ("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration", false),
    ("admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration", false),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", false),
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", false),
    ("apiregistration.k8s.io/v1", "APIService", false),
    ("apiregistration.k8s.io/v1beta1", "APIService", false),
    ("apps/v1", "ControllerRevision", true),
    ("apps/v1", "DaemonSet", true),
    ("apps/v1", "Deployment", true),
    ("apps/v1", "ReplicaSet", true),
    ("apps/v1", "StatefulSet", true),
    ("autoscaling/v1", "HorizontalPodAutoscaler", true),
    ("autoscaling/v1", "Scale", true),
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler", true),
    ("autoscaling/v2beta2", "HorizontalPodAutoscaler", true),
    ("batch/v1", "CronJob", true),
    ("batch/v1", "Job", true),
    ("batch/v1beta1", "CronJob", true),
    ("certificates.k8s.io/v1", "CertificateSigningRequest", false),
    ("certificates.k8s.io/v1beta1", "CertificateSigningRequest", false),
    ("coordination.k8s.io/v1", "Lease", true),
    ("coordination.k8s.io/v1beta1", "Lease", true),
    ("discovery.k8s.io/v1", "EndpointSlice", true),
    ("discovery.k8s.io/v1beta1", "EndpointSlice", true),
    ("events.k8s.io/v1", "Event", true),
    ("events.k8s.io/v1beta1", "Event", true),
    ("extensions/v1beta1", "Ingress", true),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema", false),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "PriorityLevelConfiguration", false),
    ("networking.k8s.io/v1", "Ingress", true),
    ("networking.k8s.io/v1", "IngressClass", false),
    ("networking.k8s.io/v1", "NetworkPolicy", true),
    ("networking.k8s.io/v1beta1", "Ingress", true),
    ("networking.k8s.io/v1beta1", "IngressClass", false),
    ("node.k8s.io/v1", "RuntimeClass", false),
    ("node.k8s.io/v1beta1", "RuntimeClass", false),
    ("policy/v1", "PodDisruptionBudget", true),
    ("policy/v1beta1", "PodDisruptionBudget", true),
    ("policy/v1beta1", "PodSecurityPolicy", false),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", false),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", false),
    ("rbac.authorization.k8s.io/v1", "Role", true),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", true),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRole", false),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBinding", false),
    ("rbac.authorization.k8s.io/v1beta1", "Role", true),
    ("rbac.authorization.k8s.io/v1beta1", "RoleBinding", true),
    ("scheduling.k8s.io/v1", "PriorityClass", false),
    ("scheduling.k8s.io/v1beta1", "PriorityClass", false),
    ("storage.k8s.io/v1", "CSIDriver", false),
    ("storage.k8s.io/v1", "CSINode", false),
    ("storage.k8s.io/v1", "StorageClass", false),
    ("storage.k8s.io/v1", "VolumeAttachment", false),
    ("storage.k8s.io/v1beta1", "CSIDriver", false),
    ("storage.k8s.io/v1beta1", "CSINode", false),
    ("storage.k8s.io/v1beta1", "CSIStorageCapacity", true),
    ("storage.k8s.io/v1beta1", "StorageClass", false),
    ("storage.k8s.io/v1beta1", "VolumeAttachment", false),
    ("v1", "ComponentStatus", false),
    ("v1", "ConfigMap", true),
    ("v1", "Endpoints", true),
    ("v1", "Event", true),
    ("v1", "LimitRange", true),
    ("v1", "Namespace", false),
    ("v1", "Node", false),
    ("v1", "NodeProxyOptions", false),
    ("v1", "PersistentVolume", false),
    ("v1", "PersistentVolumeClaim", true),
    ("v1", "Pod", true),
    ("v1", "PodAttachOptions", true),
    ("v1", "PodExecOptions", true),
    ("v1", "PodPortForwardOptions", true),
    ("v1", "PodProxyOptions", true),
    ("v1", "PodTemplate", true),
    ("v1", "ReplicationController", true),
    ("v1", "ResourceQuota", true),
    ("v1", "Secret", true),
    ("v1", "Service", true),
    ("v1", "ServiceAccount", true),
    ("v1", "ServiceProxyOptions", true),
];
