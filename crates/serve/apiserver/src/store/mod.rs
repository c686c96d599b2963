//! The store: every object as JSON bytes under `table` (group/plural) and `key` (namespace/name), one revision counter,
//! and a bounded history per table for watches.
//!
//! Readers see what is durable. A write is checked against the newest state (durable or not), gets its revision, and is
//! handed to one writer thread; writes that arrive together share one synced append to the log (`wal`), and only then
//! become visible and are acknowledged. A log of our own rather than a B-tree file: one `fdatasync` of one sequential
//! write per group is the least a durable commit can cost, and the whole state is held in memory anyway, as bytes.

mod history;
mod recent;
mod snapshot;
mod text;
mod wal;
mod writer;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

pub use history::{Event, EventKind};
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
    #[error("the store cannot write any more: {0}")]
    Failed(String),
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
    #[error("{path} cannot be read as a store: {detail}")]
    Corrupt { path: String, detail: String },
}

/// Bytes of one object: the limit that etcd sets, and clients know.
pub const MAX_OBJECT: usize = 3 << 19;

/// One listed object.
pub type Item = (Arc<str>, Arc<Entry>);

#[derive(Debug)]
pub(crate) struct Table {
    entries: BTreeMap<Arc<str>, Arc<Entry>>,
    log: history::Log,
    changed: watch::Sender<u64>,
}

impl Default for Table {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), log: history::Log::default(), changed: watch::channel(0).0 }
    }
}

/// What readers see.
#[derive(Debug)]
pub(crate) struct State {
    revision: u64,
    tables: HashMap<Arc<str>, Table>,
    kept: history::Budget,
    changed: watch::Sender<u64>,
    /// Nothing before this revision is told, whatever the table.
    floor: u64,
}

impl State {
    fn new() -> Self {
        // Revision 0 means "any" to clients, so the first one is 1.
        Self {
            revision: 1,
            tables: HashMap::new(),
            kept: history::Budget::default(),
            changed: watch::channel(0).0,
            floor: 0,
        }
    }

    fn table(&mut self, name: &str) -> &mut Table {
        if !self.tables.contains_key(name) {
            let mut table = Table::default();
            table.log.forget(self.floor);
            self.tables.insert(Arc::from(name), table);
        }
        self.tables.get_mut(name).expect("inserted just above")
    }

    /// Makes one write visible.
    fn apply(&mut self, write: &Write) {
        self.revision = self.revision.max(write.revision);
        let table = self.table(&write.table);
        let previous = if write.delete {
            table.entries.remove(&write.key)
        } else {
            table.entries.insert(write.key.clone(), write.entry.clone())
        };
        let kind = match (&previous, write.delete) {
            (_, true) => EventKind::Deleted,
            (None, false) => EventKind::Added,
            (Some(_), false) => EventKind::Modified,
        };
        let event = Event {
            revision: write.revision,
            key: write.key.clone(),
            kind,
            object: write.entry.clone(),
            previous,
        };
        let size = event.size();
        table.log.push(Arc::new(event));
        let _ = table.changed.send_replace(write.revision);
        let _ = self.changed.send_replace(write.revision);
        for name in self.kept.add(write.table.clone(), size) {
            if let Some(table) = self.tables.get_mut(&name) {
                table.log.drop_oldest();
            }
        }
    }
}

/// One write with its revision, on its way to the log.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) table: Arc<str>,
    pub(crate) key: Arc<str>,
    pub(crate) revision: u64,
    pub(crate) delete: bool,
    pub(crate) entry: Arc<Entry>,
}

/// Writes that have a revision but are not durable yet.
#[derive(Debug, Default)]
struct Sequencer {
    last: u64,
    pending: HashMap<(Arc<str>, Arc<str>), Write>,
    failed: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    state: RwLock<State>,
    sequencer: Mutex<Sequencer>,
    recent: recent::Recent,
}

