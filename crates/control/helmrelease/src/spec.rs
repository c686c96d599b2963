//! The spec of a HelmRelease with Flux's defaults.

use std::time::Duration;

use fl_api::helm::HelmRelease;
use fl_api::helm::actions::{
    ActionStrategyName, CrdsPolicy, DeletionPropagation, Install, RemediationStrategy, Rollback,
    ServerSideApplyMode, Test, Uninstall, Upgrade, WaitStrategyName,
};
use fl_api::helm::helm_release::{DriftDetectionMode, HelmReleaseStatus, PostRenderStrategy, ReleaseAction};
use fl_helm_storage::shorten_name;

/// Feature gates that change defaults.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Defaults {
    /// `UseHelm3Defaults`
    pub(crate) helm3: bool,
    /// `DefaultToRetryOnFailure`
    pub(crate) retry_on_failure: bool,
}

/// The wait strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Only hooks are waited for.
    HooksOnly,
    /// With kstatus; ends early if an object failed.
    Poller,
    /// As Helm 3.
    Legacy,
}

/// What happens after a failed install or upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remediation {
    action: ReleaseAction,
    retries: i64,
    ignore_test_failures: Option<bool>,
    remediate_last: Option<bool>,
    pub(crate) strategy: RemediationStrategy,
}

impl Remediation {
    pub(crate) fn failures(&self, status: &HelmReleaseStatus) -> i64 {
        match self.action {
            ReleaseAction::Install => status.install_failures.unwrap_or(0),
            ReleaseAction::Upgrade => status.upgrade_failures.unwrap_or(0),
        }
    }

    pub(crate) fn count_failure(&self, status: &mut HelmReleaseStatus) {
        let counter = match self.action {
            ReleaseAction::Install => &mut status.install_failures,
            ReleaseAction::Upgrade => &mut status.upgrade_failures,
        };
        *counter = Some(counter.unwrap_or(0) + 1);
    }

    pub(crate) fn exhausted(&self, status: &HelmReleaseStatus) -> bool {
        self.retries >= 0 && self.failures(status) > self.retries
    }

    pub(crate) fn ignores_tests(&self, default: bool) -> bool {
        self.ignore_test_failures.unwrap_or(default)
    }

    pub(crate) fn remediates_last(&self) -> bool {
        self.remediate_last.unwrap_or(self.action == ReleaseAction::Upgrade && self.retries > 0)
    }

    /// An uninstall after an upgrade is followed by a fresh install.
    pub(crate) fn reinstalls(&self) -> bool {
        self.action == ReleaseAction::Upgrade && self.strategy == RemediationStrategy::Uninstall
    }
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
const DEFAULT_RETRY: Duration = Duration::from_secs(300);
/// Revisions that Helm keeps by default, and the limit of snapshots in the status.
pub(crate) const DEFAULT_HISTORY: usize = 5;

/// The spec with defaults.
pub(crate) trait ReleaseSpec {
    fn release(&self) -> &HelmRelease;

    fn install(&self) -> Install {
        self.release().spec.install.clone().unwrap_or_default()
    }

    fn upgrade(&self) -> Upgrade {
        self.release().spec.upgrade.clone().unwrap_or_default()
    }

    fn rollback(&self) -> Rollback {
        self.release().spec.rollback.clone().unwrap_or_default()
    }

    fn test(&self) -> Test {
        self.release().spec.test.clone().unwrap_or_default()
    }

    fn uninstall(&self) -> Uninstall {
        self.release().spec.uninstall.clone().unwrap_or(Uninstall {
            deletion_propagation: DeletionPropagation::default(),
            disable_hooks: None,
            disable_wait: None,
            keep_history: None,
            timeout: None,
        })
    }

    fn tests_enabled(&self) -> bool {
        self.release().spec.test.as_ref().and_then(|test| test.enable).unwrap_or(false)
    }

    fn ignores_test_failures(&self) -> bool {
        self.release().spec.test.as_ref().and_then(|test| test.ignore_failures).unwrap_or(false)
    }

    /// The release name before it is shortened to Helm's limit.
    fn long_release_name(&self) -> String {
        let object = self.release();
        match (&object.spec.release_name, &object.spec.target_namespace) {
            (Some(name), _) if !name.is_empty() => name.clone(),
            (_, Some(target)) if !target.is_empty() => format!("{target}-{}", object.metadata.name),
            _ => object.metadata.name.clone(),
        }
    }

    fn helm_name(&self) -> String {
        shorten_name(&self.long_release_name())
    }

    fn own_namespace(&self) -> &str {
        self.release().metadata.namespace.as_deref().unwrap_or_default()
    }

    fn release_namespace(&self) -> &str {
        let target = self.release().spec.target_namespace.as_deref().filter(|target| !target.is_empty());
        target.unwrap_or_else(|| self.own_namespace())
    }

    fn storage_namespace(&self) -> &str {
        let storage = self.release().spec.storage_namespace.as_deref().filter(|storage| !storage.is_empty());
        storage.unwrap_or_else(|| self.own_namespace())
    }

    fn chart_object_name(&self) -> String {
        format!("{}-{}", self.own_namespace(), self.release().metadata.name)
    }

