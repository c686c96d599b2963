//! `ArtifactGenerator`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, Definition};
use crate::meta::condition::Condition;
use crate::meta::metadata::CommonMetadata;
use crate::resource::{Object, Resource, Scope};

/// Makes artifacts from parts of other sources.
pub type ArtifactGenerator = Object<ArtifactGeneratorSpec, ArtifactGeneratorStatus>;

impl Resource for ArtifactGenerator {
    const GROUP: &'static str = "source.extensions.fluxcd.io";
    const KIND: &'static str = "ArtifactGenerator";
    const PLURAL: &'static str = "artifactgenerators";
    const VERSIONS: &'static [&'static str] = &["v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`ArtifactGenerator`].
pub(crate) fn definition() -> Definition {
    Definition::of::<ArtifactGenerator>()
        .short_names(&["ag"])
        .categories(&["all", "fluxcd", "fluxcd-sources"])
        .annotation("kustomize.toolkit.fluxcd.io/substitute", "disabled")
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .status_subresource()
}

/// How artifacts are put together from sources.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "artifact names must be valid Kubernetes object names when pathPattern is not set", "rule": r"has(self.pathPattern) && size(self.pathPattern) > 0 || self.artifacts.all(a, a.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'))"},
]))]
pub struct ArtifactGeneratorSpec {
    /// The artifacts to produce.
    #[schemars(length(min = 1, max = 1000))]
    pub artifacts: Vec<OutputArtifact>,
    /// Labels and annotations for the generated objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_metadata: Option<CommonMetadata>,
    /// Pattern of directories; each match yields its own artifacts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024), regex(pattern = "^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)/(.*)$"))]
    pub path_pattern: Option<String>,
    /// The sources.
    #[schemars(length(min = 1, max = 1000))]
    pub sources: Vec<SourceAlias>,
}

/// An artifact to produce.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputArtifact {
    /// What to copy into the artifact, in order.
    #[schemars(length(min = 1))]
    pub copy: Vec<CopyOperation>,
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The source whose origin revision is carried along: `@alias`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = "^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)$"))]
    pub origin_revision: Option<String>,
    /// The source whose revision the artifact gets: `@alias`. By content when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = "^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)$"))]
    pub revision: Option<String>,
}

/// One copy from a source into an artifact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CopyOperation {
    /// What to leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub exclude: Option<Vec<String>>,
    /// What to copy: `@alias/pattern`.
    #[schemars(length(min = 1, max = 1024), regex(pattern = "^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)/(.*)$"))]
    pub from: String,
    /// What happens to files that exist already, or to archives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<CopyStrategy>,
    /// Where to put it: `@artifact/path`.
    #[schemars(length(min = 1, max = 1024), regex(pattern = "^@(artifact)/(.*)$"))]
    pub to: String,
}

/// What happens to files that exist, or to archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum CopyStrategy {
    Overwrite,
    Merge,
    Extract,
}

/// A source and the name it goes by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "a kind that is not one of Flux's own needs an apiVersion", "rule": "self.kind in ['Bucket', 'GitRepository', 'OCIRepository', 'HelmChart', 'ExternalArtifact'] || has(self.apiVersion)"},
]))]
pub struct SourceAlias {
    /// The name by which the rest of the spec refers to this source.
    #[schemars(length(max = 63), regex(pattern = "^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$"))]
    pub alias: String,
    /// Kind of the source.
    pub kind: String,
    /// The name.
    #[schemars(length(max = 253), regex(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: Option<String>,
    /// API group and version of the source. Needed for kinds outside Flux's source group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
}

/// What was produced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactGeneratorStatus {
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// The objects that are managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory: Option<Vec<GeneratedArtifact>>,
    /// The last reconcile request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// Digest over the sources used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_sources_digest: Option<String>,
}

/// An artifact that was produced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GeneratedArtifact {
    /// Digest of the artifact file.
    pub digest: String,
    /// Name of the file in the store.
    pub filename: String,
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    pub namespace: String,
}
