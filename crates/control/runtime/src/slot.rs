//! Who may work: a controller runs so many passes at once, and a pass that only waits is not one of them.
//!
//! A release that waits five minutes for its pods would otherwise keep four others from starting.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many passes may wait for each one that may work. Each holds its objects in memory meanwhile.
const WAITING_PER_SLOT: usize = 16;

tokio::task_local! {
    static SLOT: Slot;
}

/// The slots of one controller.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    working: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Slots {
    pub(crate) fn new(concurrent: usize) -> Self {
        Slots {
            working: Arc::new(Semaphore::new(concurrent)),
            waiting: Arc::new(Semaphore::new(concurrent * WAITING_PER_SLOT)),
        }
    }

    /// The next slot that is free.
    pub(crate) async fn take(&self) -> Slot {
        let slot = Slot { slots: self.clone(), permit: Arc::default() };
        slot.take().await;
        slot
    }
}

/// The right of one pass to work.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    slots: Slots,
    permit: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Slot {
    /// Runs a pass in this slot.
    pub(crate) async fn hold<T>(self, pass: impl Future<Output = T>) -> T {
        SLOT.scope(self, pass).await
    }

    async fn take(&self) {
        let permit = self.slots.working.clone().acquire_owned().await.ok();
        *self.permit.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }

    fn give_back(&self) {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Waits for something outside, health or termination, and lets other passes of the controller work meanwhile.
pub async fn idle<T>(wait: impl Future<Output = T>) -> T {
    let Ok(slot) = SLOT.try_with(Clone::clone) else { return wait.await };
    // Too many wait already: this one keeps its slot, so that memory has a bound.
    let Ok(_waiting) = slot.slots.waiting.clone().try_acquire_owned() else { return wait.await };
    slot.give_back();
    let answer = wait.await;
    slot.take().await;
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::{Instant, sleep};

    async fn run(passes: usize, slots: &Slots, pass: impl AsyncFn() + Clone + 'static) -> Duration {
        let begin = Instant::now();
        let set = tokio::task::LocalSet::new();
        for _ in 0..passes {
            let (slots, pass) = (slots.clone(), pass.clone());
            set.spawn_local(async move {
                let slot = slots.take().await;
                slot.hold(pass()).await;
            });
        }
        set.await;
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_limited_and_waiting_is_not_work() {
        let slots = Slots::new(2);
        let work = async || sleep(Duration::from_secs(1)).await;
        assert_eq!(run(6, &slots, work).await.as_secs(), 3);
        let wait = async || idle(sleep(Duration::from_secs(60))).await;
        assert_eq!(run(6, &slots, wait).await.as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_has_a_bound_too() {
        let slots = Slots::new(1);
        let wait = async || idle(sleep(Duration::from_secs(60))).await;
        // Sixteen wait beside each other, the seventeenth in its slot, the eighteenth behind it.
        assert_eq!(run(WAITING_PER_SLOT + 2, &slots, wait).await.as_secs(), 120);
    }
}
