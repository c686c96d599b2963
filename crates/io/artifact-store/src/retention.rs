//! How long earlier artifacts stay.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::{Error, Location, Store};

/// Earlier artifacts are kept for a while, and only so many of them.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    pub ttl: Duration,
    pub records: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(60), records: 2 }
    }
}

/// A directory with more files than this is cleaned over several runs.
const LOOKED_AT: usize = 1000;

impl Store {
    /// Removes files of an object that are past their time, then the oldest beyond the number to keep.
    ///
    /// The current file is never removed, nor is a link. Answers what was removed.
    pub fn collect(&self, at: &Location, current: &str, now: SystemTime) -> Result<Vec<PathBuf>, Error> {
        let directory = self.root().join(at.directory());
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("list", &directory)(e)),
        };
        let mut old: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in entries.take(LOOKED_AT) {
            let entry = entry.map_err(Error::io("list", &directory))?;
            let meta = entry.metadata().map_err(Error::io("look at", &entry.path()))?;
            if meta.is_file() && entry.file_name().to_string_lossy() != current {
                let modified = meta.modified().map_err(Error::io("look at", &entry.path()))?;
                old.push((modified, entry.path()));
            }
        }
        // Newest first: the current file counts as one of those that stay.
        old.sort_by(|a, b| b.cmp(a));
        let Retention { ttl, records } = self.retention();
        let expired = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age > ttl);
        let mut removed = Vec::new();
        for (i, (modified, path)) in old.into_iter().enumerate() {
            if expired(modified) || i + 1 >= records {
                fs::remove_file(&path).map_err(Error::io("remove", &path))?;
                removed.push(path);
            }
        }
        Ok(removed)
    }
}