impl Shared {
    // A poisoned lock means a panic between two assignments of plain data; the data is still whole.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn sequence(&self) -> MutexGuard<'_, Sequencer> {
        self.sequencer.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Makes durable writes visible, then forgets them as pending: never neither of the two.
    pub(crate) fn publish(&self, writes: &[Write]) {
        {
            let mut state = self.write();
            for write in writes {
                state.apply(write);
            }
        }
        let mut sequencer = self.sequence();
        for write in writes {
            let id = (write.table.clone(), write.key.clone());
            if sequencer.pending.get(&id).is_some_and(|p| p.revision == write.revision) {
                sequencer.pending.remove(&id);
            }
        }
    }

    pub(crate) fn fail(&self, reason: &str) {
        self.sequence().failed = Some(reason.to_owned());
    }

    /// Everything that is visible, for a snapshot.
    pub(crate) fn everything(&self) -> (u64, Vec<(Arc<str>, Item)>) {
        let state = self.read();
        let all = state
            .tables
            .iter()
            .flat_map(|(name, table)| {
                table.entries.iter().map(|(k, e)| (name.clone(), (k.clone(), e.clone())))
            })
            .collect();
        (state.revision, all)
    }
}

/// A handle on the store; clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    shared: Arc<Shared>,
    writer: Option<Arc<writer::Writer>>,
    sync: Sync,
}

impl Store {
    /// A store that lives as long as the process.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::with(State::new(), None, Sync::Relaxed)
    }

    /// Opens or creates the store in a directory.
    pub fn open(dir: &Path, sync: Sync) -> Result<Self, StoreError> {
        std::fs::create_dir_all(dir).map_err(|source| StoreError::Io {
            what: "create",
            path: dir.display().to_string(),
            source,
        })?;
        let mut state = State::new();
        let files = writer::recover(dir, &mut state)?;
        let mut store = Self::with(state, None, sync);
        store.writer = Some(Arc::new(writer::Writer::start(files, store.shared.clone(), sync)?));
        Ok(store)
    }

    fn with(state: State, writer: Option<Arc<writer::Writer>>, sync: Sync) -> Self {
        let sequencer = Sequencer { last: state.revision, ..Sequencer::default() };
        let shared = Shared {
            state: RwLock::new(state),
            sequencer: Mutex::new(sequencer),
            recent: recent::Recent::default(),
        };
        Self { shared: Arc::new(shared), writer, sync }
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

    /// One object as the next write will find it, durable or not.
    #[must_use]
    pub fn latest(&self, table: &str, key: &str) -> Option<Arc<Entry>> {
        let sequencer = self.shared.sequence();
        if !sequencer.pending.is_empty()
            && let Some(write) = sequencer.pending.get(&(Arc::from(table), Arc::from(key)))
        {
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
                Ok(Err(reason)) => return Err(StoreError::Failed(reason)),
                Err(_) => return Err(StoreError::Failed("the writer ended".into())),
            }
        }
        Ok(write)
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
    ) -> Result<(Arc<Entry>, Option<oneshot::Receiver<Result<(), String>>>), StoreError> {
        let (table, key): (Arc<str>, Arc<str>) = (Arc::from(table), Arc::from(key));
        let id = (table.clone(), key.clone());
        let (delete, mut value) = match change {
            Change::Put(value) => (false, value),
            Change::Delete(value) => (true, value),
        };
        // Written out before its turn: all other writers wait while this one has it.
        let text = Unnumbered::write(&value);
        let mut sequencer = self.shared.sequence();
        if let Some(reason) = &sequencer.failed {
            return Err(StoreError::Failed(reason.clone()));
        }
        let current = match sequencer.pending.get(&id) {
            Some(write) => (!write.delete).then_some(write.revision),
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
                Some(writer.submit(write))
            }
            (writer, _) => {
                self.shared.write().apply(&write);
                if let Some(writer) = writer {
                    writer.submit_unwaited(write);
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
