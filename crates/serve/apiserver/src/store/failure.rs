//! Failure of a store that rejects writes.

use std::fmt;
use std::io::ErrorKind;

use super::journal::FileError;

/// A failed append or sync. The store resumes by itself once it can write again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    what: &'static str,
    path: String,
    cause: String,
    advice: &'static str,
}

impl Failure {
    pub(super) fn new(file_error: &FileError) -> Self {
        let advice = match file_error.source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free space on its file system",
            ErrorKind::ReadOnlyFilesystem => "mount its file system for writing",
            ErrorKind::PermissionDenied => "let the server write there",
            _ => "check the disk and the log of the kernel",
        };
        let (what, path) = (file_error.what, file_error.path.clone());
        Self { what, path, cause: file_error.source.to_string(), advice }
    }

    /// The cause without the path, for clients that may only read the server's health.
    #[must_use]
    pub fn brief(&self) -> String {
        format!("cannot {} the write-ahead log: {}", self.what, self.cause)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, path, cause, advice } = self;
        write!(f, "cannot {what} {path}: {cause}; {advice}: writing resumes by itself when that is possible")
    }
}
