//! What can go wrong in the store, always with the path.

use std::path::{Path, PathBuf};

/// Errors of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot {action} {path}")]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{part:?} cannot be a part of an artifact's path")]
    Path { part: String },
    #[error("cannot archive")]
    Archive(#[from] fl_archive::Error),
    #[error("digests with {0} cannot be computed; use sha256, sha384, sha512, sha1 or blake3")]
    Algorithm(String),
}

impl Error {
    /// For `map_err`: which step failed on which path.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    }
}
