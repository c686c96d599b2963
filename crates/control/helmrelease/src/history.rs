//! The history in the status: snapshots of releases, newest first.

use fl_api::helm::helm_release::{HelmReleaseStatus, ReleaseSnapshot};
use fl_helm_storage::Release;

use crate::spec::DEFAULT_HISTORY;

/// `namespace/name.vN`
pub(crate) fn full_name(snapshot: &ReleaseSnapshot) -> String {
    format!("{}/{}.v{}", snapshot.namespace, snapshot.name, snapshot.version)
}

/// The message of a successful rollback to a snapshot.
pub(crate) fn rollback_succeeded(to: &ReleaseSnapshot) -> String {
    let (name, chart) = (full_name(to), versioned_chart(to));
    format!("Helm rollback to previous release {name} with chart {chart} succeeded")
}

/// `chart@version`
pub(crate) fn versioned_chart(snapshot: &ReleaseSnapshot) -> String {
    format!("{}@{}", snapshot.chart_name, snapshot.chart_version)
}

/// Whether tests ran.
pub(crate) fn tested(snapshot: &ReleaseSnapshot) -> bool {
    snapshot.test_hooks.is_some()
}

/// Whether a test failed.
pub(crate) fn test_failed(snapshot: &ReleaseSnapshot) -> bool {
    snapshot.test_hooks.iter().flatten().any(|(_, hook)| hook.phase.as_deref() == Some("Failed"))
}

/// Whether a snapshot is of this release.
pub(crate) fn is_of(snapshot: &ReleaseSnapshot, release: &Release) -> bool {
    release.targets(&snapshot.name, &snapshot.namespace, snapshot.version as i64)
}

fn is_rollback_target(snapshot: &ReleaseSnapshot, ignore_tests: bool) -> bool {
    matches!(snapshot.status.as_str(), "deployed" | "superseded") && (ignore_tests || !test_failed(snapshot))
}

/// The snapshots of a status.
pub(crate) trait ReleaseHistory {
    fn list(&self) -> &[ReleaseSnapshot];
    fn list_mut(&mut self) -> &mut Vec<ReleaseSnapshot>;
    fn clear(&mut self);

    fn sort(&mut self) {
        self.list_mut().sort_by_key(|snapshot| std::cmp::Reverse(snapshot.version));
    }

    fn latest(&self) -> Option<&ReleaseSnapshot> {
        self.list().iter().max_by_key(|snapshot| snapshot.version)
    }

    /// The newest snapshot before the latest that can be rolled back to.
    fn previous(&self, ignore_tests: bool) -> Option<ReleaseSnapshot> {
        let mut sorted: Vec<&ReleaseSnapshot> = self.list().iter().collect();
        sorted.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.version));
        sorted.into_iter().skip(1).find(|snapshot| is_rollback_target(snapshot, ignore_tests)).cloned()
    }

    /// Keeps the snapshots up to the one that can be rolled back to.
    fn truncate(&mut self, ignore_tests: bool) {
        if self.list().len() < 2 {
            return;
        }
        self.sort();
        let found =
            self.list().iter().skip(1).position(|snapshot| is_rollback_target(snapshot, ignore_tests));
        let keep = found.map_or(DEFAULT_HISTORY, |at| at + 2);
        self.list_mut().truncate(keep);
    }

    /// Keeps the newest snapshots, up to the limit.
    fn truncate_to_limit(&mut self) {
        if self.list().is_empty() {
            return;
        }
        self.sort();
        self.list_mut().truncate(DEFAULT_HISTORY);
    }
}

impl ReleaseHistory for HelmReleaseStatus {
    fn list(&self) -> &[ReleaseSnapshot] {
        self.history.as_deref().unwrap_or_default()
    }

    fn list_mut(&mut self) -> &mut Vec<ReleaseSnapshot> {
        self.history.get_or_insert_default()
    }

    fn clear(&mut self) {
        self.history = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(version: isize, status: &str) -> ReleaseSnapshot {
        serde_json::from_value(serde_json::json!({
            "chartName": "c", "chartVersion": "1", "configDigest": "", "digest": "", "firstDeployed": "2026-01-01T00:00:00Z",
            "lastDeployed": "2026-01-01T00:00:00Z", "name": "n", "namespace": "ns", "status": status, "version": version
        }))
        .expect("a snapshot")
    }

    #[test]
    fn truncation_keeps_the_rollback_target() {
        let mut status = HelmReleaseStatus {
            history: Some(vec![
                snapshot(1, "superseded"),
                snapshot(4, "failed"),
                snapshot(3, "failed"),
                snapshot(2, "superseded"),
            ]),
            ..HelmReleaseStatus::default()
        };
        assert_eq!(status.latest().map(|s| s.version), Some(4));
        assert_eq!(status.previous(false).map(|s| s.version), Some(2));
        status.truncate(false);
        let versions: Vec<isize> = status.list().iter().map(|s| s.version).collect();
        assert_eq!(versions, [4, 3, 2]);
    }
}
