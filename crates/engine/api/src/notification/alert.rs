//! `Alert`

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, Definition};
use crate::meta::references::LocalObjectReference;
use crate::resource::{NoStatus, Object, Resource, Scope};

/// Forwards events to a provider.
pub type Alert = Object<AlertSpec, NoStatus>;

impl Resource for Alert {
    const GROUP: &'static str = "notification.toolkit.fluxcd.io";
    const KIND: &'static str = "Alert";
    const PLURAL: &'static str = "alerts";
    const VERSIONS: &'static [&'static str] = &["v1beta3", "v1beta2", "v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`Alert`].
pub(crate) fn definition() -> Definition {
    Definition::of::<Alert>()
        .categories(&["all", "fluxcd", "fluxcd-notifications"])
        .annotation("kustomize.toolkit.fluxcd.io/substitute", "disabled")
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
}

/// Which events go to which provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlertSpec {
    /// Data added to every event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_metadata: Option<BTreeMap<String, String>>,
    /// Lowest severity that is sent.
    #[serde(default)]
    pub event_severity: EventSeverity,
    /// Whose events are sent.
    pub event_sources: Vec<EventSource>,
    /// Regular expressions; what matches one is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclusion_list: Option<Vec<String>>,
    /// Regular expressions; only messages that match one are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inclusion_list: Option<Vec<String>>,
    /// The Provider that gets the events.
    pub provider_ref: LocalObjectReference,
    /// Text added to every event. Use `eventMetadata`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub summary: Option<String>,
    /// Stop reconciling, keep everything as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
}

/// Severities of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EventSeverity {
    #[default]
    #[serde(rename = "info")]
    Info,
    #[serde(rename = "error")]
    Error,
}

/// Objects whose events are sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "a kind that is not one of Flux's own needs an apiVersion", "rule": "self.kind in ['Bucket', 'GitRepository', 'Kustomization', 'HelmRelease', 'HelmChart', 'HelmRepository', 'ImageRepository', 'ImagePolicy', 'ImageUpdateAutomation', 'OCIRepository', 'ArtifactGenerator', 'ExternalArtifact', 'FluxInstance', 'ResourceSet', 'ResourceSetInputProvider'] || has(self.apiVersion)"},
]))]
pub struct EventSource {
    /// API group and version of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the objects. Kinds Flux does not know need an `apiVersion`.
    pub kind: String,
    /// Labels that must be present with these values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Name of the objects; `*` for all.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub namespace: Option<String>,
}
