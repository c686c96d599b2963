//! `ClusterRequest`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, Definition};
use crate::meta::condition::Condition;
use crate::resource::{Object, Resource, Scope};

/// Asks for a cluster.
pub type ClusterRequest = Object<ClusterRequestSpec, ClusterRequestStatus>;

impl Resource for ClusterRequest {
    const GROUP: &'static str = "clusters.openmcp.cloud";
    const KIND: &'static str = "ClusterRequest";
    const PLURAL: &'static str = "clusterrequests";
    const VERSIONS: &'static [&'static str] = &["v1alpha1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`ClusterRequest`].
pub(crate) fn definition() -> Definition {
    Definition::of::<ClusterRequest>()
        .short_names(&["cr", "creq"])
        .label("openmcp.cloud/cluster", "platform")
        .column(Column::new("Purpose", "string", ".spec.purpose"))
        .column(Column::new("Phase", "string", ".status.phase"))
        .column(Column::new("Cluster", "string", ".status.cluster.name"))
        .column(Column::new("Cluster-NS", "string", ".status.cluster.namespace"))
        .selectable(".spec.purpose")
        .selectable(".status.phase")
        .status_subresource()
}

/// What a cluster is needed for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "spec is immutable", "rule": "self == oldSelf"},
]))]
pub struct ClusterRequestSpec {
    /// What the cluster is for.
    #[schemars(length(min = 1))]
    pub purpose: String,
    /// Keep the request until its cluster is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for_cluster_deletion: Option<bool>,
}

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "cluster may not be removed once set", "rule": "!has(oldSelf.cluster) || has(self.cluster)"},
]))]
pub struct ClusterRequestStatus {
    /// The cluster that serves this request. Fixed once set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<AssignedCluster>,
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// The generation this status is about.
    pub observed_generation: i64,
    /// The phase.
    pub phase: String,
}

/// The cluster that was assigned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "cluster is immutable", "rule": "self == oldSelf"},
]))]
pub struct AssignedCluster {
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    pub namespace: String,
}
