//! `HelmChart`

use fl_types::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition};
use crate::meta::access::AccessFrom;
use crate::meta::artifact::Artifact;
use crate::meta::condition::Condition;
use crate::resource::{Object, Resource, Scope};
use crate::source::verification::HelmChartVerification;

/// A chart from a Helm repository, Git repository or bucket.
pub type HelmChart = Object<HelmChartSpec, HelmChartStatus>;

impl Resource for HelmChart {
    const GROUP: &'static str = "source.toolkit.fluxcd.io";
    const KIND: &'static str = "HelmChart";
    const PLURAL: &'static str = "helmcharts";
    const VERSIONS: &'static [&'static str] = &["v1", "v1beta2", "v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`HelmChart`].
pub(crate) fn definition() -> Definition {
    Definition::of::<HelmChart>()
        .short_names(&["hc"])
        .categories(&["all", "fluxcd", "fluxcd-sources"])
        .annotation("kustomize.toolkit.fluxcd.io/substitute", "disabled")
        .column(Column::new("Chart", "string", ".spec.chart"))
        .column(Column::new("Version", "string", ".spec.version"))
        .column(Column::new("Source Kind", "string", ".spec.sourceRef.kind"))
        .column(Column::new("Source Name", "string", ".spec.sourceRef.name"))
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .status_subresource()
        .unobserved_until_reconciled()
}

/// Which chart to fetch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "spec.verify is only supported when spec.sourceRef.kind is 'HelmRepository'", "rule": "!has(self.verify) || self.sourceRef.kind == 'HelmRepository'"},
]))]
pub struct HelmChartSpec {
    /// Name of the chart in a Helm repository, or its path in another source.
    pub chart: String,
    /// Skip values files that do not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_missing_values_files: Option<bool>,
    /// How often to reconcile.
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub interval: Duration,
    /// What makes a new chart: its version, or the revision of its source.
    #[serde(default)]
    pub reconcile_strategy: ReconcileStrategy,
    /// The source.
    pub source_ref: HelmChartSourceReference,
    /// Stop reconciling, keep everything as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Values files in the chart's source, later ones win.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values_files: Option<Vec<String>>,
    /// Which signatures are demanded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<HelmChartVerification>,
    /// Semver range of the chart; ignored for charts from Git and buckets.
    #[serde(default = "default_version")]
    pub version: String,
    /// Which namespaces may refer to this object. Kept so that objects written for older versions stay
    /// whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_from: Option<AccessFrom>,
    /// Values file of older versions. Use `valuesFiles`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values_file: Option<String>,
}

/// What makes a new chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ReconcileStrategy {
    #[default]
    ChartVersion,
    Revision,
}

/// The source of a chart, in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "a kind that is not one of Flux's own needs an apiVersion", "rule": "self.kind in ['HelmRepository', 'GitRepository', 'Bucket'] || has(self.apiVersion)"},
]))]
pub struct HelmChartSourceReference {
    /// API group and version of the source. Needed for kinds outside Flux's source group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the source: a Flux kind, or any kind that owns an artifact when `apiVersion` is given.
    pub kind: String,
    /// The name.
    pub name: String,
}

/// What was fetched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChartStatus {
    /// The last artifact that was produced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// The last reconcile request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// Name of the chart found last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_chart_name: Option<String>,
    /// The generation this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Revision of the source artifact used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_source_artifact_revision: Option<String>,
    /// The values files used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_values_files: Option<Vec<String>>,
    /// Address that always serves the newest artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

fn default_version() -> String {
    "*".to_owned()
}
