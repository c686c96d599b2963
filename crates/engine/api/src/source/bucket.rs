//! `Bucket`

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

/// A source in an object store.
pub type Bucket = Object<BucketSpec, BucketStatus>;

impl Resource for Bucket {
    const GROUP: &'static str = "source.toolkit.fluxcd.io";
    const KIND: &'static str = "Bucket";
    const PLURAL: &'static str = "buckets";
    const VERSIONS: &'static [&'static str] = &["v1", "v1beta2", "v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`Bucket`].
pub(crate) fn definition() -> Definition {
    Definition::of::<Bucket>()
        .categories(&["all", "fluxcd", "fluxcd-sources"])
        .annotation("kustomize.toolkit.fluxcd.io/substitute", "disabled")
        .column(Column::new("Endpoint", "string", ".spec.endpoint"))
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .status_subresource()
        .unobserved_until_reconciled()
}

/// What to fetch from an object store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "STS configuration is only supported for the 'aws' and 'generic' Bucket providers", "rule": "self.provider == 'aws' || self.provider == 'generic' || !has(self.sts)"},
    {"message": "'aws' is the only supported STS provider for the 'aws' Bucket provider", "rule": "self.provider != 'aws' || !has(self.sts) || self.sts.provider == 'aws'"},
    {"message": "'ldap' is the only supported STS provider for the 'generic' Bucket provider", "rule": "self.provider != 'generic' || !has(self.sts) || self.sts.provider == 'ldap'"},
    {"message": "spec.sts.secretRef is not required for the 'aws' STS provider", "rule": "!has(self.sts) || self.sts.provider != 'aws' || !has(self.sts.secretRef)"},
    {"message": "spec.sts.certSecretRef is not required for the 'aws' STS provider", "rule": "!has(self.sts) || self.sts.provider != 'aws' || !has(self.sts.certSecretRef)"},
    {"message": "ServiceAccountName is not supported for the 'generic' Bucket provider", "rule": "self.provider != 'generic' || !has(self.serviceAccountName)"},
    {"message": "cannot set both .spec.secretRef and .spec.serviceAccountName", "rule": "!has(self.secretRef) || !has(self.serviceAccountName)"},
]))]
pub struct BucketSpec {
    /// Name of the bucket.
    pub bucket_name: String,
    /// Secret with a client certificate (`tls.crt`, `tls.key`) and a certificate authority (`ca.crt`), any
    /// of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
    /// Address of the service, without the bucket.
    pub endpoint: String,
    /// What to leave out, in the syntax of `.gitignore`. Replaces the built-in rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore: Option<String>,
    /// Allow plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
    /// How often to reconcile.
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub interval: Duration,
    /// Only objects whose key starts so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Which storage service it is; decides how access is granted.
    #[serde(default)]
    pub provider: CloudProvider,
    /// Secret with the proxy's `address`, `username` and `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,
    /// The region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// ServiceAccount whose cloud identity fetches the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Service that gives temporary credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sts: Option<BucketSts>,
    /// Stop reconciling, keep everything as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// How long it may take.
    #[serde(default = "default_timeout")]
    #[schemars(regex(pattern = FETCH_TIMEOUT_PATTERN), extend("default" = "60s"))]
    pub timeout: Duration,
    /// Which namespaces may refer to this object. Kept so that objects written for older versions stay
    /// whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_from: Option<AccessFrom>,
}

/// How temporary credentials are obtained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketSts {
    /// Secret with a client certificate (`tls.crt`, `tls.key`) and a certificate authority (`ca.crt`), any
    /// of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
    /// Address of the token service.
    #[schemars(regex(pattern = "^(http|https)://.*$"))]
    pub endpoint: String,
    /// Which token service.
    pub provider: StsProvider,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// Token services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum StsProvider {
    #[serde(rename = "aws")]
    Aws,
    #[serde(rename = "ldap")]
    Ldap,
}

/// What was fetched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketStatus {
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
    /// Address that always serves the newest artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

fn default_timeout() -> Duration {
    Duration::from_secs(60)
}
