//! `HelmDeployment`

use fl_types::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition};
use crate::helm::actions::{Install, Rollback, Test, Uninstall, Upgrade, WaitStrategy};
use crate::meta::AnyObject;
use crate::meta::condition::Condition;
use crate::meta::health::CustomHealthCheck;
use crate::meta::metadata::CommonMetadata;
use crate::openmcp::selector::{ClusterSelector, SecretsToCopy};
use crate::resource::{Object, Resource, Scope};
use crate::source::git_repository::GitRepositorySpec;
use crate::source::helm_repository::HelmRepositorySpec;
use crate::source::oci_repository::OCIRepositorySpec;

/// A chart for many clusters.
pub type HelmDeployment = Object<HelmDeploymentSpec, HelmDeploymentStatus>;

impl Resource for HelmDeployment {
    const GROUP: &'static str = "helm.open-control-plane.io";
    const KIND: &'static str = "HelmDeployment";
    const PLURAL: &'static str = "helmdeployments";
    const VERSIONS: &'static [&'static str] = &["v1alpha1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`HelmDeployment`].
pub(crate) fn definition() -> Definition {
    Definition::of::<HelmDeployment>()
        .short_names(&["hd", "hdeploy", "helmdeploy"])
        .label("openmcp.cloud/cluster", "platform")
        .column(Column::new("Phase", "string", ".status.phase"))
        .selectable(".status.phase")
        .status_subresource()
}

/// A chart for many clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmDeploymentSpec {
    /// Where the chart comes from.
    pub chart_source: ChartSource,
    /// Labels and annotations for every object that is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_metadata: Option<CommonMetadata>,
    /// CEL expressions that judge the health of custom resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check_exprs: Option<Vec<CustomHealthCheck>>,
    /// Values for the release; placeholders are filled per cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm_values: Option<AnyObject>,
    /// How the chart is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<Install>,
    /// How often to reconcile.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub interval: Option<Duration>,
    /// Namespace on the target cluster.
    #[schemars(regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: String,
    /// Name of the Helm release. Defaults to the names of namespace and object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 53))]
    pub release_name: Option<String>,
    /// How a rollback is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback: Option<Rollback>,
    /// Secrets that are copied along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secrets_to_copy: Option<SecretsToCopy>,
    /// Which clusters get the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<ClusterSelector>,
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
    /// How readiness is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_strategy: Option<WaitStrategy>,
}

/// The source of a chart. Exactly one of git, helm and oci is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "chartName must be set for git and helm sources", "rule": "(has(self.git) || has(self.helm)) ? (has(self.chartName) && size(self.chartName) > 0) : true"},
    {"message": "exactly one of the fields in [helm git oci] must be set", "rule": "[has(self.helm),has(self.git),has(self.oci)].filter(x,x==true).size() == 1"},
]))]
pub struct ChartSource {
    /// Name of the chart in the source, optionally `name@version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart_name: Option<String>,
    /// From a Git repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitRepositorySpec>,
    /// From a Helm repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm: Option<HelmRepositorySpec>,
    /// From an OCI repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oci: Option<OCIRepositorySpec>,
}

/// State of the deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmDeploymentStatus {
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// The generation this status is about.
    pub observed_generation: i64,
    /// The phase.
    pub phase: String,
}
