//! The store: every object as JSON bytes under `table` (group/plural) and `key` (namespace/name), one
//! revision counter, and a bounded history per table for watches.
//!
//! Readers see durable writes. A write is checked against the newest state (durable or not), gets its
//! revision, and goes to one writer thread. Writes that arrive together share one synced append to the
//! write-ahead log (`wal`); only then do they become visible and are acknowledged. A log instead of a B-tree
//! file: one `fdatasync` of one sequential write per batch is the lowest cost of a durable commit, and the
//! whole state is in memory anyway, as bytes.
//!
//! At the first append or sync that fails the store rejects further writes, reports the reason
//! ([`Store::failure`]), and begins a new log file when it can: the contents of a file after a failed sync
//! are unknown. All file access goes through `files`, beneath which tests inject faults.

mod commit;
mod durability;
mod encoding;
mod error;
mod failure;
mod files;
mod format;
mod journal;
mod legacy;
mod manifest;
mod object_cache;
mod read;
mod shared;
mod snapshot;
mod state;
mod wal;
mod watch_cache;
mod writer;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;

pub use error::StoreError;
pub use failure::Failure;
use shared::Shared;
use state::{State, Write};
pub use watch_cache::{Event, EventKind};

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// When it is on the disk: it survives a crash of the process or the machine.
    #[default]
    Always,
    /// When it is in memory, before it reaches the disk: for throw-away servers.
    Relaxed,
}

/// One stored object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub revision: u64,
    /// JSON of the object in its storage version, `metadata.resourceVersion` included.
    pub bytes: Bytes,
}

impl Entry {
    /// Decodes the object. Stored bytes were written by this server, so they parse.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }
}

/// Condition of a write on the current state of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    Absent,
    Revision(u64),
}

/// A write.
#[derive(Debug)]
pub enum Change {
    Put(Value),
    /// The last state of the object, for the `DELETED` event.
    Delete(Value),
}

/// Maximum bytes of one object: etcd's limit, which clients know.
pub const MAX_OBJECT: usize = 3 << 19;

/// One listed object.
pub type Item = (Arc<str>, Arc<Entry>);

/// A handle to the store; clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    shared: Arc<Shared>,
    writer: Option<Arc<writer::Queue>>,
    sync: Sync,
}

impl Store {
    /// A store without files.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::with(State::new(), Sync::Relaxed)
    }

    /// Opens or creates the store in a directory.
    pub fn open(dir: &Path, sync: Sync) -> Result<Self, StoreError> {
        let files = Arc::new(files::Directory::open(dir)?);
        let (mut store, writer, queue) =
            Self::prepare(files, sync, journal::Sizes::default(), Instant::now())?;
        store.writer = Some(Arc::new(writer.start(queue)?));
        Ok(store)
    }

    /// A store on `files`, and its writer before the thread is started.
    fn prepare(
        files: Arc<dyn files::Files>,
        sync: Sync,
        sizes: journal::Sizes,
        now: Instant,
    ) -> Result<(Self, writer::Writer, writer::Queue), StoreError> {
        let mut state = State::new();
        let journal = journal::Journal::open(files, &mut state, sizes)?;
        let store = Self::with(state, sync);
        let (writer, queue) = writer::Writer::new(journal, store.shared.clone(), sync, now);
        Ok((store, writer, queue))
    }

    fn with(state: State, sync: Sync) -> Self {
        Self { shared: Arc::new(Shared::new(state)), writer: None, sync }
    }

    /// Why the store rejects writes at present.
    #[must_use]
    pub fn failure(&self) -> Option<Arc<Failure>> {
        self.shared.failure()
    }
}
