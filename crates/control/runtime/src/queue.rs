//! The work queue of a controller: fair, deduplicated, never the same object twice at once.
//!
//! Namespaces take turns, so a tenant with ten thousand failing objects delays the others by at most one of its own.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::backoff::Backoff;
use fl_client::Key;

/// Minimum delay of a timer.
const MIN_DELAY: Duration = Duration::from_millis(100);
/// Maximum delay of a timer: longer ones would overflow the clock.
const MAX_DELAY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A queue of object keys.
#[derive(Debug)]
pub struct WorkQueue {
    state: Mutex<State>,
    changed: Notify,
    min_retry: Duration,
    max_retry: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// Namespaces with ready keys, round robin.
    turns: VecDeque<String>,
    ready: HashMap<String, VecDeque<Key>>,
    /// Ready keys, for deduplication.
    waiting: HashSet<Key>,
    /// Keys being reconciled.
    running: HashSet<Key>,
    /// Keys that were added while being reconciled.
    again: HashSet<Key>,
    timers: BTreeMap<(Instant, u64), Key>,
    timer_of: HashMap<Key, (Instant, u64)>,
    failures: HashMap<Key, u32>,
    /// The remote target of each object that has one.
    targets: HashMap<Key, Target>,
    /// The remote target that a running key counts against.
    held: HashMap<Key, Target>,
    /// Running keys per remote target.
    busy: HashMap<Target, usize>,
    /// Ready keys whose target is at its limit.
    parked: HashMap<Target, VecDeque<Key>>,
    sequence: u64,
    closed: bool,
}

/// The API server of an object that is not the engine's own: namespace and name of its kubeconfig.
pub type Target = (String, String);

/// Concurrent reconciles per remote target. A target that does not answer blocks this many reconciles, all of
/// its own objects.
const PER_TARGET: usize = 4;
/// Concurrent reconciles over all remote targets: each holds its objects in memory.
const ALL_TARGETS: usize = 256;

