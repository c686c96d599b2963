//! The state of a release: what storage, status and cluster say about it.

use fl_api::condition::types;
use fl_api::helm::HelmRelease;
use fl_api::helm::helm_release::{ReleaseAction, ReleaseSnapshot};
use fl_helm_storage::{
    Observation, Release, Status, common_metadata_digest, post_renderers_digest, snapshot_verifies,
    values_digest, verify_values,
};
use fl_runtime::Conditions as _;

use super::atomic_release::AtomicRelease;
use crate::action::ActionError;
use crate::action::post_render::owner_labels;
use crate::action::resources::read_manifest;
use crate::action::storage::Storage;
use crate::drift::{self, Differences};
use crate::history::{ReleaseHistory, is_of, rollback_succeeded, test_failed, tested};
use crate::spec::{DEFAULT_HISTORY, ReleaseSpec};

/// The state of a release.
#[derive(Debug)]
pub(crate) enum State {
    /// No release is installed.
    Absent(&'static str),
    /// An action was interrupted: the release is pending.
    Locked(String),
    /// The release was made by another client.
    Unmanaged(&'static str),
    /// The release was made by an interrupted reconcile, and is not in the status.
    Unrecorded(Box<Release>),
    /// The last action or its tests failed.
    Failed(&'static str),
    /// Chart, values or post-renderers differ from the spec.
    OutOfSync(&'static str),
    /// Its tests have not run.
    Untested,
    /// Live objects differ from the release.
    Drifted(Differences),
    /// The release is in the desired state.
    InSync,
}

impl AtomicRelease<'_> {
    /// Determines the state from storage, status and cluster; the first difference decides.
    pub(crate) async fn state(&mut self) -> Result<State, ActionError> {
        let within = |error: ActionError| error.within("failed to retrieve last release from storage");
        let history = self.storage.history().await.map_err(within)?;
        for corrupt in &history.corrupt {
            self.cx.log.info(&format!("record {} {}; skipping it", corrupt.object, corrupt.error));
        }
        let Some(release) = history.last().cloned() else {
            return Ok(State::Absent(if history.is_empty() {
                "no release in storage for object"
            } else {
                "no record in storage can be read"
            }));
        };
        if release.info.status.is_pending() {
            return Ok(State::Locked(format!("release with status '{}'", release.info.status)));
        }
        let known = self.cx.object.status.as_ref().and_then(|status| status.latest());
        if known.is_none() && release.info.status == Status::Uninstalled {
            return Ok(State::Absent("found uninstalled release in storage"));
        }
        let recorded = known.is_some_and(|latest| snapshot_verifies(latest, &release));
        if !recorded {
            let reason = match known {
                None => "found existing release in storage",
                Some(_) => "release not observed to be made for object",
            };
            let before = known.map_or(0, |latest| latest.version as i64);
            if !self.is_own(&release) {
                return Ok(State::Unmanaged(reason));
            }
            // A reconcile was interrupted between the action and the write of the status.
            if release.version == before + 1 && self.is_desired(&release) {
                return Ok(State::Unrecorded(Box::new(release)));
            }
            self.restore_history().await?;
        }
        let status = self.cx.object.status.clone().unwrap_or_default();
        let Some(latest) = status.latest().cloned() else {
            return Ok(State::Unmanaged("found existing release in storage"));
        };
        let latest = &latest;
        match &release.info.status {
            Status::Deployed => {}
            Status::Failed => return Ok(State::Failed("")),
            Status::Uninstalled => return Ok(State::Absent("found uninstalled release in storage")),
            // An uninstall was interrupted, or the newest revision was superseded: released again. An uninstall that failed
            // is in the history, and would fail again.
            Status::Uninstalling if !recorded => return Ok(State::Unmanaged("release is not deployed")),
            Status::Superseded => return Ok(State::Unmanaged("release is not deployed")),
            other => {
                return Err(ActionError::failed(format!(
                    "unable to determine state for release with status '{other}'"
                )));
            }
        }
        let metadata = &release.chart.metadata;
        if metadata.name != self.chart.name() || metadata.version != self.chart.version {
            return Ok(State::OutOfSync("release chart changed"));
        }
        if !verify_values(&latest.config_digest, &self.values) {
            return Ok(State::OutOfSync("release config values changed"));
        }
        let object = &self.cx.object;
        if status.observed_generation != object.metadata.generation {
            if post_renderers(object) != status.observed_post_renderers_digest {
                return Ok(State::OutOfSync("postrenderers digest has changed"));
            }
            if common_metadata(object) != status.observed_common_metadata_digest {
                return Ok(State::OutOfSync("common metadata digest has changed"));
            }
        }
        if object.tests_enabled() {
            if !tested(latest) {
                return Ok(State::Untested);
            }
            let remediation = object.active_remediation();
            let counts = remediation.is_some_and(|r| !r.ignores_tests(object.ignores_test_failures()));
            if counts && test_failed(latest) {
                return Ok(State::Failed("release has test in failed phase"));
            }
        }
        if object.detects_drift() && !self.just_released {
            let ignore = object.spec.drift_detection.as_ref().and_then(|drift| drift.ignore.as_deref());
            let found = drift::differences(
                &self.target.cluster,
                &release,
                ignore.unwrap_or_default(),
                &self.shared.override_managers,
            )
            .await
            .map_err(|error| error.within("unable to determine cluster state"))?;
            if found.has_changes() {
                return Ok(State::Drifted(found));
            }
        }
        Ok(State::InSync)
    }

    /// Whether a release that is not in the status was made for this object: stored by this engine since the object exists,
    /// and labelled with its name.
    fn is_own(&self, release: &Release) -> bool {
        is_own(&self.storage, release, &self.cx.object)
    }

    /// Whether a release is the desired one: making it again would run its hooks twice.
    fn is_desired(&self, release: &Release) -> bool {
        release.info.status == Status::Deployed && self.has_same_chart_and_values(release)
    }

    /// Whether a release is of the desired chart and values, whatever its result.
    fn has_same_chart_and_values(&self, release: &Release) -> bool {
        let metadata = &release.chart.metadata;
        metadata.name == self.chart.name()
            && metadata.version == self.chart.version
            && values_digest(&release.config) == values_digest(&self.values)
    }

    /// Restores the history from storage after an interrupted reconcile. Test results and digests of known revisions stay.
    async fn restore_history(&mut self) -> Result<(), ActionError> {
        let history = self.storage.history().await?;
        let releases: Vec<Release> = history.releases.iter().rev().take(DEFAULT_HISTORY).cloned().collect();
        let status = self.cx.object.status.clone().unwrap_or_default();
        let restored = releases.iter().filter(|release| self.is_own(release)).map(|release| {
            let known = status.list().iter().find(|known| is_of(known, release));
            let action = known.and_then(|known| known.action.clone()).unwrap_or_else(|| made_by(release));
            let attempted = (release.chart.metadata.version == self.chart.version)
                .then_some(status.last_attempted_revision_digest.as_deref())
                .flatten();
            let digest = known.map_or(attempted, |known| known.oci_digest.as_deref());
            let snapshot = Observation::of(release).with(digest, Some(&action)).snapshot();
            ReleaseSnapshot { test_hooks: known.and_then(|known| known.test_hooks.clone()), ..snapshot }
        });
        let restored: Vec<ReleaseSnapshot> = restored.collect();
        self.cx.log.info("the last reconcile was interrupted: restoring the history from storage");
        // Failures that the interrupted reconcile rolled back count against the retries. A failure without a rollback after it
        // may be the interruption itself, and does not count.
        let before = status.latest().map_or(0, |latest| latest.version as i64);
        let rolled_back = releases.first().filter(|newest| {
            newest.info.status == Status::Deployed && newest.info.description.starts_with("Rollback")
        });
        let failed_attempt = |release: &&Release| {
            rolled_back.is_some_and(|newest| newest.version > release.version)
                && release.version > before
                && release.info.status == Status::Failed
                && self.is_own(release)
                && self.has_same_chart_and_values(release)
        };
        let failed = releases.iter().filter(failed_attempt).count();
        let back_to = rolled_back.filter(|_| failed > 0).and_then(|newest| {
            let version: i64 = newest.info.description.rsplit(' ').next()?.parse().ok()?;
            restored.iter().find(|snapshot| snapshot.version as i64 == version)
        });
        let remediated = back_to.map(rollback_succeeded);
        let action = if before == 0 { ReleaseAction::Install } else { ReleaseAction::Upgrade };
        let object = &mut self.cx.object;
        object.status.get_or_insert_default().history = Some(restored);
        if failed > 0 {
            object.status.get_or_insert_default().last_attempted_release_action = Some(action);
        }
        if let Some(message) = remediated {
            object.mark_true(types::REMEDIATED, "RollbackSucceeded", &message);
            super::status::summarize(object);
        }
        if let Some(remediation) = object.active_remediation() {
            let status = object.status.get_or_insert_default();
            for _ in 0..failed {
                remediation.count_failure(status);
                status.failures = Some(status.failures.unwrap_or(0) + 1);
            }
        }
        Ok(())
    }
}

/// Whether a release was made by this engine for an object.
pub(crate) fn is_own(storage: &Storage, release: &Release, object: &HelmRelease) -> bool {
    let Some(since) = object.metadata.creation_timestamp else { return false };
    storage.is_own(release.version, since) && made_for(&release.manifest, object)
}

/// The action that made a release.
fn made_by(release: &Release) -> String {
    let action = match release.version {
        _ if release.info.description.starts_with("Rollback") => "rollback",
        1 => "install",
        _ => "upgrade",
    };
    action.to_owned()
}

/// Whether all objects of a manifest carry the labels of this object.
fn made_for(manifest: &str, object: &HelmRelease) -> bool {
    let Ok(objects) = read_manifest(manifest) else { return false };
    let labels = owner_labels(object);
    let ours = |found: &serde_json::Value| {
        labels.iter().all(|(key, value)| fl_apply::label(found, key) == Some(value.as_str()))
    };
    !objects.is_empty() && objects.iter().all(ours)
}

/// The digest of the post-renderers, when there are any.
pub(crate) fn post_renderers(object: &HelmRelease) -> Option<String> {
    object.spec.post_renderers.as_deref().map(post_renderers_digest)
}

/// The digest of the common metadata, when there is any.
pub(crate) fn common_metadata(object: &HelmRelease) -> Option<String> {
    object.spec.common_metadata.as_ref().map(common_metadata_digest)
}
