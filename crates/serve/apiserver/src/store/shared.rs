//! State shared by the handles of a store and its writer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::durability::{self, PendingRead};
use super::failure::Failure;
use super::state::{State, Write};
use super::{Item, StoreError, object_cache};

/// Writes that have a revision but are not durable yet.
#[derive(Debug, Default)]
pub(super) struct Sequencer {
    pub(super) last: u64,
    pub(super) pending: HashMap<(Arc<str>, Arc<str>), Write>,
    /// Why writes are rejected at present.
    pub(super) failed: Option<Arc<Failure>>,
    last_failure: Option<Arc<Failure>>,
    /// The newest durable revision at each failure of the store.
    pub(super) failures: Vec<u64>,
}

impl Sequencer {
    /// Records that the current request has read this write.
    pub(super) fn record_read(&self, write: &Write) {
        durability::record_read(
            PendingRead { revision: write.revision, failures: self.failures.len() },
            &self.failures,
        );
    }

    /// The error of a request that has read a lost write.
    pub(super) fn lost(&self) -> StoreError {
        self.last_failure.clone().map_or(StoreError::Closed, StoreError::Failed)
    }
}

#[derive(Debug)]
pub(super) struct Shared {
    state: RwLock<State>,
    sequencer: Mutex<Sequencer>,
    pub(super) cache: object_cache::ObjectCache,
    objects_visited: AtomicU64,
    resumed: tokio::sync::Notify,
}

impl Shared {
    pub(super) fn new(state: State) -> Self {
        let sequencer = Sequencer { last: state.revision, ..Sequencer::default() };
        Self {
            state: RwLock::new(state),
            sequencer: Mutex::new(sequencer),
            cache: object_cache::ObjectCache::default(),
            objects_visited: AtomicU64::new(0),
            resumed: tokio::sync::Notify::new(),
        }
    }

    // A poisoned lock means a panic between two assignments of plain data; the data is still consistent.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sequence(&self) -> MutexGuard<'_, Sequencer> {
        self.sequencer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes durable writes visible, then removes them from the pending ones; in this order, so that they are
    /// always in one of the two.
    pub(super) fn publish(&self, writes: &[Write]) {
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

    /// Rejects writes from now on. Those that were not durable are lost.
    pub(super) fn fail(&self, failure: Arc<Failure>) {
        let mut sequencer = self.sequence();
        let durable = self.read().revision;
        sequencer.failures.push(durable);
        sequencer.pending.clear();
        sequencer.last_failure = Some(failure.clone());
        sequencer.failed = Some(failure);
    }

    /// Replaces the reason after another failed attempt.
    pub(super) fn fail_again(&self, failure: Arc<Failure>) {
        self.sequence().failed = Some(failure);
    }

    /// Accepts writes again.
    pub(super) fn resume(&self) {
        self.sequence().failed = None;
        self.resumed.notify_waiters();
    }

    /// Waits until writes are accepted.
    pub(super) async fn writable(&self) {
        loop {
            let resumed = self.resumed.notified();
            if self.failure().is_none() {
                return;
            }
            resumed.await;
        }
    }

    pub(super) fn failure(&self) -> Option<Arc<Failure>> {
        self.sequence().failed.clone()
    }

    /// All visible objects, for a snapshot.
    pub(super) fn all_objects(&self) -> (u64, Vec<(Arc<str>, Item)>) {
        let state = self.read();
        let all = state.all_objects();
        self.objects_visited.fetch_add(all.len() as u64, Ordering::Relaxed);
        (state.revision, all)
    }

    pub(super) fn live_bytes(&self) -> u64 {
        self.read().live
    }

    /// How many objects checkpoints have visited so far.
    #[cfg(test)]
    pub(super) fn objects_visited(&self) -> u64 {
        self.objects_visited.load(Ordering::Relaxed)
    }
}
