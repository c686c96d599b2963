//! The recent events of each table, bounded in bytes over all tables.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Entry, StoreError};

/// Maximum bytes of events over all tables. A watcher that falls further behind must start over with a list.
const MAX_HISTORY_BYTES: usize = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// One change.
#[derive(Debug, Clone)]
pub struct Event {
    pub revision: u64,
    pub key: Arc<str>,
    pub kind: EventKind,
    /// The object after the change; for a deletion its last state, with the revision of the deletion.
    pub object: Arc<Entry>,
    pub previous: Option<Arc<Entry>>,
}

impl Event {
    pub(super) fn size(&self) -> usize {
        self.object.bytes.len() + self.key.len() + 160
    }
}

/// The events of one table, oldest first.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    events: VecDeque<Arc<Event>>,
    /// Events up to this revision are compacted.
    floor: u64,
}

impl EventLog {
    pub(super) fn push(&mut self, event: Arc<Event>) {
        self.events.push_back(event);
    }

    pub(super) fn drop_oldest(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.floor = self.floor.max(event.revision);
        }
    }

    pub(super) fn compact(&mut self, revision: u64) {
        // The events stay until the budget drops them, so that its order of tables stays correct.
        self.floor = self.floor.max(revision);
    }

    pub(super) fn since(&self, revision: u64) -> Result<Vec<Arc<Event>>, StoreError> {
        if revision < self.floor {
            return Err(StoreError::Compacted { wanted: revision, oldest: self.floor });
        }
        let from = self.events.partition_point(|e| e.revision <= revision);
        Ok(self.events.range(from..).cloned().collect())
    }
}

/// Decides which tables drop their oldest events once all tables together exceed the limit.
#[derive(Debug, Default)]
pub(super) struct Budget {
    order: VecDeque<(Arc<str>, usize)>,
    bytes: usize,
}

impl Budget {
    /// Counts one more event; returns the tables that must drop their oldest one.
    pub(super) fn add(&mut self, table: Arc<str>, size: usize) -> Vec<Arc<str>> {
        self.bytes += size;
        self.order.push_back((table, size));
        let mut over = Vec::new();
        while self.bytes > MAX_HISTORY_BYTES
            && let Some((table, size)) = self.order.pop_front()
        {
            self.bytes -= size;
            over.push(table);
        }
        over
    }
}
