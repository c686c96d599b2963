//! Concurrent writes and watches, with compaction (N12, I03): writes are linearizable, watches ordered,
//! unique, complete and resumable.
//!
//! `FLUORITE_HISTORY_SEEDS=500 cargo test --test linearizability` runs the long form.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fl_apiserver::store::{Change, EventKind, Precondition, Store, StoreError, Sync};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

const TABLE: &str = "/configmaps";
const KEYS: u64 = 6;

/// Increments a counter, or sometimes deletes it; returns whether it was incremented.
async fn write(store: &Store, random: &mut StdRng) -> bool {
    let key = format!("ns/k{}", random.random_range(0..KEYS));
    loop {
        let current = store.latest(TABLE, &key);
        let result = match &current {
            Some(entry) if random.random_range(0..20) == 0 => {
                let last = entry.value();
                let done = store
                    .commit(TABLE, &key, Precondition::Revision(entry.revision), Change::Delete(last))
                    .await;
                done.map(|_| false)
            }
            _ => {
                let count = current.as_ref().and_then(|e| e.value()["count"].as_u64()).unwrap_or(0);
                let object = json!({"metadata": {"name": key}, "count": count + 1});
                let expect =
                    current.as_ref().map_or(Precondition::Absent, |e| Precondition::Revision(e.revision));
                store.commit(TABLE, &key, expect, Change::Put(object)).await.map(|_| true)
            }
        };
        match result {
            Ok(counted) => return counted,
            Err(StoreError::Conflict) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

type View = BTreeMap<String, u64>;

fn list(store: &Store) -> (u64, View) {
    let (revision, items, _) = store.list(TABLE, "", None, 0);
    (revision, items.iter().map(|(key, entry)| (key.to_string(), entry.revision)).collect())
}

/// Follows the history until `done`, with a new list after each compaction; returns the final view.
async fn watch(store: Store, seed: u64, done: Arc<AtomicBool>) -> View {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut revision, mut view) = list(&store);
    loop {
        let ending = done.load(Ordering::SeqCst);
        match store.events(TABLE, revision, random.random_range(1..20)) {
            Ok((seen, events)) => {
                let mut last = revision;
                for event in &events {
                    assert!(event.revision > last, "ordered and unique");
                    last = event.revision;
                    let before = event.previous.as_ref().map(|e| e.revision);
                    assert_eq!(view.get(&*event.key).copied(), before, "nothing in between is missing");
                    if event.kind == EventKind::Deleted {
                        view.remove(&*event.key);
                    } else {
                        view.insert(event.key.to_string(), event.revision);
                    }
                }
                assert!(seen >= last);
                revision = seen;
                if ending && revision == store.revision() {
                    return view;
                }
            }
            Err(StoreError::Compacted { wanted, oldest }) => {
                assert!(wanted < oldest);
                (revision, view) = list(&store);
            }
            Err(other) => panic!("{other}"),
        }
        // A watcher that sleeps falls behind, and may find its revision compacted.
        for _ in 0..random.random_range(0..4) {
            tokio::task::yield_now().await;
        }
    }
}

async fn round(store: &Store, seed: u64) {
    let done = Arc::new(AtomicBool::new(false));
    let counted = Arc::new(AtomicU64::new(0));
    let before = store.revision();
    let watchers: Vec<_> =
        (0..3).map(|i| tokio::spawn(watch(store.clone(), seed * 31 + i, done.clone()))).collect();
    let writers = (0..4).map(|i| {
        let (store, counted) = (store.clone(), counted.clone());
        tokio::spawn(async move {
            let mut random = StdRng::seed_from_u64(seed * 101 + i);
            for step in 0..60 {
                counted.fetch_add(u64::from(write(&store, &mut random).await), Ordering::SeqCst);
                if i == 0 && step % 16 == 15 {
                    let back = random.random_range(0..40);
                    store.compact(store.revision().saturating_sub(back));
                }
            }
        })
    });
    for writer in futures::future::join_all(writers).await {
        writer.expect("the writer ends");
    }
    done.store(true, Ordering::SeqCst);
    let now = list(store).1;
    for watcher in watchers {
        assert_eq!(watcher.await.expect("the watcher ends"), now, "a watcher ends where a list begins");
    }
    assert_eq!(store.revision() - before, 240, "one revision for each write, and each write once");
    assert!(counted.load(Ordering::SeqCst) > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn histories_are_linearizable_in_memory_and_on_disk() {
    let seeds: u64 = std::env::var("FLUORITE_HISTORY_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    for seed in 0..seeds {
        round(&Store::in_memory(), seed).await;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for seed in 0..seeds.div_ceil(4) {
        let sync = if seed % 2 == 0 { Sync::Always } else { Sync::Relaxed };
        let store = Store::open(dir.path(), sync).expect("the store opens");
        round(&store, seed).await;
        let before = list(&store);
        drop(store);
        let again = Store::open(dir.path(), Sync::Always).expect("the store opens again");
        assert_eq!(list(&again), before, "what was written is there after a restart, at the revision it had");
    }
}