impl WorkQueue {
    /// Failures are retried after `min_retry`, doubling up to `max_retry`.
    pub fn new(min_retry: Duration, max_retry: Duration) -> Self {
        WorkQueue { state: Mutex::default(), changed: Notify::new(), min_retry, max_retry }
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a key.
    pub fn add(&self, key: Key) {
        self.with(|state| state.add(key));
        self.changed.notify_one();
    }

    /// Adds a key after a delay; an earlier timer of the key stays.
    pub fn add_after(&self, key: Key, delay: Duration) {
        let at = Instant::now() + delay.clamp(MIN_DELAY, MAX_DELAY);
        self.with(|state| state.add_at(key, at));
        self.changed.notify_one();
    }

    /// Adds a key after its backoff, `limit` at most.
    pub fn add_failed(&self, key: Key, limit: Duration) -> Duration {
        let delay = self.with(|state| {
            let failures = state.failures.entry(key.clone()).or_default();
            let delay = Backoff::delay(self.min_retry, self.max_retry, *failures).min(limit);
            *failures = failures.saturating_add(1);
            delay
        });
        self.add_after(key, delay);
        delay
    }

    /// Resets the backoff of a key.
    pub fn reset_backoff(&self, key: &Key) {
        self.with(|state| state.failures.remove(key));
    }

    /// Sets the remote target of an object, if any.
    pub fn set_target(&self, key: &Key, target: Option<Target>) {
        self.with(|state| match target {
            Some(target) => drop(state.targets.insert(key.clone(), target)),
            None => drop(state.targets.remove(key)),
        });
    }

    /// Removes a deleted object.
    pub fn remove(&self, key: &Key) {
        self.with(|state| {
            state.failures.remove(key);
            state.targets.remove(key);
            state.clear_timer(key);
        });
    }

    /// Waits for the next key. `None` once closed. [`WorkQueue::done`] must follow.
    pub async fn next(&self) -> Option<Key> {
        loop {
            let changed = self.changed.notified();
            let (key, due, closed) = self.with(|state| {
                state.ring(Instant::now());
                let key = state.take();
                (key, state.timers.first_key_value().map(|((at, _), _)| *at), state.closed)
            });
            if closed {
                // Wake the other waiters, too.
                self.changed.notify_one();
                return None;
            }
            if let Some(key) = key {
                // Several keys may be ready: wake another waiter.
                self.changed.notify_one();
                return Some(key);
            }
            match due {
                Some(at) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Ends the reconcile of a key; if it was added meanwhile, it is ready again.
    pub fn done(&self, key: &Key) {
        self.with(|state| {
            state.running.remove(key);
            state.release(key);
            if state.again.remove(key) {
                state.add(key.clone());
            }
        });
        self.changed.notify_one();
    }

    /// Closes the queue.
    pub fn close(&self) {
        self.with(|state| state.closed = true);
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// Ready, delayed and running keys.
    pub fn sizes(&self) -> (usize, usize, usize) {
        self.with(|state| (state.waiting.len(), state.timers.len(), state.running.len()))
    }
}

impl State {
    fn add(&mut self, key: Key) {
        if self.running.contains(&key) {
            self.again.insert(key);
            return;
        }
        if !self.waiting.insert(key.clone()) {
            return;
        }
        let of_namespace = self.ready.entry(key.namespace().to_owned()).or_default();
        if of_namespace.is_empty() {
            self.turns.push_back(key.namespace().to_owned());
        }
        of_namespace.push_back(key);
    }

    /// Frees the place of a key at its target, and re-adds a parked key.
    fn release(&mut self, key: &Key) {
        let Some(target) = self.held.remove(key) else { return };
        if let Some(busy) = self.busy.get_mut(&target) {
            *busy -= 1;
            if *busy == 0 {
                self.busy.remove(&target);
            }
        }
        // A key of another target may have waited for the limit over all targets.
        let next = if self.parked.contains_key(&target) {
            Some(target)
        } else {
            let room = |t: &&Target| self.busy.get(*t).is_none_or(|busy| *busy < PER_TARGET);
            self.parked.keys().find(room).cloned()
        };
        let Some(next) = next else { return };
        let Some(parked) = self.parked.get_mut(&next) else { return };
        let key = parked.pop_front();
        if parked.is_empty() {
            self.parked.remove(&next);
        }
        if let Some(key) = key {
            self.waiting.remove(&key);
            self.add(key);
        }
    }

    fn add_at(&mut self, key: Key, at: Instant) {
        if self.timer_of.get(&key).is_some_and(|(earlier, _)| *earlier <= at) {
            return;
        }
        self.clear_timer(&key);
        self.sequence += 1;
        let slot = (at, self.sequence);
        self.timers.insert(slot, key.clone());
        self.timer_of.insert(key, slot);
    }

    fn clear_timer(&mut self, key: &Key) {
        if let Some(slot) = self.timer_of.remove(key) {
            self.timers.remove(&slot);
        }
    }

    /// Adds the keys whose timer has expired.
    fn ring(&mut self, now: Instant) {
        while let Some(first) = self.timers.first_entry() {
            if first.key().0 > now {
                break;
            }
            let key = first.remove();
            self.timer_of.remove(&key);
            self.add(key);
        }
    }

    /// The next key whose target is below its limit. Other keys are parked until a reconcile of their target
    /// ends.
    fn take(&mut self) -> Option<Key> {
        if self.closed {
            return None;
        }
        let key = loop {
            let namespace = self.turns.pop_front()?;
            let of_namespace = self.ready.get_mut(&namespace)?;
            let key = of_namespace.pop_front()?;
            if of_namespace.is_empty() {
                self.ready.remove(&namespace);
            } else {
                self.turns.push_back(namespace);
            }
            match self.targets.get(&key).cloned() {
                None => break key,
                Some(target) => {
                    let all: usize = self.busy.values().sum();
                    let busy = self.busy.entry(target.clone()).or_default();
                    if *busy < PER_TARGET && all < ALL_TARGETS {
                        *busy += 1;
                        self.held.insert(key.clone(), target);
                        break key;
                    }
                    self.parked.entry(target).or_default().push_back(key);
                }
            }
        };
        self.waiting.remove(&key);
        self.running.insert(key.clone());
        // The reconcile that starts now replaces the timer.
        self.clear_timer(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, name: &str) -> Key {
        Key::new("g", "K", namespace, name)
    }

    fn queue() -> WorkQueue {
        WorkQueue::new(Duration::from_millis(750), Duration::from_secs(900))
    }

    #[tokio::test(start_paused = true)]
    async fn object_is_never_reconciled_concurrently() {
        let queue = queue();
        queue.add(key("a", "x"));
        queue.add(key("a", "x"));
        let first = queue.next().await.unwrap();
        queue.add(key("a", "x"));
        let none = tokio::time::timeout(Duration::from_secs(1), queue.next()).await;
        assert!(none.is_err());
        queue.done(&first);
        assert_eq!(queue.next().await.unwrap(), first);
        queue.done(&first);
        assert!(tokio::time::timeout(Duration::from_secs(1), queue.next()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn namespaces_take_turns() {
        let queue = queue();
        for i in 0..100 {
            queue.add(key("loud", &i.to_string()));
        }
        queue.add(key("quiet", "one"));
        let mut position = 0;
        for i in 0..101 {
            let next = queue.next().await.unwrap();
            if next.namespace() == "quiet" {
                position = i;
            }
            queue.done(&next);
        }
        assert_eq!(position, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_back_off() {
        let queue = queue();
        let delays: Vec<u128> =
            (0..3).map(|_| queue.add_failed(key("a", "x"), Duration::MAX).as_millis()).collect();
        assert_eq!(delays, [750, 1500, 3000]);
        let start = Instant::now();
        let next = queue.next().await.unwrap();
        assert_eq!(start.elapsed().as_millis(), 750);
        queue.done(&next);
        queue.reset_backoff(&next);
        assert_eq!(queue.add_failed(next, Duration::MAX).as_millis(), 750);
    }

    #[tokio::test(start_paused = true)]
    async fn zero_delay_is_not_a_hot_loop() {
        let queue = queue();
        let start = Instant::now();
        for _ in 0..10 {
            queue.add_after(key("a", "x"), Duration::ZERO);
            let next = queue.next().await.unwrap();
            queue.done(&next);
        }
        assert!(start.elapsed() >= Duration::from_secs(1));
        queue.add_after(key("a", "x"), Duration::MAX);
    }

    /// A target that never answers blocks only its own objects.
    #[tokio::test(start_paused = true)]
    async fn silent_target_blocks_only_its_own_objects() {
        let queue = queue();
        let target = |name: &str| Some(("a".to_owned(), name.to_owned()));
        for i in 0..10 {
            let silent = key("a", &format!("silent-{i}"));
            queue.set_target(&silent, target("silent"));
            queue.add(silent);
        }
        queue.set_target(&key("a", "other"), target("other"));
        queue.add(key("a", "other"));
        queue.add(key("a", "local"));
        let mut taken = Vec::new();
        while let Ok(next) = tokio::time::timeout(Duration::from_secs(1), queue.next()).await {
            taken.push(next.unwrap());
        }
        let silent = taken.iter().filter(|key| key.name().starts_with("silent")).count();
        assert_eq!((silent, taken.len()), (PER_TARGET, PER_TARGET + 2));
        // Every reconcile that ends starts a parked one.
        for done in &taken {
            queue.done(done);
        }
        let mut more = 0;
        while let Ok(next) = tokio::time::timeout(Duration::from_secs(1), queue.next()).await {
            queue.done(&next.unwrap());
            more += 1;
        }
        assert_eq!(more, 10 - PER_TARGET);
    }

    /// Runs reconciles of 100 ms with four permits; returns the latency of the quiet tenant's objects.
    async fn latencies(loud: usize) -> Vec<Duration> {
        let queue = std::sync::Arc::new(queue());
        for i in 0..loud {
            queue.add(key("loud", &i.to_string()));
        }
        let due = std::sync::Arc::new(Mutex::new(HashMap::new()));
        let done = std::sync::Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let (queue, due, done) = (queue.clone(), due.clone(), done.clone());
            tasks.spawn(async move {
                while let Some(key) = queue.next().await {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    if key.namespace() == "loud" {
                        // It fails and is re-added at once: the worst case.
                        queue.add(key.clone());
                    } else if let Some(at) = due.lock().unwrap().remove(&key) {
                        let at: Instant = at;
                        done.lock().unwrap().push(at.elapsed());
                    }
                    queue.done(&key);
                }
            });
        }
        for i in 0..500 {
            let key = key("quiet", &i.to_string());
            due.lock().unwrap().insert(key.clone(), Instant::now());
            queue.add(key);
            tokio::time::sleep(Duration::from_millis(137)).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        queue.close();
        while tasks.join_next().await.is_some() {}
        let mut all = std::mem::take(&mut *done.lock().unwrap());
        all.sort();
        all
    }

    /// F07: ten thousand failing objects of one tenant delay the others by at most one reconcile.
    #[tokio::test(start_paused = true)]
    async fn failing_objects_of_one_tenant_do_not_delay_others() {
        let p99 = |all: &[Duration]| all[all.len() * 99 / 100];
        let (alone, beside) = (latencies(0).await, latencies(10_000).await);
        assert_eq!((alone.len(), beside.len()), (500, 500));
        let ratio = p99(&beside).as_secs_f64() / p99(&alone).as_secs_f64();
        assert!(ratio <= 2.0, "{ratio}: {:?} instead of {:?}", p99(&beside), p99(&alone));
    }
}