    fn timeout(&self) -> Duration {
        span(self.release().spec.timeout, DEFAULT_TIMEOUT)
    }

    fn timeout_of(&self, own: Option<fl_types::Duration>) -> Duration {
        span(own, self.timeout())
    }

    fn max_history(&self) -> usize {
        let given = self.release().spec.max_history;
        given.map_or(DEFAULT_HISTORY, |most| usize::try_from(most).unwrap_or(0))
    }

    fn drift_mode(&self) -> DriftDetectionMode {
        let detection = self.release().spec.drift_detection.as_ref();
        detection.and_then(|drift| drift.mode).unwrap_or(DriftDetectionMode::Disabled)
    }

    fn detects_drift(&self) -> bool {
        self.drift_mode() != DriftDetectionMode::Disabled
    }

    fn wait(&self, disabled: Option<bool>, defaults: Defaults) -> Wait {
        if disabled.unwrap_or(false) {
            return Wait::HooksOnly;
        }
        match self.release().spec.wait_strategy.as_ref().map(|wait| wait.name) {
            Some(WaitStrategyName::Poller) => Wait::Poller,
            Some(WaitStrategyName::Legacy) => Wait::Legacy,
            None if defaults.helm3 => Wait::Legacy,
            None => Wait::Poller,
        }
    }

    fn post_render_strategy(&self, defaults: Defaults) -> PostRenderStrategy {
        let default = if defaults.helm3 { PostRenderStrategy::Nohooks } else { PostRenderStrategy::Combined };
        self.release().spec.post_render_strategy.unwrap_or(default)
    }

    fn install_remediation(&self) -> Remediation {
        let given = self.release().spec.install.as_ref().and_then(|install| install.remediation.as_ref());
        Remediation {
            action: ReleaseAction::Install,
            retries: given.and_then(|r| r.retries).map_or(0, |n| n as i64),
            ignore_test_failures: given.and_then(|r| r.ignore_test_failures),
            remediate_last: given.and_then(|r| r.remediate_last_failure),
            strategy: RemediationStrategy::Uninstall,
        }
    }

    fn upgrade_remediation(&self) -> Remediation {
        let given = self.release().spec.upgrade.as_ref().and_then(|upgrade| upgrade.remediation.as_ref());
        Remediation {
            action: ReleaseAction::Upgrade,
            retries: given.and_then(|r| r.retries).map_or(0, |n| n as i64),
            ignore_test_failures: given.and_then(|r| r.ignore_test_failures),
            remediate_last: given.and_then(|r| r.remediate_last_failure),
            strategy: given.and_then(|r| r.strategy).unwrap_or(RemediationStrategy::Rollback),
        }
    }

    /// The remediation of the last attempted action.
    fn active_remediation(&self) -> Option<Remediation> {
        match self.release().status.as_ref()?.last_attempted_release_action? {
            ReleaseAction::Install => Some(self.install_remediation()),
            ReleaseAction::Upgrade => Some(self.upgrade_remediation()),
        }
    }

    /// The retry interval of the last attempted action, with the strategy `RetryOnFailure`.
    fn active_retry(&self, defaults: Defaults) -> Option<Duration> {
        match self.release().status.as_ref()?.last_attempted_release_action? {
            ReleaseAction::Install => self.install_retry(defaults),
            ReleaseAction::Upgrade => self.upgrade_retry(defaults),
        }
    }

    fn install_retry(&self, defaults: Defaults) -> Option<Duration> {
        let strategy = self.release().spec.install.as_ref().and_then(|install| install.strategy.as_ref());
        retry(strategy.map(|strategy| (strategy.name, strategy.retry_interval)), defaults)
    }

    fn upgrade_retry(&self, defaults: Defaults) -> Option<Duration> {
        let strategy = self.release().spec.upgrade.as_ref().and_then(|upgrade| upgrade.strategy.as_ref());
        retry(strategy.map(|strategy| (strategy.name, strategy.retry_interval)), defaults)
    }
}

impl ReleaseSpec for HelmRelease {
    fn release(&self) -> &HelmRelease {
        self
    }
}

fn retry(
    strategy: Option<(ActionStrategyName, Option<fl_types::Duration>)>,
    defaults: Defaults,
) -> Option<Duration> {
    match strategy {
        None => defaults.retry_on_failure.then_some(DEFAULT_RETRY),
        Some((ActionStrategyName::RetryOnFailure, interval)) => Some(span(interval, DEFAULT_RETRY)),
        Some((ActionStrategyName::RemediateOnFailure, _)) => None,
    }
}

fn span(given: Option<fl_types::Duration>, default: Duration) -> Duration {
    given.and_then(fl_types::Duration::to_std).unwrap_or(default)
}

/// The CRD policy; by default missing CRDs are created.
pub(crate) fn crds_policy(given: Option<CrdsPolicy>) -> CrdsPolicy {
    given.unwrap_or(CrdsPolicy::Create)
}

/// Whether to use server-side apply; by default as the previous release.
pub(crate) fn server_side(mode: Option<ServerSideApplyMode>, before: bool) -> bool {
    match mode {
        Some(ServerSideApplyMode::Enabled) => true,
        Some(ServerSideApplyMode::Disabled) => false,
        Some(ServerSideApplyMode::Auto) | None => before,
    }
}
