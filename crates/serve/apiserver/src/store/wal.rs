//! The log file: framed records with a checksum, in a file that is zeroed ahead of the writes.
//!
//! Zeroing ahead keeps the length and the extents of the file as they are, so that a sync writes data only.
//! A record is `length u32, crc u32, payload`; length 0 ends the log. A record that is torn belongs to the last batch, which
//! nobody was told about, and is dropped with the rest of it. One that is followed by the beginning of a later batch was
//! synced before that batch was written: then the file is damaged, and is left as it is.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::{Entry, Write};

const MAGIC: &[u8; 8] = b"FLWAL\0\0\x02";
/// Written before batches were told apart; records of both can follow each other.
const MAGIC_1: &[u8; 8] = b"FLWAL\0\0\x01";
/// What the first byte of a payload says.
const DELETED: u8 = 1;
const BEGINS_BATCH: u8 = 2;
const AHEAD: u64 = 4 << 20;

/// CRC-32 (IEEE), by table.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0u32; 256];
        let mut i = 0;
        while i < 256 {
            let mut c = i as u32;
            let mut bit = 0;
            while bit < 8 {
                c = if c & 1 == 1 { 0xEDB8_8320 ^ (c >> 1) } else { c >> 1 };
                bit += 1;
            }
            table[i] = c;
            i += 1;
        }
        table
    };
    !bytes.iter().fold(!0u32, |c, &b| TABLE[((c ^ u32::from(b)) & 0xff) as usize] ^ (c >> 8))
}

/// Appends the frame of one write. The first of a batch that is synced says so.
pub(super) fn encode(write: &Write, begins_batch: bool, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    let deleted = if write.delete { DELETED } else { 0 };
    out.push(deleted | if begins_batch { BEGINS_BATCH } else { 0 });
    out.extend_from_slice(&write.revision.to_le_bytes());
    for part in [&write.table, &write.key] {
        out.extend_from_slice(&(part.len() as u32).to_le_bytes());
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(&write.entry.bytes);
    let length = (out.len() - start - 8) as u32;
    let crc = crc32(&out[start + 8..]);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
}

fn take<'a>(rest: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(n)?;
    *rest = tail;
    Some(head)
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    take(rest, 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn take_text(rest: &mut &[u8]) -> Option<Arc<str>> {
    let n = take_u32(rest)? as usize;
    std::str::from_utf8(take(rest, n)?).ok().map(Arc::from)
}

/// What comes before the names of a record: cheap to read, and not yet held against the checksum.
struct Head<'a> {
    crc: u32,
    payload: &'a [u8],
    flags: u8,
    revision: u64,
    /// The payload behind flags and revision.
    fields: &'a [u8],
}

impl<'a> Head<'a> {
    /// Takes a frame off; `None` where there is none, or only a part of one.
    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let length = take_u32(rest)? as usize;
        let crc = take_u32(rest)?;
        if length == 0 {
            return None;
        }
        let payload = take(rest, length)?;
        let mut fields = payload;
        let flags = take(&mut fields, 1)?[0];
        let revision = u64::from_le_bytes(take(&mut fields, 8)?.try_into().ok()?);
        Some(Self { crc, payload, flags, revision, fields })
    }

    fn is_whole(&self) -> bool {
        crc32(self.payload) == self.crc
    }
}

/// Reads the next whole record; `None` at the end of the log or at a torn record.
pub(super) fn decode(rest: &mut &[u8]) -> Option<Write> {
    let mut here = *rest;
    let Head { flags, revision, mut fields, .. } = Head::take(&mut here).filter(Head::is_whole)?;
    let delete = flags & DELETED != 0;
    let table = take_text(&mut fields)?;
    let key = take_text(&mut fields)?;
    let entry = Arc::new(Entry { revision, bytes: Bytes::copy_from_slice(fields) });
    *rest = here;
    Some(Write { table, key, revision, delete, entry })
}

/// Whether a batch that came after revision `last` begins somewhere in here.
fn has_later_batch(bytes: &[u8], last: u64) -> bool {
    // Only what looks like the beginning of a batch is worth its checksum.
    (0..bytes.len()).any(|at| {
        Head::take(&mut &bytes[at..]).is_some_and(|head| {
            head.flags & !DELETED == BEGINS_BATCH && head.revision > last && head.is_whole()
        })
    })
}

/// An open log.
#[derive(Debug)]
pub(super) struct Wal {
    file: File,
    pub(super) path: PathBuf,
    /// Where the next record goes.
    position: u64,
    /// Up to where the file is zeroed.
    zeroed: u64,
}

impl Wal {
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        file.write_all_at(MAGIC, 0)?;
        let mut wal = Self { file, path, position: MAGIC.len() as u64, zeroed: MAGIC.len() as u64 };
        wal.zero_ahead(1)?;
        wal.file.sync_all()?;
        Ok(wal)
    }

    /// Opens a log, hands every whole record to `each`, and wipes what follows the last one.
    pub(super) fn open(path: &Path, mut each: impl FnMut(Write)) -> io::Result<Self> {
        let bytes = std::fs::read(path)?;
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if bytes.len() < MAGIC.len() && MAGIC.starts_with(&bytes) {
            // The process ended while the file was being made: nothing was acknowledged yet.
            return Self::create(path.to_owned());
        }
        let damaged = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let known = bytes.strip_prefix(MAGIC.as_slice()).or_else(|| bytes.strip_prefix(MAGIC_1.as_slice()));
        let Some(mut rest) = known else { return Err(damaged("unknown file header".to_owned())) };
        let mut last = 0;
        while let Some(write) = decode(&mut rest) {
            if write.revision <= last {
                break;
            }
            last = write.revision;
            each(write);
        }
        let position = (bytes.len() - rest.len()) as u64;
        let left_over = rest.iter().any(|&b| b != 0);
        if left_over && has_later_batch(rest, last) {
            return Err(damaged(format!("the record at byte {position} is damaged, and others follow it")));
        }
        file.write_all_at(MAGIC, 0)?;
        let mut wal = Self { file, path: path.to_owned(), position, zeroed: bytes.len() as u64 };
        if left_over {
            // Left-overs of a torn batch must never line up with later records.
            wal.file.write_all_at(&vec![0; rest.len()], position)?;
        }
        wal.zero_ahead(1)?;
        wal.file.sync_all()?;
        Ok(wal)
    }

    fn zero_ahead(&mut self, needed: u64) -> io::Result<()> {
        // Always leave room for the zero length that ends the log.
        let end = self.position + needed + 8;
        if end <= self.zeroed {
            return Ok(());
        }
        let to = end.max(self.zeroed + AHEAD);
        let chunk = vec![0u8; 1 << 18];
        while self.zeroed < to {
            let n = chunk.len().min((to - self.zeroed) as usize);
            self.file.write_all_at(&chunk[..n], self.zeroed)?;
            self.zeroed += n as u64;
        }
        Ok(())
    }

    /// Appends a batch of frames.
    pub(super) fn append(&mut self, frames: &[u8], sync: bool) -> io::Result<()> {
        self.zero_ahead(frames.len() as u64)?;
        self.file.write_all_at(frames, self.position)?;
        self.position += frames.len() as u64;
        if sync { self.file.sync_data() } else { Ok(()) }
    }

    /// Bytes of records.
    pub(super) fn len(&self) -> u64 {
        self.position
    }
}
