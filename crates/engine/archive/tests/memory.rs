//! A05, A06: time and memory that a malicious archive costs before it is rejected. A process of its own,
//! because it measures the process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use fl_archive::{EntryKind, Mode, ReadError, ReadLimits, TarWriter, TreeBuilder, read_tar, read_tar_gz};

/// MiB of memory that reading may take in addition.
const MAX_EXTRA_MIB: u64 = 16;
const MAX_TIME: Duration = Duration::from_secs(2);

/// The highest resident size since the last reset, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Runs a read that must be rejected at little cost.
fn assert_rejected(what: &str, read: impl FnOnce() -> Result<(), ReadError>) -> ReadError {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let (before, start) = (peak(), Instant::now());
    let error = read().unwrap_err();
    let (extra, taken) = (peak().saturating_sub(before) / 1024, start.elapsed());
    println!("{what}: {extra} MiB, {taken:?}: {error}");
    assert!(extra <= MAX_EXTRA_MIB, "{what} took {extra} MiB");
    assert!(!what.contains("bomb") || taken <= MAX_TIME, "{what} took {taken:?}");
    error
}

fn list(archive: impl Read, packed: bool) -> Result<(), ReadError> {
    let limits = ReadLimits::default();
    let mut listing = TreeBuilder::new(&limits);
    let visit = |entry: &fl_archive::Entry, content: &mut dyn Read| match entry.kind {
        EntryKind::File { executable } => {
            let size = io::copy(content, &mut io::sink())?;
            listing.file(&entry.name, executable, size)
        }
        _ => listing.directory(&entry.name),
    };
    if packed {
        read_tar_gz(archive, &limits, visit)?;
    } else {
        read_tar(archive, &limits, visit)?;
    }
    listing.finish().map(drop)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn header(name: &str, size: u64) -> Vec<u8> {
    let mut tar = TarWriter::new(Vec::new());
    let _ = tar.file(name, Mode::File, size, &mut io::empty());
    let mut bytes = tar.finish().unwrap();
    bytes.truncate(bytes.len() - 1024);
    bytes
}

/// Repeats the same bytes.
struct Repeat<'a> {
    bytes: &'a [u8],
    at: usize,
    left: u64,
}

impl Read for Repeat<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = buffer
            .len()
            .min(self.bytes.len() - self.at)
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        buffer[..n].copy_from_slice(&self.bytes[self.at..self.at + n]);
        self.at = (self.at + n) % self.bytes.len();
        self.left -= n as u64;
        Ok(n)
    }
}

/// An archive of many small files, generated while it is read.
struct ManySmallFiles {
    next: u64,
    block: io::Cursor<Vec<u8>>,
}

impl Read for ManySmallFiles {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.block.position() == 512 && self.next > 0 {
            self.block = io::Cursor::new(header(&format!("some/where/f{:08}", self.next), 0));
            self.next -= 1;
        }
        self.block.read(buffer)
    }
}

#[test]
fn malicious_archives_are_rejected_cheaply() {
    let zeros = gzip(&vec![0; 4 << 20]);
    let bomb = |size: u64| {
        let start = gzip(&header("zeros", size));
        io::Cursor::new(start).chain(Repeat { bytes: &zeros, at: 0, left: size / 1000 })
    };
    let grown = assert_rejected("a bomb of 3 GB", || list(bomb(3 << 30), true));
    assert!(matches!(grown, ReadError::CompressionRatio { .. }), "{grown}");
    let claimed = assert_rejected("a bomb of 100 GB", || list(bomb(100 << 30), true));
    assert!(matches!(claimed, ReadError::Limit { what: "bytes", .. }), "{claimed}");

    let tiny = ManySmallFiles { next: 10_000_000, block: io::Cursor::new(header("first", 0)) };
    let many = assert_rejected("ten million files", || list(tiny, false));
    assert!(matches!(many, ReadError::Limit { what: "entries", .. }), "{many}");

    let mut extension = header("PaxHeaders.0/x", 1 << 30);
    extension[156] = b'x';
    reseal(&mut extension);
    let endless = || Repeat { bytes: b"12 comment=x", at: 0, left: 1 << 30 };
    let long = assert_rejected("a header of 1 GB", || {
        list(io::Cursor::new(extension.clone()).chain(endless()), false)
    });
    assert!(matches!(long, ReadError::Limit { what: "bytes in one header", .. }), "{long}");

    let record = "37 GNU.sparse.realsize=1099511627776\n";
    let mut sparse = header("PaxHeaders.0/x", record.len() as u64);
    sparse[156] = b'x';
    reseal(&mut sparse);
    sparse.extend(record.as_bytes());
    sparse.resize(1024, 0);
    sparse.extend(header("sparse", 0));
    assert_rejected("a sparse file of 1 TB", || list(sparse.as_slice(), false));
    let mut old = header("sparse", 512);
    old[156] = b'S';
    reseal(&mut old);
    assert_rejected("an old sparse file", || list(old.as_slice(), false));

    // A few names that imply many directories.
    let mut deep = Vec::new();
    for i in 0..1000 {
        let path = format!("{i}/{}", "d/".repeat(900));
        let mut tar = TarWriter::new(Vec::new());
        tar.directory(&path).unwrap();
        let bytes = tar.finish().unwrap();
        deep.extend_from_slice(&bytes[..bytes.len() - 1024]);
    }
    let nested = assert_rejected("deep directories", || list(deep.as_slice(), false));
    assert!(matches!(nested, ReadError::Limit { what: "directories", .. }), "{nested}");
}

fn reseal(block: &mut [u8]) {
    block[148..156].copy_from_slice(b"        ");
    let sum: u32 = block[..512].iter().map(|b| u32::from(*b)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
}
