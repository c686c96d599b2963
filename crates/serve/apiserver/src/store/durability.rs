//! What a request has seen that is not durable yet.
//!
//! Writes are checked against the newest state, so that many of them can share one sync. An answer that rests on that state without
//! a write of its own (nothing changed, already exists, a dry run, a conflict) would tell of writes that can still be lost. So
//! every request notes the newest write it has seen, and is answered when that one is durable.

use std::cell::Cell;

use super::{Store, StoreError};

/// A write that was not durable when it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) revision: u64,
    /// How often the store had failed by then: a failure loses what is not durable.
    pub(super) failures: usize,
}

impl Seen {
    /// Whether it was lost, given the newest durable revision at each failure of the store.
    pub(super) fn is_lost(self, failures: &[u64]) -> bool {
        failures.get(self.failures).is_some_and(|durable| self.revision > *durable)
    }
}

tokio::task_local! {
    static NEWEST: Cell<Option<Seen>>;
}

/// Notes that the current request has seen a write; elsewhere this does nothing. What controllers do with what they see are
/// writes, and those follow in the log.
pub(super) fn note(seen: Seen, failures: &[u64]) {
    let _ = NEWEST.try_with(|newest| match newest.get() {
        // What was lost stays lost, and of two that may be durable the later one decides.
        Some(before) if before.is_lost(failures) || before.revision >= seen.revision => {}
        _ => newest.set(Some(seen)),
    });
}

impl Store {
    /// Runs a request, and waits until everything it has seen is durable. An error says that something was lost.
    pub(crate) async fn answer_when_durable<T>(
        &self,
        request: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        let run = async { (request.await, NEWEST.with(Cell::get)) };
        let (answer, seen) = NEWEST.scope(Cell::new(None), run).await;
        if let Some(seen) = seen {
            self.wait_for(seen).await?;
        }
        Ok(answer)
    }
}
