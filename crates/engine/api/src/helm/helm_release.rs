//! `HelmRelease`

use std::collections::BTreeMap;

use fl_types::Duration;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition};
use crate::helm::actions::{Install, Rollback, Test, Uninstall, Upgrade, WaitStrategy};
use crate::meta::AnyValue;
use crate::meta::condition::Condition;
use crate::meta::drift::IgnoreRule;
use crate::meta::health::{CustomHealthCheck, DependencyReference};
use crate::meta::inventory::ResourceInventory;
use crate::meta::kube_config::KubeConfigReference;
use crate::meta::kustomize::{Image, Json6902Patch, Patch};
use crate::meta::metadata::CommonMetadata;
use crate::meta::references::{LocalObjectReference, SourceReference, ValuesKind};
use crate::resource::{Object, Resource, Scope};
use crate::source::helm_chart::ReconcileStrategy;
use crate::source::verification::VerificationProvider;

/// Releases a Helm chart.
pub type HelmRelease = Object<HelmReleaseSpec, HelmReleaseStatus>;

impl Resource for HelmRelease {
    const GROUP: &'static str = "helm.toolkit.fluxcd.io";
    const KIND: &'static str = "HelmRelease";
    const PLURAL: &'static str = "helmreleases";
    const VERSIONS: &'static [&'static str] = &["v2", "v2beta2", "v2beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`HelmRelease`].
pub(crate) fn definition() -> Definition {
    Definition::of::<HelmRelease>()
        .short_names(&["hr"])
        .categories(&["all", "fluxcd", "fluxcd-appliers"])
        .annotation("kustomize.toolkit.fluxcd.io/substitute", "disabled")
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .status_subresource()
        .unobserved_until_reconciled()
}

/// Which chart to release, with which values, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "either chart or chartRef must be set", "rule": "(has(self.chart) && !has(self.chartRef)) || (!has(self.chart) && has(self.chartRef))"},
]))]
pub struct HelmReleaseSpec {
    /// Template of the HelmChart that is created for this release. Either this or `chartRef`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<HelmChartTemplate>,
    /// A source object that holds the chart. Either this or `chart`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart_ref: Option<ChartReference>,
    /// Labels and annotations for every object that is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_metadata: Option<CommonMetadata>,
    /// Objects that must be ready first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<DependencyReference>>,
    /// What to do when objects in the cluster differ from the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift_detection: Option<DriftDetection>,
    /// CEL expressions that judge the health of custom resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check_exprs: Option<Vec<CustomHealthCheck>>,
    /// How the chart is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<Install>,
    /// How often to reconcile.
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub interval: Duration,
    /// How to reach another cluster; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfigReference>,
    /// How many releases Helm keeps; 0 keeps all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_history: Option<isize>,
    /// Keep one Kubernetes client for the whole reconcile. On by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_client: Option<bool>,
    /// Which manifests are post-rendered: without hooks, together, or apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_render_strategy: Option<PostRenderStrategy>,
    /// Changes made to the rendered manifests, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_renderers: Option<Vec<PostRenderer>>,
    /// Name of the Helm release. Defaults to the names of namespace and object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 53))]
    pub release_name: Option<String>,
    /// How a rollback is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback: Option<Rollback>,
    /// ServiceAccount in whose name this is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,
    /// Namespace of Helm's records. Defaults to the own one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub storage_namespace: Option<String>,
    /// Stop reconciling, keep everything as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Namespace to put objects into.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target_namespace: Option<String>,
    /// How the chart's tests are run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<Test>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub timeout: Option<Duration>,
    /// How the release is uninstalled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uninstall: Option<Uninstall>,
    /// How the release is upgraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,
    /// Values for the chart. Win over `valuesFrom`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<AnyValue>,
    /// ConfigMaps and Secrets with values; later ones win.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values_from: Option<Vec<ValuesReference>>,
    /// How readiness is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_strategy: Option<WaitStrategy>,
}

/// The HelmChart that is created for a release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChartTemplate {
    /// Labels and annotations for the HelmChart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<CommonMetadata>,
    /// Spec of the HelmChart.
    pub spec: HelmChartTemplateSpec,
}

/// Spec of the HelmChart that is created for a release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChartTemplateSpec {
    /// Name of the chart in a Helm repository, or its path in another source.
    #[schemars(length(min = 1, max = 2048))]
    pub chart: String,
    /// Skip values files that do not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_missing_values_files: Option<bool>,
    /// How often to reconcile.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub interval: Option<Duration>,
    /// What makes a new chart: its version, or the revision of its source.
    #[serde(default)]
    pub reconcile_strategy: ReconcileStrategy,
    /// The source.
    pub source_ref: SourceReference,
    /// Values files in the chart's source, later ones win.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values_files: Option<Vec<String>>,
    /// Which signatures are demanded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<HelmChartTemplateVerification>,
    /// Semver range of the chart; ignored for charts from Git and buckets.
    #[serde(default = "default_version")]
    pub version: String,
    /// Values file of older versions. Use `valuesFiles`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values_file: Option<String>,
}

