//! Limits concurrent reconciles per controller. A reconcile that only waits does not count.
//!
//! Otherwise a release that waits five minutes for its pods would block the reconciles behind it.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use fl_client::Shutdown;

/// Waiting reconciles per permit. Each holds its objects in memory while it waits.
const WAITING_PER_SLOT: usize = 16;

tokio::task_local! {
    static PERMIT: Permit;
}

/// The permits of one controller.
#[derive(Clone, Debug)]
pub(crate) struct ConcurrencyLimit {
    working: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl ConcurrencyLimit {
    pub(crate) fn new(concurrent: usize) -> Self {
        ConcurrencyLimit {
            working: Arc::new(Semaphore::new(concurrent)),
            waiting: Arc::new(Semaphore::new(concurrent * WAITING_PER_SLOT)),
        }
    }

    /// Waits for a free permit.
    pub(crate) async fn take(&self) -> Permit {
        let slot = Permit { limit: self.clone(), permit: Arc::default(), idle: watch::Sender::new(false) };
        slot.take().await;
        slot
    }
}

/// The permit of one running reconcile.
#[derive(Clone, Debug)]
pub(crate) struct Permit {
    limit: ConcurrencyLimit,
    permit: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
    idle: watch::Sender<bool>,
}

impl Permit {
    /// Runs a reconcile with this permit. On shutdown a reconcile that only waits is abandoned; the next
    /// process resumes it.
    pub(crate) async fn hold(self, stop: Shutdown, pass: impl Future<Output = ()>) {
        let mut idle = self.idle.subscribe();
        let abandoned = async {
            stop.stopped().await;
            // The sender lives as long as the reconcile.
            let _ = idle.wait_for(|idle| *idle).await;
        };
        tokio::select! {
            biased;
            () = PERMIT.scope(self, pass) => {}
            () = abandoned => {}
        }
    }

    async fn take(&self) {
        let permit = self.limit.working.clone().acquire_owned().await.ok();
        *self.permit.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }

    /// Releases the permit while `wait` runs. On shutdown the reconcile is abandoned meanwhile; the next
    /// process resumes it.
    async fn without<T>(&self, wait: impl Future<Output = T>) -> T {
        // Nested in another wait: the permit is released already.
        if *self.idle.borrow() {
            return wait.await;
        }
        self.release();
        self.idle.send_replace(true);
        let answer = wait.await;
        self.idle.send_replace(false);
        self.take().await;
        answer
    }

    fn release(&self) {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Runs requests to a remote API server without a permit, so that a slow one does not block other reconciles.
/// The queue limits concurrency per target.
pub async fn on_remote<T>(work: impl Future<Output = T>) -> T {
    let Ok(slot) = PERMIT.try_with(Clone::clone) else { return work.await };
    slot.without(work).await
}

/// Waits for health or termination without a permit, so that other objects are reconciled meanwhile.
pub async fn without_permit<T>(wait: impl Future<Output = T>) -> T {
    let Ok(slot) = PERMIT.try_with(Clone::clone) else { return wait.await };
    // Too many wait already: this one keeps its permit, which bounds memory.
    let Ok(_waiting) = slot.limit.waiting.clone().try_acquire_owned() else { return wait.await };
    slot.without(wait).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::{Instant, sleep};

    async fn run(
        passes: usize,
        limit: &ConcurrencyLimit,
        pass: impl AsyncFn() + Clone + 'static,
    ) -> Duration {
        let begin = Instant::now();
        let set = tokio::task::LocalSet::new();
        for _ in 0..passes {
            let (limit, pass) = (limit.clone(), pass.clone());
            set.spawn_local(async move {
                let slot = limit.take().await;
                slot.hold(Shutdown::default(), pass()).await;
            });
        }
        set.await;
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_reconciles_do_not_count_against_concurrency() {
        let limit = ConcurrencyLimit::new(2);
        let work = async || sleep(Duration::from_secs(1)).await;
        assert_eq!(run(6, &limit, work).await.as_secs(), 3);
        let wait = async || without_permit(sleep(Duration::from_secs(60))).await;
        assert_eq!(run(6, &limit, wait).await.as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_abandons_waiting_reconciles_and_finishes_running_ones() {
        let limit = ConcurrencyLimit::new(1);
        let stop = Shutdown::default();
        let begin = Instant::now();
        let work = limit.take().await.hold(stop.clone(), async {
            sleep(Duration::from_secs(5)).await;
            without_permit(sleep(Duration::from_secs(600))).await;
        });
        let told = async {
            sleep(Duration::from_secs(1)).await;
            stop.now();
        };
        tokio::join!(work, told);
        assert_eq!(begin.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_reconciles_are_limited() {
        let limit = ConcurrencyLimit::new(1);
        let wait = async || without_permit(sleep(Duration::from_secs(60))).await;
        // Sixteen wait without a permit, the seventeenth keeps its permit, the eighteenth is queued behind
        // it.
        assert_eq!(run(WAITING_PER_SLOT + 2, &limit, wait).await.as_secs(), 120);
    }
}
