//! `Receiver`

use std::collections::BTreeMap;

use fl_types::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition};
use crate::meta::condition::Condition;
use crate::meta::references::LocalObjectReference;
use crate::resource::{Object, Resource, Scope};

/// A webhook that triggers reconciliation.
pub type Receiver = Object<ReceiverSpec, ReceiverStatus>;

impl Resource for Receiver {
    const GROUP: &'static str = "notification.toolkit.fluxcd.io";
    const KIND: &'static str = "Receiver";
    const PLURAL: &'static str = "receivers";
    const VERSIONS: &'static [&'static str] = &["v1", "v1beta2", "v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`Receiver`].
pub(crate) fn definition() -> Definition {
    Definition::of::<Receiver>()
        .categories(&["all", "fluxcd", "fluxcd-notifications"])
        .annotation("kustomize.toolkit.fluxcd.io/substitute", "disabled")
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .status_subresource()
        .unobserved_until_reconciled()
}

/// A webhook and what it reconciles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "generic-oidc receivers must define at least one oidcProvider", "rule": "self.type != 'generic-oidc' || (has(self.oidcProviders) && size(self.oidcProviders) > 0)"},
    {"message": "oidcProviders can only be set when type is generic-oidc", "rule": "self.type == 'generic-oidc' || !has(self.oidcProviders) || size(self.oidcProviders) == 0"},
    {"message": "secretRef cannot be set when type is generic-oidc", "rule": "self.type != 'generic-oidc' || !has(self.secretRef)"},
    {"message": "secretRef is required when type is not generic-oidc", "rule": "self.type == 'generic-oidc' || has(self.secretRef)"},
]))]
pub struct ReceiverSpec {
    /// Event types of the sender that are let through; all when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// How often to reconcile.
    #[serde(default = "default_interval")]
    #[schemars(regex(pattern = DURATION_PATTERN), extend("default" = "10m"))]
    pub interval: Duration,
    /// Issuers whose tokens are trusted; for type `generic-oidc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["issuerURL"]))]
    pub oidc_providers: Option<Vec<OidcProvider>>,
    /// CEL expression that decides for each object whether it is reconciled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_filter: Option<String>,
    /// The objects to reconcile.
    pub resources: Vec<ReceiverResource>,
    /// Secret with the `token` that senders must know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Stop reconciling, keep everything as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// The type.
    pub r#type: ReceiverType,
}

/// An issuer whose tokens may call the hook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcProvider {
    /// The audience the token must be meant for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// Address of the issuer.
    #[serde(rename = "issuerURL")]
    #[schemars(regex(pattern = "^https?://"))]
    pub issuer_url: String,
    /// What must hold for a token; all of them.
    #[schemars(length(min = 1))]
    pub validations: Vec<OidcValidation>,
    /// Named CEL expressions that later ones may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Vec<OidcVariable>>,
}

/// A condition on a token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcValidation {
    /// CEL expression.
    pub expression: String,
    /// Message if the expression is false.
    pub message: String,
}

/// A named expression.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcVariable {
    /// CEL expression.
    pub expression: String,
    /// Name of the variable.
    pub name: String,
}

/// Objects that a hook reconciles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "a kind that is not one of Flux's own needs an apiVersion", "rule": "self.kind in ['Bucket', 'GitRepository', 'Kustomization', 'HelmRelease', 'HelmChart', 'HelmRepository', 'ImageRepository', 'ImagePolicy', 'ImageUpdateAutomation', 'OCIRepository', 'ArtifactGenerator', 'ExternalArtifact', 'FluxInstance', 'ResourceSet', 'ResourceSetInputProvider'] || has(self.apiVersion)"},
]))]
pub struct ReceiverResource {
    /// API group and version of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// CEL expression that decides for each object whether it is reconciled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Kind of the objects. Kinds Flux does not know need an `apiVersion`.
    pub kind: String,
    /// Labels that must be present with these values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Name of the objects; `*` for all.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub namespace: Option<String>,
}

/// Senders a hook understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ReceiverType {
    #[serde(rename = "generic")]
    Generic,
    #[serde(rename = "generic-hmac")]
    GenericHmac,
    #[serde(rename = "generic-oidc")]
    GenericOidc,
    #[serde(rename = "github")]
    Github,
    #[serde(rename = "gitlab")]
    Gitlab,
    #[serde(rename = "bitbucket")]
    Bitbucket,
    #[serde(rename = "harbor")]
    Harbor,
    #[serde(rename = "dockerhub")]
    Dockerhub,
    #[serde(rename = "quay")]
    Quay,
    #[serde(rename = "gcr")]
    Gcr,
    #[serde(rename = "nexus")]
    Nexus,
    #[serde(rename = "acr")]
    Acr,
    #[serde(rename = "cdevents")]
    Cdevents,
}

/// Where the webhook is served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverStatus {
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// The last reconcile request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The generation this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Path under which the hook is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_path: Option<String>,
    /// Path of the hook as older versions wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

fn default_interval() -> Duration {
    Duration::from_mins(10)
}
