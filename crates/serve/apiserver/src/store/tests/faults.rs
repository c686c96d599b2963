//! One fault at a time.

use super::disk::Faults;
use super::*;

fn open(disk: &Disk) -> Stepped {
    Stepped::open(disk, Sync::Always, Instant::now()).expect("the store opens")
}

fn logs(disk: &Disk) -> Vec<String> {
    disk.names().into_iter().filter(|name| name.starts_with("wal-")).collect()
}

const SOON: Duration = Duration::from_secs(3);

#[test]
fn a_full_disk_stops_writes_and_they_resume_without_a_restart() {
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
    open.turn(SOON);
    assert!(open.store.failure().is_some(), "still full");
    disk.free();
    open.turn(SOON);
    assert_eq!(open.store.failure(), None);
    open.put("ns/b", "fits").expect("written again");
    disk.crash();
    let open = self::open(&disk);
    assert_eq!((open.data("ns/a").as_deref(), open.data("ns/b").as_deref()), (Some("first"), Some("fits")));
}

#[test]
fn a_log_is_not_written_to_after_a_failed_sync() {
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
        open.turn(SOON);
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
fn a_failed_write_takes_those_that_build_on_it_along() {
    let disk = Disk::new(3);
    let mut open = open(&disk);
    let entry = open.put("ns/a", "1").expect("written");
    let put = |data: &str| Change::Put(object("ns/a", data));
    let mut second = open.begin("ns/a", Expect::Revision(entry.revision), put(&"2".repeat(5000)));
    let next = open.store.latest(TABLE, "ns/a").expect("pending");
    let mut third = open.begin("ns/a", Expect::Revision(next.revision), put("3"));
    disk.fail_syncs(1);
    open.turn(Duration::ZERO);
    let failed = |answer: &mut Answer| matches!(poll(answer), Some(Err(StoreError::Failed(_))));
    assert!(failed(&mut second) && failed(&mut third));
    assert_eq!(open.store.latest(TABLE, "ns/a").map(|e| e.revision), Some(entry.revision));
    open.turn(SOON);
    open.put("ns/a", "4").expect("written");
    assert_eq!(open.data("ns/a").as_deref(), Some("4"));
}

#[test]
fn controllers_wait_until_the_store_takes_writes_again() {
    let disk = Disk::new(12);
    let mut open = open(&disk);
    let entry = open.put("ns/a", "1").expect("written");
    let store = open.store.clone();
    let write = move || -> Answer {
        let (store, change) = (store.clone(), Change::Put(object("ns/a", "2")));
        let expect = Expect::Revision(entry.revision);
        Box::pin(async move { store.commit_when_writable(TABLE, "ns/a", expect, change).await })
    };
    let (mut failing, mut refused) = (write(), write());
    assert!(poll(&mut failing).is_none());
    disk.fail_syncs(1);
    open.turn(Duration::ZERO);
    assert!(poll(&mut failing).is_none() && poll(&mut refused).is_none(), "both wait");
    open.turn(SOON);
    let conflict = |answer: &mut Answer| matches!(poll(answer), Some(Err(StoreError::Conflict)));
    assert!(conflict(&mut failing) && conflict(&mut refused), "the object is read again");
    let mut again = write();
    assert!(poll(&mut again).is_none());
    open.turn(Duration::ZERO);
    assert!(matches!(poll(&mut again), Some(Ok(_))));
}

#[test]
fn a_failed_checkpoint_is_retried_and_leaves_no_file() {
    let disk = Disk::new(4);
    let mut open = open(&disk);
    let snapshots = || disk.names().into_iter().filter(|name| name.contains("snapshot")).count();
    // The state is larger than what is left on the disk, the log is not.
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
    assert!(open.store.shared.walked() > 0, "it was tried");
    assert_eq!(open.store.failure(), None);
    let walked = open.store.shared.walked();
    open.put("ns/a", "not at once").expect("written");
    assert_eq!(open.store.shared.walked(), walked, "not with every write");
    disk.free();
    open.turn(Duration::from_secs(600));
    assert_eq!(snapshots(), 1, "tried again when there is room");
    assert!(open.writer.log_bytes() < 1000);
    disk.crash();
    let open = self::open(&disk);
    assert_eq!(open.data("ns/a").as_deref(), Some("not at once"));
}

#[test]
fn temporary_and_stale_files_are_removed_at_the_start() {
    let disk = Disk::new(5);
    drop(open(&disk).put("ns/a", "1").expect("written"));
    let named = disk.names();
    let left = ["manifest.tmp", "snapshot.tmp", "snapshot-0000000002", "wal-0000000002-00000", "snapshot"];
    left.iter().for_each(|name| disk.place(name, b"something".to_vec()));
    assert_eq!(open(&disk).data("ns/a").as_deref(), Some("1"));
    assert_eq!(disk.names(), named);
}

/// Writes to a store with many objects, and counts how many of them checkpoints go through.
fn walked_per_write(objects: usize, writes: usize) -> (u64, f64) {
    let disk = Disk::new(6);
    let mut open = open(&disk);
    (0..objects).for_each(|i| drop(open.put(&format!("ns/o{i}"), &"x".repeat(64)).expect("written")));
    let before = open.store.shared.walked();
    for i in 0..writes {
        open.put(&format!("ns/o{}", i % objects), &format!("{i}{}", "y".repeat(64))).expect("written");
    }
    let walked = open.store.shared.walked() - before;
    (walked, walked as f64 / writes as f64)
}

#[test]
fn the_cost_of_checkpoints_per_write_does_not_grow_with_the_state() {
    // Both states are larger than the size from which on logs are compacted.
    for objects in [200, 2000] {
        let (walked, per_write) = walked_per_write(objects, 3 * objects);
        assert!(walked > 0, "{objects} objects: there were checkpoints");
        assert!(per_write < 1.5, "{objects} objects: {per_write} objects are gone through for each write");
    }
}

#[test]
fn what_a_killed_process_could_not_sync_is_written_again() {
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
fn relaxed_writes_that_could_not_be_written_are_saved_when_there_is_room() {
    let disk = Disk::new(7);
    let mut open = Stepped::open(&disk, Sync::Relaxed, Instant::now()).expect("opens");
    let put = |open: &mut Stepped, key: &str, data: &str| {
        let expect = open.store.latest(TABLE, key).map_or(Expect::Absent, |e| Expect::Revision(e.revision));
        let change = Change::Put(object(key, data));
        futures::executor::block_on(open.store.commit(TABLE, key, expect, change))
    };
    disk.leave_room(10);
    put(&mut open, "ns/a", &"x".repeat(5000)).expect("acknowledged from memory");
    open.turn(Duration::ZERO);
    assert!(matches!(put(&mut open, "ns/b", "refused"), Err(StoreError::Unavailable(_))));
    disk.free();
    open.turn(SOON);
    put(&mut open, "ns/b", "second").expect("written");
    open.turn(SOON);
    disk.crash();
    let open = Stepped::open(&disk, Sync::Relaxed, Instant::now()).expect("opens");
    assert_eq!(open.data("ns/a").map(|data| data.len()), Some(5000));
    assert_eq!(open.data("ns/b").as_deref(), Some("second"));
}

#[test]
fn every_flipped_bit_in_a_file_is_refused_or_harmless() {
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
        disk.place(&name, whole);
    }
    let open = self::open(&disk);
    assert_eq!((0..4).map(|i| open.data(&format!("ns/o{i}"))).collect::<Vec<_>>(), wanted);
}

/// Found with seed 7270: a start that wiped a torn block ended in the middle of a sector.
#[test]
fn a_torn_block_that_was_being_wiped_is_wiped_again() {
    let disk = Disk::new(11);
    let mut open = open(&disk);
    open.put("ns/a", "first").expect("written");
    let begin = open.writer.log_bytes() as usize;
    open.put("ns/b", "second").expect("written");
    let log = logs(&disk).remove(0);
    let mut bytes = disk.contents(&log);
    bytes[begin..begin + 10].fill(0);
    disk.place(&log, bytes);
    let open = self::open(&disk);
    assert_eq!((open.data("ns/a").as_deref(), open.data("ns/b")), (Some("first"), None));
    assert!(disk.contents(&log)[begin..].iter().all(|&byte| byte == 0));
}

/// Found with seed 1047: the wiped bytes were zero in memory, but the sync that should have written them had failed.
#[test]
fn the_rest_of_a_log_is_zeroed_on_the_disk_and_not_only_in_memory() {
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
        disk.place(&log, bytes);
        disk.fail_syncs(1);
        let error = Stepped::open(&disk, Sync::Always, Instant::now()).err();
        assert!(matches!(error, Some(StoreError::Io { .. })), "{error:?}");
        drop(self::open(&disk));
        disk.crash();
        assert!(disk.contents(&log)[begin..].iter().all(|&byte| byte == 0), "seed {seed}");
    }
}

