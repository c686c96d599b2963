//! From a bucket to an archive: objects are listed, fetched concurrently and written in order.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use fl_archive::Mode;
use fl_artifact_store::{Artifact, Location, Store, TarGz};
use fl_bucket::{Budget, Content, IndexError, Key, Object};
use fl_bucket_index::{Changes, Index, KeyError};
use fl_http::{HeldBytes, Lease};
use fl_ignore::{IGNORE_FILE, Rules};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::ObjectStore;
use crate::storage::{DEADLINE_EXCEEDED, chain};

/// Bytes of an ignore file.
const MAX_IGNORE_BYTES: u64 = 1 << 20;
/// Bytes of all objects together.
const MAX_BUCKET_BYTES: u64 = 4 << 30;
/// Bytes of an entry of the index besides key and etag, roughly.
const INDEX_ENTRY_BYTES: usize = 16;
/// Objects that are fetched concurrently; as many small ones wait in memory.
const MAX_CONCURRENT_OBJECTS: usize = 32;
/// Objects that may change or disappear while the bucket is read.
const MAX_CHANGES: usize = 10_000;

/// The objects of a bucket.
pub(super) struct Listing {
    index: Index<File>,
    /// Of the index and its sorted copy.
    _held: HeldBytes,
    /// The ignore file of the bucket, which becomes part of the artifact.
    ignore: Option<Vec<u8>>,
    pub(super) revision: String,
    pub(super) count: u64,
}

/// What is listed.
#[derive(Clone, Debug)]
pub(super) struct ListOptions {
    pub(super) bucket: String,
    pub(super) prefix: String,
    pub(super) ignore: Option<String>,
}

/// Why a bucket could not be listed.
#[derive(Debug, thiserror::Error)]
pub(super) enum BucketListError {
    #[error("failed to confirm existence of '{bucket}' bucket: {problem}")]
    Exists { bucket: String, problem: RequestError },
    #[error("bucket '{0}' not found")]
    NotFound(String),
    #[error("failed to get Etag for '{IGNORE_FILE}' object: {0}")]
    IgnoreFile(RequestError),
    #[error(
        "indexation of objects from bucket '{bucket}' failed: listing objects from bucket '{bucket}' failed: {problem}"
    )]
    List { bucket: String, problem: RequestError },
    #[error("indexation of objects from bucket '{bucket}' failed: {problem}")]
    Index { bucket: String, problem: RequestError },
}

