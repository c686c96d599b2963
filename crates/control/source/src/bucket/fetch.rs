//! From a bucket to an archive: list what there is, fetch what is wanted, several objects at a time, and write them in order.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use fl_archive::Mode;
use fl_bucket::{Budget, Content, IndexError, Key, Object};
use fl_ignore::{IGNORE_FILE, Rules};
use fl_objects::{Changes, Index};
use fl_store::{Artifact, Location, Store, TarGz};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::ObjectStore;
use crate::storage::chain;

/// An ignore file larger than this is nobody's handwork.
const IGNORE_BYTES: u64 = 1 << 20;
/// Bytes of all objects together.
const LARGEST: u64 = 4 << 30;
/// Objects that are fetched at once; as many small ones wait in memory.
const AT_ONCE: usize = 32;
/// Objects that may change or go while the bucket is read.
const MOST_CHANGES: usize = 10_000;
const LATE: &str = "context deadline exceeded";

/// What is in a bucket.
pub(super) struct Listing {
    index: Index<File>,
    /// The ignore file of the bucket, which becomes part of the artifact.
    ignore: Option<Vec<u8>>,
    pub(super) revision: String,
    pub(super) count: u64,
}

/// What is asked of a bucket.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) bucket: String,
    pub(super) prefix: String,
    pub(super) ignore: Option<String>,
}

/// Lists a bucket without what is ignored.
pub(super) async fn list(
    store: &dyn ObjectStore,
    wanted: &Wanted,
    deadline: Instant,
) -> Result<Listing, String> {
    let name = &wanted.bucket;
    let confirm = |e: String| format!("failed to confirm existence of '{name}' bucket: {e}");
    let exists = tokio::time::timeout_at(deadline, store.exists()).await;
    let exists = exists.map_err(|_| confirm(LATE.to_owned()))?;
    if !exists.map_err(|e| confirm(e.to_string()))? {
        return Err(format!("bucket '{name}' not found"));
    }
    let ignored = |e: String| format!("failed to get Etag for '{IGNORE_FILE}' object: {e}");
    let file = Key::check(IGNORE_FILE).map_err(|e| ignored(e.to_string()))?;
    let budget = Arc::new(Budget::new(IGNORE_BYTES));
    let found = tokio::time::timeout_at(deadline, store.get(&file, &budget)).await;
    let found = found.map_err(|_| ignored(LATE.to_owned()))?.map_err(|e| ignored(e.to_string()))?;
    let ignore = match found {
        None => None,
        Some(mut object) => {
            let mut bytes = Vec::new();
            object.content.read_to_end(&mut bytes).map_err(|e| ignored(e.to_string()))?;
            Some(bytes)
        }
    };
    let lines = ignore.as_deref().map(String::from_utf8_lossy);
    let rules = Rules::for_bucket(lines.as_deref(), wanted.ignore.as_deref());
    let failed = |e: String| format!("indexation of objects from bucket '{name}' failed: {e}");
    let spool = tempfile::tempfile().map_err(|e| failed(e.to_string()))?;
    let mut index = Index::new(spool);
    let mut visit = |key: &str, etag: &str| {
        if key.ends_with('/') || key == IGNORE_FILE || rules.ignores(key, false) {
            return Ok(());
        }
        index.add(key, etag)
    };
    let listed = tokio::time::timeout_at(deadline, store.list(&wanted.prefix, &mut visit)).await;
    let listing = |e: String| failed(format!("listing objects from bucket '{name}' failed: {e}"));
    listed.map_err(|_| listing(LATE.to_owned()))?.map_err(|e| match e {
        fl_bucket::Error::Index(e) => failed(e.to_string()),
        e => listing(e.to_string()),
    })?;
    let (revision, count) = index.revision().map_err(|e| failed(e.to_string()))?;
    Ok(Listing { index, ignore, revision, count })
}

/// Why there is no new artifact.
#[derive(Debug)]
pub(super) enum Ended {
    /// What was read is what is published already: the revision.
    Same {
        revision: String,
        count: u64,
    },
    Fetch(String),
    Archive(String),
}

impl From<fl_store::Error> for Ended {
    fn from(error: fl_store::Error) -> Self {
        Ended::Archive(chain(&error))
    }
}

impl From<fl_archive::Error> for Ended {
    fn from(error: fl_archive::Error) -> Self {
        Ended::Archive(chain(&error))
    }
}

impl From<IndexError> for Ended {
    fn from(error: IndexError) -> Self {
        Ended::Fetch(error.to_string())
    }
}

/// A new artifact.
#[derive(Debug)]
pub(super) struct Published {
    pub(super) artifact: Artifact,
    pub(super) file: String,
    pub(super) revision: String,
    pub(super) count: u64,
    /// Objects that went while the bucket was read.
    pub(super) gone: Vec<String>,
}

