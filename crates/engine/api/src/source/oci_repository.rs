//! `OCIRepository`

use fl_types::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition, FETCH_TIMEOUT_PATTERN};
use crate::meta::artifact::Artifact;
use crate::meta::condition::Condition;
use crate::meta::provider::CloudProvider;
use crate::meta::references::LocalObjectReference;
use crate::resource::{Object, Resource, Scope};
use crate::source::verification::OCIRepositoryVerification;

/// A source in an OCI registry.
pub type OCIRepository = Object<OCIRepositorySpec, OCIRepositoryStatus>;

impl Resource for OCIRepository {
    const GROUP: &'static str = "source.toolkit.fluxcd.io";
    const KIND: &'static str = "OCIRepository";
    const PLURAL: &'static str = "ocirepositories";
    const VERSIONS: &'static [&'static str] = &["v1", "v1beta2"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`OCIRepository`].
pub(crate) fn definition() -> Definition {
    Definition::of::<OCIRepository>()
        .short_names(&["ocirepo"])
        .categories(&["all", "fluxcd", "fluxcd-sources"])
        .annotation("kustomize.toolkit.fluxcd.io/substitute", "disabled")
        .column(Column::new("URL", "string", ".spec.url"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .status_subresource()
        .unobserved_until_reconciled()
}

/// What to fetch from an OCI registry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OCIRepositorySpec {
    /// Secret with a client certificate (`tls.crt`, `tls.key`) and a certificate authority (`ca.crt`), any
    /// of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
    /// What to leave out, in the syntax of `.gitignore`. Replaces the built-in rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore: Option<String>,
    /// Allow plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
    /// How often to reconcile.
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub interval: Duration,
    /// Which layer holds the content and what to do with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer_selector: Option<OCILayerSelector>,
    /// Which cloud gives the credentials.
    #[serde(default)]
    pub provider: CloudProvider,
    /// Secret with the proxy's `address`, `username` and `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,
    /// Which revision to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#ref: Option<OCIRepositoryRef>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// ServiceAccount whose pull secrets or cloud identity fetch the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Stop reconciling, keep everything as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// How long it may take.
    #[serde(default = "default_timeout")]
    #[schemars(regex(pattern = FETCH_TIMEOUT_PATTERN), extend("default" = "60s"))]
    pub timeout: Duration,
    /// Address of the repository: `oci://host/path`.
    #[schemars(regex(pattern = "^oci://.*$"))]
    pub url: String,
    /// Which signatures are demanded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<OCIRepositoryVerification>,
}

/// Picks a layer of an OCI artifact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OCILayerSelector {
    /// Media type of the layer; the first layer when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Unpack the layer, or keep it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<LayerOperation>,
}

/// What to do with a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum LayerOperation {
    #[serde(rename = "extract")]
    Extract,
    #[serde(rename = "copy")]
    Copy,
}

/// Which manifest to take. The order of precedence is digest, semver, tag.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OCIRepositoryRef {
    /// Digest of the manifest to take. Wins over the other fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Semver range; the highest matching tag is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,
    /// Regular expression of tags that the range looks at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semver_filter: Option<String>,
    /// Tag to take; `latest` when nothing else is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// What was fetched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OCIRepositoryStatus {
    /// The last artifact that was produced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// The last reconcile request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The generation this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The ignore rules used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_ignore: Option<String>,
    /// The layer selector used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_layer_selector: Option<OCILayerSelector>,
    /// Address that always serves the newest artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Written by older versions only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_config_checksum: Option<String>,
}

fn default_timeout() -> Duration {
    Duration::from_secs(60)
}
