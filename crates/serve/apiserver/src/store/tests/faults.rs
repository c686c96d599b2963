//! Tests with one injected fault each.

use super::disk::Faults;
use super::*;

fn open(disk: &Disk) -> Stepped {
    Stepped::open(disk, Sync::Always, Instant::now()).expect("the store opens")
}

fn logs(disk: &Disk) -> Vec<String> {
    disk.names().into_iter().filter(|name| name.starts_with("wal-")).collect()
}

const RESUME_TIMEOUT: Duration = Duration::from_secs(3);

#[test]
fn full_disk_rejects_writes_until_space_is_free() {
    let disk = Disk::new(1);
    let mut open = open(&disk);
    open.put("ns/a", "first").expect("written");
    disk.leave_room(100);
    let large = "x".repeat(6000);
    let error = open.put("ns/b", &large).expect_err("no room").to_string();
    assert!(error.contains("wal-") && error.contains("no storage space"), "says what failed: {error}");
    assert!(error.contains("free space"), "says what to do: {error}");
    assert!(open.store.failure().is_some());
    assert!(matches!(open.put("ns/c", "small"), Err(StoreError::Unavailable(_))), "refused at once");
    assert_eq!((open.data("ns/a").as_deref(), open.data("ns/b")), (Some("first"), None), "reads go on");
    open.run_once(RESUME_TIMEOUT);
    assert!(open.store.failure().is_some(), "still full");
    disk.free();
    open.run_once(RESUME_TIMEOUT);
    assert_eq!(open.store.failure(), None);
    open.put("ns/b", "fits").expect("written again");
    disk.crash();
    let open = self::open(&disk);
    assert_eq!((open.data("ns/a").as_deref(), open.data("ns/b").as_deref()), (Some("first"), Some("fits")));
}

#[test]
fn log_is_not_written_after_a_failed_sync() {
    for seed in 0..50 {
        let disk = Disk::new(seed);
        let mut open = open(&disk);
        open.put("ns/a", "first").expect("written");
        let log = logs(&disk).remove(0);
        disk.fail_syncs(1);
        let failed = open.put("ns/b", &"lost".repeat(400));
        assert!(matches!(failed, Err(StoreError::Failed(_))), "{failed:?}");
        let before = disk.contents(&log);
        assert!(matches!(open.put("ns/c", "refused"), Err(StoreError::Unavailable(_))));
        open.run_once(RESUME_TIMEOUT);
        open.put("ns/d", "second").expect("a new log was begun");
        assert!(disk.contents(&log) == before, "the log whose sync failed is as it was");
        assert_eq!(logs(&disk).len(), 2);
        disk.crash();
        let open = self::open(&disk);
        let found = ["ns/a", "ns/b", "ns/c", "ns/d"].map(|key| open.data(key));
        assert_eq!(found, [Some("first".to_owned()), None, None, Some("second".to_owned())]);
    }
}

#[test]
fn writes_that_depend_on_a_failed_write_fail() {
    let disk = Disk::new(3);
    let mut open = open(&disk);
    let entry = open.put("ns/a", "1").expect("written");
    let put = |data: &str| Change::Put(object("ns/a", data));
    let mut second = open.begin("ns/a", Precondition::Revision(entry.revision), put(&"2".repeat(5000)));
    let next = open.store.latest(TABLE, "ns/a").expect("pending");
    let mut third = open.begin("ns/a", Precondition::Revision(next.revision), put("3"));
    disk.fail_syncs(1);
    open.run_once(Duration::ZERO);
    let failed = |answer: &mut PendingWrite| matches!(poll(answer), Some(Err(StoreError::Failed(_))));
    assert!(failed(&mut second) && failed(&mut third));
    assert_eq!(open.store.latest(TABLE, "ns/a").map(|e| e.revision), Some(entry.revision));
    open.run_once(RESUME_TIMEOUT);
    open.put("ns/a", "4").expect("written");
    assert_eq!(open.data("ns/a").as_deref(), Some("4"));
}