/// Demands signatures on the chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChartTemplateVerification {
    /// The signature format.
    #[serde(default)]
    #[schemars(extend("x-required" = true))]
    pub provider: VerificationProvider,
    /// Secret with the trusted public keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// A source object that holds a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "a kind that is not one of Flux's own needs an apiVersion", "rule": "self.kind in ['OCIRepository', 'HelmChart', 'ExternalArtifact'] || has(self.apiVersion)"},
]))]
pub struct ChartReference {
    /// API group and version of the source. Needed for kinds outside Flux's source group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the source: a Flux kind, or any kind that owns an artifact when `apiVersion` is given.
    pub kind: String,
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// What to do about changes made by others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftDetection {
    /// What is not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore: Option<Vec<IgnoreRule>>,
    /// Correct, only warn, or do not look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<DriftDetectionMode>,
}

/// What to do about drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DriftDetectionMode {
    #[serde(rename = "enabled")]
    Enabled,
    #[serde(rename = "warn")]
    Warn,
    #[serde(rename = "disabled")]
    Disabled,
}

/// Which manifests are post-rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PostRenderStrategy {
    #[serde(rename = "nohooks")]
    Nohooks,
    #[serde(rename = "combined")]
    Combined,
    #[serde(rename = "separate")]
    Separate,
}

/// One post-renderer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostRenderer {
    /// Changes made by kustomize.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kustomize: Option<KustomizePostRenderer>,
}

/// Changes made by kustomize.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizePostRenderer {
    /// Names, tags and digests of images to replace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<Image>>,
    /// Patches for matching objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches: Option<Vec<Patch>>,
    /// JSON 6902 patches of older versions. Use `patches`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches_json6902: Option<Vec<Json6902Patch>>,
    /// Strategic merge patches of older versions. Use `patches`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches_strategic_merge: Option<Vec<AnyValue>>,
}

/// A ConfigMap or Secret with values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValuesReference {
    /// Kind of the object.
    pub kind: ValuesKind,
    /// Take `targetPath` and value as they are, without Helm's syntax.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub literal: Option<bool>,
    /// Name of the ConfigMap or Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Do without when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
    /// Where the value is put, in Helm's syntax; merged at the root when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 250), regex(pattern = r"^([a-zA-Z0-9_\-.\\\/]|\[[0-9]{1,5}\])+$"))]
    pub target_path: Option<String>,
    /// Key that holds the values. Defaults to `values.yaml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), regex(pattern = r"^[\-._a-zA-Z0-9]+$"))]
    pub values_key: Option<String>,
}

/// What was released.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmReleaseStatus {
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// Failed tries since the last success or change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<i64>,
    /// Namespace and name of the HelmChart made for this release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm_chart: Option<String>,
    /// The releases made, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<ReleaseSnapshot>>,
    /// Failed installs since the last success or change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install_failures: Option<i64>,
    /// The objects that are managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory: Option<ResourceInventory>,
    /// Digest of the last attempted values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_config_digest: Option<String>,
    /// Last attempted generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_generation: Option<i64>,
    /// Last attempted action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_release_action: Option<ReleaseAction>,
    /// How long the last action took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_release_action_duration: Option<String>,
    /// Last attempted revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,
    /// Digest of the last attempted chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision_digest: Option<String>,
    /// Checksum of the values as older versions wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_values_checksum: Option<String>,
    /// The last force request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_force_at: Option<String>,
    /// The last reconcile request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The last reset request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reset_at: Option<String>,
    /// Revision of the last release as older versions wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_release_revision: Option<isize>,
    /// Digest of the common metadata applied last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_common_metadata_digest: Option<String>,
    /// The generation this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Digest of the post-renderers used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_post_renderers_digest: Option<String>,
    /// Namespace of Helm's records. Defaults to the own one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub storage_namespace: Option<String>,
    /// Failed upgrades since the last success or change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade_failures: Option<i64>,
    /// Revision applied last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,
}

/// One release in Helm's storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseSnapshot {
    /// The Helm action that produced this release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Version of the rules by which `digest` was computed; absent means the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// The application version the chart declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// Name of the chart.
    pub chart_name: String,
    /// Version of the chart.
    pub chart_version: String,
    /// Digest of the values the release was made with.
    pub config_digest: String,
    /// When the release was uninstalled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Timestamp>,
    /// Digest of the release as stored by Helm.
    pub digest: String,
    /// When the release was first installed.
    pub first_deployed: Timestamp,
    /// When the release was last deployed.
    pub last_deployed: Timestamp,
    /// The name.
    pub name: String,
    /// Namespace of the release.
    pub namespace: String,
    /// Digest of the OCI artifact the chart came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oci_digest: Option<String>,
    /// State of the release in Helm's words.
    pub status: String,
    /// How each test ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_hooks: Option<BTreeMap<String, TestHookStatus>>,
    /// Number of the release.
    pub version: isize,
}

/// How a test ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestHookStatus {
    /// When the hook last ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_completed: Option<Timestamp>,
    /// When the hook last started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_started: Option<Timestamp>,
    /// How the hook ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// Helm actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ReleaseAction {
    #[serde(rename = "install")]
    Install,
    #[serde(rename = "upgrade")]
    Upgrade,
}

fn default_version() -> String {
    "*".to_owned()
}
