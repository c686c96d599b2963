//! Resolves references to commits, with the error messages of a remote repository.

use fl_git::{ObjectId, ObjectKind};
use fl_semver::{Constraints, Version};

use super::{DiskRepository, refs};
use crate::remote::describe_with;
use crate::{Commit, Error, Failure, Reference, Resolved, SnapshotError};

/// Tags of tags.
const PEELS: usize = 8;

impl DiskRepository {
    /// Which commit a reference stands for; `None` in a repository without commits. `shown` is the address errors name.
    pub fn resolve(&self, reference: &Reference, shown: &str) -> Result<Option<Resolved>, Error> {
        let broken = |e: super::DiskError| Error::Clone {
            url: shown.to_owned(),
            failure: Failure::Disk(e.to_string()),
        };
        if refs::all(self, "refs/").map_err(broken)?.is_empty() && self.head().map_err(broken)?.1.is_none() {
            return Ok(None);
        }
        let missing = |name: String| Error::Clone { url: shown.to_owned(), failure: Failure::NoRef(name) };
        let find = |name: &str| refs::find(&self.common_dir, name).map_err(broken);
        let resolved = match reference {
            Reference::Branch(branch) => {
                let reference = format!("refs/heads/{branch}");
                let found = find(&reference)?.ok_or_else(|| missing(reference.clone()))?;
                Resolved { commit: found.id, reference, tag: None, absolute: false }
            }
            Reference::Tag(tag) => {
                let reference = format!("refs/tags/{tag}");
                let found = find(&reference)?.ok_or_else(|| missing(reference.clone()))?;
                self.tagged(found, &reference, tag, false, shown)?
            }
            Reference::Name(name) if name == "HEAD" => {
                let commit = self.head().map_err(broken)?.1.ok_or_else(|| missing(name.clone()))?;
                Resolved { commit, reference: name.clone(), tag: None, absolute: true }
            }
            Reference::Name(name) => {
                let found = find(name)?.ok_or_else(|| Error::NoSuchRef(name.clone()))?;
                let short = name.strip_prefix("refs/tags/").unwrap_or(name);
                let mut resolved = self.tagged(found, name, short, true, shown)?;
                if !name.starts_with("refs/tags/") {
                    resolved.tag = None;
                }
                resolved
            }
            Reference::Semver(range) => self.highest(range, shown)?,
            Reference::Commit { commit, branch, name } => {
                let id: ObjectId = commit.parse().map_err(|_| Error::NoCommit(commit.clone()))?;
                let mut objects = self.objects().map_err(broken)?;
                objects.read_kind(&id, ObjectKind::Commit).map_err(|_| Error::NoCommit(commit.clone()))?;
                let reference = match (name, branch) {
                    (Some(name), _) => name.clone(),
                    (None, Some(branch)) => format!("refs/heads/{branch}"),
                    (None, None) => "HEAD".to_owned(),
                };
                Resolved { commit: id, reference, tag: None, absolute: name.is_some() }
            }
        };
        Ok(Some(resolved))
    }

    fn tagged(
        &self,
        found: refs::Found,
        reference: &str,
        short: &str,
        absolute: bool,
        shown: &str,
    ) -> Result<Resolved, Error> {
        let tree = |problem: SnapshotError| Error::Tree { commit: found.id.to_string(), problem };
        let mut objects = self
            .objects()
            .map_err(|e| Error::Clone { url: shown.to_owned(), failure: Failure::Disk(e.to_string()) })?;
        let mut commit = found.peeled.unwrap_or(found.id);
        for _ in 0..PEELS {
            match objects.read(&commit).map_err(|e| tree(e.into()))? {
                (ObjectKind::Tag, content) => {
                    commit = fl_git::parse_tag(&content).map_err(|e| tree(e.into()))?.target;
                }
                (ObjectKind::Commit, _) => break,
                (kind, _) => return Err(tree(SnapshotError::NotACommit(kind))),
            }
        }
        let annotated = (commit != found.id).then_some(found.id);
        Ok(Resolved {
            commit,
            reference: reference.to_owned(),
            tag: Some((short.to_owned(), annotated)),
            absolute,
        })
    }

    fn highest(&self, range: &str, shown: &str) -> Result<Resolved, Error> {
        let constraints = Constraints::parse(range).map_err(|e| Error::Range(e.to_string()))?;
        let tags = refs::all(self, "refs/tags/")
            .map_err(|e| Error::Clone { url: shown.to_owned(), failure: Failure::Disk(e.to_string()) })?;
        let version = |name: &str| {
            let short = name.strip_prefix("refs/tags/")?;
            let version = Version::parse(short).ok().filter(|_| short.split('.').count() >= 3)?;
            constraints.check(&version).then_some(version)
        };
        let best = tags
            .into_iter()
            .filter_map(|(n, f)| Some((version(&n)?, n, f)))
            .max_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        let (_, name, found) = best.ok_or_else(|| Error::NoVersion(range.to_owned()))?;
        let short = name.strip_prefix("refs/tags/").unwrap_or(&name).to_owned();
        self.tagged(found, &name, &short, false, shown)
    }

    /// A resolved commit with what is needed to show and to verify it.
    pub fn describe(&self, resolved: &Resolved) -> Result<Commit, Error> {
        let tree = |problem: SnapshotError| Error::Tree { commit: resolved.commit.to_string(), problem };
        let mut objects = self.objects().map_err(|e| tree(e.into()))?;
        describe_with(resolved, |id, kind| objects.read_kind(id, kind)).map_err(|e| tree(e.into()))
    }
}