#[test]
fn controllers_wait_until_the_store_accepts_writes() {
    let disk = Disk::new(12);
    let mut open = open(&disk);
    let entry = open.put("ns/a", "1").expect("written");
    let store = open.store.clone();
    let write = move || -> PendingWrite {
        let (store, change) = (store.clone(), Change::Put(object("ns/a", "2")));
        let precondition = Precondition::Revision(entry.revision);
        Box::pin(async move { store.commit_when_writable(TABLE, "ns/a", precondition, change).await })
    };
    let (mut failing, mut refused) = (write(), write());
    assert!(poll(&mut failing).is_none());
    disk.fail_syncs(1);
    open.run_once(Duration::ZERO);
    assert!(poll(&mut failing).is_none() && poll(&mut refused).is_none(), "both wait");
    open.run_once(RESUME_TIMEOUT);
    let conflict = |answer: &mut PendingWrite| matches!(poll(answer), Some(Err(StoreError::Conflict)));
    assert!(conflict(&mut failing) && conflict(&mut refused), "the object is read again");
    let mut again = write();
    assert!(poll(&mut again).is_none());
    open.run_once(Duration::ZERO);
    assert!(matches!(poll(&mut again), Some(Ok(_))));
}

#[test]
fn failed_checkpoint_is_retried_and_leaves_no_file() {
    let disk = Disk::new(4);
    let mut open = open(&disk);
    let snapshots = || disk.names().into_iter().filter(|name| name.contains("snapshot")).count();
    // The state is larger than the free space, the log is not.
    (0..3).for_each(|i| drop(open.put(&format!("ns/large{i}"), &"x".repeat(3000)).expect("written")));
    disk.leave_room(8000);
    let mut writes = 0;
    while open.writer.log_bytes() < 30_000 && writes < 200 {
        open.put("ns/a", &format!("{writes}{}", "y".repeat(900)))
            .expect("a failed checkpoint does not fail the store");
        disk.leave_room(8000);
        writes += 1;
        assert_eq!(snapshots(), 0, "nothing is left behind");
    }
    assert!(open.store.shared.objects_visited() > 0, "it was tried");
    assert_eq!(open.store.failure(), None);
    let objects_visited = open.store.shared.objects_visited();
    open.put("ns/a", "not at once").expect("written");
    assert_eq!(open.store.shared.objects_visited(), objects_visited, "not with every write");
    disk.free();
    open.run_once(Duration::from_secs(600));
    assert_eq!(snapshots(), 1, "tried again when there is room");
    assert!(open.writer.log_bytes() < 1000);
    disk.crash();
    let open = self::open(&disk);
    assert_eq!(open.data("ns/a").as_deref(), Some("not at once"));
}

#[test]
fn temporary_and_stale_files_are_removed_on_open() {
    let disk = Disk::new(5);
    drop(open(&disk).put("ns/a", "1").expect("written"));
    let named = disk.names();
    let left = ["manifest.tmp", "snapshot.tmp", "snapshot-0000000002", "wal-0000000002-00000", "snapshot"];
    left.iter().for_each(|name| disk.add_durably(name, b"something".to_vec()));
    assert_eq!(open(&disk).data("ns/a").as_deref(), Some("1"));
    assert_eq!(disk.names(), named);
}

/// Writes to a store with many objects; returns how many of them checkpoints visit.
fn objects_visited_per_write(objects: usize, writes: usize) -> (u64, f64) {
    let disk = Disk::new(6);
    let mut open = open(&disk);
    (0..objects).for_each(|i| drop(open.put(&format!("ns/o{i}"), &"x".repeat(64)).expect("written")));
    let before = open.store.shared.objects_visited();
    for i in 0..writes {
        open.put(&format!("ns/o{}", i % objects), &format!("{i}{}", "y".repeat(64))).expect("written");
    }
    let objects_visited = open.store.shared.objects_visited() - before;
    (objects_visited, objects_visited as f64 / writes as f64)
}

#[test]
fn checkpoint_cost_per_write_is_independent_of_state_size() {
    // Both states are larger than the size from which logs are compacted.
    for objects in [200, 2000] {
        let (objects_visited, per_write) = objects_visited_per_write(objects, 3 * objects);
        assert!(objects_visited > 0, "{objects} objects: there were checkpoints");
        assert!(per_write < 1.5, "{objects} objects: {per_write} objects are gone through for each write");
    }
}

