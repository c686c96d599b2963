//! All revisions of a release, those that cannot be read among them.

use serde_json::Value;

use crate::error::DecodeError;
use crate::record::{Release, Status};
use crate::storage::read_object;

/// A record that could not be read. It still takes a number.
#[derive(Debug)]
pub struct Corrupt {
    /// The object's name.
    pub object: String,
    /// The revision its name or label tells.
    pub version: i64,
    /// What is wrong with it.
    pub error: DecodeError,
}

/// The revisions of one release, oldest first.
#[derive(Debug, Default)]
pub struct History {
    /// Those that could be read.
    pub releases: Vec<Release>,
    /// The others.
    pub corrupt: Vec<Corrupt>,
}

impl History {
    /// Reads Secrets or ConfigMaps, in any order. Objects of other releases are passed over.
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
                Err(error) => history.corrupt.push(Corrupt {
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

    /// The newest revision that can be read.
    pub fn last(&self) -> Option<&Release> {
        self.releases.last()
    }

    /// The newest revision that runs.
    pub fn deployed(&self) -> Option<&Release> {
        self.releases.iter().rev().find(|release| release.info.status == Status::Deployed)
    }

    /// A revision by its number.
    pub fn get(&self, version: i64) -> Option<&Release> {
        self.releases.iter().find(|release| release.version == version)
    }

    /// The number the next revision gets: above everything that is there, readable or not.
    pub fn next_version(&self) -> i64 {
        let readable = self.releases.last().map_or(0, |release| release.version);
        let corrupt = self.corrupt.last().map_or(0, |corrupt| corrupt.version);
        readable.max(corrupt) + 1
    }

    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.releases.is_empty() && self.corrupt.is_empty()
    }

    /// The revisions to delete before one more is written, so that at most `most` (0: all) stay. The one that runs stays.
    pub fn superfluous(&self, most: usize) -> Vec<i64> {
        if most == 0 {
            return Vec::new();
        }
        let keep = most - 1;
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
    fn the_running_one_is_never_superfluous() {
        let history = History {
            releases: vec![
                release(1, Status::Deployed),
                release(2, Status::Failed),
                release(3, Status::Failed),
                release(4, Status::Failed),
            ],
            corrupt: Vec::new(),
        };
        assert_eq!(history.superfluous(3), [2, 3]);
        assert_eq!(history.superfluous(1), [2, 3, 4]);
        assert_eq!(history.superfluous(0), [] as [i64; 0]);
        assert_eq!(history.next_version(), 5);
    }

    #[test]
    fn a_corrupt_record_keeps_its_number() {
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
