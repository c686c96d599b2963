//! Errors of the store.

use std::sync::Arc;

use super::failure::Failure;

/// Why the store could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error("the object changed since it was read")]
    Conflict,
    /// The write was rejected because an earlier one failed.
    #[error("the store takes no writes: {0}")]
    Unavailable(Arc<Failure>),
    /// The write was attempted. It is not visible, but may be found after a restart that comes before the
    /// store has recovered.
    #[error("it is unknown whether the write is stored: {0}")]
    Failed(Arc<Failure>),
    #[error("the store is closed")]
    Closed,
    #[error("{path} is in use by another process")]
    InUse { path: String },
    /// The object is larger than [`MAX_OBJECT`](super::MAX_OBJECT).
    #[error("etcdserver: request is too large")]
    TooLarge,
    #[error("revision {wanted} is no longer kept, the oldest is {oldest}")]
    Compacted { wanted: u64, oldest: u64 },
    #[error("revision {wanted} is in the future, the newest is {newest}")]
    Future { wanted: u64, newest: u64 },
    #[error("cannot {what} {path}")]
    Io {
        what: &'static str,
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "{path} cannot be read as a part of the store: {detail}; nothing was changed: restore the directory from a backup, or \
         remove it to begin with an empty store"
    )]
    Corrupt { path: String, detail: String },
    #[error(
        "{path} is missing, which is a part of the store; nothing was changed: restore the directory from a backup, or remove it \
         to begin with an empty store"
    )]
    Missing { path: String },
}
