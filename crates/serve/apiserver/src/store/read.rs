//! Reads: objects, lists, history and change notifications.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

use super::{Entry, Event, Item, Store, StoreError};

impl Store {
    /// The newest revision visible to readers.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.shared.read().revision
    }

    /// One object as visible to readers.
    #[must_use]
    pub fn get(&self, table: &str, key: &str) -> Option<Arc<Entry>> {
        self.shared.read().tables.get(table)?.entries.get(key).cloned()
    }

    /// One object as the next write will find it, durable or not. A request that calls this is answered when
    /// that state is durable.
    #[must_use]
    pub fn latest(&self, table: &str, key: &str) -> Option<Arc<Entry>> {
        let sequencer = self.shared.sequence();
        if !sequencer.pending.is_empty()
            && let Some(write) = sequencer.pending.get(&(Arc::from(table), Arc::from(key)))
        {
            sequencer.record_read(write);
            return (!write.delete).then(|| write.entry.clone());
        }
        self.get(table, key)
    }

    /// The decoded object of an entry, from the cache if it was written recently.
    #[must_use]
    pub fn value(&self, entry: &Entry) -> Arc<Value> {
        self.shared.cache.get(entry.revision).unwrap_or_else(|| Arc::new(entry.value()))
    }

    /// Up to `limit` objects (0: all) whose key starts with `prefix` and follows `after`, with the revision
    /// of the list and the number of remaining objects.
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

    /// All objects below `prefix` as of `revision`: the current state with the later events undone.
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

    /// Discards the history of all tables: watches and lists at older revisions are rejected from now on.
    pub(crate) fn discard_history(&self) {
        let mut state = self.shared.write();
        let floor = state.revision;
        state.floor = floor;
        for table in state.tables.values_mut() {
            table.log.compact(floor);
        }
    }

    /// Up to `max` events of a table after `revision`, with the revision up to which they are complete.
    pub fn events(
        &self,
        table: &str,
        revision: u64,
        max: usize,
    ) -> Result<(u64, Vec<Arc<Event>>), StoreError> {
        let state = self.shared.read();
        let Some(found) = state.tables.get(table) else { return Ok((state.revision, Vec::new())) };
        let mut events = found.log.since(revision)?;
        let seen = if events.len() > max { events[max - 1].revision } else { state.revision };
        events.truncate(max);
        Ok((seen, events))
    }

    /// Notifies of changes of a table. A receiver costs a pointer and a number, however many changes there
    /// are.
    #[must_use]
    pub fn subscribe(&self, table: &str) -> watch::Receiver<u64> {
        if let Some(found) = self.shared.read().tables.get(table) {
            return found.changed.subscribe();
        }
        self.shared.write().table(table).changed.subscribe()
    }

    /// Notifies of changes of any table.
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

    /// Discards the history of a table: a type that was just registered has none.
    pub fn begin_history(&self, table: &str) {
        let mut state = self.shared.write();
        let now = state.revision;
        state.table(table).log.compact(now);
    }

    /// Discards all history up to `revision`.
    pub fn compact(&self, revision: u64) {
        let mut state = self.shared.write();
        let to = revision.min(state.revision);
        for table in state.tables.values_mut() {
            table.log.compact(to);
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
}
