//! `GitRepository`

use fl_types::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition, FETCH_TIMEOUT_PATTERN};
use crate::meta::access::AccessFrom;
use crate::meta::artifact::Artifact;
use crate::meta::condition::Condition;
use crate::meta::references::LocalObjectReference;
use crate::resource::{Object, Resource, Scope};

/// A source in a Git repository.
pub type GitRepository = Object<GitRepositorySpec, GitRepositoryStatus>;

impl Resource for GitRepository {
    const GROUP: &'static str = "source.toolkit.fluxcd.io";
    const KIND: &'static str = "GitRepository";
    const PLURAL: &'static str = "gitrepositories";
    const VERSIONS: &'static [&'static str] = &["v1", "v1beta2", "v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`GitRepository`].
pub(crate) fn definition() -> Definition {
    Definition::of::<GitRepository>()
        .short_names(&["gitrepo"])
        .categories(&["all", "fluxcd", "fluxcd-sources"])
        .annotation("kustomize.toolkit.fluxcd.io/substitute", "disabled")
        .column(Column::new("URL", "string", ".spec.url"))
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .status_subresource()
        .unobserved_until_reconciled()
}

/// What to fetch from a Git repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "serviceAccountName can only be set when provider is 'azure' or 'aws'", "rule": "!has(self.serviceAccountName) || (has(self.provider) && (self.provider == 'azure' || self.provider == 'aws'))"},
]))]
pub struct GitRepositorySpec {
    /// What to leave out, in the syntax of `.gitignore`. Replaces the built-in rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore: Option<String>,
    /// Other Git repositories whose artifacts are copied in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<Vec<GitRepositoryInclude>>,
    /// How often to look for a new revision.
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub interval: Duration,
    /// Which cloud gives the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<GitProvider>,
    /// Secret with the proxy's `address`, `username` and `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,
    /// Fetch submodules too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recurse_submodules: Option<bool>,
    /// Which revision to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#ref: Option<GitRepositoryRef>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// ServiceAccount whose cloud identity fetches the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Only these directories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse_checkout: Option<Vec<String>>,
    /// Stop reconciling, keep everything as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// How long a Git operation may take.
    #[serde(default = "default_timeout")]
    #[schemars(regex(pattern = FETCH_TIMEOUT_PATTERN), extend("default" = "60s"))]
    pub timeout: Duration,
    /// Address of the repository: http, https or ssh.
    #[schemars(regex(pattern = "^(http|https|ssh)://.*$"))]
    pub url: String,
    /// Which signatures are demanded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<GitRepositoryVerification>,
    /// Which namespaces may refer to this object. Kept so that objects written for older versions stay
    /// whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_from: Option<AccessFrom>,
    /// The Git library older versions chose. Ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_implementation: Option<GitImplementation>,
}

/// Another Git repository whose artifact is copied into this one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryInclude {
    /// Directory of the included source to copy; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_path: Option<String>,
    /// The GitRepository to include.
    pub repository: LocalObjectReference,
    /// Where to put the copy; named like the included source when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_path: Option<String>,
}

/// How access to a Git server is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum GitProvider {
    #[serde(rename = "generic")]
    Generic,
    #[serde(rename = "aws")]
    Aws,
    #[serde(rename = "azure")]
    Azure,
    #[serde(rename = "github")]
    Github,
}

/// Which commit to take. The order of precedence is commit, name, semver, tag, branch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryRef {
    /// Branch to follow. Without any reference the default is `master`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Exact commit to take. With a branch, the commit must be on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Full name of the reference, for example `refs/heads/main`. Wins over branch, tag and range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Semver range; the highest matching tag is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,
    /// Tag to take. Wins over the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// Demands OpenPGP or SSH signatures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryVerification {
    /// What must be signed: the commit, the tag, or both.
    #[serde(default)]
    pub mode: GitVerificationMode,
    /// Secret with the public keys of trusted authors.
    pub secret_ref: LocalObjectReference,
}

/// What must be signed. `head` is the old spelling of `HEAD`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum GitVerificationMode {
    #[serde(rename = "head")]
    Head,
    #[default]
    #[serde(rename = "HEAD")]
    HeadUpper,
    Tag,
    TagAndHEAD,
}

/// Git libraries of older versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum GitImplementation {
    #[serde(rename = "go-git")]
    GoGit,
    #[serde(rename = "libgit2")]
    Libgit2,
}

/// What was fetched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryStatus {
    /// The last artifact that was produced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// The artifacts copied in last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub included_artifacts: Option<Vec<Artifact>>,
    /// The last reconcile request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The generation this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The ignore rules used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_ignore: Option<String>,
    /// The includes used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_include: Option<Vec<GitRepositoryInclude>>,
    /// Whether submodules were fetched last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_recurse_submodules: Option<bool>,
    /// The directories checked out last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_sparse_checkout: Option<Vec<String>>,
    /// What was verified last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_verification_mode: Option<String>,
    /// Address of the newest artifact as older versions wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Written by older versions only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_config_checksum: Option<String>,
}

fn default_timeout() -> Duration {
    Duration::from_secs(60)
}
