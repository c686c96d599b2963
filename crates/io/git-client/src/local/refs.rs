//! References: loose files, `packed-refs`, `HEAD`, and the little of `config` that matters.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fl_git::{ObjectId, check_ref_name};

use super::{DiskError, DiskRepository, io_error};

/// Files and directories below `refs`; more than any repository has.
const ENTRIES: usize = 200_000;
const DEPTH: usize = 32;
/// How often a symbolic reference may point to another.
const HOPS: usize = 5;

/// What is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// A branch, by its short name. It may have no commit yet.
    Branch(String),
    /// A commit that is on no branch in particular.
    Detached(ObjectId),
}

/// A reference and what an annotated tag behind it points to, where that is known without reading the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) id: ObjectId,
    pub(super) peeled: Option<ObjectId>,
}

pub(super) fn head(git_dir: &Path, common_dir: &Path) -> Result<(Head, Option<ObjectId>), DiskError> {
    let path = git_dir.join("HEAD");
    let text = std::fs::read_to_string(&path).map_err(io_error(&path))?;
    let text = text.trim();
    let Some(target) = text.strip_prefix("ref:").map(str::trim) else {
        let id = text.parse().map_err(|_| DiskError::Malformed {
            path: path.clone(),
            problem: "it names neither a branch nor a commit".to_owned(),
        })?;
        return Ok((Head::Detached(id), Some(id)));
    };
    let commit = find(common_dir, target)?.map(|f| f.id);
    let name = target.strip_prefix("refs/heads/").unwrap_or(target).to_owned();
    Ok((Head::Branch(name), commit))
}

/// One reference by its full name.
pub(super) fn find(common_dir: &Path, name: &str) -> Result<Option<Found>, DiskError> {
    let mut name = name.to_owned();
    for _ in 0..HOPS {
        if check_ref_name(&name).is_err() {
            return Ok(None);
        }
        let path = common_dir.join(&name);
        match std::fs::read_to_string(&path) {
            Ok(text) => match text.trim().strip_prefix("ref:") {
                Some(other) => other.trim().clone_into(&mut name),
                // A file that is empty or cut off is being written, or was when the machine stopped: as if it were not
                // there, the packed one counts.
                None => match text.trim().parse() {
                    Ok(id) => return Ok(Some(Found { id, peeled: None })),
                    Err(_) => return Ok(packed(common_dir)?.remove(&name)),
                },
            },
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory
                ) =>
            {
                return Ok(packed(common_dir)?.remove(&name));
            }
            Err(e) => return Err(io_error(&path)(e)),
        }
    }
    Ok(None)
}

/// All references that begin so.
pub(super) fn all(repository: &DiskRepository, prefix: &str) -> Result<BTreeMap<String, Found>, DiskError> {
    let mut found = packed(&repository.common_dir)?;
    found.retain(|name, _| name.starts_with(prefix));
    let mut directories = Vec::new();
    self::directories(&repository.common_dir.join("refs"), &mut directories);
    for directory in directories {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for path in entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.is_file()) {
            let Some(name) = path.strip_prefix(&repository.common_dir).ok().and_then(Path::to_str) else {
                continue;
            };
            if name.starts_with(prefix)
                && let Some(reference) = find(&repository.common_dir, name)?
            {
                found.insert(name.to_owned(), reference);
            }
        }
    }
    Ok(found)
}

/// `packed-refs`: `<id> <name>` lines, each perhaps followed by `^<id>` with what a tag points to.
fn packed(common_dir: &Path) -> Result<BTreeMap<String, Found>, DiskError> {
    let path = common_dir.join("packed-refs");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(e) => return Err(io_error(&path)(e)),
    };
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    let mut last: Option<String> = None;
    for line in text.lines() {
        if let Some(peeled) = line.strip_prefix('^') {
            if let Some(reference) = last.as_ref().and_then(|n| found.get_mut(n)) {
                reference.peeled = peeled.trim().parse().ok();
            }
        } else if let Some((id, name)) = line.split_once(' ')
            && let Ok(id) = id.parse()
        {
            found.insert(name.to_owned(), Found { id, peeled: None });
            last = Some(name.to_owned());
        }
    }
    Ok(found)
}

/// A directory and all below it.
pub(super) fn directories(root: &Path, into: &mut Vec<PathBuf>) {
    let mut todo = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = todo.pop() {
        if into.len() > ENTRIES || depth > DEPTH {
            return;
        }
        if let Ok(entries) = std::fs::read_dir(&directory) {
            let below = entries.filter_map(Result::ok).filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
            todo.extend(below.map(|e| (e.path(), depth + 1)));
        }
        into.push(directory);
    }
}

/// A value of `[section] name = value`; names in any case.
pub(super) fn setting(config: &str, section: &str, name: &str) -> Option<String> {
    settings(config)
        .filter(|(s, n, _)| s.eq_ignore_ascii_case(section) && n.eq_ignore_ascii_case(name))
        .map(|(_, _, value)| value)
        .last()
}

/// The `url` of every `[remote "…"]`.
pub(super) fn remote_urls(config: &str) -> Vec<String> {
    settings(config)
        .filter(|(section, name, _)| section.starts_with("remote ") && name.eq_ignore_ascii_case("url"))
        .map(|(_, _, value)| value)
        .collect()
}

/// Section, name and value of each line.
fn settings(config: &str) -> impl Iterator<Item = (String, String, String)> + '_ {
    let mut section = String::new();
    config.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(head) = line.strip_prefix('[') {
            head.split(']').next().unwrap_or_default().trim().clone_into(&mut section);
            return None;
        }
        let (name, value) = line.split_once('=').filter(|_| !line.starts_with(['#', ';']))?;
        Some((section.clone(), name.trim().to_owned(), value.trim().trim_matches('"').to_owned()))
    })
}
