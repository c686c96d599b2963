//! `kill -9` during writes: acknowledged writes survive (N11), and the history is complete (N12).
//!
//! `FLUORITE_KILL_ROUNDS=1000 cargo test -p fl-apiserver --test crash` runs the long form.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fl_apiserver::store::{Change, EventKind, Precondition, Store, StoreError, Sync};
use serde_json::json;

const DIR: &str = "FLUORITE_CRASH_DIR";
const TABLE: &str = "/configmaps";

/// Not a test: the process that is killed. Every line that it prints is an acknowledged write.
#[test]
fn child_that_writes() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let store = Store::open(Path::new(&dir), Sync::Always).expect("the store opens");
    runtime.block_on(async move {
        let writers = (0..8).map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let key = format!("ns/w{writer}");
                loop {
                    let current = store.latest(TABLE, &key);
                    let count = current.as_ref().map_or(0, |e| e.value()["data"].as_u64().unwrap_or(0));
                    let expect = current.as_ref().map_or(Precondition::Absent, |e| Precondition::Revision(e.revision));
                    let padding = "x".repeat((count as usize * 37) % 900);
                    let object = json!({"kind": "ConfigMap", "metadata": {"name": key}, "data": count + 1, "padding": padding});
                    match store.commit(TABLE, &key, expect, Change::Put(object)).await {
                        Ok(entry) => println!("ack {key} {} {}", count + 1, entry.revision),
                        Err(StoreError::Conflict) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            })
        });
        futures::future::join_all(writers).await;
    });
}

/// Starts the writer, kills it after `life`, and records the last acknowledged count of each key.
fn round(dir: &Path, life: Duration, acked: &mut HashMap<String, (u64, u64)>) {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "child_that_writes", "--nocapture"])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the child starts");
    let lines = BufReader::new(child.stdout.take().expect("piped"));
    let reader = std::thread::spawn(move || {
        let mut seen = Vec::new();
        for line in lines.lines().map_while(Result::ok) {
            // A line truncated by the kill was acknowledged, too, but cannot be parsed.
            let parts: Vec<&str> = line.split(' ').collect();
            if let ["ack", key, count, revision] = parts.as_slice()
                && let (Ok(count), Ok(revision)) = (count.parse(), revision.parse())
            {
                seen.push(((*key).to_owned(), (count, revision)));
            }
        }
        seen
    });
    std::thread::sleep(life);
    child.kill().expect("SIGKILL");
    let _ = child.wait();
    for (key, found) in reader.join().expect("the reader ends") {
        acked.insert(key, found);
    }
}

#[test]
fn acknowledged_writes_survive_kill() {
    if std::env::var(DIR).is_ok() {
        return;
    }
    let rounds: u64 = std::env::var("FLUORITE_KILL_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    let dir = tempfile::tempdir().expect("a directory");
    let mut acked = HashMap::new();
    let (mut lost, mut total) = (0u64, 0u64);
    for i in 0..rounds {
        round(dir.path(), Duration::from_millis(150 + (i * 53) % 200), &mut acked);
        let store = Store::open(dir.path(), Sync::Always).expect("the store opens again");
        for (key, (count, revision)) in &acked {
            total += 1;
            let found = store.get(TABLE, key);
            let kept = found
                .as_ref()
                .is_some_and(|e| e.revision >= *revision && e.value()["data"].as_u64() >= Some(*count));
            lost += u64::from(!kept);
        }
        check_history(&store);
    }
    println!("rounds {rounds}, acknowledged states checked {total}, lost {lost}");
    assert!(total > 0, "the child wrote something");
    assert_eq!(lost, 0);
}

/// Events are ordered, unique, and each one follows from the state before it.
fn check_history(store: &Store) {
    let mut from = store.revision();
    // The oldest revision that is not compacted.
    while from > 1 && store.events(TABLE, from - 1, 1).is_ok() {
        from -= 1;
        if store.revision() - from > 500 {
            break;
        }
    }
    let (seen, events) = store.events(TABLE, from, usize::MAX).expect("kept");
    assert_eq!(seen, store.revision());
    let mut last = from;
    let mut counts: HashMap<String, u64> = HashMap::new();
    for event in &events {
        assert!(event.revision > last, "ordered and unique");
        last = event.revision;
        let count = event.object.value()["data"].as_u64().expect("a number");
        if let Some(before) = counts.insert(event.key.to_string(), count) {
            assert_eq!(count, before + 1, "no write is missing or applied twice");
            assert_eq!(event.kind, EventKind::Modified);
        }
    }
}

fn only_log(dir: &std::path::Path) -> std::path::PathBuf {
    std::fs::read_dir(dir)
        .expect("the directory")
        .filter_map(|e| Some(e.ok()?.path()))
        .find(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("wal-")))
        .expect("a log")
}

#[test]
fn torn_tail_is_truncated() {
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let put = |store: &Store, i: u64| {
        let object = json!({"metadata": {"name": format!("o{i}")}, "data": i});
        runtime
            .block_on(store.commit(TABLE, &format!("ns/o{i}"), Precondition::Absent, Change::Put(object)))
            .expect("written");
    };
    let store = Store::open(dir.path(), Sync::Always).expect("opens");
    (0..20).for_each(|i| put(&store, i));
    drop(store);
    let log = only_log(dir.path());
    let mut bytes = std::fs::read(&log).expect("the log");
    let end = bytes.iter().rposition(|b| *b != 0).expect("records");
    // The end of the last record was not written before the power failure.
    bytes[end - 3..].fill(0);
    std::fs::write(&log, &bytes).expect("written back");
    let store = Store::open(dir.path(), Sync::Always).expect("opens with a torn tail");
    assert_eq!(store.list(TABLE, "", None, 0).1.len(), 19);
    put(&store, 100);
    drop(store);
    let store = Store::open(dir.path(), Sync::Always).expect("opens again");
    assert_eq!(store.list(TABLE, "", None, 0).1.len(), 20);
    assert!(store.get(TABLE, "ns/o100").is_some() && store.get(TABLE, "ns/o19").is_none());
}

#[test]
fn corrupt_log_is_rejected_and_not_modified() {
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = Store::open(dir.path(), Sync::Always).expect("opens");
    for i in 0..20 {
        let (key, object) = (format!("ns/o{i}"), json!({"metadata": {"name": format!("o{i}")}, "data": i}));
        let write = store.commit(TABLE, &key, Precondition::Absent, Change::Put(object));
        runtime.block_on(write).expect("written");
    }
    drop(store);
    let log = only_log(dir.path());
    let whole = std::fs::read(&log).expect("the log");
    let end = whole.iter().rposition(|b| *b != 0).expect("records");
    // Flips bits in lengths, checksums, names and objects, from the first record to the one before the last.
    for at in (8..end * 9 / 10).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        std::fs::write(&log, &bytes).expect("written back");
        let error = Store::open(dir.path(), Sync::Always).expect_err("a damaged log").to_string();
        assert!(error.contains("damaged"), "byte {at}: {error}");
        assert!(std::fs::read(&log).expect("the log") == bytes, "byte {at}: the file is as it was");
    }
}

#[test]
fn second_process_is_rejected() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = Store::open(dir.path(), Sync::Relaxed).expect("opens");
    assert!(Store::open(dir.path(), Sync::Relaxed).is_err());
    drop(first);
    assert!(Store::open(dir.path(), Sync::Relaxed).is_ok());
}
