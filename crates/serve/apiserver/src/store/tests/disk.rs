//! An in-memory disk with fault injection.
//!
//! Only synced bytes are safe. After a crash each sector written since then holds the old or the new bytes,
//! independently of the others; created, renamed and removed names come back in any combination unless the
//! directory was synced. A failed sync has written some sectors, and the others count as clean from then on:
//! they are read back from memory, and no later sync writes them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::store::files::{File, Files};

const SECTOR: usize = 512;

/// Faults per thousand operations.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Faults {
    /// Writes that end early without an error.
    pub(super) short: u32,
    /// Writes that end early with EIO.
    pub(super) write: u32,
    /// Syncs of files, with EIO.
    pub(super) sync: u32,
    /// Operations on names, and syncs of the directory.
    pub(super) names: u32,
}

#[derive(Debug, Clone)]
enum Operation {
    Create(String, u64),
    Rename(String, String),
    Remove(String),
}

fn run(names: &mut BTreeMap<String, u64>, operation: Operation) {
    match operation {
        Operation::Create(name, file) => drop(names.insert(name, file)),
        Operation::Rename(from, to) => {
            if let Some(file) = names.remove(&from) {
                names.insert(to, file);
            }
        }
        Operation::Remove(name) => drop(names.remove(&name)),
    }
}

#[derive(Debug, Default)]
struct Data {
    /// Bytes that the running system reads.
    cache: Vec<u8>,
    disk: Vec<u8>,
    /// Sectors that the next sync writes.
    dirty: BTreeSet<usize>,
}

impl Data {
    fn write_back(&mut self, sector: usize) {
        let (from, to) = (sector * SECTOR, self.cache.len().min((sector + 1) * SECTOR));
        if self.disk.len() < to {
            self.disk.resize(to, 0);
        }
        self.disk[from..to].copy_from_slice(&self.cache[from..to]);
    }

    /// Writes some of the dirty sectors.
    fn write_back_some(&mut self, random: &mut StdRng) {
        let share = random.random_range(0..=4);
        for sector in std::mem::take(&mut self.dirty) {
            if random.random_range(0..4) < share {
                self.write_back(sector);
            }
        }
    }
}

#[derive(Debug)]
struct Inner {
    random: StdRng,
    faults: Faults,
    capacity: u64,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    /// Operations since the last sync of the directory.
    operations: Vec<Operation>,
    files: BTreeMap<u64, Data>,
    next_file: u64,
    /// Whether syncs block.
    syncs_blocked: bool,
    /// Syncs that are blocked.
    waiting: u32,
    /// How many of the next file syncs fail.
    failing_syncs: u32,
}

impl Inner {
    fn fails(&mut self, of_a_thousand: u32) -> io::Result<()> {
        match self.random.random_range(0..1000) < of_a_thousand {
            true => Err(io::Error::from_raw_os_error(5)),
            false => Ok(()),
        }
    }

    fn file(&self, name: &str) -> io::Result<u64> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change_names(&mut self, operation: Operation) {
        run(&mut self.names, operation.clone());
        self.operations.push(operation);
    }

    fn sync_names(&mut self) {
        for operation in std::mem::take(&mut self.operations) {
            run(&mut self.durable_names, operation);
        }
    }

    fn used(&self) -> u64 {
        self.names.values().map(|file| self.files[file].cache.len() as u64).sum()
    }
}

#[derive(Debug, Clone)]
pub(super) struct Disk(Arc<(Mutex<Inner>, Condvar)>);

impl Disk {
    pub(super) fn new(seed: u64) -> Self {
        let inner = Inner {
            random: StdRng::seed_from_u64(seed),
            faults: Faults::default(),
            capacity: u64::MAX,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            operations: Vec::new(),
            files: BTreeMap::new(),
            next_file: 0,
            syncs_blocked: false,
            waiting: 0,
            failing_syncs: 0,
        };
        Self(Arc::new((Mutex::new(inner), Condvar::new())))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.0.lock().expect("no panic while it is held")
    }

    /// Sets the faults, and returns the previous ones.
    pub(super) fn set_faults(&self, faults: Faults) -> Faults {
        std::mem::replace(&mut self.lock().faults, faults)
    }

    /// Sets the free space in bytes.
    pub(super) fn leave_room(&self, bytes: u64) {
        let mut inner = self.lock();
        inner.capacity = inner.used() + bytes;
    }

    pub(super) fn free(&self) {
        self.lock().capacity = u64::MAX;
    }

    pub(super) fn fail_syncs(&self, n: u32) {
        self.lock().failing_syncs = n;
    }

    /// Blocks syncs until [`Disk::release_syncs`].
    pub(super) fn block_syncs(&self) {
        self.lock().syncs_blocked = true;
    }

    pub(super) fn release_syncs(&self) {
        self.lock().syncs_blocked = false;
        self.0.1.notify_all();
    }

    /// Waits until a sync is blocked.
    pub(super) fn wait_for_sync(&self) {
        let mut inner = self.lock();
        while inner.waiting == 0 {
            inner = self.0.1.wait(inner).expect("no panic while it is held");
        }
    }

