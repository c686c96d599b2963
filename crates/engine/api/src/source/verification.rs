//! Signatures on OCI artifacts and charts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::references::LocalObjectReference;

/// Demands signatures on an OCI artifact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OCIRepositoryVerification {
    /// Identities of which one must have signed; for keyless signatures.
    #[serde(rename = "matchOIDCIdentity", skip_serializing_if = "Option::is_none")]
    pub match_oidc_identity: Option<Vec<OidcIdentity>>,
    /// The signature format.
    #[serde(default)]
    #[schemars(extend("x-required" = true))]
    pub provider: VerificationProvider,
    /// Secret with the trusted public keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Secret with a trusted root of one's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_root_secret_ref: Option<LocalObjectReference>,
}

/// An identity in a keyless signature.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcIdentity {
    /// Regular expression of the issuer.
    pub issuer: String,
    /// Regular expression of the subject.
    pub subject: String,
}

/// Signature formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum VerificationProvider {
    #[default]
    #[serde(rename = "cosign")]
    Cosign,
    #[serde(rename = "notation")]
    Notation,
}

/// Demands signatures on a chart from an OCI registry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChartVerification {
    /// Identities of which one must have signed; for keyless signatures.
    #[serde(rename = "matchOIDCIdentity", skip_serializing_if = "Option::is_none")]
    pub match_oidc_identity: Option<Vec<OidcIdentity>>,
    /// The signature format.
    #[serde(default)]
    #[schemars(extend("x-required" = true))]
    pub provider: VerificationProvider,
    /// Secret with the trusted public keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}
