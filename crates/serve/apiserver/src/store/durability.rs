//! Durability of the reads of a request.
//!
//! Writes are checked against the newest state, durable or not, so that many of them can share one sync. A
//! response that depends on that state without a write of its own (nothing changed, already exists, dry-run,
//! conflict) could report a write that is lost later. Each request therefore records the newest pending write
//! it has read, and its response waits until that write is durable.

use std::cell::Cell;

use super::{Store, StoreError};

/// A write that was not durable when a request read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PendingRead {
    pub(super) revision: u64,
    /// Number of failures of the store at that time. A failure loses all writes that are not durable.
    pub(super) failures: usize,
}

impl PendingRead {
    /// Whether the write was lost. `failures` holds the newest durable revision at each failure of the store.
    pub(super) fn is_lost(self, failures: &[u64]) -> bool {
        failures.get(self.failures).is_some_and(|durable| self.revision > *durable)
    }
}

tokio::task_local! {
    static NEWEST_READ: Cell<Option<PendingRead>>;
}

/// Records that the current request has read a pending write. Outside a request this does nothing:
/// controllers act on what they read only by writing, and their writes follow in the log.
pub(super) fn record_read(seen: PendingRead, failures: &[u64]) {
    let _ = NEWEST_READ.try_with(|newest| match newest.get() {
        // A lost write stays lost. Of two writes that may still become durable, the later one decides.
        Some(before) if before.is_lost(failures) || before.revision >= seen.revision => {}
        _ => newest.set(Some(seen)),
    });
}

impl Store {
    /// Runs a request and waits until everything it has read is durable. Fails if a write it has read was
    /// lost.
    pub(crate) async fn respond_when_durable<T>(
        &self,
        request: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        let run = async { (request.await, NEWEST_READ.with(Cell::get)) };
        let (answer, seen) = NEWEST_READ.scope(Cell::new(None), run).await;
        if let Some(seen) = seen {
            self.wait_for(seen).await?;
        }
        Ok(answer)
    }
}
