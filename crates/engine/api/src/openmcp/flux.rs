//! `Flux`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, Definition};
use crate::meta::condition::Condition;
use crate::resource::{Object, Resource, Scope};

/// Flux for a managed control plane.
pub type Flux = Object<FluxSpec, FluxStatus>;

impl Resource for Flux {
    const GROUP: &'static str = "flux.services.open-control-plane.io";
    const KIND: &'static str = "Flux";
    const PLURAL: &'static str = "fluxes";
    const VERSIONS: &'static [&'static str] = &["v1alpha1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`Flux`].
pub(crate) fn definition() -> Definition {
    Definition::of::<Flux>()
        .label("openmcp.cloud/cluster", "onboarding")
        .column(Column::new("Phase", "string", ".status.phase"))
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .status_subresource()
        .spec_required()
}

/// The Flux that a control plane should have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FluxSpec {
    /// Version of Flux; one that the provider offers.
    pub version: String,
}

/// The state of the service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FluxStatus {
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// The generation this status is about.
    pub observed_generation: i64,
    /// The phase.
    pub phase: String,
    /// The resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<ManagedResource>>,
}

/// An object made for the service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedResource {
    /// The API group; empty is the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Kind of the object.
    pub kind: String,
    /// Where the object lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Human-readable message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The phase.
    pub phase: String,
}
