//! `ResourceSetInputProvider`

use std::collections::BTreeMap;

use fl_types::Duration;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition};
use crate::meta::AnyValue;
use crate::meta::condition::Condition;
use crate::meta::references::LocalObjectReference;
use crate::resource::{Object, Resource, Scope};

/// Reads inputs for resource sets.
pub type ResourceSetInputProvider = Object<ResourceSetInputProviderSpec, ResourceSetInputProviderStatus>;

impl Resource for ResourceSetInputProvider {
    const GROUP: &'static str = "fluxcd.controlplane.io";
    const KIND: &'static str = "ResourceSetInputProvider";
    const PLURAL: &'static str = "resourcesetinputproviders";
    const VERSIONS: &'static [&'static str] = &["v1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`ResourceSetInputProvider`].
pub(crate) fn definition() -> Definition {
    Definition::of::<ResourceSetInputProvider>()
        .short_names(&["rsip"])
        .categories(&["all", "fluxcd", "fluxcd-sources"])
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .status_subresource()
}

/// Where inputs are read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "spec.url must be empty when spec.type is 'Static'", "rule": "self.type != 'Static' || !has(self.url)"},
    {"message": "spec.url must be empty when spec.type is 'ExternalArtifact'", "rule": "self.type != 'ExternalArtifact' || !has(self.url)"},
    {"message": "spec.url must not be empty when spec.type is not 'Static' or 'ExternalArtifact'", "rule": "self.type == 'Static' || self.type == 'ExternalArtifact' || has(self.url)"},
    {"message": "spec.url must start with 'http://' or 'https://' when spec.type is a Git provider", "rule": "!self.type.startsWith('Git') || self.url.startsWith('http')"},
    {"message": "spec.url must start with 'http://' or 'https://' when spec.type is an AzureDevOps provider", "rule": "!self.type.startsWith('AzureDevOps') || self.url.startsWith('http://') || self.url.startsWith('https://')"},
    {"message": "spec.url must start with 'https://' when spec.type is a AWSCodeCommit provider", "rule": "!self.type.startsWith('AWSCodeCommit') || self.url.startsWith('https://')"},
    {"message": "spec.url must start with 'oci://' when spec.type is an OCI provider", "rule": "!self.type.endsWith('ArtifactTag') || self.url.startsWith('oci')"},
    {"message": "spec.url must include the repository path after the registry host when spec.type is an OCI provider", "rule": "!self.type.endsWith('ArtifactTag') || !self.url.startsWith('oci://') || self.url.substring(6).contains('/')"},
    {"message": "spec.url must start with 'http://' or 'https://' when spec.type is 'ExternalService'", "rule": "self.type != 'ExternalService' || self.url.startsWith('http')"},
    {"message": "spec.insecure can only be set when spec.type is 'ExternalService' or 'OCIArtifactTag'", "rule": "!has(self.insecure) || !self.insecure || self.type == 'ExternalService' || self.type == 'OCIArtifactTag'"},
    {"message": "spec.url must use 'https://' unless spec.insecure is true", "rule": "self.type != 'ExternalService' || !self.url.startsWith('http://') || (has(self.insecure) && self.insecure)"},
    {"message": "cannot specify spec.serviceAccountName when spec.type is not one of AzureDevOps*, AWSCodeCommit*, *ArtifactTag or ExternalArtifact", "rule": "!has(self.serviceAccountName) || self.type.startsWith('AzureDevOps') || self.type.startsWith('AWSCodeCommit') || self.type.endsWith('ArtifactTag') || self.type == 'ExternalArtifact'"},
    {"message": "cannot specify spec.certSecretRef when spec.type is one of Static, ExternalArtifact, AzureDevOps*, AWSCodeCommit*, ACRArtifactTag, ECRArtifactTag or GARArtifactTag", "rule": "!has(self.certSecretRef) || !(self.type == 'Static' || self.type == 'ExternalArtifact' || self.type.startsWith('AzureDevOps') || self.type.startsWith('AWSCodeCommit') || (self.type.endsWith('ArtifactTag') && self.type != 'OCIArtifactTag'))"},
    {"message": "cannot specify spec.secretRef when spec.type is one of Static, ExternalArtifact, AWSCodeCommit*, ACRArtifactTag, ECRArtifactTag or GARArtifactTag", "rule": "!has(self.secretRef) || !(self.type == 'Static' || self.type == 'ExternalArtifact' || self.type.startsWith('AWSCodeCommit') || (self.type.endsWith('ArtifactTag') && self.type != 'OCIArtifactTag'))"},
    {"message": "spec.selectors must be set when spec.type is 'ExternalArtifact'", "rule": "self.type != 'ExternalArtifact' || (has(self.selectors) && size(self.selectors) > 0)"},
    {"message": "spec.selectors must not be set when spec.type is not 'ExternalArtifact'", "rule": "self.type == 'ExternalArtifact' || !has(self.selectors)"},
]))]
pub struct ResourceSetInputProviderSpec {
    /// Secret with a client certificate (`tls.crt`, `tls.key`) and a certificate authority (`ca.crt`), any
    /// of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
    /// Values that every input set gets unless it brings its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_values: Option<BTreeMap<String, AnyValue>>,
    /// What to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<InputFilter>,
    /// Allow plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
    /// When the provider may run; at any time when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Vec<Schedule>>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Which artifacts, by name or label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selectors: Option<Vec<ArtifactSelector>>,
    /// ServiceAccount in whose name this is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// What to leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip: Option<InputSkip>,
    /// The type.
    pub r#type: InputProviderType,
    /// What to ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^((http|https|oci)://.*){0,1}$"))]
    pub url: Option<String>,
}

