//! Random runs against a model: writes, checkpoints, faults, crashes, flipped bits and missing files.
//!
//! After every step readers see all acknowledged writes and no others. After every crash the store holds all
//! acknowledged writes and a prefix of those that were in progress. Corruption is rejected when the store is
//! opened, or has no effect.
//!
//! `FLUORITE_STORE_SEEDS=0..10000 cargo test -p fl-apiserver --lib store::tests::model` runs the long form,
//! as `cargo xtask soak` does.

use std::collections::BTreeMap;
use std::pin::Pin;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::disk::Faults;
use super::*;
use crate::store::writer::Job;

const KEYS: u32 = 7;

/// Key and data of all objects.
type View = BTreeMap<String, String>;

/// A write that was not acknowledged.
#[derive(Debug, Clone)]
struct Attempt {
    revision: u64,
    key: String,
    data: Option<String>,
}

fn apply(view: &mut View, Attempt { key, data, .. }: &Attempt) {
    match data {
        Some(data) => view.insert(key.clone(), data.clone()),
        None => view.remove(key),
    };
}

/// The number that data begins with.
fn number(data: &str) -> &str {
    data.split('-').next().unwrap_or_default()
}

fn brief(view: &View) -> Vec<(&str, &str)> {
    view.iter().map(|(key, data)| (key.as_str(), number(data))).collect()
}

/// The response to a request.
type Response = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

struct Request {
    response: Response,
    /// The write of this request.
    writes: Option<Attempt>,
    /// The revision of a pending write that the request has read.
    saw: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    acknowledged: u64,
    refused: u64,
    failed: u64,
    resumed: u64,
    crashes: u64,
    kills: u64,
    closed: u64,
    corrupted: u64,
    reported: u64,
    responses_that_waited: u64,
    checkpoints: u64,
    lost_in_flight: u64,
}

struct Run<'a> {
    disk: Disk,
    random: StdRng,
    sync: Sync,
    open: Stepped,
    /// What readers see.
    visible: View,
    /// State that must survive a crash.
    durable: View,
    /// Writes after `durable`, in order.
    attempts: Vec<Attempt>,
    /// Revisions of acknowledged writes.
    acknowledged: std::collections::BTreeSet<u64>,
    under_way: Vec<Request>,
    counter: u64,
    tally: &'a mut Tally,
}

impl<'a> Run<'a> {
    fn new(seed: u64, tally: &'a mut Tally) -> Self {
        let disk = Disk::new(seed ^ 0x5eed);
        let mut random = StdRng::seed_from_u64(seed);
        let sync = if random.random_range(0..4) == 0 { Sync::Relaxed } else { Sync::Always };
        let open = Stepped::open(&disk, sync, Instant::now()).expect("a new store opens");
        Self {
            disk,
            random,
            sync,
            open,
            visible: View::new(),
            durable: View::new(),
            attempts: Vec::new(),
            acknowledged: std::collections::BTreeSet::new(),
            under_way: Vec::new(),
            counter: 0,
            tally,
        }
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.random.random_range(0..n) == 0
    }

    fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..60 => self.request(),
            60..89 => self.run_once(),
            89..93 => self.change_faults(),
            93..95 => self.change_room(),
            95..98 => self.crash(),
            98..99 => self.kill(),
            _ => self.close(),
        }
    }

    /// A client reads an object and creates, changes, deletes or keeps it.
    fn request(&mut self) {
        let key = format!("ns/k{}", self.random.random_range(0..KEYS));
        let id = (Arc::from(TABLE), Arc::from(key.as_str()));
        let (saw, before) = {
            let sequencer = self.open.store.shared.sequence();
            (sequencer.pending.get(&id).map(|write| write.revision), sequencer.last)
        };
        self.counter += 1;
        let size = if self.one_in(8) { 3000 } else { self.random.random_range(0..300) };
        let data = format!("{}-{}", self.counter, "x".repeat(size));
        let intent = self.random.random_range(0..10);
        let store = self.open.store.clone();
        let (task_key, task_data) = (key.clone(), data.clone());
        let work = async move {
            let (key, current) = (task_key.as_str(), store.latest(TABLE, &task_key));
            let (precondition, change) = match (&current, intent) {
                (Some(entry), 0..2) => {
                    (Precondition::Revision(entry.revision), Change::Delete(entry.value()))
                }
                // Unchanged, or nothing to delete.
                (_, 2..4) => return Ok(()),
                (Some(entry), _) => {
                    (Precondition::Revision(entry.revision), Change::Put(object(key, &task_data)))
                }
                (None, _) => (Precondition::Absent, Change::Put(object(key, &task_data))),
            };
            store.commit(TABLE, key, precondition, change).await.map(|_| ())
        };
        let store = self.open.store.clone();
        let mut response: Response =
            Box::pin(async move { store.respond_when_durable(work).await.and_then(|done| done) });
        let first = poll(&mut response);
        let last = self.open.store.shared.sequence().last;
        let deletes = intent < 2 && last > before && self.open.store.latest(TABLE, &key).is_none();
        let writes =
            (last > before).then(|| Attempt { revision: last, key, data: (!deletes).then_some(data) });
        if let Some(attempt) = &writes {
            self.attempts.push(attempt.clone());
            if self.sync == Sync::Relaxed {
                apply(&mut self.visible, attempt);
            }
        }
        let request = Request { response, writes, saw };
        match first {
            Some(done) => self.check_response(&request, done),
            None => self.under_way.push(request),
        }
    }

    fn check_response(&mut self, request: &Request, done: Result<(), StoreError>) {
        match (done, &request.writes) {
            (Ok(()), Some(attempt)) => {
                self.tally.acknowledged += 1;
                self.acknowledged.insert(attempt.revision);
                if self.sync == Sync::Always {
                    apply(&mut self.visible, attempt);
                    apply(&mut self.durable, attempt);
                    // Earlier writes that were not acknowledged have failed and are discarded.
                    self.attempts.retain(|other| other.revision > attempt.revision);
                }
            }
            (Ok(()), None) => {
                if let Some(revision) = request.saw {
                    self.tally.responses_that_waited += 1;
                    assert!(
                        self.acknowledged.contains(&revision),
                        "answered from {revision}, which is not durable"
                    );
                }
            }
            (Err(StoreError::Failed(_)), _) => self.tally.failed += 1,
            (Err(StoreError::Unavailable(_)), _) => self.tally.refused += 1,
            (Err(other), _) => panic!("{other}"),
        }
    }

    fn run_once(&mut self) {
        let after = match self.random.random_range(0..10) {
            0..5 => Duration::ZERO,
            5..8 => Duration::from_millis(200),
            _ => Duration::from_secs(3),
        };
        let failing = self.open.store.failure().is_some();
        let files = self.disk.names();
        self.open.run_once(after);
        self.tally.checkpoints +=
            u64::from(self.disk.names().iter().any(|n| n.starts_with("snapshot") && !files.contains(n)));
        self.collect();
        if failing && self.open.store.failure().is_none() {
            self.tally.resumed += 1;
            self.resumed();
        }
        if self.sync == Sync::Relaxed && self.open.store.failure().is_none() && self.open.writer.is_idle() {
            self.mark_all_durable();
        }
        self.check_readers();
    }

    /// The store has resumed without the failed writes.
    fn resumed(&mut self) {
        match self.sync {
            Sync::Always => {
                let kept = |attempt: &Attempt| {
                    self.under_way
                        .iter()
                        .any(|r| r.writes.as_ref().is_some_and(|w| w.revision == attempt.revision))
                };
                self.attempts = self.attempts.iter().filter(|attempt| kept(attempt)).cloned().collect();
            }
            Sync::Relaxed => self.mark_all_durable(),
        }
    }

    fn mark_all_durable(&mut self) {
        for attempt in std::mem::take(&mut self.attempts) {
            apply(&mut self.durable, &attempt);
        }
    }

    /// Takes the responses that are ready, in the order of the requests.
    fn collect(&mut self) {
        for mut request in std::mem::take(&mut self.under_way) {
            match poll(&mut request.response) {
                Some(done) => self.check_response(&request, done),
                None => self.under_way.push(request),
            }
        }
    }

    fn view(&self) -> View {
        let (_, items, _) = self.open.store.list(TABLE, "", None, 0);
        let data = |entry: &Entry| entry.value()["data"].as_str().expect("data").to_owned();
        items.iter().map(|(key, entry)| (key.to_string(), data(entry))).collect()
    }

    fn check_readers(&self) {
        let found = self.view();
        assert!(
            found == self.visible,
            "readers see {:?} instead of {:?}, which was acknowledged",
            brief(&found),
            brief(&self.visible)
        );
    }

    fn change_faults(&mut self) {
        let mut part =
            |max| if self.random.random_range(0..2) == 0 { 0 } else { self.random.random_range(0..max) };
        let faults = Faults { short: part(500), write: part(150), sync: part(300), names: part(200) };
        let none = self.one_in(2);
        self.disk.set_faults(if none { Faults::default() } else { faults });
    }

    fn change_room(&mut self) {
        if self.one_in(2) {
            self.disk.free();
        } else {
            let room = self.random.random_range(0..6000);
            self.disk.leave_room(room);
        }
    }

    fn crash(&mut self) {
        self.tally.crashes += 1;
        self.disk.crash();
        self.reopen();
    }

    /// The process ends but the machine keeps running: written bytes are there, but a crash can still lose
    /// them.
    fn kill(&mut self) {
        self.tally.kills += 1;
        self.reopen();
    }

    fn close(&mut self) {
        self.tally.closed += 1;
        let failing = self.open.store.failure().is_some();
        self.open.run_once(Duration::ZERO);
        while !self.open.writer.is_drained() {
            self.open.run_once(Duration::ZERO);
        }
        self.open.writer.run_once(Some(Job::End), self.open.now);
        self.collect();
        if failing && self.open.store.failure().is_none() {
            self.resumed();
        }
        assert!(self.under_way.is_empty(), "everything is answered at the end");
        if self.sync == Sync::Relaxed && self.open.store.failure().is_none() {
            self.mark_all_durable();
        }
        self.reopen();
    }

    fn reopen(&mut self) {
        self.under_way.clear();
        self.disk.free();
        let faults = self.one_in(3);
        if !faults {
            self.disk.set_faults(Faults::default());
        }
        if self.one_in(3) {
            self.corrupt_file();
        }
        for attempt in 0.. {
            if attempt == 12 {
                self.disk.set_faults(Faults::default());
            }
            match Stepped::open(&self.disk, self.sync, self.open.now) {
                Ok(open) => {
                    self.open = open;
                    break;
                }
                Err(StoreError::Io { .. }) if faults && attempt < 12 => {
                    if self.one_in(2) {
                        self.disk.crash();
                    }
                    if self.one_in(4) {
                        self.disk.set_faults(Faults::default());
                    }
                }
                Err(error) => panic!("cannot be opened: {error}"),
            }
        }
        self.check_after_restart();
    }

    fn check_after_restart(&mut self) {
        let found = self.view();
        let mut candidate = self.durable.clone();
        let mut missing = self.attempts.len() as u64;
        let all = std::mem::take(&mut self.attempts);
        let mut attempts = all.iter();
        while candidate != found {
            let Some(next) = attempts.next() else {
                let (found, durable) = (brief(&found), brief(&self.durable));
                let attempts: Vec<_> =
                    all.iter().map(|a| (a.revision, &a.key, a.data.as_deref().map(number))).collect();
                panic!(
                    "{:?}: found {found:?}, acknowledged {durable:?}, then attempted {attempts:?}",
                    self.sync
                );
            };
            apply(&mut candidate, next);
            self.acknowledged.insert(next.revision);
            missing -= 1;
        }
        self.tally.lost_in_flight += missing;
        // Readers have seen this state since the restart, so it must survive.
        self.durable.clone_from(&found);
        self.visible = found;
    }

    /// Flips a bit or removes a file. The store must fail to open, or be unaffected.
    fn corrupt_file(&mut self) {
        let names = self.disk.names();
        let name = &names[self.random.random_range(0..names.len())];
        let whole = self.disk.contents(name);
        self.tally.corrupted += 1;
        let faults = self.disk.set_faults(Faults::default());
        if self.one_in(4) {
            self.disk.remove_durably(name);
        } else if !whole.is_empty() {
            let used = whole.iter().rposition(|&b| b != 0).unwrap_or(0) + 1;
            let end = if self.one_in(4) { whole.len() } else { used };
            let from = if self.one_in(2) { end.saturating_sub(600) } else { 0 };
            let (byte, bit) = (self.random.random_range(from..end), self.random.random_range(0..8));
            self.disk.flip(name, byte, bit);
        }
        match Stepped::open(&self.disk, self.sync, self.open.now) {
            Err(StoreError::Corrupt { .. } | StoreError::Missing { .. }) => {
                self.tally.reported += 1;
                self.disk.add_durably(name, whole);
            }
            Err(error) => panic!("{error}"),
            Ok(open) => {
                self.open = open;
                self.check_after_restart();
            }
        }
        self.disk.set_faults(faults);
    }
}

