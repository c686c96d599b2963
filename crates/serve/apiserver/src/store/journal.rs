//! All files of a store: a manifest, a snapshot, and the write-ahead log that follows it.
//!
//! A checkpoint begins a new generation: a snapshot of the state and an empty log, which take effect when the
//! manifest names them. A log whose append or sync failed is never written to again: its durable part is
//! kept, and a new file continues after it.

use std::io;
use std::sync::Arc;

use super::files::Files;
use super::format::{Block, HEADER, Kind, StoreId};
use super::manifest::{self, LogFile, Manifest, ReplaceError};
use super::wal::{self, Log};
use super::{Item, State, StoreError, legacy, snapshot};

/// Sizes in bytes; tests use small ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// A log smaller than this is not compacted.
    pub(super) compact_at: u64,
    /// How far a log is zeroed ahead of its writes.
    pub(super) preallocate: u64,
    /// Free space that a store needs to resume: more than one object takes, so that it does not fail again at
    /// once.
    pub(super) reserve: u64,
    /// Size from which on a block is written; larger blocks only add latency.
    pub(super) block: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { compact_at: 32 << 20, preallocate: 4 << 20, reserve: 2 << 20, block: 8 << 20 }
    }
}

/// A failed file operation.
#[derive(Debug)]
pub(super) struct FileError {
    pub(super) what: &'static str,
    pub(super) path: String,
    pub(super) source: io::Error,
}

impl From<FileError> for StoreError {
    fn from(FileError { what, path, source }: FileError) -> Self {
        Self::Io { what, path, source }
    }
}

/// Why a checkpoint failed.
#[derive(Debug)]
pub(super) enum CheckpointError {
    /// The log is unchanged and stays open.
    LogUnchanged(FileError),
    /// The manifest may or may not have been replaced. The log is closed until [`Journal::resume`] or another
    /// checkpoint.
    LogClosed(FileError),
}

#[derive(Debug)]
pub(super) struct Journal {
    files: Arc<dyn Files>,
    manifest: Manifest,
    /// `None` after a failure.
    log: Option<Log>,
    /// Bytes in the closed logs of this generation.
    closed: u64,
    next_generation: u64,
    next_segment: u64,
    /// Files to remove once the next manifest is durable; the manifest on disk may still name them.
    stale: Vec<String>,
    sizes: Sizes,
}

fn corrupt(files: &dyn Files, name: &str) -> impl FnOnce(String) -> StoreError + use<> {
    let path = files.path(name).display().to_string();
    move |detail| StoreError::Corrupt { path, detail }
}

fn file_error(
    files: &dyn Files,
    what: &'static str,
    name: &str,
) -> impl FnOnce(io::Error) -> FileError + use<> {
    let path = files.path(name).display().to_string();
    move |source| FileError { what, path, source }
}

fn read_named(files: &dyn Files, name: &str) -> Result<Vec<u8>, StoreError> {
    files.read(name).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => StoreError::Missing { path: files.path(name).display().to_string() },
        _ => file_error(files, "read", name)(source).into(),
    })
}

impl Journal {
    /// Reads the files into `state` and opens the log for writing. Creates the store if there is none.
    pub(super) fn open(files: Arc<dyn Files>, state: &mut State, sizes: Sizes) -> Result<Self, StoreError> {
        let names = files.list().map_err(file_error(&*files, "list", ""))?;
        let mut journal = if names.iter().any(|name| name == manifest::NAME) {
            Self::open_existing(files, state, sizes)?
        } else {
            refuse_without_manifest(&*files, &names)?;
            Self::create(files, &names, state, sizes)?
        };
        // Files that the manifest does not name are removed only after everything it names was read.
        let named = journal.manifest.names();
        journal.stale =
            names.into_iter().filter(|name| is_store_file(name) && !named.contains(name)).collect();
        journal.remove_stale();
        Ok(journal)
    }

