//! `ProviderConfig`

use fl_types::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::reference::ConfigMapKeySelector;
use crate::crd::Definition;
use crate::meta::AnyValue;
use crate::meta::condition::Condition;
use crate::resource::{Object, Resource, Scope};

/// Settings of the Flux service provider.
pub type ProviderConfig = Object<ProviderConfigSpec, ProviderConfigStatus>;

impl Resource for ProviderConfig {
    const GROUP: &'static str = "flux.services.open-control-plane.io";
    const KIND: &'static str = "ProviderConfig";
    const PLURAL: &'static str = "providerconfigs";
    const VERSIONS: &'static [&'static str] = &["v1alpha1"];
    const SCOPE: Scope = Scope::Cluster;
}

/// The CRD of [`ProviderConfig`].
pub(crate) fn definition() -> Definition {
    Definition::of::<ProviderConfig>()
        .label("openmcp.cloud/cluster", "platform")
        .status_subresource()
        .spec_required()
}

/// Which versions of Flux are offered, and how they are installed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConfigSpec {
    /// ConfigMap key with extra certificate authorities for every controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_bundle_ref: Option<ConfigMapKeySelector>,
    /// How often the charts are checked.
    #[serde(default = "default_poll_interval")]
    #[schemars(extend("format" = "duration", "default" = "1m"))]
    pub poll_interval: Duration,
    /// Versions on offer.
    pub versions: Vec<FluxVersion>,
}

/// A version of Flux on offer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FluxVersion {
    /// Secret with registry credentials for the chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart_pull_secret: Option<String>,
    /// OCI address of the chart.
    #[serde(default = "default_chart_url")]
    pub chart_url: String,
    /// Version of the chart.
    pub chart_version: String,
    /// Values for the chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<AnyValue>,
    /// The version.
    pub version: String,
}

/// State of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConfigStatus {
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

fn default_poll_interval() -> Duration {
    Duration::from_mins(1)
}

fn default_chart_url() -> String {
    "oci://ghcr.io/fluxcd-community/charts/flux2".to_owned()
}
