//! `HelmRepository`

use fl_types::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition, FETCH_TIMEOUT_PATTERN};
use crate::meta::access::AccessFrom;
use crate::meta::artifact::Artifact;
use crate::meta::condition::Condition;
use crate::meta::provider::CloudProvider;
use crate::meta::references::LocalObjectReference;
use crate::resource::{Object, Resource, Scope};

/// A repository of Helm charts.
pub type HelmRepository = Object<HelmRepositorySpec, HelmRepositoryStatus>;

impl Resource for HelmRepository {
    const GROUP: &'static str = "source.toolkit.fluxcd.io";
    const KIND: &'static str = "HelmRepository";
    const PLURAL: &'static str = "helmrepositories";
    const VERSIONS: &'static [&'static str] = &["v1", "v1beta2", "v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`HelmRepository`].
pub(crate) fn definition() -> Definition {
    Definition::of::<HelmRepository>()
        .short_names(&["helmrepo"])
        .categories(&["all", "fluxcd", "fluxcd-sources"])
        .annotation("kustomize.toolkit.fluxcd.io/substitute", "disabled")
        .column(Column::new("URL", "string", ".spec.url"))
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .status_subresource()
        .unobserved_until_reconciled()
}

/// Where charts are found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmRepositorySpec {
    /// Which namespaces may refer to this repository. Accepted, not enforced, as in Flux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_from: Option<AccessFrom>,
    /// Secret with a client certificate (`tls.crt`, `tls.key`) and a certificate authority (`ca.crt`), any
    /// of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
    /// Allow plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
    /// How often to reconcile.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub interval: Option<Duration>,
    /// Send credentials also to other hosts the index points to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass_credentials: Option<bool>,
    /// Which cloud gives the credentials.
    #[serde(default)]
    pub provider: CloudProvider,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Stop reconciling, keep everything as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = FETCH_TIMEOUT_PATTERN))]
    pub timeout: Option<Duration>,
    /// Whether it is an index over HTTP or an OCI registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<HelmRepositoryType>,
    /// Address of the repository: http, https or oci.
    #[schemars(regex(pattern = "^(http|https|oci)://.*$"))]
    pub url: String,
}

/// Kinds of Helm repositories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum HelmRepositoryType {
    #[serde(rename = "default")]
    Default,
    #[serde(rename = "oci")]
    Oci,
}

/// What was fetched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmRepositoryStatus {
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
    /// Address that always serves the newest artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}
