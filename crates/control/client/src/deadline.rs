//! The deadline of a whole reconcile: every request made inside of it ends by then.

use std::time::Duration;

use tokio::time::Instant;

/// When a step has to end, and how long it had.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    pub at: Instant,
    pub limit: Duration,
}

tokio::task_local! {
    static DEADLINE: Deadline;
}

/// Runs a step under a deadline. Requests that it makes fail when the deadline passes; the step itself goes on, so that it can
/// report what happened. A deadline inside of another one replaces it.
pub async fn within<T>(deadline: Instant, step: impl Future<Output = T>) -> T {
    let limit = deadline.saturating_duration_since(Instant::now());
    DEADLINE.scope(Deadline { at: deadline, limit }, step).await
}

/// The deadline of the current step, if it has one.
pub fn remaining() -> Option<Deadline> {
    DEADLINE.try_with(|deadline| *deadline).ok()
}
