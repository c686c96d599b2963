//! Threads that serve connections, each with its own runtime.
//!
//! A connection stays on its thread. A work-stealing runtime wakes a second thread for every request on an
//! idle connection, which costs as much as a small write.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use tokio::sync::mpsc::{self, UnboundedSender};

/// Maximum number of threads; more would only compete with the controllers of the same process.
const MAX_THREADS: usize = 4;

/// Creates a future on the thread that runs it: a socket is registered with the runtime of that thread.
type Task = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// The threads. Dropping this ends them and the connections they serve.
#[derive(Debug)]
pub(super) struct ConnectionThreads {
    workers: Vec<Worker>,
    next: AtomicUsize,
}

#[derive(Debug)]
struct Worker {
    tasks: Option<UnboundedSender<Task>>,
    thread: Option<JoinHandle<()>>,
}

impl ConnectionThreads {
    /// Starts one thread per core, as many as the system allows.
    pub(super) fn start() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = (0..cores.min(MAX_THREADS)).map_while(|_| Worker::start()).collect();
        Self { workers, next: AtomicUsize::new(0) }
    }

    /// Runs the future that `make` returns on the next thread, or on the current runtime if there is none.
    pub(super) fn run<F>(&self, make: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let worker = self.workers.get(turn % self.workers.len().max(1));
        match worker.and_then(|worker| worker.tasks.as_ref()) {
            // A worker receives as long as this side of its channel exists.
            Some(queue) => drop(queue.send(Box::new(move || Box::pin(make())))),
            None => drop(tokio::spawn(make())),
        }
    }
}

impl Worker {
    fn start() -> Option<Self> {
        let (tasks, mut queue) = mpsc::unbounded_channel::<Task>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let serve = move || {
            runtime.block_on(async {
                while let Some(make) = queue.recv().await {
                    tokio::spawn(make());
                }
            });
        };
        let thread = std::thread::Builder::new().name("api-connections".into()).spawn(serve).ok()?;
        Some(Self { tasks: Some(tasks), thread: Some(thread) })
    }
}

impl Drop for ConnectionThreads {
    fn drop(&mut self) {
        // Close all channels before waiting for the first thread.
        self.workers.iter_mut().for_each(|worker| drop(worker.tasks.take()));
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
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
    async fn tasks_are_spread_over_threads_and_end_with_them() {
        let threads = ConnectionThreads::start();
        let (ran, mut seen) = mpsc::unbounded_channel();
        let held = Arc::new(());
        let count = threads.workers.len() * 2;
        for _ in 0..count {
            let (ran, held) = (ran.clone(), held.clone());
            threads.run(move || async move {
                ran.send(std::thread::current().id()).expect("the test listens");
                std::future::pending::<()>().await;
                drop(held);
            });
        }
        let mut ids = std::collections::HashSet::new();
        for _ in 0..count {
            ids.insert(seen.recv().await.expect("all run"));
        }
        assert_eq!(ids.len(), count / 2);
        assert_eq!(Arc::strong_count(&held), count + 1);
        drop(threads);
        assert_eq!(Arc::strong_count(&held), 1, "a task that never ends is dropped");
    }

    /// A thread without requests must not use the processor.
    #[cfg(target_os = "linux")]
    #[test]
    fn idle_threads_use_no_processor_time() {
        let switches = |id: &str| {
            let path = format!("/proc/self/task/{id}/schedstat");
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or_default()
        };
        let threads = ConnectionThreads::start();
        let (ran, seen) = std::sync::mpsc::channel();
        threads.run(move || async move {
            let id = std::fs::read_link("/proc/thread-self").unwrap_or_default();
            ran.send(id.file_name().map(|n| n.to_string_lossy().into_owned())).expect("the test listens");
        });
        let id = seen.recv().expect("ran").expect("a thread id");
        std::thread::sleep(std::time::Duration::from_millis(20));
        let before = switches(&id);
        std::thread::sleep(std::time::Duration::from_millis(200));
        let used = switches(&id).saturating_sub(before);
        assert!(used < 5_000_000, "{used} ns of 200 ms");
    }
}