    fn open_existing(files: Arc<dyn Files>, state: &mut State, sizes: Sizes) -> Result<Self, StoreError> {
        let bytes = read_named(&*files, manifest::NAME)?;
        let manifest = Manifest::decode(&bytes).map_err(corrupt(&*files, manifest::NAME))?;
        state.revision = state.revision.max(manifest.revision);
        if manifest.snapshot {
            let name = manifest.snapshot_name();
            let bytes = read_named(&*files, &name)?;
            let all = snapshot::read(&bytes, &manifest.header(Kind::Snapshot, 0));
            state.load(all.map_err(corrupt(&*files, &name))?, manifest.revision);
        }
        let (mut open, mut closed, mut last) = (None, 0, 0);
        for (i, log) in manifest.logs.iter().enumerate() {
            let name = manifest.log_name(log.segment);
            if log.end.is_none() != (i + 1 == manifest.logs.len()) {
                let what = "the last log is the one that is open".to_owned();
                return Err(corrupt(&*files, manifest::NAME)(what));
            }
            let bytes = read_named(&*files, &name)?;
            let contents = wal::read(&bytes, &manifest.header(Kind::Log, log.segment), log.end)
                .map_err(corrupt(&*files, &name))?;
            for write in &contents.writes {
                if write.revision <= last {
                    let what = format!("it is damaged: revision {} follows {last}", write.revision);
                    return Err(corrupt(&*files, &name)(what));
                }
                last = write.revision;
                if write.revision > manifest.revision {
                    state.apply(write);
                }
            }
            closed += log.end.unwrap_or(0);
            open = log.end.is_none().then_some((name, bytes, contents));
        }
        let Some((name, bytes, contents)) = open else {
            return Err(corrupt(&*files, manifest::NAME)("it names no log".to_owned()));
        };
        // The names may come from a process that ended before it synced the directory.
        files.sync_dir().map_err(file_error(&*files, "sync", ""))?;
        let log = Log::open(&*files, &name, &bytes, &contents, sizes.preallocate)
            .map_err(file_error(&*files, "write to", &name))?;
        let next_segment = manifest.logs.iter().map(|log| log.segment + 1).max().unwrap_or(0);
        let next_generation = manifest.generation + 1;
        let (log, stale) = (Some(log), Vec::new());
        Ok(Self { files, manifest, log, closed, next_generation, next_segment, stale, sizes })
    }

    /// Creates the first generation: empty, or the state read from files of an older format.
    fn create(
        files: Arc<dyn Files>,
        names: &[String],
        state: &mut State,
        sizes: Sizes,
    ) -> Result<Self, StoreError> {
        let old = legacy::load(&*files, names, state)?;
        let manifest = Manifest {
            store: StoreId(rand::random()),
            generation: 0,
            revision: state.revision,
            snapshot: false,
            logs: Vec::new(),
        };
        let (log, stale) = (None, Vec::new());
        let mut journal =
            Self { files, manifest, log, closed: 0, next_generation: 1, next_segment: 0, stale, sizes };
        let all = old.then(|| state.all_objects());
        journal.begin_generation(state.revision, all.as_deref()).map_err(|e| match e {
            CheckpointError::LogUnchanged(file_error) | CheckpointError::LogClosed(file_error) => file_error,
        })?;
        Ok(journal)
    }

    fn file_error(&self, what: &'static str, name: &str) -> impl FnOnce(io::Error) -> FileError + use<> {
        file_error(&*self.files, what, name)
    }

    /// Bytes of log since the snapshot.
    pub(super) fn log_bytes(&self) -> u64 {
        self.closed + self.log.as_ref().map_or(0, Log::len)
    }

    pub(super) fn sizes(&self) -> Sizes {
        self.sizes
    }

    pub(super) fn is_synced(&self) -> bool {
        self.log.as_ref().is_none_or(Log::is_synced)
    }

    /// Appends a block, and syncs it if asked to. After an error the log is closed.
    pub(super) fn append(&mut self, block: &mut Block, sync: bool) -> Result<(), FileError> {
        self.with_log("append to", |log| {
            log.append(block)?;
            if sync { log.sync() } else { Ok(()) }
        })
    }

    pub(super) fn sync(&mut self) -> Result<(), FileError> {
        self.with_log("sync", Log::sync)
    }

    /// Runs `act` on the open log, and closes the log if that fails.
    fn with_log(
        &mut self,
        what: &'static str,
        act: impl FnOnce(&mut Log) -> io::Result<()>,
    ) -> Result<(), FileError> {
        let segment = self.manifest.logs.last().map_or(0, |log| log.segment);
        let name = self.manifest.log_name(segment);
        let done = match self.log.as_mut() {
            Some(log) => act(log),
            None => Err(io::Error::other("the log is closed after a failure")),
        };
        done.map_err(|error| {
            self.close_log();
            self.file_error(what, &name)(error)
        })
    }

    /// Closes the log at its durable end. The manifest records this when it is replaced next.
    fn close_log(&mut self) {
        let Some(log) = self.log.take() else { return };
        let Some(file) = self.manifest.logs.last_mut() else { return };
        if log.durable() > HEADER as u64 {
            file.end = Some(log.durable());
            self.closed += log.durable();
        } else {
            let segment = file.segment;
            let name = self.manifest.log_name(segment);
            self.manifest.logs.pop();
            self.stale.push(name);
        }
    }