#[test]
fn unsynced_bytes_of_a_killed_process_are_rewritten() {
    for seed in 0..50 {
        let disk = Disk::new(seed);
        let mut open = open(&disk);
        open.put("ns/a", "first").expect("written");
        // The sync fails, but the pages stay in memory, and the next process reads them.
        disk.fail_syncs(1);
        open.put("ns/b", &"x".repeat(2000)).expect_err("not durable");
        drop(open);
        let open = self::open(&disk);
        let found = open.data("ns/b");
        assert!(found.is_some());
        disk.crash();
        assert_eq!(self::open(&disk).data("ns/b"), found, "what was shown is still there");
    }
}

#[test]
fn failed_relaxed_writes_are_saved_when_space_is_free() {
    let disk = Disk::new(7);
    let mut open = Stepped::open(&disk, Sync::Relaxed, Instant::now()).expect("opens");
    let put = |open: &mut Stepped, key: &str, data: &str| {
        let precondition = open
            .store
            .latest(TABLE, key)
            .map_or(Precondition::Absent, |e| Precondition::Revision(e.revision));
        let change = Change::Put(object(key, data));
        futures::executor::block_on(open.store.commit(TABLE, key, precondition, change))
    };
    disk.leave_room(10);
    put(&mut open, "ns/a", &"x".repeat(5000)).expect("acknowledged from memory");
    open.run_once(Duration::ZERO);
    assert!(matches!(put(&mut open, "ns/b", "refused"), Err(StoreError::Unavailable(_))));
    disk.free();
    open.run_once(RESUME_TIMEOUT);
    put(&mut open, "ns/b", "second").expect("written");
    open.run_once(RESUME_TIMEOUT);
    disk.crash();
    let open = Stepped::open(&disk, Sync::Relaxed, Instant::now()).expect("opens");
    assert_eq!(open.data("ns/a").map(|data| data.len()), Some(5000));
    assert_eq!(open.data("ns/b").as_deref(), Some("second"));
}

#[test]
fn every_flipped_bit_is_rejected_or_harmless() {
    let disk = Disk::new(8);
    let mut open = open(&disk);
    for i in 0..20 {
        open.put(&format!("ns/o{}", i % 4), &format!("{i}{}", "z".repeat(900))).expect("written");
    }
    let wanted: Vec<_> = (0..4).map(|i| open.data(&format!("ns/o{i}"))).collect();
    drop(open);
    assert_eq!(disk.names().len(), 3, "manifest, snapshot and log: {:?}", disk.names());
    for name in disk.names() {
        let whole = disk.contents(&name);
        let used = whole.iter().rposition(|&b| b != 0).expect("not empty") + 1;
        for byte in (0..used).step_by(3) {
            disk.flip(&name, byte, (byte % 8) as u8);
            let error = Stepped::open(&disk, Sync::Always, Instant::now()).err();
            assert!(matches!(error, Some(StoreError::Corrupt { .. })), "{name} byte {byte}: {error:?}");
            disk.flip(&name, byte, (byte % 8) as u8);
        }
        disk.add_durably(&name, whole);
    }
    let open = self::open(&disk);
    assert_eq!((0..4).map(|i| open.data(&format!("ns/o{i}"))).collect::<Vec<_>>(), wanted);
}

/// Found with seed 7270: a start that zeroed a torn block stopped in the middle of a sector.
#[test]
fn interrupted_zeroing_of_a_torn_block_is_repeated() {
    let disk = Disk::new(11);
    let mut open = open(&disk);
    open.put("ns/a", "first").expect("written");
    let begin = open.writer.log_bytes() as usize;
    open.put("ns/b", "second").expect("written");
    let log = logs(&disk).remove(0);
    let mut bytes = disk.contents(&log);
    bytes[begin..begin + 10].fill(0);
    disk.add_durably(&log, bytes);
    let open = self::open(&disk);
    assert_eq!((open.data("ns/a").as_deref(), open.data("ns/b")), (Some("first"), None));
    assert!(disk.contents(&log)[begin..].iter().all(|&byte| byte == 0));
}

