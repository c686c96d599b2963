//! The release loop, helm-controller's `AtomicRelease`: determine the state of the release, run the action that follows from
//! it, repeat. Each kind of action runs at most once per reconcile.

use std::time::Duration;

use fl_api::condition::{reasons, types};
use fl_api::helm::HelmRelease;
use fl_api::helm::actions::RemediationStrategy;
use fl_api::helm::helm_release::{DriftDetectionMode, ReleaseAction};
use fl_helm_storage::snapshot_verifies;
use fl_runtime::{Conditions, Context, EventKind};
use serde_json::{Map, Value};

use super::action::{Action, ActionKind};
use super::state::State;
use super::status::{replace_condition, summarize};
use crate::action::capabilities::KnownCapabilities;
use crate::action::interrupt::Interrupt;
use crate::action::storage::Storage;
use crate::action::wait::Health;
use crate::action::{ActionError, LoadedChart};
use crate::annotations::force_requested;
use crate::drift::{self, Differences};
use crate::history::{ReleaseHistory, full_name, versioned_chart};
use crate::spec::{Defaults, ReleaseSpec};
use crate::target::Target;

/// What all reconciles share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) capabilities: KnownCapabilities,
    pub(crate) defaults: Defaults,
    /// `--override-manager`
    pub(crate) override_managers: Vec<String>,
}

/// How the release loop ended, other than by an error.
#[derive(Debug)]
pub(crate) enum ReleaseResult {
    /// The release is in the desired state.
    Done,
    /// Another reconcile follows at once.
    Requeue,
    /// The wait for readiness was cancelled because this object triggered another reconcile. The release is stored as failed.
    Canceled { trigger: String },
    /// The failed action is retried after this long, with jitter.
    RetryAfter(Duration),
}

/// Why the release loop ended before the release was in the desired state.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReleaseError {
    #[error("cannot determine release state: {0}")]
    State(#[source] ActionError),
    #[error("exceeded maximum retries{context}")]
    RetriesExceeded {
        /// What cannot be done for that reason; with a colon in front.
        context: &'static str,
        /// The action attempted last.
        action: &'static str,
        failures: i64,
    },
    #[error("missing target release for rollback: {0}")]
    MissingRollbackTarget(&'static str),
    #[error("cannot verify previous release to roll back to: {0}")]
    PreviousRelease(#[source] ActionError),
    /// An action failed before it stored a release.
    #[error(transparent)]
    Action(#[from] ActionError),
}

/// The action that follows from a state; none if the release is in the desired state.
type NextAction = Result<Option<Action>, ReleaseError>;

/// One run of the release loop.
pub(crate) struct AtomicRelease<'a> {
    pub(crate) cx: &'a mut Context<HelmRelease>,
    pub(crate) shared: &'a Shared,
    pub(crate) target: Target,
    pub(crate) storage: Storage,
    pub(crate) chart: LoadedChart,
    pub(crate) values: Map<String, Value>,
    pub(crate) health: Health,
    pub(crate) interrupt: &'a Interrupt,
    /// Whether this reconcile applied all objects: nothing has drifted since, and later changes trigger a reconcile.
    pub(crate) just_released: bool,
}

impl std::fmt::Debug for AtomicRelease<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtomicRelease").field("storage", &self.storage).finish_non_exhaustive()
    }
}