/// Why a request to a bucket failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("{0}")]
    Bucket(#[from] fl_bucket::Error),
    #[error("{0}")]
    Index(#[from] IndexError),
    #[error("{0}")]
    Key(#[from] KeyError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Budget(#[from] fl_http::BudgetError),
    #[error("{DEADLINE_EXCEEDED}")]
    Deadline,
    #[error("the request was cut short")]
    Interrupted,
}

/// Waits for a request until a deadline.
async fn until<T>(
    deadline: Instant,
    request: impl Future<Output = Result<T, fl_bucket::Error>>,
) -> Result<T, RequestError> {
    match tokio::time::timeout_at(deadline, request).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(RequestError::Deadline),
    }
}

/// Lists a bucket without what is ignored.
pub(super) async fn list(
    store: &dyn ObjectStore,
    options: &ListOptions,
    deadline: Instant,
    lease: &Lease,
) -> Result<Listing, BucketListError> {
    let bucket = || options.bucket.clone();
    let exists = until(deadline, store.exists()).await;
    if !exists.map_err(|problem| BucketListError::Exists { bucket: bucket(), problem })? {
        return Err(BucketListError::NotFound(bucket()));
    }
    let ignore = ignore_file(store, deadline, lease).await.map_err(BucketListError::IgnoreFile)?;
    let lines = ignore.as_deref().map(String::from_utf8_lossy);
    let rules = Rules::for_bucket(lines.as_deref(), options.ignore.as_deref());
    let failed = |problem: RequestError| BucketListError::Index { bucket: bucket(), problem };
    let mut index = Index::new(tempfile::tempfile().map_err(|e| failed(e.into()))?);
    let mut bytes = 0;
    let mut visit = |key: &str, etag: &str| {
        if key.ends_with('/') || key == IGNORE_FILE || rules.ignores(key, false) {
            return Ok(());
        }
        bytes += 2 * (key.len() + etag.len() + INDEX_ENTRY_BYTES) as u64;
        index.add(key, etag)
    };
    until(deadline, store.list(&options.prefix, &mut visit)).await.map_err(|problem| match problem {
        RequestError::Bucket(fl_bucket::Error::Index(error)) => failed(error.into()),
        problem => BucketListError::List { bucket: bucket(), problem },
    })?;
    let (revision, count) = index.revision().map_err(|e| failed(e.into()))?;
    let mut held = lease.hold();
    held.add(bytes).await.map_err(|e| failed(e.into()))?;
    Ok(Listing { index, _held: held, ignore, revision, count })
}

/// The ignore file of the bucket, if it has one.
async fn ignore_file(
    store: &dyn ObjectStore,
    deadline: Instant,
    lease: &Lease,
) -> Result<Option<Vec<u8>>, RequestError> {
    let key = Key::check(IGNORE_FILE)?;
    let budget = Arc::new(Budget::new(MAX_IGNORE_BYTES, lease.clone()));
    let Some(mut object) = until(deadline, store.get(&key, &budget)).await? else { return Ok(None) };
    let mut bytes = Vec::new();
    object.content.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Why there is no new artifact.
#[derive(Debug)]
pub(super) enum PublishError {
    /// The objects that were read are those of the current artifact.
    Unchanged {
        revision: String,
        count: u64,
    },
    Fetch(FetchError),
    /// The archive could not be written.
    Archive(String),
}

/// Why the objects of a bucket could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("{0}")]
    Spool(#[from] std::io::Error),
    #[error("{0}")]
    Index(#[from] IndexError),
    #[error("failed to get '{key}' object: {problem}")]
    Object { key: String, problem: RequestError },
    #[error("failed to get '{0}' object: fileName is a directory.")]
    IsDirectory(String),
    #[error("the bucket changes faster than it can be read")]
    Changing,
}

impl From<fl_artifact_store::Error> for PublishError {
    fn from(error: fl_artifact_store::Error) -> Self {
        PublishError::Archive(chain(&error))
    }
}

impl From<fl_archive::Error> for PublishError {
    fn from(error: fl_archive::Error) -> Self {
        PublishError::Archive(chain(&error))
    }
}

impl From<IndexError> for PublishError {
    fn from(error: IndexError) -> Self {
        PublishError::Fetch(error.into())
    }
}

/// A new artifact.
#[derive(Debug)]
pub(super) struct PublishedBucket {
    pub(super) artifact: Artifact,
    pub(super) file: String,
    pub(super) revision: String,
    pub(super) count: u64,
    /// Objects that disappeared while the bucket was read.
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
    lease: &Lease,
) -> Result<PublishedBucket, PublishError> {
    let Listing { mut index, ignore, _held, .. } = listing;
    let spool = tempfile::tempfile().map_err(|e| PublishError::Fetch(e.into()))?;
    let mut files = index.files(spool)?;
    let mut outcome = None;
    let artifact = disk.publish_tree_named(at, |tar| {
        tar.directory(".")?;
        let mut fetching = ArchiveWriter {
            tar,
            ignore,
            directory: String::new(),
            pending: VecDeque::new(),
            changes: Changes::new(),
        };
        let handle = tokio::runtime::Handle::current();
        let budget = Arc::new(Budget::new(MAX_BUCKET_BYTES, lease.clone()));
        files.visit(|key, etag| {
            let (sender, answer) = oneshot::channel();
            let (store, budget, wanted) = (store.clone(), budget.clone(), key.clone());
            let task = handle.spawn(async move {
                let _ = sender.send(until(deadline, store.get(&wanted, &budget)).await);
            });
            let pending = Pending { key, etag: etag.to_owned(), answer, task: task.abort_handle() };
            fetching.pending.push_back(pending);
            if fetching.pending.len() < MAX_CONCURRENT_OBJECTS { Ok(()) } else { fetching.write_one() }
        })?;
        while !fetching.pending.is_empty() {
            fetching.write_one()?;
        }
        fetching.write_ignore_file("")?;
        let changes = std::mem::take(&mut fetching.changes);
        let (revision, count) = index.revision_with(&changes)?;
        if current == Some(revision.as_str()) {
            return Err(PublishError::Unchanged { revision, count });
        }
        let hex = revision.split_once(':').map_or(revision.as_str(), |(_, hex)| hex);
        let file = format!("{hex}.tar.gz");
        let gone = changes.into_iter().filter(|(_, etag)| etag.is_none()).map(|(key, _)| key).collect();
        outcome = Some((file.clone(), revision, count, gone));
        Ok::<_, PublishError>(file)
    })?;
    let (file, revision, count, gone) =
        outcome.ok_or_else(|| PublishError::Archive("nothing was written".to_owned()))?;
    Ok(PublishedBucket { artifact, file, revision, count, gone })
}

/// An object that was requested.
struct Pending {
    key: Key,
    etag: String,
    answer: oneshot::Receiver<Result<Option<Object>, RequestError>>,
    task: tokio::task::AbortHandle,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct ArchiveWriter<'a, 'b> {
    tar: &'a mut TarGz<'b>,
    /// Not written yet.
    ignore: Option<Vec<u8>>,
    /// The directory that was written last, with its parents.
    directory: String,
    pending: VecDeque<Pending>,
    changes: Changes,
}

impl ArchiveWriter<'_, '_> {
    /// Waits for the next object and writes it.
    fn write_one(&mut self) -> Result<(), PublishError> {
        let Some(mut pending) = self.pending.pop_front() else { return Ok(()) };
        let key = pending.key.key().to_owned();
        let failed =
            |problem| PublishError::Fetch(FetchError::Object { key: pending.key.key().to_owned(), problem });
        let (_, closed) = oneshot::channel();
        let answer = std::mem::replace(&mut pending.answer, closed);
        let object = answer.blocking_recv().unwrap_or(Err(RequestError::Interrupted));
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
        if self.changes.len() >= MAX_CHANGES {
            return Err(PublishError::Fetch(FetchError::Changing));
        }
        self.changes.insert(key, change);
        Ok(())
    }

    fn write(&mut self, path: &str, size: u64, content: &mut Content) -> Result<(), PublishError> {
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

    /// Writes the ignore file of the bucket before the first path that sorts after it; an empty `before` is the end.
    fn write_ignore_file(&mut self, before: &str) -> Result<(), PublishError> {
        let first = before.split('/').next().unwrap_or_default();
        if first == IGNORE_FILE && self.ignore.is_some() {
            return Err(PublishError::Fetch(FetchError::IsDirectory(before.to_owned())));
        }
        if (before.is_empty() || first > IGNORE_FILE)
            && let Some(bytes) = self.ignore.take()
        {
            self.tar.file(IGNORE_FILE, Mode::File, bytes.len() as u64, &mut bytes.as_slice())?;
        }
        Ok(())
    }
}
