//! `AccessRequest`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::reference::CoreObjectReference;
use crate::crd::{Column, Definition};
use crate::meta::condition::Condition;
use crate::openmcp::permissions::{PermissionsRequest, RoleBindings, RoleRef};
use crate::resource::{Object, Resource, Scope};

/// Asks for access to a cluster.
pub type AccessRequest = Object<AccessRequestSpec, AccessRequestStatus>;

impl Resource for AccessRequest {
    const GROUP: &'static str = "clusters.openmcp.cloud";
    const KIND: &'static str = "AccessRequest";
    const PLURAL: &'static str = "accessrequests";
    const VERSIONS: &'static [&'static str] = &["v1alpha1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`AccessRequest`].
pub(crate) fn definition() -> Definition {
    Definition::of::<AccessRequest>()
        .short_names(&["ar", "areq"])
        .label("openmcp.cloud/cluster", "platform")
        .column(Column::new("Phase", "string", ".status.phase"))
        .selectable(".status.phase")
        .status_subresource()
}

/// Which access to which cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "clusterRef may not be removed once set", "rule": "!has(oldSelf.clusterRef) || has(self.clusterRef)"},
    {"message": "requestRef may not be removed once set", "rule": "!has(oldSelf.requestRef) || has(self.requestRef)"},
    {"message": "exactly one of spec.token or spec.oidc must be set", "rule": "(has(self.token) && !has(self.oidc)) || (!has(self.token) && has(self.oidc))"},
]))]
pub struct AccessRequestSpec {
    /// The cluster to get access to. Either this or `requestRef`; fixed once set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<ClusterReference>,
    /// By OpenID Connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc: Option<OidcAccess>,
    /// The ClusterRequest whose cluster is meant. Either this or `clusterRef`; fixed once set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_ref: Option<RequestReference>,
    /// By token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenAccess>,
    /// How long the access is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
}

/// A Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "clusterRef is immutable", "rule": "self == oldSelf"},
]))]
pub struct ClusterReference {
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    pub namespace: String,
}

/// Access through an OpenID Connect provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcAccess {
    /// The client ID at the issuer.
    #[serde(rename = "clientID")]
    #[schemars(length(min = 1))]
    pub client_id: String,
    /// Further scopes to ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_scopes: Option<Vec<String>>,
    /// Claim that holds the groups.
    #[serde(default = "default_groups_claim")]
    pub groups_claim: String,
    /// Put before each group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups_prefix: Option<String>,
    /// Address of the issuer.
    #[schemars(length(min = 1), regex(pattern = r"^https?://[^\s/$.?#].[^\s]*$"))]
    pub issuer: String,
    /// The name.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"), extend("x-kubernetes-validations" = [{"message": "'system' is a reserved string and may not be used as OIDC provider name", "rule": r#"self != "system""#}]))]
    pub name: String,
    /// Roles given to users and groups.
    pub role_bindings: Vec<RoleBindings>,
    /// Roles to create.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<PermissionsRequest>>,
    /// Claim that holds the user's name.
    #[serde(default = "default_username_claim")]
    pub username_claim: String,
    /// Put before the user's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_prefix: Option<String>,
}

/// A ClusterRequest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "requestRef is immutable", "rule": "self == oldSelf"},
]))]
pub struct RequestReference {
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    pub namespace: String,
}

/// Access by token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenAccess {
    /// Roles to create for the access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<PermissionsRequest>>,
    /// Roles to bind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_refs: Option<Vec<RoleRef>>,
}

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessRequestStatus {
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// The generation this status is about.
    pub observed_generation: i64,
    /// The phase.
    pub phase: String,
    /// Secret with the kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<CoreObjectReference>,
}

fn default_groups_claim() -> String {
    "groups".to_owned()
}

fn default_username_claim() -> String {
    "sub".to_owned()
}
