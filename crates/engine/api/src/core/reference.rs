//! References as Kubernetes' core types spell them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An object in the same namespace, as Kubernetes' core types name it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct CoreObjectReference {
    /// The name.
    #[serde(default)]
    pub name: String,
}

/// One key of a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ConfigMapKeySelector {
    /// The key.
    pub key: String,
    /// The name.
    #[serde(default)]
    pub name: String,
    /// Do without when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}
