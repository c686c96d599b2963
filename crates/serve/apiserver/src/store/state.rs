//! The state visible to readers: the objects of every table and their recent history.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::sync::watch;

use super::watch_cache::{self, Event, EventKind};
use super::{Entry, Item};

/// Approximate bytes of a record besides its object and key.
const RECORD_OVERHEAD: usize = 40;

#[derive(Debug)]
pub(crate) struct Table {
    pub(super) entries: BTreeMap<Arc<str>, Arc<Entry>>,
    pub(super) log: watch_cache::EventLog,
    pub(super) changed: watch::Sender<u64>,
}

impl Default for Table {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), log: watch_cache::EventLog::default(), changed: watch::channel(0).0 }
    }
}

/// The state visible to readers.
#[derive(Debug)]
pub(crate) struct State {
    pub(super) revision: u64,
    pub(super) tables: HashMap<Arc<str>, Table>,
    pub(super) history_budget: watch_cache::Budget,
    pub(super) changed: watch::Sender<u64>,
    /// History before this revision is discarded in all tables.
    pub(super) floor: u64,
    /// Bytes of all objects as a snapshot stores them.
    pub(super) live: u64,
}

impl State {
    pub(super) fn new() -> Self {
        // Revision 0 means "any" to clients, so the first one is 1.
        Self {
            revision: 1,
            tables: HashMap::new(),
            history_budget: watch_cache::Budget::default(),
            changed: watch::channel(0).0,
            floor: 0,
            live: 0,
        }
    }

    pub(super) fn table(&mut self, name: &str) -> &mut Table {
        if !self.tables.contains_key(name) {
            let mut table = Table::default();
            table.log.compact(self.floor);
            self.tables.insert(Arc::from(name), table);
        }
        self.tables.get_mut(name).expect("inserted just above")
    }

    /// Loads the objects of a snapshot.
    pub(super) fn load(&mut self, all: Vec<Write>, revision: u64) {
        for write in all {
            self.live += (write.entry.bytes.len() + write.key.len() + RECORD_OVERHEAD) as u64;
            self.table(&write.table).entries.insert(write.key, write.entry);
        }
        self.revision = revision;
        for table in self.tables.values_mut() {
            table.log.compact(revision);
        }
    }

    /// All objects, for a snapshot.
    pub(super) fn all_objects(&self) -> Vec<(Arc<str>, Item)> {
        let tables = self.tables.iter();
        let all = tables.flat_map(|(name, table)| {
            table.entries.iter().map(|(k, e)| (name.clone(), (k.clone(), e.clone())))
        });
        all.collect()
    }

    /// Makes one write visible.
    pub(super) fn apply(&mut self, write: &Write) {
        self.revision = self.revision.max(write.revision);
        let table = self.table(&write.table);
        let previous = if write.delete {
            table.entries.remove(&write.key)
        } else {
            table.entries.insert(write.key.clone(), write.entry.clone())
        };
        let weight = |entry: &Entry| (entry.bytes.len() + write.key.len() + RECORD_OVERHEAD) as u64;
        let removed = previous.as_ref().map_or(0, |entry| weight(entry));
        let added = if write.delete { 0 } else { weight(&write.entry) };
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
        self.live = self.live + added - removed;
        for name in self.history_budget.add(write.table.clone(), size) {
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
