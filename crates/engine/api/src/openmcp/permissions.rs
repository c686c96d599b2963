//! Roles and who gets them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Roles given to subjects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleBindings {
    /// Roles to bind.
    pub role_refs: Vec<RoleRef>,
    /// Users, groups and ServiceAccounts.
    pub subjects: Vec<Subject>,
}

/// A Role or ClusterRole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleRef {
    /// Kind of the object.
    pub kind: RoleKind,
    /// The name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Kinds of roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RoleKind {
    Role,
    ClusterRole,
}

/// A user, group or ServiceAccount.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct Subject {
    /// The API group; empty is the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Kind of the object.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A role to create.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionsRequest {
    /// Do not create the namespace when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_automatic_namespace_creation: Option<bool>,
    /// The name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What the role allows.
    pub rules: Vec<PolicyRule>,
}

/// A rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// API groups the rule covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub api_groups: Option<Vec<String>>,
    /// Paths outside the resources.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub non_resource_ur_ls: Option<Vec<String>>,
    /// Names the rule is limited to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub resource_names: Option<Vec<String>>,
    /// Resources the rule covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub resources: Option<Vec<String>>,
    /// What may be done.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub verbs: Vec<String>,
}
