//! One pass over a release: action after action until nothing is left to do, each kind of action at most once.

use std::time::Duration;

use fl_api::condition::{reasons, types};
use fl_api::helm::HelmRelease;
use fl_api::helm::actions::RemediationStrategy;
use fl_api::helm::helm_release::{DriftDetectionMode, ReleaseAction};
use fl_release::snapshot_verifies;
use fl_runtime::{Conditions, EventKind, Pass};
use serde_json::{Map, Value};

use super::report::{replace_condition, summarize};
use super::state::State;
use crate::action::LoadedChart;
use crate::action::capabilities::KnownCapabilities;
use crate::action::records::Records;
use crate::action::wait::Health;
use crate::drift::{self, Differences};
use crate::requests::force_requested;
use crate::snapshots::{Snapshots, full_name, versioned_chart};
use crate::spec::{Asked, Defaults};
use crate::target::Target;

/// What all passes share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) capabilities: KnownCapabilities,
    pub(crate) defaults: Defaults,
    /// `--override-manager`
    pub(crate) override_managers: Vec<String>,
}

/// What can be done.
#[derive(Debug)]
pub(super) enum Deed {
    Install,
    Upgrade,
    Unlock,
    Test,
    Rollback,
    Uninstall,
    CorrectDrift(Differences),
}

/// Deeds that count as one when each is done at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeedKind {
    Release,
    Unlock,
    Test,
    Remediate,
    DriftCorrection,
}

impl Deed {
    fn kind(&self) -> DeedKind {
        match self {
            Deed::Install | Deed::Upgrade => DeedKind::Release,
            Deed::Unlock => DeedKind::Unlock,
            Deed::Test => DeedKind::Test,
            Deed::Rollback | Deed::Uninstall => DeedKind::Remediate,
            Deed::CorrectDrift(_) => DeedKind::DriftCorrection,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Deed::Install => "install",
            Deed::Upgrade => "upgrade",
            Deed::Unlock => "unlock",
            Deed::Test => "test",
            Deed::Rollback => "rollback",
            Deed::Uninstall => "uninstall",
            Deed::CorrectDrift(_) => "correct cluster drift",
        }
    }

    fn timeout(&self, object: &HelmRelease) -> Duration {
        match self {
            Deed::Install => object.timeout_of(object.install().timeout),
            Deed::Upgrade => object.timeout_of(object.upgrade().timeout),
            Deed::Test => object.timeout_of(object.test().timeout),
            Deed::Rollback => object.timeout_of(object.rollback().timeout),
            Deed::Uninstall => object.timeout_of(object.uninstall().timeout),
            Deed::Unlock | Deed::CorrectDrift(_) => object.timeout(),
        }
    }
}

/// How a pass over a release ended.
#[derive(Debug)]
pub(crate) enum End {
    /// Nothing is left to do.
    Done,
    /// Again at once.
    Again,
    /// Again after a while.
    RetryAfter(Duration),
    /// Not until something changes.
    Stalled(String),
    /// With an error; again with growing delay.
    Failed(String),
}

/// What to do about a state.
enum Next {
    Deed(Deed),
    Nothing,
    Exhausted(&'static str),
    NoTarget(&'static str),
    Failed(String),
}

/// A pass over a release.
pub(crate) struct Machine<'a> {
    pub(crate) pass: &'a mut Pass<HelmRelease>,
    pub(crate) shared: &'a Shared,
    pub(crate) target: Target,
    pub(crate) records: Records,
    pub(crate) chart: LoadedChart,
    pub(crate) values: Map<String, Value>,
    pub(crate) health: Health,
    /// Whether this pass wrote all objects itself: nothing has drifted from that yet, and later changes wake the release.
    pub(crate) just_released: bool,
}

impl std::fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("records", &self.records).finish_non_exhaustive()
    }
}

