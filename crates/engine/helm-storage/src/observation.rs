//! helm-controller's observation of a release, used to detect changes by other clients.

use std::collections::BTreeMap;

use fl_api::helm::helm_release::{ReleaseSnapshot, TestHookStatus};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::chart::ChartMetadata;
use crate::digest::{json_digest, values_digest};
use crate::hook::Hook;
use crate::release::{Info, Release};

/// Version of the digest rules; snapshots of other versions are not verified.
pub const SNAPSHOT_VERSION: &str = "v2";

/// A release as observed in the storage. The order of the fields is part of the digest.
#[derive(Debug, Clone, Serialize)]
pub struct Observation {
    /// The release's name.
    pub name: String,
    /// The revision.
    pub version: i64,
    /// Status and times.
    pub info: Info,
    /// The chart's `Chart.yaml`.
    #[serde(rename = "chartMetadata")]
    pub chart_metadata: ChartMetadata,
    /// The user's values.
    pub config: Option<Map<String, Value>>,
    /// The rendered manifest.
    pub manifest: String,
    /// Hooks without tests: running tests does not change the release.
    pub hooks: Option<Vec<Hook>>,
    /// Release namespace.
    pub namespace: String,
    /// Digest of the chart's OCI artifact.
    #[serde(rename = "ociDigest", skip_serializing_if = "String::is_empty")]
    pub oci_digest: String,
    /// The action that created the revision.
    #[serde(skip)]
    pub action: String,
}

impl Observation {
    /// Observes a release.
    pub fn of(release: &Release) -> Self {
        let hooks: Vec<Hook> = release.hooks.iter().filter(|hook| !hook.is_test()).cloned().collect();
        Self {
            name: release.name.clone(),
            version: release.version,
            info: release.info.clone(),
            chart_metadata: release.chart.metadata.clone(),
            config: (!release.config.is_empty()).then(|| release.config.clone()),
            manifest: release.manifest.clone(),
            hooks: (!hooks.is_empty()).then_some(hooks),
            namespace: release.namespace.clone(),
            oci_digest: String::new(),
            action: String::new(),
        }
    }

    /// Adds the digest of the artifact and the action.
    #[must_use]
    pub fn with(mut self, oci_digest: Option<&str>, action: Option<&str>) -> Self {
        self.oci_digest = oci_digest.unwrap_or_default().to_owned();
        self.action = action.unwrap_or_default().to_owned();
        self
    }

    /// The digest over all fields.
    pub fn digest(&self) -> String {
        json_digest(self)
    }

    /// The snapshot for the status.
    pub fn snapshot(&self) -> ReleaseSnapshot {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        ReleaseSnapshot {
            action: given(&self.action),
            api_version: Some(SNAPSHOT_VERSION.to_owned()),
            app_version: given(&self.chart_metadata.app_version),
            chart_name: self.chart_metadata.name.clone(),
            chart_version: self.chart_metadata.version.clone(),
            config_digest: values_digest(self.config.as_ref().unwrap_or(&Map::new())),
            deleted: self.info.deleted.seconds(),
            digest: self.digest(),
            first_deployed: self.info.first_deployed.seconds().unwrap_or(Timestamp::UNIX_EPOCH),
            last_deployed: self.info.last_deployed.seconds().unwrap_or(Timestamp::UNIX_EPOCH),
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            oci_digest: given(&self.oci_digest),
            status: self.info.status.to_string(),
            test_hooks: None,
            version: isize::try_from(self.version).unwrap_or(isize::MAX),
        }
    }
}

/// Whether a stored release matches a snapshot. Snapshots of older versions count as verified.
pub fn snapshot_verifies(snapshot: &ReleaseSnapshot, release: &Release) -> bool {
    if snapshot.api_version.as_deref() != Some(SNAPSHOT_VERSION) {
        return true;
    }
    Observation::of(release).with(snapshot.oci_digest.as_deref(), None).digest() == snapshot.digest
}

/// Results of the tests of a release.
pub fn test_hooks(release: &Release) -> BTreeMap<String, TestHookStatus> {
    let status = |hook: &Hook| TestHookStatus {
        last_started: hook.last_run.started_at.seconds(),
        last_completed: hook.last_run.completed_at.seconds(),
        phase: (!hook.last_run.phase.as_str().is_empty()).then(|| hook.last_run.phase.as_str().to_owned()),
    };
    release.test_hooks().map(|hook| (hook.name.clone(), status(hook))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_an_empty_release_matches_flux() {
        let release = Release { name: "foo".into(), ..Release::default() };
        assert_eq!(
            Observation::of(&release).digest(),
            "sha256:f1498f27a16a09cd7e1ee610d924df065c03d30035638babc95dd9a8d412ce4d"
        );
    }

    #[test]
    fn only_test_hooks_leave_the_digest_unchanged() {
        let mut release = Release { name: "a".into(), version: 1, ..Release::default() };
        let before = Observation::of(&release).digest();
        release.hooks.push(Hook { name: "t".into(), events: vec!["test".into()], ..Hook::default() });
        assert_eq!(Observation::of(&release).digest(), before);
        release.hooks.push(Hook { name: "h".into(), events: vec!["pre-install".into()], ..Hook::default() });
        let with_hook = Observation::of(&release);
        assert_ne!(with_hook.digest(), before);
        let snapshot = with_hook.with(Some("sha256:x"), Some("install")).snapshot();
        assert!(snapshot_verifies(&snapshot, &release));
        release.manifest.push('x');
        assert!(!snapshot_verifies(&snapshot, &release));
    }
}