fn seeds() -> std::ops::Range<u64> {
    let given = std::env::var("FLUORITE_STORE_SEEDS").unwrap_or_else(|_| "0..300".to_owned());
    let (from, to) = given.split_once("..").expect("FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

#[test]
fn no_acknowledged_write_is_lost_and_no_corruption_is_silent() {
    let (begin, seeds) = (Instant::now(), seeds());
    let mut tally = Tally::default();
    for seed in seeds.clone() {
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut run = Run::new(seed, &mut tally);
            for _ in 0..200 {
                run.step();
            }
            run.disk.crash();
            run.reopen();
        }));
        if let Err(panic) = run {
            eprintln!("seed {seed} failed: FLUORITE_STORE_SEEDS={seed}..{} runs it alone", seed + 1);
            std::panic::resume_unwind(panic);
        }
    }
    println!("seeds {seeds:?} in {:.1?}: {tally:?}", begin.elapsed());
    if seeds.end - seeds.start >= 300 {
        let Tally { acknowledged, refused, failed, resumed, crashes, kills, closed, .. } = tally;
        let Tally { corrupted, reported, responses_that_waited, checkpoints, lost_in_flight, .. } = tally;
        let all = [acknowledged, refused, failed, resumed, crashes, kills, closed, corrupted, reported];
        let all = all.into_iter().chain([responses_that_waited, checkpoints, lost_in_flight]);
        assert!(all.min() > Some(50), "every path is taken: {tally:?}");
    }
}