#[test]
fn a_name_that_was_not_synced_is_not_relied_on() {
    for seed in 0..200 {
        let disk = Disk::new(seed);
        let mut open = open(&disk);
        disk.set_faults(Faults { names: 300, ..Faults::default() });
        let mut last = None;
        for i in 0..60 {
            let data = format!("{i}{}", "w".repeat(700));
            match open.put("ns/a", &data) {
                Ok(_) => last = Some(data),
                Err(StoreError::Unavailable(_)) => open.turn(SOON),
                Err(error) => panic!("{error}"),
            }
        }
        disk.set_faults(Faults::default());
        disk.crash();
        assert_eq!(self::open(&disk).data("ns/a"), last, "seed {seed}");
    }
}

/// Made by version 2 of the format: `log` before its first snapshot, `snapshot` with one and a log that follows it.
fn place_old(disk: &Disk, case: &str) {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/store-format-2").join(case);
    for entry in std::fs::read_dir(dir).expect("the fixture") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        disk.place(&name, std::fs::read(path).expect("read"));
    }
}

#[test]
fn the_old_format_is_read_and_replaced() {
    for (case, revision, objects) in [("log", 8, 4), ("snapshot", 62, 4)] {
        let disk = Disk::new(9);
        place_old(&disk, case);
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
fn an_interrupted_migration_begins_again() {
    for seed in 0..100 {
        let disk = Disk::new(seed);
        place_old(&disk, "snapshot");
        disk.set_faults(Faults { write: 100, sync: 200, names: 200, ..Faults::default() });
        let _ = Stepped::open(&disk, Sync::Always, Instant::now());
        disk.set_faults(Faults::default());
        disk.crash();
        assert_eq!(open(&disk).store.revision(), 62, "seed {seed}");
    }
}

#[test]
fn damage_and_missing_files_of_the_old_format_are_refused() {
    let disk = Disk::new(10);
    place_old(&disk, "snapshot");
    let files: Vec<_> = disk.names().into_iter().map(|name| (name.clone(), disk.contents(&name))).collect();
    let refused =
        |disk: &Disk| Stepped::open(disk, Sync::Always, Instant::now()).err().map(|e| e.to_string());
    for (name, whole) in &files {
        disk.lose(name);
        assert!(refused(&disk).is_some_and(|error| error.contains("missing")), "{name}");
        disk.place(name, whole.clone());
    }
    let snapshot = &files[0];
    assert_eq!(snapshot.0, "snapshot");
    // Revision and number of objects, which have no checksum.
    for bit in 0..128 {
        disk.flip("snapshot", 8 + bit / 8, (bit % 8) as u8);
        assert!(refused(&disk).is_some_and(|error| error.contains("damaged")), "bit {bit}");
        disk.flip("snapshot", 8 + bit / 8, (bit % 8) as u8);
    }
    assert_eq!(refused(&disk), None);
}