impl AtomicRelease<'_> {
    /// Runs actions until none is left to run.
    pub(crate) async fn run(&mut self) -> Result<ReleaseResult, ReleaseError> {
        let mut done: Vec<ActionKind> = Vec::new();
        loop {
            let state = self.state().await.map_err(ReleaseError::State)?;
            let Some(action) = self.next(state).await? else {
                self.cx.object.remove_condition(types::RECONCILING);
                summarize(&mut self.cx.object);
                return Ok(ReleaseResult::Done);
            };
            let kind = action.kind();
            if done.contains(&kind) {
                return Ok(self.stop_before());
            }
            let running = self.mark_running(&action);
            let result = self.run_action(action, &running).await;
            if let Some(trigger) = self.interrupt.trigger() {
                // A remediation, if still needed, is left to that reconcile: it may bring the fix.
                return Ok(ReleaseResult::Canceled { trigger: trigger.to_owned() });
            }
            if let Err(error) = result {
                if let Some(retry) = self.retry_result() {
                    return Ok(retry);
                }
                if self.cx.object.is_ready() {
                    self.cx.object.mark_false(types::READY, "ReconcileError", &error.to_string());
                }
                return Err(error.into());
            }
            if kind == ActionKind::Remediate {
                return self.stop_after_remediation();
            }
            self.just_released |= kind == ActionKind::Release;
            done.push(kind);
            self.cx.progress();
        }
    }

    /// Reports the action that is about to run. Returns the message of `Reconciling`.
    fn mark_running(&mut self, action: &Action) -> String {
        let timeout = fl_types::Duration::from(action.timeout(&self.cx.object));
        let message = format!("Running '{}' action with timeout of {timeout}", action.name());
        self.cx.object.mark_reconciling(reasons::PROGRESSING, &message);
        if action.kind() == ActionKind::Release {
            self.cx.object.mark_unknown(types::READY, reasons::PROGRESSING, &message);
        }
        self.cx.progress();
        self.cx.log.info(&format!("running '{}' action with timeout of {timeout}", action.name()));
        message
    }

    /// Ends the loop before a second action of the same kind.
    fn stop_before(&mut self) -> ReleaseResult {
        if let Some(retry) = self.retry_result() {
            return retry;
        }
        let object = &mut self.cx.object;
        let exhausted = object.active_remediation().is_some_and(|remediation| {
            remediation.exhausted(object.status.as_ref().unwrap_or(&Default::default()))
        });
        if exhausted {
            object.remove_condition(types::RECONCILING);
            return ReleaseResult::Done;
        }
        self.mark_retrying();
        ReleaseResult::Requeue
    }

    fn stop_after_remediation(&mut self) -> Result<ReleaseResult, ReleaseError> {
        if let Some(retry) = self.retry_result() {
            return Ok(retry);
        }
        let object = &self.cx.object;
        let over = object.active_remediation().is_some_and(|remediation| {
            remediation.exhausted(object.status.as_ref().unwrap_or(&Default::default()))
                && !remediation.reinstalls()
        });
        if over {
            return Err(self.retries_exceeded(""));
        }
        self.mark_retrying();
        Ok(ReleaseResult::Requeue)
    }

    fn mark_retrying(&mut self) {
        let message = self.cx.object.condition(types::READY).map(|c| c.message.clone()).unwrap_or_default();
        self.cx.object.mark_reconciling(reasons::PROGRESSING_WITH_RETRY, &message);
    }

    /// With the strategy `RetryOnFailure`, the failed action is retried after an interval.
    fn retry_result(&mut self) -> Option<ReleaseResult> {
        let interval = self.cx.object.active_retry(self.shared.defaults)?;
        let message = format!("retrying after {}", fl_types::Duration::from(interval));
        self.cx.object.mark_reconciling(reasons::PROGRESSING_WITH_RETRY, &message);
        Some(ReleaseResult::RetryAfter(interval))
    }

    fn retries_exceeded(&self, context: &'static str) -> ReleaseError {
        let object = &self.cx.object;
        let status = object.status.clone().unwrap_or_default();
        let action = match status.last_attempted_release_action {
            Some(ReleaseAction::Install) => "install",
            Some(ReleaseAction::Upgrade) => "upgrade",
            None => "",
        };
        let failures = object.active_remediation().map_or(0, |remediation| remediation.failures(&status));
        ReleaseError::RetriesExceeded { context, action, failures }
    }

    /// The action that follows from a state.
    async fn next(&mut self, state: State) -> NextAction {
        let forced = force_requested(&mut self.cx.object);
        let status = self.cx.object.status.clone().unwrap_or_default();
        match state {
            State::InSync => self.in_sync(forced),
            State::Locked(reason) => {
                self.log_state("release locked", &reason);
                Ok(Some(Action::Unlock))
            }
            State::Absent(reason) => {
                self.log_state("release not installed", reason);
                let exhausted = self.cx.object.install_remediation().exhausted(&status);
                if exhausted && !forced {
                    return Err(self.retries_exceeded(": cannot install release"));
                }
                Ok(Some(Action::Install))
            }
            State::Unmanaged(reason) => {
                self.log_state("release not managed by controller", reason);
                self.cx.object.status.get_or_insert_default().clear();
                Ok(Some(Action::Upgrade))
            }
            State::Unrecorded(release) => {
                self.log_state("release was made by an interrupted reconcile", "recording it in the status");
                self.adopt_unrecorded(&release).await;
                self.in_sync(forced)
            }
            State::OutOfSync(reason) => {
                self.log_state("release out-of-sync with desired state", reason);
                let exhausted = self.cx.object.upgrade_remediation().exhausted(&status);
                if exhausted && !forced {
                    return Err(self.retries_exceeded(": cannot upgrade release"));
                }
                Ok(Some(Action::Upgrade))
            }
            State::Drifted(found) => self.drifted(found),
            State::Untested => {
                self.log_state("release has not been tested", "");
                self.clear_remediation();
                Ok(Some(Action::Test))
            }
            State::Failed(reason) => self.failed(reason, forced).await,
        }
    }

    fn log_state(&self, message: &str, reason: &str) {
        let text = if reason.is_empty() { message.to_owned() } else { format!("{message}: {reason}") };
        self.cx.log.info(&text);
    }

    /// A remediated release that is in the desired state counts as upgraded.
    fn clear_remediation(&mut self) {
        let object = &mut self.cx.object;
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

    fn in_sync(&mut self, forced: bool) -> NextAction {
        self.cx.log.info("release in-sync with desired state");
        let retries = self.cx.object.active_retry(self.shared.defaults).is_some();
        let object = &mut self.cx.object;
        let own = object.ignores_test_failures();
        let ignore = object.active_remediation().map_or(own, |remediation| remediation.ignores_tests(own));
        let status = object.status.get_or_insert_default();
        if retries {
            status.truncate_to_limit();
        } else {
            status.truncate(ignore);
        }
        if forced {
            self.log_state("forcing upgrade for in-sync release", "force requested through annotation");
            return Ok(Some(Action::Upgrade));
        }
        self.clear_remediation();
        let object = &mut self.cx.object;
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
        Ok(None)
    }

    fn drifted(&mut self, found: Differences) -> NextAction {
        self.log_state("detected changes in cluster state", &drift::brief(&found));
        let latest = self.cx.object.status.as_ref().and_then(|status| status.latest()).cloned();
        let message = format!(
            "Cluster state of release {} has drifted from the desired state:\n{}",
            latest.as_ref().map(full_name).unwrap_or_default(),
            found.summary()
        );
        self.cx.event(EventKind::Warning, "DriftDetected", &message);
        self.cx.object.mark_true(types::DRIFTED, "DriftDetected", &message);
        if self.cx.object.drift_mode() == DriftDetectionMode::Enabled {
            return Ok(Some(Action::CorrectDrift(found)));
        }
        Ok(None)
    }

    async fn failed(&mut self, reason: &str, forced: bool) -> NextAction {
        self.log_state("release is in a failed state", reason);
        if self.cx.object.active_retry(self.shared.defaults).is_some() {
            self.cx.object.status.get_or_insert_default().truncate_to_limit();
            return Ok(Some(Action::Upgrade));
        }
        let object = &mut self.cx.object;
        let Some(remediation) = object.active_remediation() else { return Ok(Some(Action::Upgrade)) };
        let ignore = remediation.ignores_tests(object.ignores_test_failures());
        let status = object.status.get_or_insert_default();
        if remediation.failures(status) <= 0 || forced {
            return Ok(Some(Action::Upgrade));
        }
        if remediation.exhausted(status) && !remediation.remediates_last() {
            return Err(self.retries_exceeded(": cannot remediate failed release"));
        }
        status.truncate(ignore);
        if remediation.strategy == RemediationStrategy::Uninstall {
            return Ok(Some(Action::Uninstall));
        }
        let Some(previous) = status.previous(ignore) else {
            return Err(ReleaseError::MissingRollbackTarget("cannot remediate failed release"));
        };
        match self.storage.history().await {
            Err(error) => Err(ReleaseError::PreviousRelease(error)),
            Ok(history) => match history.get(previous.version as i64) {
                Some(stored) if snapshot_verifies(&previous, stored) => {
                    Ok(Some(Action::Rollback { version: previous.version as i64 }))
                }
                _ => {
                    self.log_state(
                        "unable to verify previous release in storage to roll back to",
                        "it was changed",
                    );
                    Ok(Some(Action::Upgrade))
                }
            },
        }
    }
}
