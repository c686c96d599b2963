//! Threads that serve connections, each with its own event loop.
//!
//! A connection stays on its thread. On a pool that moves tasks about, every request on a quiet connection wakes a second thread
//! that finds nothing to do; that costs as much as a small write does.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use tokio::sync::mpsc::{self, UnboundedSender};

/// More than this many share their cores with the controllers of the same process for no gain.
const MOST: usize = 4;

/// Made on the thread that runs it, because sockets belong to the event loop they are made in.
type Work = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// The threads. Dropping it ends them, and with them what they serve.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    next: AtomicUsize,
}

#[derive(Debug)]
struct Lane {
    work: Option<UnboundedSender<Work>>,
    thread: Option<JoinHandle<()>>,
}

impl Lanes {
    /// One for each core, as far as there are threads to have.
    pub(super) fn start() -> Self {
        let count = std::thread::available_parallelism().map_or(1, usize::from).min(MOST);
        Self { lanes: (0..count).map_while(|_| Lane::start()).collect(), next: AtomicUsize::new(0) }
    }

    /// Runs what `make` makes on the next thread, or here when there is none.
    pub(super) fn run<F>(&self, make: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let lane = self.lanes.get(turn % self.lanes.len().max(1));
        match lane.and_then(|lane| lane.work.as_ref()) {
            // A lane listens as long as there is this side of it.
            Some(queue) => drop(queue.send(Box::new(move || Box::pin(make())))),
            None => drop(tokio::spawn(make())),
        }
    }
}

impl Lane {
    fn start() -> Option<Self> {
        let (work, mut queue) = mpsc::unbounded_channel::<Work>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let serve = move || {
            runtime.block_on(async move {
                while let Some(make) = queue.recv().await {
                    tokio::spawn(make());
                }
            });
        };
        let thread = std::thread::Builder::new().name("api-connections".into()).spawn(serve).ok()?;
        Some(Self { work: Some(work), thread: Some(thread) })
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        // All are told before the first is waited for.
        self.lanes.iter_mut().for_each(|lane| drop(lane.work.take()));
        for lane in &mut self.lanes {
            if let Some(thread) = lane.thread.take() {
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn work_goes_round_and_ends_with_the_lanes() {
        let lanes = Lanes::start();
        let (ran, mut seen) = mpsc::unbounded_channel();
        let held = Arc::new(());
        let count = lanes.lanes.len() * 2;
        for _ in 0..count {
            let (ran, held) = (ran.clone(), held.clone());
            lanes.run(move || async move {
                ran.send(std::thread::current().id()).expect("the test listens");
                std::future::pending::<()>().await;
                drop(held);
            });
        }
        let mut threads = std::collections::HashSet::new();
        for _ in 0..count {
            threads.insert(seen.recv().await.expect("all run"));
        }
        assert_eq!(threads.len(), count / 2);
        assert_eq!(Arc::strong_count(&held), count + 1);
        drop(lanes);
        assert_eq!(Arc::strong_count(&held), 1, "what never ends is cut off");
    }
}
