//! The one thread that writes to the disk.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::{Shared, State, StoreError, Sync, Write, snapshot, wal::Wal};

/// A log this much longer than the state it describes is replaced by a snapshot.
const COMPACT_AT_LEAST: u64 = 32 << 20;
/// Bytes of one batch; larger ones only add latency.
const BATCH_BYTES: usize = 8 << 20;

/// How long writes that nobody waits for are gathered: waking this thread for each of them would cost more than they do.
const GATHER: std::time::Duration = std::time::Duration::from_millis(5);

type Ack = oneshot::Sender<Result<(), String>>;

#[derive(Debug)]
enum Job {
    Write(Write, Option<Ack>),
    End,
}

/// The directory and its open log.
#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    wal: Wal,
    old: Vec<PathBuf>,
    lock: std::fs::File,
}

fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.display().to_string();
    move |source| match source.kind() {
        std::io::ErrorKind::InvalidData => StoreError::Corrupt { path, detail: source.to_string() },
        _ => StoreError::Io { what, path, source },
    }
}

/// Reads snapshot and logs into `state`, and opens the newest log for writing.
pub(super) fn recover(dir: &Path, state: &mut State) -> Result<Files, StoreError> {
    let lock_path = dir.join("lock");
    let lock = std::fs::File::create(&lock_path).map_err(io("create", &lock_path))?;
    if lock.try_lock().is_err() {
        return Err(StoreError::Failed(format!("{} is in use by another process", dir.display())));
    }
    let mut base = 0;
    if let Some((revision, all)) = snapshot::load(dir).map_err(io("read", &dir.join("snapshot")))? {
        for write in all {
            state.table(&write.table).entries.insert(write.key.clone(), write.entry.clone());
        }
        state.revision = revision;
        base = revision;
        for table in state.tables.values_mut() {
            table.log.forget(revision);
        }
    }
    let mut logs: Vec<PathBuf> = std::fs::read_dir(dir)
        .map_err(io("read", dir))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|p| p.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with("wal-")))
        .collect();
    logs.sort();
    let newest = logs.pop();
    let mut read = |path: &Path| {
        Wal::open(path, |write| {
            if write.revision > base {
                state.apply(&write);
            }
        })
        .map_err(io("read", path))
    };
    for path in &logs {
        read(path)?;
    }
    let wal = match &newest {
        Some(path) => read(path)?,
        None => create_log(dir, state.revision)?,
    };
    Ok(Files { dir: dir.to_owned(), wal, old: logs, lock })
}

fn create_log(dir: &Path, revision: u64) -> Result<Wal, StoreError> {
    let path = dir.join(format!("wal-{revision:020}"));
    let wal = Wal::create(path.clone()).map_err(io("create", &path))?;
    std::fs::File::open(dir).and_then(|d| d.sync_all()).map_err(io("sync", dir))?;
    Ok(wal)
}

/// The running writer. Dropping it writes what is queued and ends the thread.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(files: Files, shared: Arc<Shared>, sync: Sync) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel();
        let dir = files.dir.clone();
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || run(files, &shared, sync, &queue))
            .map_err(io("start the writer of", &dir))?;
        Ok(Self { jobs, thread: Some(thread) })
    }

    pub(super) fn submit(&self, write: Write) -> oneshot::Receiver<Result<(), String>> {
        let (ack, done) = oneshot::channel();
        // A closed queue drops the sender, which the waiter sees.
        let _ = self.jobs.send(Job::Write(write, Some(ack)));
        done
    }

    pub(super) fn submit_unwaited(&self, write: Write) {
        let _ = self.jobs.send(Job::Write(write, None));
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.jobs.send(Job::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(mut files: Files, shared: &Shared, sync: Sync, queue: &mpsc::Receiver<Job>) {
    let _held_until_the_end = &files.lock.try_clone();
    let (mut writes, mut acks, mut frames) = (Vec::new(), Vec::new(), Vec::new());
    let mut ended = false;
    while !ended {
        let Ok(first) = queue.recv() else { break };
        if sync == Sync::Relaxed {
            std::thread::sleep(GATHER);
        }
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::End => {
                    ended = true;
                    break;
                }
                Job::Write(write, ack) => {
                    let begins_batch = sync == Sync::Always && frames.is_empty();
                    super::wal::encode(&write, begins_batch, &mut frames);
                    writes.push(write);
                    acks.extend(ack);
                }
            }
            next = if frames.len() < BATCH_BYTES { queue.try_recv().ok() } else { None };
        }
        if writes.is_empty() {
            continue;
        }
        let result = files.wal.append(&frames, sync == Sync::Always).map_err(|e| e.to_string());
        match &result {
            Ok(()) if sync == Sync::Always => shared.publish(&writes),
            Ok(()) => {}
            Err(reason) => shared.fail(reason),
        }
        for ack in acks.drain(..) {
            let _ = ack.send(result.clone());
        }
        shared.recent.let_go();
        writes.clear();
        frames.clear();
        frames.shrink_to(1 << 20);
        if files.wal.len() > COMPACT_AT_LEAST
            && let Err(error) = compact(&mut files, shared)
        {
            shared.fail(&error.to_string());
        }
    }
}

/// Replaces a long log by a snapshot and a new log, if the state is much smaller than the log.
fn compact(files: &mut Files, shared: &Shared) -> Result<(), StoreError> {
    let (revision, all) = shared.everything();
    let live: u64 = all.iter().map(|(_, (_, e))| e.bytes.len() as u64).sum();
    if files.wal.len() < 2 * live {
        return Ok(());
    }
    snapshot::save(&files.dir, revision, &all).map_err(io("write the snapshot in", &files.dir))?;
    let new = create_log(&files.dir, revision)?;
    let old = std::mem::replace(&mut files.wal, new);
    files.old.push(old.path.clone());
    for path in files.old.drain(..) {
        if path != files.wal.path {
            std::fs::remove_file(&path).map_err(io("remove", &path))?;
        }
    }
    Ok(())
}
