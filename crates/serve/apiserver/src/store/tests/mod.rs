//! Tests of the store on a disk with fault injection.

mod disk;
mod faults;
mod model;
mod server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::journal::Sizes;
use super::writer::Writer;
use super::{Change, Entry, Precondition, Store, StoreError, Sync};
use disk::Disk;

const TABLE: &str = "/configmaps";

/// Small enough that a few dozen writes go through several checkpoints.
const SMALL: Sizes = Sizes { compact_at: 12 << 10, preallocate: 4 << 10, reserve: 2 << 10, block: 4 << 10 };

/// A store whose writer runs step by step.
struct Stepped {
    store: Store,
    writer: Writer,
    now: Instant,
}

impl Stepped {
    fn open(disk: &Disk, sync: Sync, now: Instant) -> Result<Self, StoreError> {
        let (mut store, writer, queue) = Store::prepare(Arc::new(disk.clone()), sync, SMALL, now)?;
        store.writer = Some(Arc::new(queue));
        Ok(Self { store, writer, now })
    }

    fn run_once(&mut self, after: Duration) {
        self.now += after;
        self.writer.run_once(None, self.now);
    }

    /// Begins a write; it completes in a later [`Stepped::run_once`].
    fn begin(&self, key: &str, precondition: Precondition, change: Change) -> PendingWrite {
        let (store, key) = (self.store.clone(), key.to_owned());
        let mut answer: PendingWrite =
            Box::pin(async move { store.commit(TABLE, &key, precondition, change).await });
        assert!(poll(&mut answer).is_none_or(|done| done.is_err()), "no write is acknowledged before a turn");
        answer
    }

    /// Writes an object and waits for it.
    fn put(&mut self, key: &str, data: &str) -> Result<Arc<Entry>, StoreError> {
        let current = self.store.latest(TABLE, key);
        let precondition =
            current.map_or(Precondition::Absent, |entry| Precondition::Revision(entry.revision));
        let (store, object) = (self.store.clone(), object(key, data));
        let mut answer: PendingWrite = {
            let key = key.to_owned();
            Box::pin(async move { store.commit(TABLE, &key, precondition, Change::Put(object)).await })
        };
        if let Some(done) = poll(&mut answer) {
            return done;
        }
        self.run_once(Duration::ZERO);
        poll(&mut answer).expect("answered after a turn")
    }

    fn data(&self, key: &str) -> Option<String> {
        Some(self.store.get(TABLE, key)?.value()["data"].as_str()?.to_owned())
    }
}

type PendingWrite = std::pin::Pin<Box<dyn Future<Output = Result<Arc<Entry>, StoreError>> + Send>>;

fn poll<T>(future: &mut std::pin::Pin<Box<dyn Future<Output = T> + Send>>) -> Option<T> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(done) => Some(done),
        std::task::Poll::Pending => None,
    }
}

fn object(key: &str, data: &str) -> Value {
    json!({"kind": "ConfigMap", "metadata": {"name": key}, "data": data})
}
