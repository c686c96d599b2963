//! The thread that writes to the disk.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::failure::Failure;
use super::format::Block;
use super::journal::{CheckpointError, FileError, Journal};
use super::{Shared, StoreError, Sync, Write};

/// How long writes of `--sync relaxed` are collected: waking this thread for each of them would cost more
/// than the write.
const BATCH_DELAY: Duration = Duration::from_millis(5);
/// Sync interval of `--sync relaxed`, where no request waits for the sync.
const RELAXED_SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Backoff between attempts to resume after a failure.
const RESUME_BACKOFF: Backoff = Backoff { first: Duration::from_millis(100), max: Duration::from_secs(2) };
/// Backoff between failed checkpoints; meanwhile the log only grows.
const CHECKPOINT_BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(300) };

#[derive(Debug, Clone, Copy)]
struct Backoff {
    first: Duration,
    max: Duration,
}

/// The next attempt of a failed operation.
#[derive(Debug, Clone, Copy)]
struct Retry {
    at: Instant,
    delay: Duration,
}

impl Backoff {
    fn next(self, before: Option<Retry>, now: Instant) -> Retry {
        let delay = before.map_or(self.first, |retry| (retry.delay * 2).min(self.max));
        Retry { at: now + delay, delay }
    }
}

pub(super) type WriteResult = Result<(), Arc<Failure>>;

#[derive(Debug)]
pub(super) enum Job {
    Write(Write, Option<oneshot::Sender<WriteResult>>),
    /// Acknowledged when everything queued before is durable.
    Barrier(oneshot::Sender<WriteResult>),
    End,
}

/// The sending half and the thread. Dropping it writes what is queued and ends the thread.
#[derive(Debug)]
pub(super) struct Queue {
    jobs: mpsc::Sender<Job>,
    thread: Option<JoinHandle<()>>,
}

impl Queue {
    pub(super) fn send(&self, write: Write) -> oneshot::Receiver<WriteResult> {
        let (ack, done) = oneshot::channel();
        // A closed queue drops the sender, and the receiver sees that.
        let _ = self.jobs.send(Job::Write(write, Some(ack)));
        done
    }

    pub(super) fn send_without_ack(&self, write: Write) {
        let _ = self.jobs.send(Job::Write(write, None));
    }