/// Fetches all objects and publishes them. Blocks; the requests run on the runtime of the caller.
pub(super) fn publish(
    disk: &Store,
    at: &Location,
    store: Arc<dyn ObjectStore>,
    listing: Listing,
    current: Option<&str>,
    deadline: Instant,
) -> Result<Published, Ended> {
    let Listing { mut index, ignore, .. } = listing;
    let spool = tempfile::tempfile().map_err(|e| Ended::Fetch(e.to_string()))?;
    let mut files = index.files(spool)?;
    let mut outcome = None;
    let artifact = disk.publish_tree_named(at, |tar| {
        tar.directory(".")?;
        let mut fetching = Fetching {
            tar,
            ignore,
            directory: String::new(),
            pending: VecDeque::new(),
            changes: Changes::new(),
        };
        let (handle, budget) = (tokio::runtime::Handle::current(), Arc::new(Budget::new(LARGEST)));
        files.visit(|key, etag| {
            let (sender, answer) = oneshot::channel();
            let (store, budget, wanted) = (store.clone(), budget.clone(), key.clone());
            let task = handle.spawn(async move {
                let got = tokio::time::timeout_at(deadline, store.get(&wanted, &budget)).await;
                let got = got.map_err(|_| LATE.to_owned()).and_then(|got| got.map_err(|e| e.to_string()));
                let _ = sender.send(got);
            });
            let pending = Pending { key, etag: etag.to_owned(), answer, task: task.abort_handle() };
            fetching.pending.push_back(pending);
            if fetching.pending.len() < AT_ONCE { Ok(()) } else { fetching.write_one() }
        })?;
        while !fetching.pending.is_empty() {
            fetching.write_one()?;
        }
        fetching.write_ignore_file("")?;
        let changes = std::mem::take(&mut fetching.changes);
        let (revision, count) = index.revision_with(&changes)?;
        if current == Some(revision.as_str()) {
            return Err(Ended::Same { revision, count });
        }
        let hex = revision.split_once(':').map_or(revision.as_str(), |(_, hex)| hex);
        let file = format!("{hex}.tar.gz");
        let gone = changes.into_iter().filter(|(_, etag)| etag.is_none()).map(|(key, _)| key).collect();
        outcome = Some((file.clone(), revision, count, gone));
        Ok::<_, Ended>(file)
    })?;
    let (file, revision, count, gone) =
        outcome.ok_or_else(|| Ended::Archive("nothing was written".to_owned()))?;
    Ok(Published { artifact, file, revision, count, gone })
}

/// An object that was asked for.
struct Pending {
    key: Key,
    etag: String,
    answer: oneshot::Receiver<Result<Option<Object>, String>>,
    task: tokio::task::AbortHandle,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Fetching<'a, 'b> {
    tar: &'a mut TarGz<'b>,
    /// Not written yet.
    ignore: Option<Vec<u8>>,
    /// The directory that was written last, with its parents.
    directory: String,
    pending: VecDeque<Pending>,
    changes: Changes,
}

impl Fetching<'_, '_> {
    /// Waits for the object that is next and writes it.
    fn write_one(&mut self) -> Result<(), Ended> {
        let Some(mut pending) = self.pending.pop_front() else { return Ok(()) };
        let key = pending.key.key().to_owned();
        let failed = |e: String| Ended::Fetch(format!("failed to get '{key}' object: {e}"));
        let (_, nobody) = oneshot::channel();
        let answer = std::mem::replace(&mut pending.answer, nobody);
        let object = answer.blocking_recv().map_err(|_| failed("the request was cut short".to_owned()))?;
        let change = match object.map_err(failed)? {
            None => None,
            Some(mut object) => {
                self.write(pending.key.path(), object.size, &mut object.content)?;
                if object.etag == pending.etag {
                    return Ok(());
                }
                Some(object.etag)
            }
        };
        if self.changes.len() >= MOST_CHANGES {
            return Err(Ended::Fetch("the bucket changes faster than it can be read".to_owned()));
        }
        self.changes.insert(key, change);
        Ok(())
    }

    fn write(&mut self, path: &str, size: u64, content: &mut Content) -> Result<(), Ended> {
        self.write_ignore_file(path)?;
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        for (end, _) in path.match_indices('/') {
            let step = &path[..end];
            let known = self.directory.strip_prefix(step);
            if !known.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
                self.tar.directory(step)?;
            }
        }
        directory.clone_into(&mut self.directory);
        self.tar.file(path, Mode::File, size, content)?;
        Ok(())
    }

    /// The ignore file of the bucket has its place among the others; an empty `before` is the end.
    fn write_ignore_file(&mut self, before: &str) -> Result<(), Ended> {
        let first = before.split('/').next().unwrap_or_default();
        if first == IGNORE_FILE && self.ignore.is_some() {
            return Err(Ended::Fetch(format!("failed to get '{before}' object: fileName is a directory.")));
        }
        if (before.is_empty() || first > IGNORE_FILE)
            && let Some(bytes) = self.ignore.take()
        {
            self.tar.file(IGNORE_FILE, Mode::File, bytes.len() as u64, &mut bytes.as_slice())?;
        }
        Ok(())
    }
}
