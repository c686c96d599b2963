//! Who may work: a controller runs so many passes at once, and a pass that only waits is not one of them.
//!
//! A release that waits five minutes for its pods would otherwise keep four others from starting.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use fl_client::Stop;

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
        let slot = Slot { slots: self.clone(), permit: Arc::default(), idle: watch::Sender::new(false) };
        slot.take().await;
        slot
    }
}

/// The right of one pass to work.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    slots: Slots,
    permit: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
    idle: watch::Sender<bool>,
}

impl Slot {
    /// Runs a pass in this slot. Told to stop, a pass that only waits is left: the next process takes it up where it was.
    pub(crate) async fn hold(self, stop: Stop, pass: impl Future<Output = ()>) {
        let mut idle = self.idle.subscribe();
        let abandoned = async {
            stop.stopped().await;
            // The sender lives as long as the pass.
            let _ = idle.wait_for(|idle| *idle).await;
        };
        tokio::select! {
            biased;
            () = SLOT.scope(self, pass) => {}
            () = abandoned => {}
        }
    }

    async fn take(&self) {
        let permit = self.slots.working.clone().acquire_owned().await.ok();
        *self.permit.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }

    /// Gives the slot back for a while. Told to stop meanwhile, the pass is abandoned: the next process takes it up where it was.
    async fn without<T>(&self, wait: impl Future<Output = T>) -> T {
        // Inside of another wait the slot is not ours to give.
        if *self.idle.borrow() {
            return wait.await;
        }
        self.give_back();
        self.idle.send_replace(true);
        let answer = wait.await;
        self.idle.send_replace(false);
        self.take().await;
        answer
    }

    fn give_back(&self) {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Works on another API server, which may take its time, and lets other passes of the controller work meanwhile. How many passes do so
/// at once is limited per target by the queue.
pub async fn on_remote<T>(work: impl Future<Output = T>) -> T {
    let Ok(slot) = SLOT.try_with(Clone::clone) else { return work.await };
    slot.without(work).await
}

/// Waits for something outside, health or termination, and lets other passes of the controller work meanwhile.
pub async fn idle<T>(wait: impl Future<Output = T>) -> T {
    let Ok(slot) = SLOT.try_with(Clone::clone) else { return wait.await };
    // Too many wait already: this one keeps its slot, so that memory has a bound.
    let Ok(_waiting) = slot.slots.waiting.clone().try_acquire_owned() else { return wait.await };
    slot.without(wait).await
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
                slot.hold(Stop::default(), pass()).await;
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
    async fn a_stop_leaves_who_waits_and_lets_work_end() {
        let slots = Slots::new(1);
        let stop = Stop::default();
        let begin = Instant::now();
        let work = slots.take().await.hold(stop.clone(), async {
            sleep(Duration::from_secs(5)).await;
            idle(sleep(Duration::from_secs(600))).await;
        });
        let told = async {
            sleep(Duration::from_secs(1)).await;
            stop.now();
        };
        tokio::join!(work, told);
        assert_eq!(begin.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_has_a_bound_too() {
        let slots = Slots::new(1);
        let wait = async || idle(sleep(Duration::from_secs(60))).await;
        // Sixteen wait beside each other, the seventeenth in its slot, the eighteenth behind it.
        assert_eq!(run(WAITING_PER_SLOT + 2, &slots, wait).await.as_secs(), 120);
    }
}