    /// Simulates a power failure.
    pub(super) fn crash(&self) {
        let mut inner = self.lock();
        let Inner { random, durable_names, operations, files, .. } = &mut *inner;
        let share = random.random_range(0..=4);
        for operation in std::mem::take(operations) {
            if random.random_range(0..4) < share {
                run(durable_names, operation);
            }
        }
        let names = durable_names.clone();
        files.retain(|file, _| names.values().any(|named| named == file));
        for data in files.values_mut() {
            data.write_back_some(random);
            if random.random_range(0..2) == 0 && data.disk.len() < data.cache.len() {
                data.disk.resize(data.cache.len(), 0);
            }
            data.cache.clone_from(&data.disk);
        }
        inner.names = names;
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.lock().names.keys().cloned().collect()
    }

    pub(super) fn contents(&self, name: &str) -> Vec<u8> {
        self.read(name).expect("the file is there")
    }

    /// Adds a durable file.
    pub(super) fn add_durably(&self, name: &str, bytes: Vec<u8>) {
        let mut inner = self.lock();
        inner.sync_names();
        let file = inner.next_file;
        inner.next_file += 1;
        inner.files.insert(file, Data { cache: bytes.clone(), disk: bytes, dirty: BTreeSet::new() });
        inner.names.insert(name.to_owned(), file);
        inner.durable_names.insert(name.to_owned(), file);
    }

    /// Removes a file durably.
    pub(super) fn remove_durably(&self, name: &str) {
        let mut inner = self.lock();
        inner.sync_names();
        inner.names.remove(name);
        inner.durable_names.remove(name);
    }

    pub(super) fn flip(&self, name: &str, byte: usize, bit: u8) {
        let mut inner = self.lock();
        let file = inner.file(name).expect("the file is there");
        let data = inner.files.get_mut(&file).expect("named");
        data.cache[byte] ^= 1 << bit;
        if let Some(byte) = data.disk.get_mut(byte) {
            *byte ^= 1 << bit;
        }
    }
}

impl Files for Disk {
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("/disk").join(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.names())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let inner = self.lock();
        Ok(inner.files[&inner.file(name)?].cache.clone())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        let mut inner = self.lock();
        let of_a_thousand = inner.faults.names;
        inner.fails(of_a_thousand)?;
        if inner.names.contains_key(name) {
            inner.change_names(Operation::Remove(name.to_owned()));
        }
        let file = inner.next_file;
        inner.next_file += 1;
        inner.files.insert(file, Data::default());
        inner.change_names(Operation::Create(name.to_owned(), file));
        Ok(Box::new(Open { disk: self.clone(), file }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        let file = self.lock().file(name)?;
        Ok(Box::new(Open { disk: self.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.lock();
        inner.file(from)?;
        let of_a_thousand = inner.faults.names;
        let failed = inner.fails(of_a_thousand);
        // A failed operation may have happened nevertheless.
        if failed.is_ok() || inner.random.random_range(0..2) == 0 {
            inner.change_names(Operation::Rename(from.to_owned(), to.to_owned()));
        }
        failed
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inner = self.lock();
        inner.file(name)?;
        let of_a_thousand = inner.faults.names;
        inner.fails(of_a_thousand)?;
        inner.change_names(Operation::Remove(name.to_owned()));
        Ok(())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut inner = self.lock();
        let of_a_thousand = inner.faults.names;
        inner.fails(of_a_thousand)?;
        inner.sync_names();
        Ok(())
    }
}

#[derive(Debug)]
struct Open {
    disk: Disk,
    file: u64,
}

impl File for Open {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut inner = self.disk.lock();
        let Faults { short, write, .. } = inner.faults;
        let failed = inner.fails(write);
        let mut n = bytes.len();
        if failed.is_err() || inner.fails(short).is_err() {
            n = inner.random.random_range(0..=n);
        }
        let room = inner.capacity.saturating_sub(inner.used());
        let data = inner.files.get_mut(&self.file).expect("open");
        let offset = offset as usize;
        assert!(offset <= data.cache.len(), "no holes are written");
        n = n.min((data.cache.len() as u64 + room - offset as u64).try_into().unwrap_or(usize::MAX));
        if n > 0 {
            if data.cache.len() < offset + n {
                data.cache.resize(offset + n, 0);
            }
            data.cache[offset..offset + n].copy_from_slice(&bytes[..n]);
            data.dirty.extend(offset / SECTOR..=(offset + n - 1) / SECTOR);
        }
        failed?;
        if n == 0 && !bytes.is_empty() {
            return match room {
                0 => Err(io::ErrorKind::StorageFull.into()),
                // A short write of no bytes does not occur in a kernel.
                _ => Err(io::ErrorKind::Interrupted.into()),
            };
        }
        Ok(n)
    }

    fn sync(&mut self) -> io::Result<()> {
        let (lock, changed) = &*self.disk.0;
        let mut inner = lock.lock().expect("no panic while it is held");
        inner.waiting += 1;
        changed.notify_all();
        while inner.syncs_blocked {
            inner = changed.wait(inner).expect("no panic while it is held");
        }
        inner.waiting -= 1;
        let of_a_thousand = inner.faults.sync;
        let mut failed = inner.fails(of_a_thousand);
        if inner.failing_syncs > 0 {
            inner.failing_syncs -= 1;
            failed = Err(io::Error::from_raw_os_error(5));
        }
        let Inner { random, files, .. } = &mut *inner;
        let data = files.get_mut(&self.file).expect("open");
        if failed.is_err() {
            data.write_back_some(random);
        } else {
            for sector in std::mem::take(&mut data.dirty) {
                data.write_back(sector);
            }
        }
        failed
    }
}