impl Machine<'_> {
    /// Runs until nothing is left to do.
    pub(crate) async fn run(&mut self) -> End {
        let mut done: Vec<DeedKind> = Vec::new();
        loop {
            let state = match self.state().await {
                Ok(state) => state,
                Err(error) => {
                    let message = format!("Could not determine release state: {error}");
                    self.pass.object.mark_false(types::READY, "StateError", &message);
                    return End::Failed(format!("cannot determine release state: {error}"));
                }
            };
            let deed = match self.next(state).await {
                Next::Deed(deed) => deed,
                Next::Nothing => {
                    self.pass.object.remove_condition(types::RECONCILING);
                    summarize(&mut self.pass.object);
                    return End::Done;
                }
                Next::Exhausted(what) => {
                    self.stall_exhausted();
                    return End::Stalled(format!("exceeded maximum retries: cannot {what}"));
                }
                Next::NoTarget(what) => {
                    let error = format!("missing target release for rollback: {what}");
                    let message = format!("Failed to perform remediation: {error}");
                    self.pass.object.mark_stalled("MissingRollbackTarget", &message);
                    return End::Stalled(error);
                }
                Next::Failed(error) => return End::Failed(error),
            };
            let kind = deed.kind();
            if done.contains(&kind) {
                return self.stop_before();
            }
            let running = self.announce(&deed);
            let result = self.perform(deed, &running).await;
            if let Err(error) = result {
                if let Some(retry) = self.retry_end() {
                    return retry;
                }
                if self.pass.object.is_ready() {
                    self.pass.object.mark_false(types::READY, "ReconcileError", &error.to_string());
                }
                return End::Failed(error.to_string());
            }
            if kind == DeedKind::Remediate {
                return self.stop_after_remediation();
            }
            self.just_released |= kind == DeedKind::Release;
            done.push(kind);
            self.pass.progress();
        }
    }

    /// Says what is about to be done.
    fn announce(&mut self, deed: &Deed) -> String {
        let timeout = fl_types::Duration::from(deed.timeout(&self.pass.object));
        let message = format!("Running '{}' action with timeout of {timeout}", deed.name());
        self.pass.object.mark_reconciling(reasons::PROGRESSING, &message);
        if deed.kind() == DeedKind::Release {
            self.pass.object.mark_unknown(types::READY, reasons::PROGRESSING, &message);
        }
        self.pass.progress();
        self.pass.log.info(&format!("running '{}' action with timeout of {timeout}", deed.name()));
        message
    }

    /// The next deed would be the second of its kind: end here, and come back as the strategy says.
    fn stop_before(&mut self) -> End {
        if let Some(retry) = self.retry_end() {
            return retry;
        }
        let object = &mut self.pass.object;
        let exhausted = object.active_remediation().is_some_and(|remediation| {
            remediation.exhausted(object.status.as_ref().unwrap_or(&Default::default()))
        });
        if exhausted {
            object.remove_condition(types::RECONCILING);
            return End::Done;
        }
        self.mark_retrying();
        End::Again
    }

    fn stop_after_remediation(&mut self) -> End {
        if let Some(retry) = self.retry_end() {
            return retry;
        }
        let object = &self.pass.object;
        let over = object.active_remediation().is_some_and(|remediation| {
            remediation.exhausted(object.status.as_ref().unwrap_or(&Default::default()))
                && !remediation.reinstalls()
        });
        if over {
            self.stall_exhausted();
            return End::Stalled("exceeded maximum retries".to_owned());
        }
        self.mark_retrying();
        End::Again
    }

    fn mark_retrying(&mut self) {
        let message = self.pass.object.condition(types::READY).map(|c| c.message.clone()).unwrap_or_default();
        self.pass.object.mark_reconciling(reasons::PROGRESSING_WITH_RETRY, &message);
    }

    fn retry_end(&mut self) -> Option<End> {
        let interval = self.pass.object.active_retry(self.shared.defaults)?;
        let message = format!("retrying after {}", fl_types::Duration::from(interval));
        self.pass.object.mark_reconciling(reasons::PROGRESSING_WITH_RETRY, &message);
        Some(End::RetryAfter(interval))
    }

    fn stall_exhausted(&mut self) {
        let object = &mut self.pass.object;
        let status = object.status.clone().unwrap_or_default();
        let action = match status.last_attempted_release_action {
            Some(ReleaseAction::Install) => "install",
            Some(ReleaseAction::Upgrade) => "upgrade",
            None => "",
        };
        let failures = object.active_remediation().map_or(0, |remediation| remediation.failures(&status));
        object.mark_stalled("RetriesExceeded", &format!("Failed to {action} after {failures} attempt(s)"));
    }

    /// The table: from a state to what follows.
    async fn next(&mut self, state: State) -> Next {
        let forced = force_requested(&mut self.pass.object);
        let status = self.pass.object.status.clone().unwrap_or_default();
        match state {
            State::InSync => self.in_sync(forced),
            State::Locked(reason) => {
                self.say("release locked", &reason);
                Next::Deed(Deed::Unlock)
            }
            State::Absent(reason) => {
                self.say("release not installed", reason);
                let exhausted = self.pass.object.install_remediation().exhausted(&status);
                if exhausted && !forced {
                    return Next::Exhausted("install release");
                }
                Next::Deed(Deed::Install)
            }
            State::Unmanaged(reason) => {
                self.say("release not managed by controller", reason);
                self.pass.object.status.get_or_insert_default().clear();
                Next::Deed(Deed::Upgrade)
            }
            State::Unrecorded(release) => {
                self.say("release was made by a pass that was cut off", "taking it over as it is");
                self.take_over(&release).await;
                self.in_sync(forced)
            }
            State::OutOfSync(reason) => {
                self.say("release out-of-sync with desired state", reason);
                let exhausted = self.pass.object.upgrade_remediation().exhausted(&status);
                if exhausted && !forced {
                    return Next::Exhausted("upgrade release");
                }
                Next::Deed(Deed::Upgrade)
            }
            State::Drifted(found) => self.drifted(found),
            State::Untested => {
                self.say("release has not been tested", "");
                self.forget_remediation();
                Next::Deed(Deed::Test)
            }
            State::Failed(reason) => self.failed(reason, forced).await,
        }
    }

    fn say(&self, message: &str, reason: &str) {
        let text = if reason.is_empty() { message.to_owned() } else { format!("{message}: {reason}") };
        self.pass.log.info(&text);
    }

    /// A remediated release that is as wanted counts as upgraded.
    fn forget_remediation(&mut self) {
        let object = &mut self.pass.object;
        if !object.is_true(types::REMEDIATED) {
            return;
        }
        if let Some(latest) = object.status.as_ref().and_then(|status| status.latest()).cloned() {
            let message = format!(
                "Helm upgrade succeeded for release {} with chart {}",
                full_name(&latest),
                versioned_chart(&latest)
            );
            replace_condition(object, types::REMEDIATED, types::RELEASED, "UpgradeSucceeded", &message);
        }
    }

    fn in_sync(&mut self, forced: bool) -> Next {
        self.pass.log.info("release in-sync with desired state");
        let retries = self.pass.object.active_retry(self.shared.defaults).is_some();
        let object = &mut self.pass.object;
        let own = object.ignores_test_failures();
        let ignore = object.active_remediation().map_or(own, |remediation| remediation.ignores_tests(own));
        let status = object.status.get_or_insert_default();
        if retries {
            status.truncate_plainly();
        } else {
            status.truncate(ignore);
        }
        if forced {
            self.say("forcing upgrade for in-sync release", "force requested through annotation");
            return Next::Deed(Deed::Upgrade);
        }
        self.forget_remediation();
        let object = &mut self.pass.object;
        let ready = object.is_true(types::READY) && !object.is_stalled();
        if !ready || !object.is_true(types::RELEASED) {
            let released = object.condition(types::RELEASED).map(|c| c.reason.clone()).unwrap_or_default();
            let words = match released.as_str() {
                "InstallFailed" => Some(("InstallSucceeded", "install")),
                "UpgradeFailed" => Some(("UpgradeSucceeded", "upgrade")),
                _ => None,
            };
            if let (Some((reason, action)), Some(latest)) =
                (words, object.status.as_ref().and_then(|status| status.latest()).cloned())
            {
                let message = format!(
                    "Helm {action} succeeded for release {} with chart {}",
                    full_name(&latest),
                    versioned_chart(&latest)
                );
                object.mark_true(types::RELEASED, reason, &message);
                summarize(object);
            }
        }
        if object.detects_drift() {
            let message = "No drift detected against the cluster state";
            object.mark_false(types::DRIFTED, "NoDriftDetected", message);
        }
        Next::Nothing
    }

    fn drifted(&mut self, found: Differences) -> Next {
        self.say("detected changes in cluster state", &drift::brief(&found));
        let latest = self.pass.object.status.as_ref().and_then(|status| status.latest()).cloned();
        let message = format!(
            "Cluster state of release {} has drifted from the desired state:\n{}",
            latest.as_ref().map(full_name).unwrap_or_default(),
            found.summary()
        );
        self.pass.event(EventKind::Warning, "DriftDetected", &message);
        self.pass.object.mark_true(types::DRIFTED, "DriftDetected", &message);
        if self.pass.object.drift_mode() == DriftDetectionMode::Enabled {
            return Next::Deed(Deed::CorrectDrift(found));
        }
        Next::Nothing
    }

    async fn failed(&mut self, reason: &str, forced: bool) -> Next {
        self.say("release is in a failed state", reason);
        if self.pass.object.active_retry(self.shared.defaults).is_some() {
            self.pass.object.status.get_or_insert_default().truncate_plainly();
            return Next::Deed(Deed::Upgrade);
        }
        let object = &mut self.pass.object;
        let Some(remediation) = object.active_remediation() else { return Next::Deed(Deed::Upgrade) };
        let ignore = remediation.ignores_tests(object.ignores_test_failures());
        let status = object.status.get_or_insert_default();
        if remediation.failures(status) <= 0 || forced {
            return Next::Deed(Deed::Upgrade);
        }
        if remediation.exhausted(status) && !remediation.remediates_last() {
            return Next::Exhausted("remediate failed release");
        }
        status.truncate(ignore);
        if remediation.strategy == RemediationStrategy::Uninstall {
            return Next::Deed(Deed::Uninstall);
        }
        let Some(previous) = status.previous(ignore) else {
            return Next::NoTarget("cannot remediate failed release");
        };
        match self.records.history().await {
            Err(error) => Next::Failed(format!("cannot verify previous release to roll back to: {error}")),
            Ok(history) => match history.get(previous.version as i64) {
                Some(stored) if snapshot_verifies(&previous, stored) => Next::Deed(Deed::Rollback),
                _ => {
                    self.say(
                        "unable to verify previous release in storage to roll back to",
                        "it was changed",
                    );
                    Next::Deed(Deed::Upgrade)
                }
            },
        }
    }
}
