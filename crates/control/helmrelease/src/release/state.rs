//! What state a release is in.

use fl_api::helm::HelmRelease;
use fl_release::{
    Release, Status, common_metadata_digest, post_renderers_digest, snapshot_verifies, values_digest,
    verify_values,
};

use super::machine::Machine;
use crate::action::ActionError;
use crate::action::objects::read_manifest;
use crate::action::post_render::owner_labels;
use crate::drift::{self, Differences};
use crate::snapshots::{Snapshots, test_failed, tested};
use crate::spec::Asked;

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
        let status = self.pass.object.status.clone().unwrap_or_default();
        let Some(latest) = status.latest() else {
            if release.info.status == Status::Uninstalled {
                return Ok(State::Absent("found uninstalled release in storage"));
            }
            if self.is_unrecorded(&release, 0) {
                return Ok(State::Unrecorded(Box::new(release)));
            }
            return Ok(State::Unmanaged("found existing release in storage"));
        };
        if !snapshot_verifies(latest, &release) {
            if self.is_unrecorded(&release, latest.version as i64) {
                return Ok(State::Unrecorded(Box::new(release)));
            }
            return Ok(State::Unmanaged("release not observed to be made for object"));
        }
        match &release.info.status {
            Status::Deployed => {}
            Status::Failed => return Ok(State::Failed("")),
            Status::Uninstalled => return Ok(State::Absent("found uninstalled release in storage")),
            // An uninstall was cut off, or the newest revision lost its place: what is wanted is released anew.
            Status::Uninstalling | Status::Superseded => {
                return Ok(State::Unmanaged("release is not deployed"));
            }
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
        if object.detects_drift() {
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

    /// Whether a release that the status does not know was made by this object, for what it wants now: then a pass was
    /// cut off between the action and the status, and doing it again would be a second effect.
    fn is_unrecorded(&self, release: &Release, known: i64) -> bool {
        let metadata = &release.chart.metadata;
        release.info.status == Status::Deployed
            && release.version == known + 1
            && metadata.name == self.chart.name()
            && metadata.version == self.chart.version
            && values_digest(&release.config) == values_digest(&self.values)
            && made_for(&release.manifest, &self.pass.object)
    }
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
