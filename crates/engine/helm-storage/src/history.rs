//! All revisions of a release, including unreadable ones.

use serde_json::Value;

use crate::error::DecodeError;
use crate::release::{Release, Status};
use crate::storage::read_object;

/// A stored release that cannot be read. Its revision number is still in use.
#[derive(Debug)]
pub struct CorruptRelease {
    /// Name of the object.
    pub object: String,
    /// Revision according to its label or name.
    pub version: i64,
    /// Cause.
    pub error: DecodeError,
}

/// The revisions of one release, oldest first.
#[derive(Debug, Default)]
pub struct History {
    /// Readable revisions.
    pub releases: Vec<Release>,
    /// Unreadable revisions.
    pub corrupt: Vec<CorruptRelease>,
}

impl History {
    /// Reads Secrets or ConfigMaps, in any order. Objects of other releases are skipped.
    pub fn read<'a>(name: &str, objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut history = Self::default();
        let prefix = format!("sh.helm.release.v1.{name}.v");
        for object in objects {
            let label = |key: &str| {
                object.pointer("/metadata/labels").and_then(|labels| labels.get(key)).and_then(Value::as_str)
            };
            let object_name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            let number = object_name.strip_prefix(&prefix).and_then(|n| n.parse().ok());
            if label("name") != Some(name) && number.is_none() {
                continue;
            }
            match read_object(object) {
                Ok(release) => history.releases.push(release),
                Err(error) => history.corrupt.push(CorruptRelease {
                    object: object_name.to_owned(),
                    version: number.or_else(|| label("version")?.parse().ok()).unwrap_or(0),
                    error,
                }),
            }
        }
        history.releases.sort_by_key(|release| release.version);
        history.corrupt.sort_by_key(|corrupt| corrupt.version);
        history
    }

    /// The newest readable revision.
    pub fn last(&self) -> Option<&Release> {
        self.releases.last()
    }

    /// The newest deployed revision.
    pub fn deployed(&self) -> Option<&Release> {
        self.releases.iter().rev().find(|release| release.info.status == Status::Deployed)
    }

    /// A revision by its number.
    pub fn get(&self, version: i64) -> Option<&Release> {
        self.releases.iter().find(|release| release.version == version)
    }

    /// The next revision number: above all existing ones, readable or not.
    pub fn next_version(&self) -> i64 {
        let readable = self.releases.last().map_or(0, |release| release.version);
        let corrupt = self.corrupt.last().map_or(0, |corrupt| corrupt.version);
        readable.max(corrupt) + 1
    }

    /// Whether there are no revisions.
    pub fn is_empty(&self) -> bool {
        self.releases.is_empty() && self.corrupt.is_empty()
    }

    /// The revisions to delete before another one is stored, so that at most `max` (0: all) remain. The
    /// deployed one is kept.
    pub fn excess_revisions(&self, max: usize) -> Vec<i64> {
        if max == 0 {
            return Vec::new();
        }
        let keep = max - 1;
        let deployed = self.deployed().map(|release| release.version);
        let mut surplus = (self.releases.len() + self.corrupt.len()).saturating_sub(keep);
        let mut versions: Vec<i64> = self.releases.iter().map(|release| release.version).collect();
        versions.extend(self.corrupt.iter().map(|corrupt| corrupt.version).filter(|version| *version > 0));
        versions.sort_unstable();
        versions.retain(|version| {
            let goes = surplus > 0 && Some(*version) != deployed;
            surplus -= usize::from(goes);
            goes
        });
        versions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(version: i64, status: Status) -> Release {
        let mut release = Release { name: "a".into(), version, ..Release::default() };
        release.info.status = status;
        release
    }

    #[test]
    fn deployed_revision_is_never_deleted() {
        let history = History {
            releases: vec![
                release(1, Status::Deployed),
                release(2, Status::Failed),
                release(3, Status::Failed),
                release(4, Status::Failed),
            ],
            corrupt: Vec::new(),
        };
        assert_eq!(history.excess_revisions(3), [2, 3]);
        assert_eq!(history.excess_revisions(1), [2, 3, 4]);
        assert_eq!(history.excess_revisions(0), [] as [i64; 0]);
        assert_eq!(history.next_version(), 5);
    }

    #[test]
    fn corrupt_release_keeps_its_revision() {
        let good =
            crate::secret_object(&release(1, Status::Deployed), "ns", ("createdAt", 0)).expect("a Secret");
        let bad = serde_json::json!({
            "kind": "Secret",
            "metadata": {"name": "sh.helm.release.v1.a.v7", "labels": {"name": "a", "owner": "helm", "version": "7"}},
            "data": {"release": "SDRzSUFBQUFB"},
        });
        let other =
            serde_json::json!({"metadata": {"name": "sh.helm.release.v1.b.v9", "labels": {"name": "b"}}});
        let history = History::read("a", [&bad, &good, &other]);
        assert_eq!(history.releases.len(), 1);
        assert_eq!(history.corrupt[0].version, 7);
        assert_eq!(history.next_version(), 8);
    }
}
