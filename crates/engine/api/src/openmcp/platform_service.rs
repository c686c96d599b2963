//! `PlatformService`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, Definition};
use crate::openmcp::provider_deployment::{ProviderDeploymentSpec, ProviderDeploymentStatus};
use crate::resource::{Object, Resource, Scope};

/// Runs a platform service.
pub type PlatformService = Object<ProviderDeploymentSpec, PlatformServiceStatus>;

impl Resource for PlatformService {
    const GROUP: &'static str = "openmcp.cloud";
    const KIND: &'static str = "PlatformService";
    const PLURAL: &'static str = "platformservices";
    const VERSIONS: &'static [&'static str] = &["v1alpha1"];
    const SCOPE: Scope = Scope::Cluster;
}

/// The CRD of [`PlatformService`].
pub(crate) fn definition() -> Definition {
    Definition::of::<PlatformService>()
        .label("openmcp.cloud/cluster", "platform")
        .column(Column::new("Phase", "string", ".status.phase"))
        .selectable(".status.phase")
        .status_subresource()
}

/// State of the provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PlatformServiceStatus(pub ProviderDeploymentStatus);
