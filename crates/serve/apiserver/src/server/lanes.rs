//! Threads that serve connections, each with its own event loop.
//!
//! A connection stays on its thread. On a pool that moves tasks about, every request on a quiet connection wakes a second thread
//! that finds nothing to do; that costs as much as a small write does.
//!
//! After an answer a thread looks for the next request for a moment before it sleeps: a client that sends one request after the
//! other would wake it anew for each, on a core that has begun to rest, and wait for that longer than for the work.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::sync::mpsc::{self, UnboundedSender};

/// More than this many share their cores with the controllers of the same process for no gain.
const MOST: usize = 4;

/// How long after an answer the next request is looked for. A client that thinks for longer is not one that waits for us.
const LOOKOUT: Duration = Duration::from_micros(200);

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

thread_local! {
    /// When this thread gave its last answer, while it looks for the next request.
    static ANSWERED: Cell<Option<Instant>> = const { Cell::new(None) };
    static BEGIN: Rc<Notify> = Rc::default();
}

/// Says that a request was answered on this thread.
pub(super) fn answered() {
    if ANSWERED.replace(Some(Instant::now())).is_none() {
        BEGIN.with(|begin| begin.notify_one());
    }
}

/// Keeps the event loop of this thread awake after answers. `busy` is shared by all: one of them does it at a time, so that no more
/// than one core is kept from resting, and whoever else wants that core has it.
async fn look_out(busy: &AtomicBool) {
    let begin = BEGIN.with(Rc::clone);
    loop {
        begin.notified().await;
        if !busy.swap(true, Ordering::Relaxed) {
            while ANSWERED.get().is_some_and(|last| last.elapsed() < LOOKOUT) {
                std::thread::yield_now();
                // Sockets are looked at before this task has its turn again.
                tokio::task::yield_now().await;
            }
            busy.store(false, Ordering::Relaxed);
        }
        ANSWERED.set(None);
    }
}

impl Lanes {
    /// One for each core, as far as there are threads to have.
    pub(super) fn start() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // With one core there is nobody to look out for: the client could not run meanwhile.
        let busy = Arc::new(AtomicBool::new(cores == 1));
        let lanes = (0..cores.min(MOST)).map_while(|_| Lane::start(busy.clone())).collect();
        Self { lanes, next: AtomicUsize::new(0) }
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
    fn start(busy: Arc<AtomicBool>) -> Option<Self> {
        let (work, mut queue) = mpsc::unbounded_channel::<Work>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let serve = move || {
            let accept = async {
                while let Some(make) = queue.recv().await {
                    tokio::spawn(make());
                }
            };
            runtime.block_on(async {
                tokio::select! {
                    () = accept => {}
                    () = look_out(&busy) => {}
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
    use super::*;

    #[tokio::test]
    async fn a_thread_looks_out_after_an_answer_and_not_for_long() {
        let busy = AtomicBool::new(false);
        let mut looking = std::pin::pin!(look_out(&busy));
        assert!(futures::poll!(&mut looking).is_pending());
        assert!(!busy.load(Ordering::Relaxed), "nothing was answered yet");
        // A busy machine may let the moment pass before this thread has its turn.
        for _ in 0..1000 {
            answered();
            assert!(futures::poll!(&mut looking).is_pending());
            if busy.load(Ordering::Relaxed) {
                break;
            }
        }
        assert!(busy.load(Ordering::Relaxed));
        std::thread::sleep(LOOKOUT);
        assert!(futures::poll!(&mut looking).is_pending());
        assert!(!busy.load(Ordering::Relaxed), "it is quiet");
    }

    #[tokio::test]
    async fn a_thread_rests_while_another_looks_out() {
        let busy = AtomicBool::new(true);
        let mut resting = std::pin::pin!(look_out(&busy));
        // It begins anew with every answer.
        for _ in 0..2 {
            answered();
            assert!(futures::poll!(&mut resting).is_pending());
            assert!(ANSWERED.get().is_none());
        }
    }

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
