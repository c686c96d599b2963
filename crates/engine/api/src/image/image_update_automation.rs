//! `ImageUpdateAutomation`

use std::collections::BTreeMap;

use fl_types::{Duration, LabelSelector};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition};
use crate::image::image_reference::ImageRef;
use crate::meta::condition::Condition;
use crate::meta::references::LocalObjectReference;
use crate::resource::{Object, Resource, Scope};
use crate::source::git_repository::GitRepositoryRef;

/// Writes chosen images back to Git.
pub type ImageUpdateAutomation = Object<ImageUpdateAutomationSpec, ImageUpdateAutomationStatus>;

impl Resource for ImageUpdateAutomation {
    const GROUP: &'static str = "image.toolkit.fluxcd.io";
    const KIND: &'static str = "ImageUpdateAutomation";
    const PLURAL: &'static str = "imageupdateautomations";
    const VERSIONS: &'static [&'static str] = &["v1", "v1beta2", "v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`ImageUpdateAutomation`].
pub(crate) fn definition() -> Definition {
    Definition::of::<ImageUpdateAutomation>()
        .short_names(&["iua", "imgupd", "imgauto"])
        .categories(&["all", "fluxcd", "fluxcd-images"])
        .annotation("kustomize.toolkit.fluxcd.io/substitute", "disabled")
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .column(Column::new("Last run", "string", ".status.lastAutomationRunTime").priority(1))
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .status_subresource()
        .unobserved_until_reconciled()
}

/// Writes chosen images back to Git.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageUpdateAutomationSpec {
    /// How the repository is read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSpec>,
    /// How often to reconcile.
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub interval: Duration,
    /// Which policies take part; all in the namespace when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_selector: Option<LabelSelector>,
    /// The source.
    pub source_ref: AutomationSourceReference,
    /// Stop reconciling, keep everything as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// How files are updated.
    #[serde(default = "default_update")]
    pub update: UpdateStrategy,
}

/// How a repository is read and written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSpec {
    /// What to check out; the source's own reference when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkout: Option<GitCheckout>,
    /// How commits are made.
    pub commit: GitCommit,
    /// Where commits are pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<GitPush>,
}

/// What is checked out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitCheckout {
    /// Which revision to take.
    pub r#ref: GitRepositoryRef,
}

/// How commits are made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitCommit {
    /// Who the commits are by.
    pub author: CommitAuthor,
    /// Go template of the commit message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_template: Option<String>,
    /// Values for the message template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_template_values: Option<BTreeMap<String, String>>,
    /// Key to sign commits with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signing_key: Option<SigningKey>,
}

/// Author of commits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitAuthor {
    /// Mail address.
    pub email: String,
    /// The name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Key for signing commits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SigningKey {
    /// Secret with the key: `git.asc` for GPG, `identity` for SSH, and `passphrase`.
    pub secret_ref: LocalObjectReference,
    /// The type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<SigningKeyType>,
}

/// Types of signing keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SigningKeyType {
    #[serde(rename = "gpg")]
    Gpg,
    #[serde(rename = "ssh")]
    Ssh,
}

/// Where commits go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitPush {
    /// Branch to push to; the checked-out one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Options for the server, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<BTreeMap<String, String>>,
    /// Refspec to push in addition, or instead of the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refspec: Option<String>,
}

/// The Git repository that is updated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "a kind that is not one of Flux's own needs an apiVersion", "rule": "self.kind in ['GitRepository'] || has(self.apiVersion)"},
]))]
pub struct AutomationSourceReference {
    /// API group and version of the source. Needed for kinds outside Flux's source group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the source: a Flux kind, or any kind that owns an artifact when `apiVersion` is given.
    #[serde(default = "default_kind")]
    #[schemars(extend("x-required" = true))]
    pub kind: String,
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// How files are updated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// Directory to update; the root when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The strategy.
    #[serde(default)]
    pub strategy: UpdateStrategyName,
}

/// Ways to update files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum UpdateStrategyName {
    #[default]
    Setters,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageUpdateAutomationStatus {
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// When the automation last ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_automation_run_time: Option<Timestamp>,
    /// The last reconcile request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The last commit pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_push_commit: Option<String>,
    /// When it was pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_push_time: Option<Timestamp>,
    /// The generation this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The images of each policy used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_policies: Option<BTreeMap<String, ImageRef>>,
    /// Revision of the source used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_source_revision: Option<String>,
}

fn default_kind() -> String {
    "GitRepository".to_owned()
}

fn default_update() -> UpdateStrategy {
    UpdateStrategy { path: None, strategy: UpdateStrategyName::Setters }
}