/// Which results count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputFilter {
    /// Regular expression of branches to leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_branch: Option<String>,
    /// Regular expression of environments to leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_environment: Option<String>,
    /// Regular expression of tags to leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_tag: Option<String>,
    /// Regular expression of branches to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_branch: Option<String>,
    /// Regular expression of environments to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_environment: Option<String>,
    /// Regular expression of tags to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_tag: Option<String>,
    /// Labels a request must carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// At most this many.
    #[serde(default = "default_limit")]
    #[schemars(range(max = 10000))]
    pub limit: isize,
    /// Semver range that versions must be in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,
}

/// When the provider may run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// When, in cron syntax.
    pub cron: String,
    /// Time zone of the cron expression.
    #[serde(default = "default_time_zone")]
    pub time_zone: String,
    /// How long the window stays open.
    #[serde(default = "default_window")]
    #[schemars(regex(pattern = DURATION_PATTERN), extend("default" = "0s"))]
    pub window: Duration,
}

/// Selects artifacts by name or label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "name is mutually exclusive with matchLabels and matchExpressions", "rule": "!has(self.name) || (!has(self.matchLabels) && !has(self.matchExpressions))"},
]))]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ArtifactSelector {
    /// Requirements on labels; all must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Option<Vec<SelectorExpression>>,
    /// Labels that must be present with these values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// The name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// One requirement on a label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectorExpression {
    /// The key.
    pub key: String,
    /// How key and values relate.
    pub operator: String,
    /// The values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Option<Vec<String>>,
}

/// Which results are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputSkip {
    /// Labels that make a request be left out; `!label` leaves out what lacks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
}

/// Where inputs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum InputProviderType {
    Static,
    GitHubBranch,
    GitHubTag,
    GitHubPullRequest,
    GitLabBranch,
    GitLabTag,
    GitLabMergeRequest,
    GitLabEnvironment,
    AzureDevOpsBranch,
    AzureDevOpsTag,
    AzureDevOpsPullRequest,
    AWSCodeCommitBranch,
    AWSCodeCommitTag,
    AWSCodeCommitPullRequest,
    GiteaBranch,
    GiteaTag,
    GiteaPullRequest,
    OCIArtifactTag,
    ACRArtifactTag,
    ECRArtifactTag,
    GARArtifactTag,
    ExternalService,
    ExternalArtifact,
}

/// The inputs that were read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSetInputProviderStatus {
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// The input sets found last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exported_inputs: Option<Vec<BTreeMap<String, AnyValue>>>,
    /// Digest of the input sets found last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_exported_revision: Option<String>,
    /// The last force request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_force_at: Option<String>,
    /// The last reconcile request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// When the provider runs next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_schedule: Option<NextSchedule>,
}

/// The next run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextSchedule {
    /// When, in cron syntax.
    pub cron: String,
    /// Time zone of the cron expression.
    #[serde(default = "default_time_zone")]
    pub time_zone: String,
    /// When.
    pub when: Timestamp,
    /// How long the window stays open.
    #[serde(default = "default_window")]
    #[schemars(regex(pattern = DURATION_PATTERN), extend("default" = "0s"))]
    pub window: Duration,
}

fn default_limit() -> isize {
    100
}

fn default_time_zone() -> String {
    "UTC".to_owned()
}

fn default_window() -> Duration {
    Duration::ZERO
}
