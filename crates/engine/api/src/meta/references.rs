//! References between objects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An object in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalObjectReference {
    /// Name of the object, in the same namespace.
    pub name: String,
}

/// An object of any kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnyObjectReference {
    /// API group and version of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the object.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// An object of any kind, perhaps in another namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectKindReference {
    /// API group and version of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the object.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// One key of a Secret in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyReference {
    /// Key in the Secret's data. Tried when absent: `value`, then `value.yaml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The name.
    pub name: String,
}

/// Kinds that hold data by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ValuesKind {
    Secret,
    ConfigMap,
}

/// A source in any namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "a kind that is not one of Flux's own needs an apiVersion", "rule": "self.kind in ['HelmRepository', 'GitRepository', 'Bucket'] || has(self.apiVersion)"},
]))]
pub struct SourceReference {
    /// API group and version of the source. Needed for kinds outside Flux's source group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the source: a Flux kind, or any kind that owns an artifact when `apiVersion` is given.
    pub kind: String,
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}
