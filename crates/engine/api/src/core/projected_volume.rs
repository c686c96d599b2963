//! Volumes put together from several places.

use std::collections::BTreeMap;

use fl_types::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::volume::{DownwardApiFile, KeyToPath};

/// Files from several places.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectedVolume {
    /// File mode where an item has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_mode: Option<i32>,
    /// The sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub sources: Option<Vec<ProjectionSource>>,
}

/// One place files come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectionSource {
    /// Certificates from ClusterTrustBundle objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_trust_bundle: Option<ClusterTrustBundle>,
    /// Files from a ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapProjection>,
    /// Files with facts about the pod.
    #[serde(rename = "downwardAPI", skip_serializing_if = "Option::is_none")]
    pub downward_api: Option<DownwardApiProjection>,
    /// A certificate for the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_certificate: Option<PodCertificate>,
    /// Files from a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretProjection>,
    /// A token of the pod's ServiceAccount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_token: Option<ServiceAccountToken>,
}

/// Certificates from ClusterTrustBundle objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTrustBundle {
    /// Selects by labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// The name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Do without when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
    /// The path.
    pub path: String,
    /// Who signs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signer_name: Option<String>,
}

/// Files from a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ConfigMapProjection {
    /// Which keys become which files; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub items: Option<Vec<KeyToPath>>,
    /// The name.
    #[serde(default)]
    pub name: String,
    /// Do without when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// Files with facts about the pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownwardApiProjection {
    /// Which keys become which files; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub items: Option<Vec<DownwardApiFile>>,
}

/// A certificate for the pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodCertificate {
    /// File for the certificate chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_chain_path: Option<String>,
    /// File for key and chain together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_bundle_path: Option<String>,
    /// File for the private key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_path: Option<String>,
    /// Type of the private key.
    pub key_type: String,
    /// Longest lifetime asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_expiration_seconds: Option<i32>,
    /// Who signs.
    pub signer_name: String,
    /// Data for the signer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_annotations: Option<BTreeMap<String, String>>,
}

/// Files from a Secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SecretProjection {
    /// Which keys become which files; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub items: Option<Vec<KeyToPath>>,
    /// The name.
    #[serde(default)]
    pub name: String,
    /// Do without when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// A token of the pod's ServiceAccount.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccountToken {
    /// The audience the token must be meant for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// Lifetime of the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_seconds: Option<i64>,
    /// The path.
    pub path: String,
}
