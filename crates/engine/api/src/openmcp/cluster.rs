//! `Cluster`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::reference::CoreObjectReference;
use crate::crd::{Column, Definition};
use crate::meta::AnyObject;
use crate::meta::condition::Condition;
use crate::resource::{Object, Resource, Scope};

/// A cluster of the platform.
pub type Cluster = Object<ClusterSpec, ClusterStatus>;

impl Resource for Cluster {
    const GROUP: &'static str = "clusters.openmcp.cloud";
    const KIND: &'static str = "Cluster";
    const PLURAL: &'static str = "clusters";
    const VERSIONS: &'static [&'static str] = &["v1alpha1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`Cluster`].
pub(crate) fn definition() -> Definition {
    Definition::of::<Cluster>()
        .label("openmcp.cloud/cluster", "platform")
        .column(Column::new("Purposes", "string", ".spec.purposes"))
        .column(Column::new("Phase", "string", ".status.phase"))
        .column(Column::new("Version", "string", r".metadata.labels.clusters\.openmcp\.cloud/k8sversion"))
        .column(Column::new("Provider", "string", r".metadata.labels.clusters\.openmcp\.cloud/provider"))
        .column(Column::new("Profile", "string", ".spec.profile").priority(10))
        .column(
            Column::new("Info", "string", r".metadata.annotations.clusters\.openmcp\.cloud/providerinfo")
                .priority(10),
        )
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .selectable(".spec.profile")
        .status_subresource()
}

/// The wanted cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Configurations of the cluster provider to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_configs: Option<Vec<CoreObjectReference>>,
    /// The wanted Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesConfiguration>,
    /// The cluster profile. Fixed once set.
    #[schemars(extend("x-kubernetes-validations" = [{"message": "profile is immutable", "rule": "self == oldSelf"}]))]
    pub profile: String,
    /// What the cluster is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub purposes: Option<Vec<String>>,
    /// Whether the cluster may be shared.
    pub tenancy: Tenancy,
}

/// The wanted Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesConfiguration {
    /// The version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Whether a cluster may be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Tenancy {
    Exclusive,
    Shared,
}

/// The state of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// Address of the API server. Use the endpoints instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server: Option<String>,
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Addresses under which the cluster is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<Endpoint>>,
    /// The generation this status is about.
    pub observed_generation: i64,
    /// The phase.
    pub phase: String,
    /// Whatever the cluster provider reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_status: Option<AnyObject>,
}

/// An address of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// The name.
    pub name: String,
    /// The address.
    pub url: String,
}
