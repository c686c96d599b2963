//! Dependencies and health expressions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An object of the same kind that must be ready first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyReference {
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// CEL expression over `self` and `dep` that decides whether the dependency is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_expr: Option<String>,
}

/// Judges the health of one kind of object by expressions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomHealthCheck {
    /// API group and version of the objects that are judged.
    pub api_version: String,
    /// CEL expression that is true when the object is as wanted.
    pub current: String,
    /// CEL expression that is true when the object has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// CEL expression that is true while the object is on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<String>,
    /// Kind of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}
