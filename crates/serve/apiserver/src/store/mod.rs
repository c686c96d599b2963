//! The store: every object as JSON bytes under `table` (group/plural) and `key` (namespace/name), one revision counter,
//! and a bounded history per table for watches.
//!
//! Readers see what is durable. A write is checked against the newest state (durable or not), gets its revision, and is
//! handed to one writer thread; writes that arrive together share one synced append to the write-ahead log (`wal`), and only
//! then become visible and are acknowledged. A log of our own rather than a B-tree file: one `fdatasync` of one sequential
//! write per group is the least a durable commit can cost, and the whole state is held in memory anyway, as bytes.
//!
//! At the first append or sync that fails the store stops taking writes, says so ([`Store::failure`]), and begins a new log file
//! when it can: what a file holds after a failed sync is unknown. All file access goes through `files`, beneath which tests inject
//! faults.

mod durability;
mod failure;
mod files;
mod format;
mod history;
mod journal;
mod legacy;
mod manifest;
mod recent;
mod shared;
mod snapshot;
mod state;
mod text;
mod wal;
mod writer;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

pub use failure::Failure;
pub use history::{Event, EventKind};
use shared::Shared;
use state::{State, Write};
use text::Unnumbered;

/// When a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// On the disk: survives the end of the process and of the machine.
    #[default]
    Always,
    /// In memory, on its way to the disk: for throw-away servers.
    Relaxed,
}

/// One stored object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub revision: u64,
    /// JSON of the object in its storage version, `metadata.resourceVersion` included.
    pub bytes: Bytes,
}

impl Entry {
    /// The object. Stored bytes were written by this server, so they parse.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }
}

/// What must hold for a write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    Absent,
    Revision(u64),
}

/// A write.
#[derive(Debug)]
pub enum Change {
    Put(Value),
    /// The last state of the object, for the DELETED event.
    Delete(Value),
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error("the object changed since it was read")]
    Conflict,
    /// The write was refused: an earlier one failed.
    #[error("the store takes no writes: {0}")]
    Unavailable(Arc<Failure>),
    /// The write was attempted: it is not visible, but may be found when the server is started again before it has recovered.
    #[error("it is unknown whether the write is stored: {0}")]
    Failed(Arc<Failure>),
    #[error("the store is closed")]
    Closed,
    #[error("{path} is in use by another process")]
    InUse { path: String },
    /// An object beyond [`MAX_OBJECT`].
    #[error("etcdserver: request is too large")]
    TooLarge,
    #[error("revision {wanted} is no longer kept, the oldest is {oldest}")]
    Compacted { wanted: u64, oldest: u64 },
    #[error("revision {wanted} is in the future, the newest is {newest}")]
    Future { wanted: u64, newest: u64 },
    #[error("cannot {what} {path}")]
    Io {
        what: &'static str,
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "{path} cannot be read as a part of the store: {detail}; nothing was changed: restore the directory from a backup, or \
         remove it to begin with an empty store"
    )]
    Corrupt { path: String, detail: String },
    #[error(
        "{path} is missing, which is a part of the store; nothing was changed: restore the directory from a backup, or remove it \
         to begin with an empty store"
    )]
    Missing { path: String },
}

/// Bytes of one object: the limit that etcd sets, and clients know.
pub const MAX_OBJECT: usize = 3 << 19;

/// One listed object.
pub type Item = (Arc<str>, Arc<Entry>);

/// A handle on the store; clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    shared: Arc<Shared>,
    writer: Option<Arc<writer::Queue>>,
    sync: Sync,
}

