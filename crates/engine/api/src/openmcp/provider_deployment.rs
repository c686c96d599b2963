//! What all providers have in common.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::reference::CoreObjectReference;
use crate::core::volume::{TopologySpreadConstraint, Volume, VolumeMount};
use crate::meta::condition::Condition;

/// How a provider is run on the platform cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderDeploymentSpec {
    /// Extra environment variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Option<Vec<EnvVar>>,
    /// Further mounts of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["mountPath"]))]
    pub extra_volume_mounts: Option<Vec<VolumeMount>>,
    /// Further volumes of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub extra_volumes: Option<Vec<Volume>>,
    /// The provider's image.
    #[schemars(length(min = 1))]
    pub image: String,
    /// Secrets with registry credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_secrets: Option<Vec<CoreObjectReference>>,
    /// Arguments of the init run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_command: Option<Vec<String>>,
    /// How metrics are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<ProviderMetrics>,
    /// Arguments of the controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_command: Option<Vec<String>>,
    /// How many replicas run; more than one elect a leader.
    #[serde(default = "default_run_replicas")]
    #[schemars(range(min = 1))]
    pub run_replicas: i32,
    /// How pods are spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["topologyKey"]))]
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    /// How much is logged.
    #[serde(default)]
    pub verbosity: Verbosity,
}

/// An environment variable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// The name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// How metrics are served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderMetrics {
    /// Turns it off.
    #[serde(default)]
    #[schemars(extend("x-required" = true))]
    pub disabled: bool,
    /// HTTP path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

/// Log levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Verbosity {
    #[serde(rename = "DEBUG")]
    Debug,
    #[default]
    #[serde(rename = "INFO")]
    Info,
    #[serde(rename = "ERROR")]
    Error,
    #[serde(rename = "debug")]
    Debug_,
    #[serde(rename = "info")]
    Info_,
    #[serde(rename = "error")]
    Error_,
}

/// Where metrics are served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderMetricsStatus {
    /// The Service that serves metrics.
    pub service_ref: ServiceReference,
}

/// A Service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceReference {
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    pub namespace: String,
}

/// State of a provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderDeploymentStatus {
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// Metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<ProviderMetricsStatus>,
    /// The generation this status is about.
    pub observed_generation: i64,
    /// The phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

fn default_run_replicas() -> i32 {
    1
}
