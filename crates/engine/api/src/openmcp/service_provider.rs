//! `ServiceProvider`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, Definition};
use crate::meta::condition::Condition;
use crate::openmcp::provider_deployment::{ProviderDeploymentSpec, ProviderMetricsStatus};
use crate::resource::{Object, Resource, Scope};

/// Runs a provider of a service.
pub type ServiceProvider = Object<ProviderDeploymentSpec, ServiceProviderStatus>;

impl Resource for ServiceProvider {
    const GROUP: &'static str = "openmcp.cloud";
    const KIND: &'static str = "ServiceProvider";
    const PLURAL: &'static str = "serviceproviders";
    const VERSIONS: &'static [&'static str] = &["v1alpha1"];
    const SCOPE: Scope = Scope::Cluster;
}

/// The CRD of [`ServiceProvider`].
pub(crate) fn definition() -> Definition {
    Definition::of::<ServiceProvider>()
        .label("openmcp.cloud/cluster", "platform")
        .column(Column::new("Phase", "string", ".status.phase"))
        .selectable(".status.phase")
        .status_subresource()
}

/// State of a service provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceProviderStatus {
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
    /// The resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<OfferedResource>>,
}

/// A kind the provider serves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedResource {
    /// The API group.
    pub group: String,
    /// Kind of the object.
    pub kind: String,
    /// The version.
    pub version: String,
}
