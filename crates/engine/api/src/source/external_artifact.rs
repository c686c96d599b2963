//! `ExternalArtifact`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, Definition};
use crate::meta::artifact::Artifact;
use crate::meta::condition::Condition;
use crate::meta::references::AnyObjectReference;
use crate::resource::{Object, Resource, Scope};

/// An artifact made by a third party.
pub type ExternalArtifact = Object<ExternalArtifactSpec, ExternalArtifactStatus>;

impl Resource for ExternalArtifact {
    const GROUP: &'static str = "source.toolkit.fluxcd.io";
    const KIND: &'static str = "ExternalArtifact";
    const PLURAL: &'static str = "externalartifacts";
    const VERSIONS: &'static [&'static str] = &["v1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`ExternalArtifact`].
pub(crate) fn definition() -> Definition {
    Definition::of::<ExternalArtifact>()
        .short_names(&["ea"])
        .categories(&["all", "fluxcd", "fluxcd-sources"])
        .annotation("kustomize.toolkit.fluxcd.io/substitute", "disabled")
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .column(Column::new("Source", "string", ".spec.sourceRef.name"))
        .status_subresource()
}

/// Where an artifact made by a third party comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalArtifactSpec {
    /// The object this artifact was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_ref: Option<AnyObjectReference>,
}

/// The artifact itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalArtifactStatus {
    /// The last artifact that was produced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}
