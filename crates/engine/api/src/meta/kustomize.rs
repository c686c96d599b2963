//! Patches and images as kustomize knows them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::AnyValue;

/// Selects objects. All given fields must match; texts are anchored regular expressions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchTarget {
    /// Selects by annotations, in the syntax of label selectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotation_selector: Option<String>,
    /// The API group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Kind of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Selects by labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// Name, as a regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace, as a regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Replacement of an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Digest that replaces the tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Name of the image to replace.
    pub name: String,
    /// Name to use instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_name: Option<String>,
    /// Tag to use instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_tag: Option<String>,
}

/// A patch and the objects it is for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Patch {
    /// A strategic merge patch or a JSON 6902 patch, as YAML or JSON text.
    pub patch: String,
    /// Which objects get the patch; read from the patch when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<PatchTarget>,
}

/// A JSON 6902 patch and the objects it is for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Json6902Patch {
    /// The patch.
    pub patch: Vec<Json6902Operation>,
    /// Which objects get the patch.
    pub target: PatchTarget,
}

/// One operation of a JSON 6902 patch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Json6902Operation {
    /// Path of the value to move or copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What to do.
    pub op: Op,
    /// JSON pointer of the value.
    pub path: String,
    /// The value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<AnyValue>,
}

/// Operations of a JSON 6902 patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Op {
    #[serde(rename = "test")]
    Test,
    #[serde(rename = "remove")]
    Remove,
    #[serde(rename = "add")]
    Add,
    #[serde(rename = "replace")]
    Replace,
    #[serde(rename = "move")]
    Move,
    #[serde(rename = "copy")]
    Copy,
}