impl Store {
    /// A store that lives as long as the process.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::with(State::new(), Sync::Relaxed)
    }

    /// Opens or creates the store in a directory.
    pub fn open(dir: &Path, sync: Sync) -> Result<Self, StoreError> {
        let files = Arc::new(files::Directory::open(dir)?);
        let (mut store, writer, queue) =
            Self::prepare(files, sync, journal::Sizes::default(), Instant::now())?;
        store.writer = Some(Arc::new(writer.start(queue)?));
        Ok(store)
    }

    /// A store on files, and its writer before it has a thread.
    fn prepare(
        files: Arc<dyn files::Files>,
        sync: Sync,
        sizes: journal::Sizes,
        now: Instant,
    ) -> Result<(Self, writer::Writer, writer::Queue), StoreError> {
        let mut state = State::new();
        let journal = journal::Journal::open(files, &mut state, sizes)?;
        let store = Self::with(state, sync);
        let (writer, queue) = writer::Writer::new(journal, store.shared.clone(), sync, now);
        Ok((store, writer, queue))
    }

    fn with(state: State, sync: Sync) -> Self {
        Self { shared: Arc::new(Shared::new(state)), writer: None, sync }
    }

    /// Why the store takes no writes at present.
    #[must_use]
    pub fn failure(&self) -> Option<Arc<Failure>> {
        self.shared.failure()
    }

    /// The newest revision readers may see.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.shared.read().revision
    }

    /// One object as readers see it.
    #[must_use]
    pub fn get(&self, table: &str, key: &str) -> Option<Arc<Entry>> {
        self.shared.read().tables.get(table)?.entries.get(key).cloned()
    }

    /// One object as the next write will find it, durable or not. A request that asks is answered when it is durable.
    #[must_use]
    pub fn latest(&self, table: &str, key: &str) -> Option<Arc<Entry>> {
        let sequencer = self.shared.sequence();
        if !sequencer.pending.is_empty()
            && let Some(write) = sequencer.pending.get(&(Arc::from(table), Arc::from(key)))
        {
            sequencer.note(write);
            return (!write.delete).then(|| write.entry.clone());
        }
        self.get(table, key)
    }

    /// The object of an entry, at hand if it was written a moment ago.
    #[must_use]
    pub fn value(&self, entry: &Entry) -> Arc<Value> {
        self.shared.recent.find(entry.revision).unwrap_or_else(|| Arc::new(entry.value()))
    }

    /// The objects whose key starts with `prefix` and follows `after`, at most `limit` (0: all), with the revision of
    /// the view and how many more there are.
    #[must_use]
    pub fn list(
        &self,
        table: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> (u64, Vec<Item>, usize) {
        let state = self.shared.read();
        let Some(found) = state.tables.get(table) else { return (state.revision, Vec::new(), 0) };
        let start = match after {
            Some(key) => Bound::Excluded(key),
            None => Bound::Included(prefix),
        };
        let mut range = found
            .entries
            .range::<str, _>((start, Bound::Unbounded))
            .take_while(|(k, _)| k.starts_with(prefix))
            .map(|(k, e)| (k.clone(), e.clone()));
        let items: Vec<Item> =
            if limit == 0 { range.by_ref().collect() } else { range.by_ref().take(limit).collect() };
        let rest = range.count();
        (state.revision, items, rest)
    }

    /// The whole of `prefix` as it was at `revision`: today's state with the later events undone.
    pub fn list_at(&self, table: &str, prefix: &str, revision: u64) -> Result<Vec<Item>, StoreError> {
        let state = self.shared.read();
        if revision > state.revision {
            return Err(StoreError::Future { wanted: revision, newest: state.revision });
        }
        let Some(found) = state.tables.get(table) else { return Ok(Vec::new()) };
        let later = found.log.since(revision)?;
        let mut view: BTreeMap<Arc<str>, Arc<Entry>> = found
            .entries
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(|(k, _)| k.starts_with(prefix))
            .map(|(k, e)| (k.clone(), e.clone()))
            .collect();
        for event in later.iter().rev().filter(|e| e.key.starts_with(prefix)) {
            match &event.previous {
                Some(entry) => view.insert(event.key.clone(), entry.clone()),
                None => view.remove(&event.key),
            };
        }
        Ok(view.into_iter().collect())
    }

    /// Ends the past here: watches and lists of anything older are refused.
    pub(crate) fn forget_the_past(&self) {
        let mut state = self.shared.write();
        let floor = state.revision;
        state.floor = floor;
        for table in state.tables.values_mut() {
            table.log.forget(floor);
        }
    }

    /// The events of a table after `revision`, at most `max`.
    pub fn events(
        &self,
        table: &str,
        revision: u64,
        max: usize,
    ) -> Result<(u64, Vec<Arc<Event>>), StoreError> {
        let state = self.shared.read();
        let Some(found) = state.tables.get(table) else { return Ok((state.revision, Vec::new())) };
        let mut events = found.log.since(revision)?;
        // The revision up to which the caller has then seen everything.
        let seen = if events.len() > max { events[max - 1].revision } else { state.revision };
        events.truncate(max);
        Ok((seen, events))
    }

    /// Tells when a table changes. Costs a pointer and a number, whatever happens in the table.
    #[must_use]
    pub fn subscribe(&self, table: &str) -> watch::Receiver<u64> {
        if let Some(found) = self.shared.read().tables.get(table) {
            return found.changed.subscribe();
        }
        self.shared.write().table(table).changed.subscribe()
    }

    /// Tells when anything changes.
    #[must_use]
    pub fn subscribe_all(&self) -> watch::Receiver<u64> {
        self.shared.read().changed.subscribe()
    }

    /// Every table with the revision of its last change.
    #[must_use]
    pub fn table_revisions(&self) -> Vec<(Arc<str>, u64)> {
        let state = self.shared.read();
        state.tables.iter().map(|(name, table)| (name.clone(), *table.changed.borrow())).collect()
    }

    /// The revision of the last change of a table, 0 if it never changed.
    #[must_use]
    pub fn last_change(&self, table: &str) -> u64 {
        self.shared.read().tables.get(table).map_or(0, |t| *t.changed.borrow())
    }

    /// Forgets the history of a table up to now: a type that begins to be served has none.
    pub fn begin_history(&self, table: &str) {
        let mut state = self.shared.write();
        let now = state.revision;
        state.table(table).log.forget(now);
    }

    /// Forgets all history up to `revision`.
    pub fn compact(&self, revision: u64) {
        let mut state = self.shared.write();
        let to = revision.min(state.revision);
        for table in state.tables.values_mut() {
            table.log.forget(to);
        }
    }

    /// The names of the tables that hold objects.
    #[must_use]
    pub fn tables(&self) -> Vec<Arc<str>> {
        self.shared
            .read()
            .tables
            .iter()
            .filter(|(_, t)| !t.entries.is_empty())
            .map(|(n, _)| n.clone())
            .collect()
    }

    /// Writes one object if `expect` holds. Returns when the write is as durable as the store was asked to be.
    pub async fn commit(
        &self,
        table: &str,
        key: &str,
        expect: Expect,
        change: Change,
    ) -> Result<Arc<Entry>, StoreError> {
        let (write, done) = self.enqueue(table, key, expect, change)?;
        if let Some(done) = done {
            match done.await {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => return Err(StoreError::Failed(failure)),
                Err(_) => return Err(StoreError::Closed),
            }
        }
        Ok(write)
    }

    /// [`Store::commit`] for controllers, which have no caller to return an error to: waits while the store takes no writes, and
    /// then answers with a conflict, so that the object is read again.
    pub(crate) async fn commit_when_writable(
        &self,
        table: &str,
        key: &str,
        expect: Expect,
        change: Change,
    ) -> Result<Arc<Entry>, StoreError> {
        match self.commit(table, key, expect, change).await {
            Err(StoreError::Unavailable(_) | StoreError::Failed(_)) => {
                self.shared.writable().await;
                Err(StoreError::Conflict)
            }
            other => other,
        }
    }

    /// Waits until a write that was seen is durable.
    async fn wait_for(&self, seen: durability::Seen) -> Result<(), StoreError> {
        let done = {
            let sequencer = self.shared.sequence();
            if seen.is_lost(&sequencer.failures) {
                return Err(sequencer.lost());
            }
            match &self.writer {
                Some(writer) if self.revision() < seen.revision => writer.barrier(),
                _ => return Ok(()),
            }
        };
        match done.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(StoreError::Failed(failure)),
            Err(_) => Err(StoreError::Closed),
        }
    }

    #[expect(
        clippy::type_complexity,
        reason = "private: the entry and, if it must be waited for, the signal"
    )]
    fn enqueue(
        &self,
        table: &str,
        key: &str,
        expect: Expect,
        change: Change,
    ) -> Result<(Arc<Entry>, Option<oneshot::Receiver<Result<(), Arc<Failure>>>>), StoreError> {
        let (table, key): (Arc<str>, Arc<str>) = (Arc::from(table), Arc::from(key));
        let id = (table.clone(), key.clone());
        let (delete, mut value) = match change {
            Change::Put(value) => (false, value),
            Change::Delete(value) => (true, value),
        };
        // Written out before its turn: all other writers wait while this one has it.
        let text = Unnumbered::write(&value);
        let mut sequencer = self.shared.sequence();
        if let Some(failure) = &sequencer.failed {
            return Err(StoreError::Unavailable(failure.clone()));
        }
        let current = match sequencer.pending.get(&id) {
            Some(write) => {
                sequencer.note(write);
                (!write.delete).then_some(write.revision)
            }
            None => self.get(&table, &key).map(|e| e.revision),
        };
        let holds = match expect {
            Expect::Absent => current.is_none(),
            Expect::Revision(revision) => current == Some(revision),
        };
        if !holds {
            return Err(StoreError::Conflict);
        }
        let revision = sequencer.last + 1;
        let bytes = text.number(revision);
        if bytes.len() > MAX_OBJECT && !delete {
            return Err(StoreError::TooLarge);
        }
        let entry = Arc::new(Entry { revision, bytes });
        let write = Write { table, key, revision, delete, entry: entry.clone() };
        sequencer.last = revision;
        let done = match (&self.writer, self.sync) {
            (Some(writer), Sync::Always) => {
                sequencer.pending.insert(id, write.clone());
                Some(writer.send(write))
            }
            (writer, _) => {
                self.shared.write().apply(&write);
                if let Some(writer) = writer {
                    writer.send_unwaited(write);
                }
                None
            }
        };
        drop(sequencer);
        if !delete {
            if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
            }
            debug_assert_eq!(value, entry.value(), "what is held is what was written");
            self.shared.recent.hold(revision, current, entry.bytes.len(), value);
        }
        Ok((entry, done))
    }
}
