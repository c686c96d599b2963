//! The deadline of a whole reconcile: every request made inside of it ends by then.

use tokio::time::Instant;

tokio::task_local! {
    static DEADLINE: Instant;
}

/// Runs a step under a deadline. Requests that it makes fail when the deadline passes; the step itself goes on, so that it can
/// report what happened. A deadline inside of another one replaces it.
pub async fn within<T>(deadline: Instant, step: impl Future<Output = T>) -> T {
    DEADLINE.scope(deadline, step).await
}

/// The deadline of the current step, if it has one.
pub fn remaining() -> Option<Instant> {
    DEADLINE.try_with(|at| *at).ok()
}
