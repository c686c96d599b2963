//! `ClusterProvider`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, Definition};
use crate::openmcp::provider_deployment::{ProviderDeploymentSpec, ProviderDeploymentStatus};
use crate::resource::{Object, Resource, Scope};

/// Runs a provider of clusters.
pub type ClusterProvider = Object<ProviderDeploymentSpec, ClusterProviderStatus>;

impl Resource for ClusterProvider {
    const GROUP: &'static str = "openmcp.cloud";
    const KIND: &'static str = "ClusterProvider";
    const PLURAL: &'static str = "clusterproviders";
    const VERSIONS: &'static [&'static str] = &["v1alpha1"];
    const SCOPE: Scope = Scope::Cluster;
}

/// The CRD of [`ClusterProvider`].
pub(crate) fn definition() -> Definition {
    Definition::of::<ClusterProvider>()
        .label("openmcp.cloud/cluster", "platform")
        .column(Column::new("Phase", "string", ".status.phase"))
        .selectable(".status.phase")
        .status_subresource()
}

/// State of the provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ClusterProviderStatus(pub ProviderDeploymentStatus);
