//! `FluxReport`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, Definition};
use crate::meta::condition::Condition;
use crate::resource::{Object, Resource, Scope};

/// What Flux is doing in this cluster.
pub type FluxReport = Object<FluxReportSpec, FluxReportStatus>;

impl Resource for FluxReport {
    const GROUP: &'static str = "fluxcd.controlplane.io";
    const KIND: &'static str = "FluxReport";
    const PLURAL: &'static str = "fluxreports";
    const VERSIONS: &'static [&'static str] = &["v1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`FluxReport`].
pub(crate) fn definition() -> Definition {
    Definition::of::<FluxReport>()
        .categories(&["fluxcd"])
        .column(Column::new("Entitlement", "string", ".spec.distribution.entitlement").priority(10))
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .column(Column::new(
            "LastUpdated",
            "string",
            r#".status.conditions[?(@.type=="Ready")].lastTransitionTime"#,
        ))
        .status_subresource()
        .rule("self.metadata.name == 'flux'", "the only accepted name for a FluxReport is 'flux'")
}

/// What is going on in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FluxReportSpec {
    /// Facts about the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterReport>,
    /// State of each controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components: Option<Vec<ComponentReport>>,
    /// The distribution.
    pub distribution: DistributionReport,
    /// Facts about the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<OperatorReport>,
    /// Numbers per kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconcilers: Option<Vec<ReconcilerReport>>,
    /// State of the cluster's sync.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncReport>,
}

/// Facts about the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReport {
    /// How many nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<isize>,
    /// The platform.
    pub platform: String,
    /// Version of the API server.
    pub server_version: String,
}

/// State of a controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentReport {
    /// Image with digest.
    pub image: String,
    /// The name.
    pub name: String,
    /// Whether it is ready.
    pub ready: bool,
    /// The status.
    pub status: String,
}

/// Facts about the distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DistributionReport {
    /// Who issued the right to use the distribution.
    pub entitlement: String,
    /// What installed Flux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
    /// The status.
    pub status: String,
    /// The version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Facts about the operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorReport {
    /// API group and version of the object.
    pub api_version: String,
    /// The platform.
    pub platform: String,
    /// The version.
    pub version: String,
}

/// State of all objects of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReconcilerReport {
    /// API group and version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// The numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<ReconcilerStats>,
}

/// Numbers of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReconcilerStats {
    /// How many are not ready.
    pub failing: isize,
    /// How many are active.
    pub running: isize,
    /// How many are suspended.
    pub suspended: isize,
    /// Human-readable size of all artifacts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_size: Option<String>,
}

/// State of the cluster's sync.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncReport {
    /// The sync object as `kind/namespace/name`.
    pub id: String,
    /// Directory that is synced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether it is ready.
    pub ready: bool,
    /// Address of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The status.
    pub status: String,
}

/// State of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FluxReportStatus {
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// The last reconcile request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}
