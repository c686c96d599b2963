//! What state a release is in.

use fl_api::condition::types;
use fl_api::helm::HelmRelease;
use fl_api::helm::helm_release::{ReleaseAction, ReleaseSnapshot};
use fl_release::{
    Observation, Release, Status, common_metadata_digest, post_renderers_digest, snapshot_verifies,
    values_digest, verify_values,
};
use fl_runtime::Conditions as _;

use super::machine::Machine;
use crate::action::ActionError;
use crate::action::objects::read_manifest;
use crate::action::post_render::owner_labels;
use crate::action::records::Records;
use crate::drift::{self, Differences};
use crate::snapshots::{Snapshots, is_of, rollback_succeeded, test_failed, tested};
use crate::spec::{Asked, DEFAULT_HISTORY};

/// What was found.
#[derive(Debug)]
pub(crate) enum State {
    /// Nothing is installed.
    Absent(&'static str),
    /// An action was cut off.
    Locked(String),
    /// Somebody else made it.
    Unmanaged(&'static str),
    /// It is ours, made by a pass that did not live to write it down.
    Unrecorded(Box<Release>),
    /// The last action failed, or its tests did.
    Failed(&'static str),
    /// Something else is wanted.
    OutOfSync(&'static str),
    /// Its tests have not run.
    Untested,
    /// Objects were changed.
    Drifted(Differences),
    /// All is well.
    InSync,
}

impl Machine<'_> {
    /// Looks at storage, status and cluster; the first thing that is not as wanted is the state.
    pub(crate) async fn state(&mut self) -> Result<State, ActionError> {
        let within = |error: ActionError| error.within("failed to retrieve last release from storage");
        let history = self.records.history().await.map_err(within)?;
        for corrupt in &history.corrupt {
            self.pass.log.info(&format!("record {} {}; it is passed over", corrupt.object, corrupt.error));
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
        let known = self.pass.object.status.as_ref().and_then(|status| status.latest());
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
            // A pass was cut off between an action and the status.
            if release.version == before + 1 && self.is_wanted(&release) {
                return Ok(State::Unrecorded(Box::new(release)));
            }
            self.restore_history().await?;
        }
        let status = self.pass.object.status.clone().unwrap_or_default();
        let Some(latest) = status.latest().cloned() else {
            return Ok(State::Unmanaged("found existing release in storage"));
        };
        let latest = &latest;
        match &release.info.status {
            Status::Deployed => {}
            Status::Failed => return Ok(State::Failed("")),
            Status::Uninstalled => return Ok(State::Absent("found uninstalled release in storage")),
            // An uninstall was cut off, or the newest revision lost its place: what is wanted is released anew. One that failed is
            // in the history, and would only fail again.
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
        let object = &self.pass.object;
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

    /// Whether a release that the status does not know was made by this object: by this engine, since the object is there, and
    /// labelled with its name.
    fn is_own(&self, release: &Release) -> bool {
        is_own(&self.records, release, &self.pass.object)
    }

    /// Whether a release is what is wanted now: then making it once more would be a second effect.
    fn is_wanted(&self, release: &Release) -> bool {
        release.info.status == Status::Deployed && self.is_same(release)
    }

    /// Whether a release is of the chart and the values that are wanted now, however it ended.
    fn is_same(&self, release: &Release) -> bool {
        let metadata = &release.chart.metadata;
        metadata.name == self.chart.name()
            && metadata.version == self.chart.version
            && values_digest(&release.config) == values_digest(&self.values)
    }

    /// Makes the history anew from what is stored, where a pass was cut off before it could write the status. What it knew
    /// about tests and digests stays.
    async fn restore_history(&mut self) -> Result<(), ActionError> {
        let history = self.records.history().await?;
        let releases: Vec<Release> = history.releases.iter().rev().take(DEFAULT_HISTORY).cloned().collect();
        let status = self.pass.object.status.clone().unwrap_or_default();
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
        self.pass.log.info("the last pass was cut off: the history is restored from storage");
        // What the cut-off pass tried, failed at and rolled back counts: it is not tried beyond the retries that are allowed.
        // A failure with nothing after it may be nothing but the cut itself.
        let before = status.latest().map_or(0, |latest| latest.version as i64);
        let rolled_back = releases.first().filter(|newest| {
            newest.info.status == Status::Deployed && newest.info.description.starts_with("Rollback")
        });
        let tried = |release: &&Release| {
            rolled_back.is_some_and(|newest| newest.version > release.version)
                && release.version > before
                && release.info.status == Status::Failed
                && self.is_own(release)
                && self.is_same(release)
        };
        let failed = releases.iter().filter(tried).count();
        let back_to = rolled_back.filter(|_| failed > 0).and_then(|newest| {
            let version: i64 = newest.info.description.rsplit(' ').next()?.parse().ok()?;
            restored.iter().find(|snapshot| snapshot.version as i64 == version)
        });
        let remediated = back_to.map(rollback_succeeded);
        let action = if before == 0 { ReleaseAction::Install } else { ReleaseAction::Upgrade };
        let object = &mut self.pass.object;
        object.status.get_or_insert_default().history = Some(restored);
        if failed > 0 {
            object.status.get_or_insert_default().last_attempted_release_action = Some(action);
        }
        if let Some(message) = remediated {
            object.mark_true(types::REMEDIATED, "RollbackSucceeded", &message);
            super::report::summarize(object);
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

/// Whether a release was made for an object by this engine.
pub(crate) fn is_own(records: &Records, release: &Release, object: &HelmRelease) -> bool {
    let Some(since) = object.metadata.creation_timestamp else { return false };
    records.is_own(release.version, since) && made_for(&release.manifest, object)
}

/// The action that makes a release as this one.
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