    /// Continues in a new file after a failure. Durable writes are not repeated.
    pub(super) fn resume(&mut self) -> Result<(), FileError> {
        self.close_log();
        let mut next = self.manifest.clone();
        let segment = self.next_segment;
        self.next_segment += 1;
        next.logs.push(LogFile { segment, end: None });
        let name = next.log_name(segment);
        let log = self.create_log(&next, segment).map_err(|error| {
            self.discard(&name);
            self.file_error("create", &name)(error)
        })?;
        match next.replace(&*self.files) {
            Ok(()) => self.take_effect(next, log),
            Err(ReplaceError::Unchanged(error)) => {
                self.discard(&name);
                return Err(self.file_error("write", manifest::TEMPORARY)(error));
            }
            Err(ReplaceError::Unknown(error)) => {
                self.stale.push(name);
                return Err(self.file_error("replace", manifest::NAME)(error));
            }
        }
        Ok(())
    }

    /// Begins a new generation with the state as of `revision`.
    pub(super) fn checkpoint(
        &mut self,
        revision: u64,
        all: &[(Arc<str>, Item)],
    ) -> Result<(), CheckpointError> {
        self.begin_generation(revision, Some(all))
    }

    fn begin_generation(
        &mut self,
        revision: u64,
        all: Option<&[(Arc<str>, Item)]>,
    ) -> Result<(), CheckpointError> {
        let generation = self.next_generation;
        self.next_generation += 1;
        let logs = vec![LogFile { segment: 0, end: None }];
        let snapshot = all.is_some();
        let next = Manifest { store: self.manifest.store, generation, revision, snapshot, logs };
        let name = next.snapshot_name();
        let written = match all {
            Some(all) => snapshot::write(&*self.files, &name, &next.header(Kind::Snapshot, 0), all),
            None => Ok(()),
        };
        let log = written.and_then(|()| self.create_log(&next, 0)).map_err(|error| {
            next.names().iter().for_each(|name| self.discard(name));
            CheckpointError::LogUnchanged(self.file_error("write", &name)(error))
        })?;
        match next.replace(&*self.files) {
            Ok(()) => {}
            Err(ReplaceError::Unchanged(error)) => {
                next.names().iter().for_each(|name| self.discard(name));
                return Err(CheckpointError::LogUnchanged(self.file_error("write", manifest::TEMPORARY)(
                    error,
                )));
            }
            Err(ReplaceError::Unknown(error)) => {
                self.stale.extend(next.names());
                self.close_log();
                return Err(CheckpointError::LogClosed(self.file_error("replace", manifest::NAME)(error)));
            }
        }
        self.stale.extend(self.manifest.names());
        (self.closed, self.next_segment) = (0, 1);
        self.take_effect(next, log);
        Ok(())
    }

    fn create_log(&self, next: &Manifest, segment: u64) -> io::Result<Log> {
        let Sizes { preallocate, reserve, .. } = self.sizes;
        let (name, header) = (next.log_name(segment), next.header(Kind::Log, segment));
        let log = Log::create(&*self.files, &name, &header, preallocate, reserve)?;
        self.files.sync_dir()?;
        Ok(log)
    }

    fn take_effect(&mut self, manifest: Manifest, log: Log) {
        self.manifest = manifest;
        self.log = Some(log);
        self.remove_stale();
    }

    /// Removes a file that no manifest names. A failed removal is repeated later.
    fn discard(&mut self, name: &str) {
        match self.files.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => self.stale.push(name.to_owned()),
            _ => {}
        }
    }

    /// Removes stale files. Those that cannot be removed now are removed with the next checkpoint or the next
    /// start.
    fn remove_stale(&mut self) {
        let named = self.manifest.names();
        for name in std::mem::take(&mut self.stale) {
            // A name can be in use again if its file could not be removed before.
            if !named.contains(&name) {
                self.discard(&name);
            }
        }
    }
}

fn is_store_file(name: &str) -> bool {
    name == manifest::TEMPORARY || name.starts_with("snapshot") || name.starts_with("wal-")
}

/// Fails if files of a store exist but its manifest is missing. Files of an older format, and those of a
/// store that was just being created, hold no writes and are allowed.
fn refuse_without_manifest(files: &dyn Files, names: &[String]) -> Result<(), StoreError> {
    let old = names.iter().any(|name| legacy::is_log(name));
    for name in names.iter().filter(|name| !legacy::is_legacy(name)) {
        let orphan = if name.starts_with("wal-") {
            read_named(files, name)?.iter().skip(HEADER).any(|&byte| byte != 0)
        } else {
            name.starts_with("snapshot-") && !old
        };
        if orphan {
            return Err(StoreError::Missing { path: files.path(manifest::NAME).display().to_string() });
        }
    }
    Ok(())
}