    pub(super) fn barrier(&self) -> oneshot::Receiver<WriteResult> {
        let (ack, done) = oneshot::channel();
        let _ = self.jobs.send(Job::Barrier(ack));
        done
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let _ = self.jobs.send(Job::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the writer thread.
#[derive(Debug)]
pub(super) struct Writer {
    journal: Journal,
    shared: Arc<Shared>,
    sync: Sync,
    queue: mpsc::Receiver<Job>,
    writes: Vec<Write>,
    acks: Vec<oneshot::Sender<WriteResult>>,
    block: Block,
    /// The store failed; the next attempt to resume.
    resume: Option<Retry>,
    /// The last checkpoint failed; the next attempt.
    checkpoint: Option<Retry>,
    synced: Instant,
    /// The queue was empty after the last run.
    drained: bool,
    ended: bool,
}

impl Writer {
    pub(super) fn new(journal: Journal, shared: Arc<Shared>, sync: Sync, now: Instant) -> (Self, Queue) {
        let (jobs, queue) = mpsc::channel();
        let writer = Self {
            journal,
            shared,
            sync,
            queue,
            writes: Vec::new(),
            acks: Vec::new(),
            block: Block::default(),
            resume: None,
            checkpoint: None,
            synced: now,
            drained: true,
            ended: false,
        };
        (writer, Queue { jobs, thread: None })
    }

    pub(super) fn start(self, mut queue: Queue) -> Result<Queue, StoreError> {
        let thread = std::thread::Builder::new().name("store-writer".into());
        let thread = thread.spawn(move || self.run()).map_err(|source| StoreError::Io {
            what: "start the writer of",
            path: "the store".to_owned(),
            source,
        })?;
        queue.thread = Some(thread);
        Ok(queue)
    }

    fn run(mut self) {
        while !self.ended {
            let job = match self.idle_timeout(Instant::now()) {
                None => self.queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(pause) => self.queue.recv_timeout(pause),
            };
            let job = match job {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if self.sync == Sync::Relaxed && job.is_some() && self.drained {
                std::thread::sleep(BATCH_DELAY);
            }
            self.run_once(job, Instant::now());
        }
    }

    /// How long to wait for the queue; `None` if only a queued job needs work.
    fn idle_timeout(&self, now: Instant) -> Option<Duration> {
        let at = match &self.resume {
            Some(retry) => retry.at,
            None if self.journal.is_synced() => return None,
            None => self.synced + RELAXED_SYNC_INTERVAL,
        };
        Some(at.saturating_duration_since(now))
    }

    /// Writes what is queued, then resumes, syncs or makes a checkpoint if that is due.
    pub(super) fn run_once(&mut self, first: Option<Job>, now: Instant) {
        self.collect_batch(first);
        if self.resume.is_some() {
            self.acknowledge(Err(self.failure()));
        } else if !self.acks.is_empty() || !self.writes.is_empty() {
            self.append(now);
        }
        if self.resume.is_some_and(|retry| now >= retry.at || self.ended) {
            self.try_to_resume(now);
        }
        if self.resume.is_none()
            && !self.journal.is_synced()
            && (self.ended || now >= self.synced + RELAXED_SYNC_INTERVAL)
        {
            match self.journal.sync() {
                Ok(()) => self.synced = now,
                Err(file_error) => self.fail(&file_error, now),
            }
        }
        if self.resume.is_none() && self.is_checkpoint_due(now) {
            self.try_checkpoint(now);
        }
    }

    fn collect_batch(&mut self, first: Option<Job>) {
        let mut next = first.or_else(|| self.queue.try_recv().ok());
        while let Some(job) = next {
            match job {
                Job::End => {
                    self.ended = true;
                    return;
                }
                Job::Barrier(ack) => self.acks.push(ack),
                Job::Write(write, ack) => {
                    self.block.push(&write);
                    self.writes.push(write);
                    self.acks.extend(ack);
                }
            }
            if self.block.len() >= self.journal.sizes().block {
                self.drained = false;
                return;
            }
            next = self.queue.try_recv().ok();
        }
        self.drained = true;
    }

    #[cfg(test)]
    pub(super) fn is_drained(&self) -> bool {
        self.drained
    }

    #[cfg(test)]
    pub(super) fn log_bytes(&self) -> u64 {
        self.journal.log_bytes()
    }

    /// Whether everything is durable.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.drained && self.journal.is_synced()
    }

    fn append(&mut self, now: Instant) {
        let always = self.sync == Sync::Always;
        let appended = match self.block.is_empty() {
            true => Ok(()),
            false => self.journal.append(&mut self.block, always),
        };
        match appended {
            Ok(()) => {
                if always {
                    self.shared.publish(&self.writes);
                }
                self.acknowledge(Ok(()));
            }
            Err(file_error) => self.fail(&file_error, now),
        }
    }

    fn acknowledge(&mut self, done: WriteResult) {
        for ack in self.acks.drain(..) {
            let _ = ack.send(done.clone());
        }
        self.shared.cache.evict();
        self.writes.clear();
        self.block.clear();
    }

    fn failure(&self) -> Arc<Failure> {
        let closed = || FileError {
            what: "write to",
            path: "the store".into(),
            source: std::io::Error::other("closed"),
        };
        self.shared.failure().unwrap_or_else(|| Arc::new(Failure::new(&closed())))
    }

    /// Rejects further writes and those already queued: they may build on the failed ones.
    fn fail(&mut self, file_error: &FileError, now: Instant) {
        let failure = Arc::new(Failure::new(file_error));
        self.shared.fail(failure.clone());
        self.resume = Some(RESUME_BACKOFF.next(None, now));
        loop {
            self.acknowledge(Err(failure.clone()));
            self.collect_batch(None);
            if self.acks.is_empty() && self.writes.is_empty() {
                break;
            }
        }
    }

    fn try_to_resume(&mut self, now: Instant) {
        let resumed = match self.sync {
            Sync::Always => self.journal.resume(),
            // Readers already see writes that the log lacks: save the whole state.
            Sync::Relaxed => {
                let (revision, all) = self.shared.all_objects();
                self.journal.checkpoint(revision, &all).map_err(|e| match e {
                    CheckpointError::LogUnchanged(file_error) | CheckpointError::LogClosed(file_error) => {
                        file_error
                    }
                })
            }
        };
        match resumed {
            Ok(()) => {
                self.resume = None;
                self.shared.resume();
            }
            Err(file_error) => {
                self.resume = Some(RESUME_BACKOFF.next(self.resume, now));
                self.shared.fail_again(Arc::new(Failure::new(&file_error)));
            }
        }
    }

    /// The cost of a checkpoint grows with the state. It is due when the log has grown by twice the state
    /// since the last one, so that the cost per written byte does not depend on the size of the state.
    fn is_checkpoint_due(&self, now: Instant) -> bool {
        let log = self.journal.log_bytes();
        log > self.journal.sizes().compact_at
            && log > 2 * self.shared.live_bytes()
            && self.checkpoint.is_none_or(|retry| now >= retry.at)
    }

    fn try_checkpoint(&mut self, now: Instant) {
        let (revision, all) = self.shared.all_objects();
        match self.journal.checkpoint(revision, &all) {
            Ok(()) => self.checkpoint = None,
            Err(CheckpointError::LogUnchanged(_)) => {
                self.checkpoint = Some(CHECKPOINT_BACKOFF.next(self.checkpoint, now));
            }
            Err(CheckpointError::LogClosed(file_error)) => {
                self.checkpoint = Some(CHECKPOINT_BACKOFF.next(self.checkpoint, now));
                // Writes continue without an error if a new log can be started at once.
                if self.sync == Sync::Relaxed || self.journal.resume().is_err() {
                    self.fail(&file_error, now);
                }
            }
        }
    }
}
