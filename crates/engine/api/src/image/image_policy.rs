//! `ImagePolicy`

use fl_types::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition};
use crate::image::image_reference::ImageRef;
use crate::meta::condition::Condition;
use crate::meta::range::VersionRange;
use crate::resource::{Object, Resource, Scope};

/// Chooses one image from the tags of a repository.
pub type ImagePolicy = Object<ImagePolicySpec, ImagePolicyStatus>;

impl Resource for ImagePolicy {
    const GROUP: &'static str = "image.toolkit.fluxcd.io";
    const KIND: &'static str = "ImagePolicy";
    const PLURAL: &'static str = "imagepolicies";
    const VERSIONS: &'static [&'static str] = &["v1", "v1beta2", "v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`ImagePolicy`].
pub(crate) fn definition() -> Definition {
    Definition::of::<ImagePolicy>()
        .short_names(&["imgpol", "imagepol"])
        .categories(&["all", "fluxcd", "fluxcd-images"])
        .column(Column::new("Image", "string", ".status.latestRef.name"))
        .column(Column::new("Tag", "string", ".status.latestRef.tag"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .status_subresource()
        .unobserved_until_reconciled()
}

/// How one image is chosen from the tags of a repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "spec.interval is only accepted when spec.digestReflectionPolicy is set to 'Always'", "rule": "!has(self.interval) || (has(self.digestReflectionPolicy) && self.digestReflectionPolicy == 'Always')"},
    {"message": "spec.interval must be set when spec.digestReflectionPolicy is set to 'Always'", "rule": "has(self.interval) || !has(self.digestReflectionPolicy) || self.digestReflectionPolicy != 'Always'"},
]))]
pub struct ImagePolicySpec {
    /// Whether the digest of the selected image is looked up.
    #[serde(default)]
    pub digest_reflection_policy: DigestReflectionPolicy,
    /// Which tags are considered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter_tags: Option<TagFilter>,
    /// The ImageRepository whose tags are judged.
    pub image_repository_ref: ImageRepositoryReference,
    /// How often to reconcile.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub interval: Option<Duration>,
    /// How the tag is chosen.
    pub policy: PolicyChoice,
    /// Stop reconciling, keep everything as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
}

/// When a digest is looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DigestReflectionPolicy {
    Always,
    IfNotPresent,
    #[default]
    Never,
}

/// Filters tags and extracts what is compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TagFilter {
    /// What of a matching tag is compared; refers to groups of the pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extract: Option<String>,
    /// Regular expression of tags to consider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// An ImageRepository, perhaps in another namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageRepositoryReference {
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// The rule that chooses a tag. Exactly one of the fields is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyChoice {
    /// Order the tags as texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alphabetical: Option<AlphabeticalPolicy>,
    /// Order the tags as numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numerical: Option<NumericalPolicy>,
    /// Semver range; the highest matching tag is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semver: Option<SemVerPolicy>,
}

/// Chooses by alphabetical order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlphabeticalPolicy {
    /// Whether the largest or the smallest wins.
    #[serde(default)]
    pub order: SortOrder,
}

/// Which end of the order wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SortOrder {
    #[default]
    #[serde(rename = "asc")]
    Asc,
    #[serde(rename = "desc")]
    Desc,
}

/// Chooses by numerical order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NumericalPolicy {
    /// Whether the largest or the smallest wins.
    #[serde(default)]
    pub order: SortOrder,
}

/// Chooses by version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SemVerPolicy {
    /// Semver range; the highest version in it wins.
    pub range: VersionRange,
}

/// The chosen image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImagePolicyStatus {
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// The last reconcile request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The selected image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_ref: Option<ImageRef>,
    /// The generation this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The image selected before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_previous_ref: Option<ImageRef>,
    /// The selected image as older versions wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_image: Option<String>,
    /// The image selected before, as older versions wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_previous_image: Option<String>,
}
