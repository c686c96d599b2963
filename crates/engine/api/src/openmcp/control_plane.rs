//! `ControlPlane`

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::reference::CoreObjectReference;
use crate::crd::{Column, Definition};
use crate::meta::condition::Condition;
use crate::openmcp::cluster::Endpoint;
use crate::openmcp::permissions::{PermissionsRequest, RoleBindings, RoleRef};
use crate::resource::{Object, Resource, Scope};

/// A managed control plane.
pub type ControlPlane = Object<ControlPlaneSpec, ControlPlaneStatus>;

impl Resource for ControlPlane {
    const GROUP: &'static str = "core.open-control-plane.io";
    const KIND: &'static str = "ControlPlane";
    const PLURAL: &'static str = "controlplanes";
    const VERSIONS: &'static [&'static str] = &["v2alpha1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`ControlPlane`].
pub(crate) fn definition() -> Definition {
    Definition::of::<ControlPlane>()
        .short_names(&["cp", "ctrlp"])
        .label("openmcp.cloud/cluster", "onboarding")
        .column(Column::new("Phase", "string", ".status.phase"))
        .selectable(".status.phase")
        .status_subresource()
}

/// The wanted control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneSpec {
    /// Who may do what.
    pub iam: Iam,
}

/// Who may use the control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Iam {
    /// By OpenID Connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc: Option<OidcConfiguration>,
    /// Accesses by token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Vec<TokenAccess>>,
}

/// Access through OpenID Connect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcConfiguration {
    /// The platform's own identity provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_provider: Option<DefaultOidcProvider>,
    /// Further identity providers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_providers: Option<Vec<OidcProvider>>,
}

/// Roles for users of the platform's own identity provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultOidcProvider {
    /// Roles given to users and groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_bindings: Option<Vec<RoleBindings>>,
}

/// An identity provider of the control plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcProvider {
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
    /// Claim that holds the user's name.
    #[serde(default = "default_username_claim")]
    pub username_claim: String,
    /// Put before the user's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_prefix: Option<String>,
}

/// Access by token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenAccess {
    /// The name.
    pub name: String,
    /// Roles to create for the access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<PermissionsRequest>>,
    /// Roles to bind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_refs: Option<Vec<RoleRef>>,
}

/// The state of a control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneStatus {
    /// For each identity provider or token, the Secret that holds the kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<BTreeMap<String, CoreObjectReference>>,
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Addresses under which the cluster is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<Endpoint>>,
    /// The generation this status is about.
    pub observed_generation: i64,
    /// The phase.
    pub phase: String,
}

fn default_groups_claim() -> String {
    "groups".to_owned()
}

fn default_username_claim() -> String {
    "sub".to_owned()
}
