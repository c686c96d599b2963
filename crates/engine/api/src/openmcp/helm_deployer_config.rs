//! `HelmDeployerConfig`

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::Definition;
use crate::openmcp::selector::SelectorDefinition;
use crate::resource::{NoStatus, Object, Resource, Scope};

/// Settings of the Helm deployer.
pub type HelmDeployerConfig = Object<HelmDeployerConfigSpec, NoStatus>;

impl Resource for HelmDeployerConfig {
    const GROUP: &'static str = "helm.open-control-plane.io";
    const KIND: &'static str = "HelmDeployerConfig";
    const PLURAL: &'static str = "helmdeployerconfigs";
    const VERSIONS: &'static [&'static str] = &["v1alpha1"];
    const SCOPE: Scope = Scope::Cluster;
}

/// The CRD of [`HelmDeployerConfig`].
pub(crate) fn definition() -> Definition {
    Definition::of::<HelmDeployerConfig>().short_names(&["hdcfg"]).label("openmcp.cloud/cluster", "platform")
}

/// Settings of the Helm deployer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmDeployerConfigSpec {
    /// How often the generated releases are reconciled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm_release_reconciliation_intervals: Option<ReconciliationIntervals>,
    /// Selectors by name, for use in deployments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector_definitions: Option<BTreeMap<String, SelectorDefinition>>,
}

/// Intervals by kind of source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReconciliationIntervals {
    /// Used where nothing more specific is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// For charts from Git repositories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
    /// For charts from Helm repositories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm: Option<String>,
    /// For charts from OCI repositories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oci: Option<String>,
}
