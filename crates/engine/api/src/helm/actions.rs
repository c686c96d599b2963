//! Options of Helm's actions.

use fl_types::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::DURATION_PATTERN;

/// Options of Helm's install.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Install {
    /// What to do with the chart's CRDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crds: Option<CrdsPolicy>,
    /// Create the target namespace when it does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create_namespace: Option<bool>,
    /// Skip hooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_hooks: Option<bool>,
    /// Skip validation of the manifests against the API server's schema.
    #[serde(rename = "disableOpenAPIValidation", skip_serializing_if = "Option::is_none")]
    pub disable_open_api_validation: Option<bool>,
    /// Skip validation of the values against the chart's schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_schema_validation: Option<bool>,
    /// Refuse to adopt objects that exist already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_take_ownership: Option<bool>,
    /// Do not wait for the objects to become ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_wait: Option<bool>,
    /// Do not wait for Jobs to finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_wait_for_jobs: Option<bool>,
    /// What to do after a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediation: Option<InstallRemediation>,
    /// Reuse the name of a release that was uninstalled with its history kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<bool>,
    /// Whether objects are applied by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<bool>,
    /// Do not install CRDs. Use `crds`.
    #[serde(rename = "skipCRDs", skip_serializing_if = "Option::is_none")]
    pub skip_cr_ds: Option<bool>,
    /// The strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<InstallStrategy>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub timeout: Option<Duration>,
}

/// What to do with a chart's CRDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum CrdsPolicy {
    Skip,
    Create,
    CreateReplace,
}

/// What to do when an install fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallRemediation {
    /// Ignore failed tests when deciding about remediation. Defaults to `test.ignoreFailures`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_test_failures: Option<bool>,
    /// Remediate also after the last retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediate_last_failure: Option<bool>,
    /// How often to try again; below zero without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<isize>,
}

/// How a failed install goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": ".retryInterval cannot be set when .name is 'RemediateOnFailure'", "rule": "!has(self.retryInterval) || self.name != 'RemediateOnFailure'"},
]))]
pub struct InstallStrategy {
    /// Which strategy.
    pub name: ActionStrategyName,
    /// Time between two tries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub retry_interval: Option<Duration>,
}

/// What follows a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ActionStrategyName {
    RemediateOnFailure,
    RetryOnFailure,
}

/// Options of Helm's rollback.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollback {
    /// Delete resources that were newly created when the action fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup_on_fail: Option<bool>,
    /// Skip hooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_hooks: Option<bool>,
    /// Do not wait for the objects to become ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_wait: Option<bool>,
    /// Do not wait for Jobs to finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_wait_for_jobs: Option<bool>,
    /// Delete and create again objects that cannot be changed in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
    /// Restart pods. Without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recreate: Option<bool>,
    /// Whether objects are applied by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApplyMode>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub timeout: Option<Duration>,
}

/// Whether the server applies; `auto` follows the last release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ServerSideApplyMode {
    #[serde(rename = "enabled")]
    Enabled,
    #[serde(rename = "disabled")]
    Disabled,
    #[serde(rename = "auto")]
    Auto,
}

/// Options of Helm's test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Test {
    /// Run the chart's tests after install and upgrade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// Which tests are run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<Vec<TestFilter>>,
    /// A failed test does not fail the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_failures: Option<bool>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub timeout: Option<Duration>,
}

/// Includes or excludes a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestFilter {
    /// What to leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<bool>,
    /// Name of the test.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Options of Helm's uninstall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Uninstall {
    /// How Kubernetes should delete dependants.
    #[serde(default)]
    pub deletion_propagation: DeletionPropagation,
    /// Skip hooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_hooks: Option<bool>,
    /// Do not wait for the objects to become ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_wait: Option<bool>,
    /// Keep Helm's record of the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_history: Option<bool>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub timeout: Option<Duration>,
}

/// How dependants are deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPropagation {
    #[default]
    #[serde(rename = "background")]
    Background,
    #[serde(rename = "foreground")]
    Foreground,
    #[serde(rename = "orphan")]
    Orphan,
}

/// Options of Helm's upgrade.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// What to do when the chart's name changes: update in place, or uninstall and install.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart_name_change_strategy: Option<ChartNameChangeStrategy>,
    /// Delete resources that were newly created when the action fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup_on_fail: Option<bool>,
    /// What to do with the chart's CRDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crds: Option<CrdsPolicy>,
    /// Skip hooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_hooks: Option<bool>,
    /// Skip validation of the manifests against the API server's schema.
    #[serde(rename = "disableOpenAPIValidation", skip_serializing_if = "Option::is_none")]
    pub disable_open_api_validation: Option<bool>,
    /// Skip validation of the values against the chart's schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_schema_validation: Option<bool>,
    /// Refuse to adopt objects that exist already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_take_ownership: Option<bool>,
    /// Do not wait for the objects to become ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_wait: Option<bool>,
    /// Do not wait for Jobs to finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_wait_for_jobs: Option<bool>,
    /// Delete and create again objects that cannot be changed in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
    /// Reuse the values of the last release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve_values: Option<bool>,
    /// What to do after a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediation: Option<UpgradeRemediation>,
    /// Whether objects are applied by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApplyMode>,
    /// The strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<UpgradeStrategy>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub timeout: Option<Duration>,
}

/// What to do when the chart's name changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ChartNameChangeStrategy {
    InPlaceUpdate,
    Reinstall,
}

/// What to do when an upgrade fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeRemediation {
    /// Ignore failed tests when deciding about remediation. Defaults to `test.ignoreFailures`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_test_failures: Option<bool>,
    /// Remediate also after the last retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediate_last_failure: Option<bool>,
    /// How often to try again; below zero without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<isize>,
    /// How to remediate: roll back or uninstall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RemediationStrategy>,
}

/// How a failed upgrade is remedied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RemediationStrategy {
    #[serde(rename = "rollback")]
    Rollback,
    #[serde(rename = "uninstall")]
    Uninstall,
}

/// How a failed upgrade goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": ".retryInterval can only be set when .name is 'RetryOnFailure'", "rule": "!has(self.retryInterval) || self.name == 'RetryOnFailure'"},
]))]
pub struct UpgradeStrategy {
    /// Which strategy.
    pub name: ActionStrategyName,
    /// Time between two tries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub retry_interval: Option<Duration>,
}

/// How readiness is waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitStrategy {
    /// Which way of waiting.
    pub name: WaitStrategyName,
}

/// Ways of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum WaitStrategyName {
    #[serde(rename = "poller")]
    Poller,
    #[serde(rename = "legacy")]
    Legacy,
}
