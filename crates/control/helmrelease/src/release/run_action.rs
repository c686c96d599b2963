//! Runs one action of the release loop, and records its result in conditions, events and history.

use std::time::Instant;

use fl_api::condition::{reasons, types};
use fl_api::helm::helm_release::{ReleaseAction, ReleaseSnapshot};
use fl_helm_storage::{Observation, Release, Status, test_hooks, values_digest};
use fl_runtime::{Conditions, EventKind};
use tokio::sync::mpsc;

use super::action::Action;
use super::atomic_release::AtomicRelease;
use super::status::{
    InventoryError, clear_failures, count_failure, event_data, inventory, record_changes, record_release,
    snapshot_data, summarize,
};
use crate::action::log::ActionLog;
use crate::action::post_render::owner_labels;
use crate::action::{ActionError, Configuration};
use crate::drift;
use crate::history::{ReleaseHistory, full_name, is_of, rollback_succeeded, tested, versioned_chart};
use crate::spec::ReleaseSpec;

impl AtomicRelease<'_> {
    /// Runs an action. An error means that it stored no release: the action is retried.
    pub(super) async fn run_action(&mut self, action: Action, running: &str) -> Result<(), ActionError> {
        match action {
            Action::Install => self.release(ReleaseAction::Install, running).await,
            Action::Upgrade => self.release(ReleaseAction::Upgrade, running).await,
            Action::Unlock => self.unlock().await,
            Action::Test => self.test(running).await,
            Action::Rollback { .. } => self.rollback(running).await,
            Action::Uninstall => self.uninstall_remediation(running).await,
            Action::CorrectDrift(found) => {
                self.correct_drift(&found).await;
                Ok(())
            }
        }
    }

    /// Runs a Helm action, and shows its progress in the status.
    async fn run_helm_action(
        &mut self,
        action: &Action,
        log: &ActionLog,
        running: &str,
    ) -> Result<Option<Release>, ActionError> {
        let object = self.cx.object.clone();
        let (sender, mut steps) = mpsc::unbounded_channel::<String>();
        let on_progress = move |text: &str| {
            // Fails only after the action has ended.
            let _ = sender.send(text.to_owned());
        };
        self.storage.observed.clear();
        let mut helm = Configuration {
            cluster: &self.target.cluster,
            cluster_key: self.target.key.clone(),
            storage: &mut self.storage,
            log,
            health: self.health.clone(),
            capabilities: &self.shared.capabilities,
            object: &object,
            defaults: self.shared.defaults,
            namespace: object.release_namespace(),
            owner: owner_labels(&object),
            interrupt: self.interrupt,
            on_progress: &on_progress,
        };
        let (chart, values) = (&self.chart, &self.values);
        let work = async {
            match action {
                Action::Install => helm.install(chart, values).await.map(|()| None),
                Action::Upgrade => helm.upgrade(chart, values).await.map(|()| None),
                Action::Rollback { version } => helm.rollback(*version).await.map(|()| None),
                Action::Uninstall => helm.uninstall().await.map(Some),
                Action::Test => helm.test().await.map(Some),
                // Not actions of Helm: they write the storage or the objects directly.
                Action::Unlock | Action::CorrectDrift(_) => Ok(None),
            }
        };
        tokio::pin!(work);
        let cx = &mut *self.cx;
        let result = loop {
            tokio::select! {
                result = &mut work => break result,
                Some(text) = steps.recv() => {
                    cx.object.mark_reconciling(reasons::PROGRESSING, &format!("{running}: {text}"));
                    cx.progress();
                }
            }
        };
        cx.object.mark_reconciling(reasons::PROGRESSING, running);
        result
    }

    async fn update_inventory(&mut self) {
        let Some(release) = self.storage.observed.last().cloned() else { return };
        // CRDs of subcharts that the values disable are not part of the release.
        let crds = crate::action::crds(self.chart.compiled.clone(), self.values.clone()).await;
        let found = match crds {
            Ok(crds) => inventory(&self.target.cluster, &release, &crds).await,
            Err(error) => Err(InventoryError::CrdsOfChart(error)),
        };
        match found {
            Ok((found, warnings)) => {
                if !warnings.is_empty() {
                    self.cx.event(EventKind::Warning, "NamespaceCheckSkipped", &warnings.join("; "));
                }
                self.cx.object.status.get_or_insert_default().inventory = Some(found);
            }
            Err(error) => {
                let object = &self.cx.object;
                let message = format!(
                    "failed to build inventory for {}/{}: {error}",
                    object.own_namespace(),
                    object.metadata.name
                );
                self.cx.event(EventKind::Warning, "InventoryBuildFailed", &message);
            }
        }
    }

    async fn release(&mut self, action: ReleaseAction, running: &str) -> Result<(), ActionError> {
        let started = Instant::now();
        let (helm_action, word, title) = match action {
            ReleaseAction::Install => (Action::Install, "install", "Install"),
            ReleaseAction::Upgrade => (Action::Upgrade, "upgrade", "Upgrade"),
        };
        let object = &mut self.cx.object;
        let status = object.status.get_or_insert_default();
        status.last_attempted_release_action = Some(action);
        if action == ReleaseAction::Install {
            status.clear();
        }
        object.remove_condition(types::TEST_SUCCESS);
        object.remove_condition(types::REMEDIATED);
        let log = ActionLog::default();
        let result = self.run_helm_action(&helm_action, &log, running).await;
        self.update_inventory().await;
        let observed = std::mem::take(&mut self.storage.observed);
        let object = &mut self.cx.object;
        let took = fl_types::Duration::from(started.elapsed());
        object.status.get_or_insert_default().last_attempted_release_action_duration = Some(took.to_string());
        let recorded = record_release(object, &observed, word);
        // Helm merges preserved values into the given ones: they are the desired values for the rest of the reconcile.
        if action == ReleaseAction::Upgrade && object.upgrade().preserve_values.unwrap_or(false) {
            let newest = observed.iter().max_by_key(|release| release.version);
            if let Some(release) = newest {
                self.values.clone_from(&release.config);
            }
        }
        let outcome = match result {
            Ok(_) => {
                self.released(action, word, title);
                Ok(())
            }
            Err(error) => {
                self.release_failed(word, title, &log, &error);
                if recorded {
                    let object = &mut self.cx.object;
                    let remediation = match action {
                        ReleaseAction::Install => object.install_remediation(),
                        ReleaseAction::Upgrade => object.upgrade_remediation(),
                    };
                    remediation.count_failure(object.status.get_or_insert_default());
                    Ok(())
                } else {
                    // Another client may have written the storage.
                    self.storage.invalidate();
                    Err(error)
                }
            }
        };
        summarize(&mut self.cx.object);
        outcome
    }

    fn latest(&self) -> Option<ReleaseSnapshot> {
        self.cx.object.status.as_ref().and_then(|status| status.latest()).cloned()
    }

    fn released(&mut self, action: ReleaseAction, word: &str, title: &str) {
        let Some(latest) = self.latest() else { return };
        let (name, chart) = (full_name(&latest), versioned_chart(&latest));
        let message = format!("Helm {word} succeeded for release {name} with chart {chart}");
        let reason = format!("{title}Succeeded");
        let defaults = self.shared.defaults;
        let object = &mut self.cx.object;
        object.mark_true(types::RELEASED, &reason, &message);
        if object.tests_enabled() && !tested(&latest) {
            let waiting = format!("Helm release {name} with chart {chart} is awaiting tests");
            object.mark_unknown(types::TEST_SUCCESS, "AwaitingTests", &waiting);
        }
        let retry = match action {
            ReleaseAction::Install => object.install_retry(defaults),
            ReleaseAction::Upgrade => object.upgrade_retry(defaults),
        };
        if retry.is_some() {
            clear_failures(object);
        }
        self.cx.event_with(EventKind::Normal, &reason, &message, snapshot_data(&latest));
    }

    fn release_failed(&mut self, word: &str, title: &str, log: &ActionLog, error: &ActionError) {
        let object = &mut self.cx.object;
        let message = format!(
            "Helm {word} failed for release {}/{} with chart {}@{}: {}",
            object.release_namespace(),
            object.long_release_name(),
            self.chart.name(),
            self.chart.version,
            error.to_string().trim()
        );
        let reason = format!("{title}Failed");
        count_failure(object);
        object.mark_false(types::RELEASED, &reason, &message);
        let digest = object.status.as_ref().and_then(|status| status.last_attempted_revision_digest.clone());
        let data = event_data(
            &self.chart.version,
            &values_digest(&self.values),
            self.chart.app_version(),
            digest.as_deref(),
        );
        self.cx.event_with(EventKind::Warning, &reason, &log.append_to(&message), data);
    }

    /// Records a release of an interrupted reconcile in the status.
    pub(super) async fn adopt_unrecorded(&mut self, release: &Release) {
        self.storage.observed = vec![release.clone()];
        self.update_inventory().await;
        self.storage.observed.clear();
        let (action, word, title) = if release.version == 1 {
            (ReleaseAction::Install, "install", "Install")
        } else {
            (ReleaseAction::Upgrade, "upgrade", "Upgrade")
        };
        let object = &mut self.cx.object;
        object.status.get_or_insert_default().last_attempted_release_action = Some(action);
        record_release(object, std::slice::from_ref(release), word);
        if let Ok(history) = self.storage.history().await {
            // The status does not say either that earlier releases are superseded.
            let earlier: Vec<Release> =
                history.releases.iter().filter(|known| known.version < release.version).cloned().collect();
            record_changes(&mut self.cx.object, &earlier, None, false);
        }
        self.released(action, word, title);
        summarize(&mut self.cx.object);
    }

    async fn unlock(&mut self) -> Result<(), ActionError> {
        let mut release = match self.storage.last().await {
            Err(ActionError::NotFound) => return Ok(()),
            other => other?,
        };
        let before = release.info.status.clone();
        if !before.is_pending() {
            return Ok(());
        }
        let known = self.cx.object.status.as_ref().and_then(|status| {
            status
                .list()
                .iter()
                .find(|known| is_of(known, &release))
                .and_then(|known| known.oci_digest.clone())
        });
        let current = Observation::of(&release).with(known.as_deref(), None).snapshot();
        release.set_status(Status::Failed, format!("Release unlocked from stale '{before}' state"));
        self.storage.observed.clear();
        let result = self.storage.update(&release).await;
        let observed = std::mem::take(&mut self.storage.observed);
        record_changes(&mut self.cx.object, &observed, None, false);
        let (name, chart) = (full_name(&current), versioned_chart(&current));
        let (kind, message) = match &result {
            Ok(()) => (
                EventKind::Normal,
                format!("Unlocked Helm release {name} with chart {chart} in {before} state"),
            ),
            Err(error) => {
                count_failure(&mut self.cx.object);
                let text = format!(
                    "Unlock of Helm release {name} with chart {chart} in {before} state failed: {error}"
                );
                (EventKind::Warning, text)
            }
        };
        self.cx.object.mark_false(types::RELEASED, "PendingRelease", &message);
        self.cx.event_with(kind, "PendingRelease", &message, snapshot_data(&current));
        summarize(&mut self.cx.object);
        result
    }

    async fn test(&mut self, running: &str) -> Result<(), ActionError> {
        let Some(current) = self.latest() else {
            return Err(ActionError::failed("no latest release: required for test"));
        };
        let log = ActionLog::default();
        let mut result = self.run_helm_action(&Action::Test, &log, running).await;
        if let Ok(Some(release)) = &result
            && !is_of(&current, release)
        {
            let text = format!(
                "release mismatch: tested release {}/{}.v{} != current release {}",
                release.namespace,
                release.name,
                release.version,
                full_name(&current)
            );
            result = Err(ActionError::failed(text));
        }
        let observed = std::mem::take(&mut self.storage.observed);
        let object = &mut self.cx.object;
        for release in observed.iter().filter(|release| is_of(&current, release)) {
            let observation =
                Observation::of(release).with(current.oci_digest.as_deref(), current.action.as_deref());
            let snapshot =
                ReleaseSnapshot { test_hooks: Some(test_hooks(release)), ..observation.snapshot() };
            let status = object.status.get_or_insert_default();
            if let Some(known) = status.list_mut().iter_mut().find(|known| is_of(known, release)) {
                *known = snapshot;
            }
        }
        let Some(latest) = self.latest() else { return Ok(()) };
        let (name, chart) = (full_name(&latest), versioned_chart(&latest));
        let outcome = match result {
            Ok(_) => {
                let count = latest.test_hooks.as_ref().map_or(0, std::collections::BTreeMap::len);
                let hooks = match count {
                    0 => "no test hooks".to_owned(),
                    1 => "1 test hook completed successfully".to_owned(),
                    more => format!("{more} test hooks completed successfully"),
                };
                let message = format!("Helm test succeeded for release {name} with chart {chart}: {hooks}");
                self.cx.object.mark_true(types::TEST_SUCCESS, "TestSucceeded", &message);
                self.cx.event_with(EventKind::Normal, "TestSucceeded", &message, snapshot_data(&latest));
                Ok(())
            }
            Err(error) => {
                let message = format!(
                    "Helm test failed for release {name} with chart {chart}: {}",
                    error.to_string().trim()
                );
                let object = &mut self.cx.object;
                count_failure(object);
                object.mark_false(types::TEST_SUCCESS, "TestFailed", &message);
                let remediation = object.active_remediation();
                let ignored = object.ignores_test_failures();
                if let Some(remediation) =
                    remediation.filter(|r| tested(&latest) && !r.ignores_tests(ignored))
                {
                    remediation.count_failure(object.status.get_or_insert_default());
                }
                self.cx.event_with(EventKind::Warning, "TestFailed", &message, snapshot_data(&latest));
                if tested(&latest) { Ok(()) } else { Err(error) }
            }
        };
        summarize(&mut self.cx.object);
        outcome
    }

    async fn rollback(&mut self, running: &str) -> Result<(), ActionError> {
        let object = &self.cx.object;
        let ignore = object.upgrade_remediation().ignores_tests(object.ignores_test_failures());
        let status = object.status.clone().unwrap_or_default();
        let (Some(current), Some(previous)) = (status.latest().cloned(), status.previous(ignore)) else {
            return Err(ActionError::failed("missing target release for rollback: required to rollback"));
        };
        if previous.name != current.name || previous.namespace != current.namespace {
            return Err(ActionError::failed(format!(
                "release mismatch: previous release name or namespace {} does not match current {}",
                full_name(&previous),
                full_name(&current)
            )));
        }
        let log = ActionLog::default();
        let result =
            self.run_helm_action(&Action::Rollback { version: previous.version as i64 }, &log, running).await;
        self.update_inventory().await;
        let observed = std::mem::take(&mut self.storage.observed);
        record_changes(&mut self.cx.object, &observed, Some("rollback"), true);
        let (name, chart) = (full_name(&previous), versioned_chart(&previous));
        let data = event_data(
            &previous.chart_version,
            &values_digest(&self.values),
            previous.app_version.as_deref().unwrap_or_default(),
            previous.oci_digest.as_deref(),
        );
        let outcome = match result {
            Ok(_) => {
                let message = rollback_succeeded(&previous);
                self.cx.object.mark_true(types::REMEDIATED, "RollbackSucceeded", &message);
                self.cx.event_with(EventKind::Normal, "RollbackSucceeded", &message, data);
                Ok(())
            }
            Err(error) => {
                let text = error.to_string();
                let message = format!(
                    "Helm rollback to previous release {name} with chart {chart} failed: {}",
                    text.trim()
                );
                count_failure(&mut self.cx.object);
                self.cx.object.mark_false(types::REMEDIATED, "RollbackFailed", &message);
                self.cx.event_with(EventKind::Warning, "RollbackFailed", &log.append_to(&message), data);
                if observed.is_empty() { Err(error) } else { Ok(()) }
            }
        };
        summarize(&mut self.cx.object);
        outcome
    }

    async fn uninstall_remediation(&mut self, running: &str) -> Result<(), ActionError> {
        let Some(current) = self.latest() else {
            return Err(ActionError::failed("no latest release: required to uninstall"));
        };
        let log = ActionLog::default();
        let mut result = self.run_helm_action(&Action::Uninstall, &log, running).await.map(drop);
        let observed = std::mem::take(&mut self.storage.observed);
        record_changes(&mut self.cx.object, &observed, Some("uninstall-remediation"), false);
        let Some(latest) = self.latest() else { return Ok(()) };
        let touched = latest.digest != current.digest;
        if result.is_ok() && !touched {
            result = Err(ActionError::failed(
                "uninstall completed with error: release not updated in Helm storage",
            ));
        }
        let (name, chart) = (full_name(&latest), versioned_chart(&latest));
        match result {
            Ok(()) => {
                let message =
                    format!("Helm uninstall remediation for release {name} with chart {chart} succeeded");
                self.cx.object.mark_true(types::REMEDIATED, "UninstallSucceeded", &message);
                self.cx.event_with(EventKind::Normal, "UninstallSucceeded", &message, snapshot_data(&latest));
                Ok(())
            }
            Err(error) => {
                let text = error.to_string();
                let message = format!(
                    "Helm uninstall remediation for release {name} with chart {chart} failed: {}",
                    text.trim()
                );
                count_failure(&mut self.cx.object);
                self.cx.object.mark_false(types::REMEDIATED, "UninstallFailed", &message);
                let data = snapshot_data(&latest);
                self.cx.event_with(EventKind::Warning, "UninstallFailed", &log.append_to(&message), data);
                if touched { Ok(()) } else { Err(error) }
            }
        }
    }

    async fn correct_drift(&mut self, found: &drift::Differences) {
        self.cx.object.mark_unknown(types::READY, reasons::PROGRESSING, "correcting cluster drift");
        let Some(latest) = self.latest() else { return };
        let (changes, errors) = drift::correct(&self.target.cluster, found).await;
        let name = full_name(&latest);
        if errors.is_empty() {
            if !changes.is_empty() {
                let message = format!("Cluster state of release {name} has been corrected:\n{changes}");
                self.cx.event_with(EventKind::Normal, "DriftCorrected", &message, snapshot_data(&latest));
            }
            return;
        }
        let partially = if changes.is_empty() { "" } else { "partially " };
        let mut message =
            format!("Failed to {partially}correct cluster state of release {name}:\n{}", errors.join("\n"));
        if !changes.is_empty() {
            message.push_str(&format!("\n\nSuccessful corrections:\n{changes}"));
        }
        self.cx.event_with(EventKind::Warning, "DriftCorrectionFailed", &message, snapshot_data(&latest));
    }
}
