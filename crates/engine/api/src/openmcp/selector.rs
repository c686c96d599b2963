//! Selection of clusters.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::reference::CoreObjectReference;

/// Secrets that are copied along.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretsToCopy {
    /// Secrets copied to the namespace on the platform cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_platform_cluster: Option<Vec<SecretCopy>>,
    /// Secrets copied to the target cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_target_cluster: Option<Vec<SecretCopy>>,
}

/// A Secret and the name of its copy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretCopy {
    /// Where from.
    pub source: CoreObjectReference,
    /// Name of the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<CoreObjectReference>,
}

/// Selects clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ClusterSelector {
    /// Requirements on labels; all must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Option<Vec<MatchExpression>>,
    /// Exactly these clusters. Absent means all, an empty list none; wins over the other fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_identities: Option<Vec<Identity>>,
    /// Labels that must be present with these values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Requirements on the cluster's purposes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_purposes: Option<Vec<PurposeRequirement>>,
    /// Name of a shared selector definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#ref: Option<String>,
}

/// One requirement on a label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MatchExpression {
    /// The key.
    pub key: String,
    /// How key and values relate.
    pub operator: String,
    /// The values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Option<Vec<String>>,
}

/// A cluster by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    pub namespace: String,
}

/// One requirement on the purposes of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PurposeRequirement {
    /// How key and values relate.
    pub operator: String,
    /// The values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Option<Vec<String>>,
}

/// A selector that deployments can name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SelectorDefinition {
    /// Requirements on labels; all must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Option<Vec<MatchExpression>>,
    /// Exactly these clusters. Absent means all, an empty list none; wins over the other fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_identities: Option<Vec<Identity>>,
    /// Labels that must be present with these values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Requirements on the cluster's purposes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_purposes: Option<Vec<PurposeRequirement>>,
    /// Secrets that are copied along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secrets_to_copy: Option<SecretsToCopy>,
}
