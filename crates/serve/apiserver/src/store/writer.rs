//! The one thread that writes to the disk.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::failure::Failure;
use super::format::Block;
use super::journal::{Journal, NoCheckpoint, Problem};
use super::{Shared, StoreError, Sync, Write};

/// How long writes that nobody waits for are gathered: waking this thread for each of them would cost more than they do.
const GATHER: Duration = Duration::from_millis(5);
/// Sync interval of `--sync relaxed`, where no request waits for the sync.
const RELAXED_SYNC: Duration = Duration::from_secs(1);
/// How soon, and how rarely at most, a failed store tries to write again.
const RESUME: Backoff = Backoff { first: Duration::from_millis(100), most: Duration::from_secs(2) };
/// The same for a checkpoint; the log grows meanwhile, and nothing else is wrong.
const CHECKPOINT: Backoff = Backoff { first: Duration::from_secs(1), most: Duration::from_secs(300) };

#[derive(Debug, Clone, Copy)]
struct Backoff {
    first: Duration,
    most: Duration,
}

/// When something that failed is tried again.
#[derive(Debug, Clone, Copy)]
struct Retry {
    at: Instant,
    delay: Duration,
}

impl Backoff {
    fn next(self, before: Option<Retry>, now: Instant) -> Retry {
        let delay = before.map_or(self.first, |retry| (retry.delay * 2).min(self.most));
        Retry { at: now + delay, delay }
    }
}

type Done = Result<(), Arc<Failure>>;

#[derive(Debug)]
pub(super) enum Job {
    Write(Write, Option<oneshot::Sender<Done>>),
    /// Answered when all that was queued before is durable.
    Barrier(oneshot::Sender<Done>),
    End,
}

/// The sending half, and the thread. Dropping it writes what is queued and ends the thread.
#[derive(Debug)]
pub(super) struct Queue {
    jobs: mpsc::Sender<Job>,
    thread: Option<JoinHandle<()>>,
}

impl Queue {
    pub(super) fn send(&self, write: Write) -> oneshot::Receiver<Done> {
        let (ack, done) = oneshot::channel();
        // A closed queue drops the sender, which the waiter sees.
        let _ = self.jobs.send(Job::Write(write, Some(ack)));
        done
    }

    pub(super) fn send_unwaited(&self, write: Write) {
        let _ = self.jobs.send(Job::Write(write, None));
    }

    pub(super) fn barrier(&self) -> oneshot::Receiver<Done> {
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

/// What the thread does, one turn at a time.
#[derive(Debug)]
pub(super) struct Writer {
    journal: Journal,
    shared: Arc<Shared>,
    sync: Sync,
    queue: mpsc::Receiver<Job>,
    writes: Vec<Write>,
    acks: Vec<oneshot::Sender<Done>>,
    block: Block,
    /// The store failed; when to try again.
    resume: Option<Retry>,
    /// The last checkpoint failed; when to try again.
    checkpoint: Option<Retry>,
    synced: Instant,
    /// The queue was empty after the last turn.
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
            let job = match self.wake_after(Instant::now()) {
                None => self.queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(pause) => self.queue.recv_timeout(pause),
            };
            let job = match job {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if self.sync == Sync::Relaxed && job.is_some() && self.drained {
                std::thread::sleep(GATHER);
            }
            self.turn(job, Instant::now());
        }
    }

    /// When there is something to do although nothing is queued.
    fn wake_after(&self, now: Instant) -> Option<Duration> {
        let at = match &self.resume {
            Some(retry) => retry.at,
            None if self.journal.is_synced() => return None,
            None => self.synced + RELAXED_SYNC,
        };
        Some(at.saturating_duration_since(now))
    }

    /// Writes what is queued, and does what is due.
    pub(super) fn turn(&mut self, first: Option<Job>, now: Instant) {
        self.gather(first);
        if self.resume.is_some() {
            self.answer(Err(self.reason()));
        } else if !self.acks.is_empty() || !self.writes.is_empty() {
            self.append(now);
        }
        if self.resume.is_some_and(|retry| now >= retry.at || self.ended) {
            self.try_to_resume(now);
        }
        if self.resume.is_none()
            && !self.journal.is_synced()
            && (self.ended || now >= self.synced + RELAXED_SYNC)
        {
            match self.journal.sync() {
                Ok(()) => self.synced = now,
                Err(problem) => self.fail(&problem, now),
            }
        }
        if self.resume.is_none() && self.is_checkpoint_due(now) {
            self.try_checkpoint(now);
        }
    }

    fn gather(&mut self, first: Option<Job>) {
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
                self.answer(Ok(()));
            }
            Err(problem) => self.fail(&problem, now),
        }
    }

    fn answer(&mut self, done: Done) {
        for ack in self.acks.drain(..) {
            let _ = ack.send(done.clone());
        }
        self.shared.recent.let_go();
        self.writes.clear();
        self.block.clear();
    }

    fn reason(&self) -> Arc<Failure> {
        let closed = || Problem {
            what: "write to",
            path: "the store".into(),
            source: std::io::Error::other("closed"),
        };
        self.shared.failure().unwrap_or_else(|| Arc::new(Failure::new(&closed())))
    }

    /// Takes no more writes, and refuses those that are queued: they may build on the ones that failed.
    fn fail(&mut self, problem: &Problem, now: Instant) {
        let failure = Arc::new(Failure::new(problem));
        self.shared.fail(failure.clone());
        self.resume = Some(RESUME.next(None, now));
        loop {
            self.answer(Err(failure.clone()));
            self.gather(None);
            if self.acks.is_empty() && self.writes.is_empty() {
                break;
            }
        }
    }

    fn try_to_resume(&mut self, now: Instant) {
        let resumed = match self.sync {
            Sync::Always => self.journal.resume(),
            // What readers see has gone ahead of the log: it is saved as a whole.
            Sync::Relaxed => {
                let (revision, all) = self.shared.everything();
                self.journal.checkpoint(revision, &all).map_err(|e| match e {
                    NoCheckpoint::Kept(problem) | NoCheckpoint::Closed(problem) => problem,
                })
            }
        };
        match resumed {
            Ok(()) => {
                self.resume = None;
                self.shared.resume();
            }
            Err(problem) => {
                self.resume = Some(RESUME.next(self.resume, now));
                self.shared.fail_again(Arc::new(Failure::new(&problem)));
            }
        }
    }

    /// A checkpoint costs as much as the state is large. It is due when the log has grown by twice that since the last one, so
    /// that each written byte pays for a part of it that does not grow with the state.
    fn is_checkpoint_due(&self, now: Instant) -> bool {
        let log = self.journal.log_bytes();
        log > self.journal.sizes().compact_at
            && log > 2 * self.shared.live_bytes()
            && self.checkpoint.is_none_or(|retry| now >= retry.at)
    }

    fn try_checkpoint(&mut self, now: Instant) {
        let (revision, all) = self.shared.everything();
        match self.journal.checkpoint(revision, &all) {
            Ok(()) => self.checkpoint = None,
            Err(NoCheckpoint::Kept(_)) => self.checkpoint = Some(CHECKPOINT.next(self.checkpoint, now)),
            Err(NoCheckpoint::Closed(problem)) => {
                self.checkpoint = Some(CHECKPOINT.next(self.checkpoint, now));
                // Nobody has to hear of it if a new log can be begun at once.
                if self.sync == Sync::Relaxed || self.journal.resume().is_err() {
                    self.fail(&problem, now);
                }
            }
        }
    }
}
