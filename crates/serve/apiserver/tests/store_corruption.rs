//! Corrupt and missing files of the store: opening fails with an error that names the file, and no file is
//! changed.

use std::path::{Path, PathBuf};

use fl_apiserver::store::{Change, Precondition, Store, Sync};
use serde_json::json;

const TABLE: &str = "/configmaps";

fn put(store: &Store, key: &str, data: &str) {
    let object = json!({"kind": "ConfigMap", "metadata": {"name": key}, "data": data});
    let expect =
        store.latest(TABLE, key).map_or(Precondition::Absent, |e| Precondition::Revision(e.revision));
    let written = futures::executor::block_on(store.commit(TABLE, key, expect, Change::Put(object)));
    written.expect("written");
}

/// 52 objects in a snapshot, and some writes in the log that follows it.
fn with_snapshot(sync: Sync) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::open(dir.path(), Sync::Relaxed).expect("opens");
    (0..52).for_each(|i| put(&store, &format!("ns/o{i}"), "first"));
    let large = "x".repeat(1 << 20);
    for _ in 0..36 {
        put(&store, "ns/large", &large);
        // One batch each: the length of the log is checked after a batch.
        std::thread::sleep(std::time::Duration::from_millis(8));
    }
    drop(store);
    let store = Store::open(dir.path(), sync).expect("opens again");
    (0..20).for_each(|i| put(&store, &format!("ns/o{i}"), "second"));
    drop(store);
    assert_eq!(files(dir.path(), "snapshot").len(), 1, "a snapshot was written");
    dir
}

fn files(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(dir)
        .expect("the directory")
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(prefix)))
        .collect();
    found.sort();
    found
}

fn refused(dir: &Path) -> String {
    match Store::open(dir, Sync::Always) {
        Ok(store) => panic!("opened with {} objects", store.list(TABLE, "", None, 0).1.len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn flipped_bit_in_the_snapshot_header_or_trailer_is_rejected() {
    let dir = with_snapshot(Sync::Always);
    let snapshot = files(dir.path(), "snapshot").remove(0);
    let whole = std::fs::read(&snapshot).expect("the snapshot");
    let edges = (0..64).chain(whole.len() - 64..whole.len());
    for at in edges {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&snapshot, &bytes).expect("written back");
        let error = refused(dir.path());
        assert!(error.contains("snapshot"), "byte {at}: {error}");
        assert!(std::fs::read(&snapshot).expect("read") == bytes, "byte {at}: the file is as it was");
    }
    std::fs::write(&snapshot, &whole).expect("written back");
    let store = Store::open(dir.path(), Sync::Always).expect("the undamaged file opens");
    assert_eq!(store.list(TABLE, "", None, 0).1.len(), 53);
}

#[test]
fn missing_snapshot_is_rejected() {
    let dir = with_snapshot(Sync::Always);
    let snapshot = files(dir.path(), "snapshot").remove(0);
    std::fs::remove_file(&snapshot).expect("removed");
    let error = refused(dir.path());
    assert!(error.contains(&*snapshot.to_string_lossy()) && error.contains("missing"), "{error}");
    assert!(error.contains("restore"), "says what to do: {error}");
}

#[test]
fn missing_log_is_rejected() {
    let dir = with_snapshot(Sync::Always);
    let log = files(dir.path(), "wal-").remove(0);
    std::fs::remove_file(&log).expect("removed");
    let error = refused(dir.path());
    assert!(error.contains(&*log.to_string_lossy()) && error.contains("missing"), "{error}");
}

#[test]
fn corrupt_relaxed_log_is_rejected() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::open(dir.path(), Sync::Relaxed).expect("opens");
    for i in 0..20 {
        put(&store, &format!("ns/o{i}"), "data");
        std::thread::sleep(std::time::Duration::from_millis(7));
    }
    drop(store);
    let log = files(dir.path(), "wal-").remove(0);
    let whole = std::fs::read(&log).expect("the log");
    let end = whole.iter().rposition(|b| *b != 0).expect("records");
    for at in (8..end).step_by(13) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&log, &bytes).expect("written back");
        let error = refused(dir.path());
        assert!(error.contains("damaged"), "byte {at}: {error}");
    }
}

#[test]
fn flipped_bit_in_the_last_acknowledged_write_is_rejected() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::open(dir.path(), Sync::Always).expect("opens");
    (0..3).for_each(|i| put(&store, &format!("ns/o{i}"), "data"));
    drop(store);
    let log = files(dir.path(), "wal-").remove(0);
    let whole = std::fs::read(&log).expect("the log");
    let end = whole.iter().rposition(|b| *b != 0).expect("records");
    for at in end - 60..=end {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x04;
        std::fs::write(&log, &bytes).expect("written back");
        let error = refused(dir.path());
        assert!(error.contains("damaged"), "byte {at}: {error}");
    }
}

#[test]
fn files_of_another_store_are_rejected() {
    let (one, other) = (with_snapshot(Sync::Always), with_snapshot(Sync::Always));
    for prefix in ["snapshot", "wal-"] {
        let (from, to) = (files(one.path(), prefix).remove(0), files(other.path(), prefix).remove(0));
        let own = std::fs::read(&to).expect("read");
        std::fs::copy(&from, &to).expect("copied");
        let error = refused(other.path());
        assert!(error.contains("another store"), "{prefix}: {error}");
        std::fs::write(&to, own).expect("written back");
    }
    assert!(Store::open(other.path(), Sync::Always).is_ok());
}