/// Found with seed 1047: the bytes were zero in memory, but the sync that should have written them had
/// failed.
#[test]
fn rest_of_a_log_is_zeroed_on_disk() {
    for seed in 0..50 {
        let disk = Disk::new(seed);
        let mut open = open(&disk);
        open.put("ns/a", "first").expect("written");
        let begin = open.writer.log_bytes() as usize;
        open.put("ns/b", &"b".repeat(2000)).expect("written");
        drop(open);
        // A torn block: its first sector was not written.
        let log = logs(&disk).remove(0);
        let mut bytes = disk.contents(&log);
        bytes[begin..begin.next_multiple_of(512)].fill(0);
        disk.add_durably(&log, bytes);
        disk.fail_syncs(1);
        let error = Stepped::open(&disk, Sync::Always, Instant::now()).err();
        assert!(matches!(error, Some(StoreError::Io { .. })), "{error:?}");
        drop(self::open(&disk));
        disk.crash();
        assert!(disk.contents(&log)[begin..].iter().all(|&byte| byte == 0), "seed {seed}");
    }
}

#[test]
fn unsynced_file_names_are_not_trusted() {
    for seed in 0..200 {
        let disk = Disk::new(seed);
        let mut open = open(&disk);
        disk.set_faults(Faults { names: 300, ..Faults::default() });
        let mut last = None;
        for i in 0..60 {
            let data = format!("{i}{}", "w".repeat(700));
            match open.put("ns/a", &data) {
                Ok(_) => last = Some(data),
                Err(StoreError::Unavailable(_)) => open.run_once(RESUME_TIMEOUT),
                Err(error) => panic!("{error}"),
            }
        }
        disk.set_faults(Faults::default());
        disk.crash();
        assert_eq!(self::open(&disk).data("ns/a"), last, "seed {seed}");
    }
}

/// Files written by format 2: `log` before its first snapshot, `snapshot` with one and the log that follows
/// it.
fn add_old_files(disk: &Disk, case: &str) {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/store-format-2").join(case);
    for entry in std::fs::read_dir(dir).expect("the fixture") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        disk.add_durably(&name, std::fs::read(path).expect("read"));
    }
}

#[test]
fn old_format_is_read_and_replaced() {
    for (case, revision, objects) in [("log", 8, 4), ("snapshot", 62, 4)] {
        let disk = Disk::new(9);
        add_old_files(&disk, case);
        let mut open = open(&disk);
        assert_eq!(open.store.revision(), revision, "{case}");
        assert_eq!(open.store.list(TABLE, "", None, 0).1.len(), objects, "{case}");
        assert!(open.store.get(TABLE, "ns/o3").is_none(), "{case}: it was deleted");
        open.put("ns/o3", "again").expect("written");
        disk.crash();
        let open = self::open(&disk);
        assert_eq!(open.data("ns/o3").as_deref(), Some("again"));
        assert_eq!(open.store.list(TABLE, "", None, 0).1.len(), objects + 1);
        assert!(disk.names().iter().all(|name| !crate::store::legacy::is_legacy(name)), "{:?}", disk.names());
    }
}

#[test]
fn interrupted_migration_is_repeated() {
    for seed in 0..100 {
        let disk = Disk::new(seed);
        add_old_files(&disk, "snapshot");
        disk.set_faults(Faults { write: 100, sync: 200, names: 200, ..Faults::default() });
        let _ = Stepped::open(&disk, Sync::Always, Instant::now());
        disk.set_faults(Faults::default());
        disk.crash();
        assert_eq!(open(&disk).store.revision(), 62, "seed {seed}");
    }
}

#[test]
fn corrupt_and_missing_files_of_the_old_format_are_rejected() {
    let disk = Disk::new(10);
    add_old_files(&disk, "snapshot");
    let files: Vec<_> = disk.names().into_iter().map(|name| (name.clone(), disk.contents(&name))).collect();
    let refused =
        |disk: &Disk| Stepped::open(disk, Sync::Always, Instant::now()).err().map(|e| e.to_string());
    for (name, whole) in &files {
        disk.remove_durably(name);
        assert!(refused(&disk).is_some_and(|error| error.contains("missing")), "{name}");
        disk.add_durably(name, whole.clone());
    }
    let snapshot = &files[0];
    assert_eq!(snapshot.0, "snapshot");
    // Revision and number of objects have no checksum.
    for bit in 0..128 {
        disk.flip("snapshot", 8 + bit / 8, (bit % 8) as u8);
        assert!(refused(&disk).is_some_and(|error| error.contains("damaged")), "bit {bit}");
        disk.flip("snapshot", 8 + bit / 8, (bit % 8) as u8);
    }
    assert_eq!(refused(&disk), None);
}
