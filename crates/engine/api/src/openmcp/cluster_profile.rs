//! `ClusterProfile`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::reference::CoreObjectReference;
use crate::crd::{Column, Definition};
use crate::resource::{NoStatus, Object, Resource, Scope};

/// What a cluster provider offers.
pub type ClusterProfile = Object<ClusterProfileSpec, NoStatus>;

impl Resource for ClusterProfile {
    const GROUP: &'static str = "clusters.openmcp.cloud";
    const KIND: &'static str = "ClusterProfile";
    const PLURAL: &'static str = "clusterprofiles";
    const VERSIONS: &'static [&'static str] = &["v1alpha1"];
    const SCOPE: Scope = Scope::Cluster;
}

/// The CRD of [`ClusterProfile`].
pub(crate) fn definition() -> Definition {
    Definition::of::<ClusterProfile>()
        .short_names(&["cprof", "profile"])
        .label("openmcp.cloud/cluster", "platform")
        .column(Column::new("Provider", "string", ".spec.providerRef.name"))
        .column(Column::new("Config", "string", ".spec.providerConfigRef.name"))
        .selectable(".spec.providerRef.name")
        .selectable(".spec.providerConfigRef.name")
}

/// What a provider offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterProfileSpec {
    /// The provider's configuration.
    pub provider_config_ref: CoreObjectReference,
    /// The provider.
    pub provider_ref: CoreObjectReference,
    /// Kubernetes versions on offer.
    pub supported_versions: Vec<SupportedVersion>,
}

/// A Kubernetes version on offer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupportedVersion {
    /// Whether the version should no longer be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<bool>,
    /// The version.
    #[schemars(length(min = 5))]
    pub version: String,
}
