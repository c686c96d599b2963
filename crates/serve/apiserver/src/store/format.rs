//! The format of log and snapshot files: a header, then blocks of records. Everything has a checksum.
//!
//! A block is what one append writes. It names its file, its position in the file, and how much of the file
//! was synced before it was written. This separates corruption from a torn write: only what follows the last
//! sync can be torn.

use std::sync::Arc;

use bytes::Bytes;

use super::{Entry, Write};

pub(super) const HEADER: usize = 64;
const BLOCK_HEADER: usize = 40;
const BLOCK_MAGIC: [u8; 4] = *b"FLb3";
/// The last bytes of a block: not zero, so that a block whose end was not written is detected.
const BLOCK_END: [u8; 4] = *b"bEnd";
/// Unit that a disk writes completely or not at all.
const SECTOR: usize = 512;
const DELETED: u8 = 1;

/// Random identity of a store, chosen when it is created; every file carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoreId(pub(super) [u8; 16]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Log,
    Snapshot,
}

impl Kind {
    const fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Log => b"FLWAL\0\0\x03",
            Self::Snapshot => b"FLSNAP\0\x02",
        }
    }
}

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) store: StoreId,
    pub(super) generation: u64,
    pub(super) segment: u64,
    /// The revision that the generation begins with.
    pub(super) revision: u64,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[..8].copy_from_slice(self.kind.magic());
        out[8..24].copy_from_slice(&self.store.0);
        for (at, number) in [(24, self.generation), (32, self.segment), (40, self.revision)] {
            out[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let crc = crc32fast::hash(&out[..HEADER - 4]);
        out[HEADER - 4..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Checksum of the header; every block of the file carries it.
    fn checksum(&self) -> u32 {
        crc32fast::hash(&self.encode()[..HEADER - 4])
    }

    /// Compares the beginning of a file with the header it should have.
    pub(super) fn check(&self, bytes: &[u8]) -> Result<(), String> {
        let Some(found) = bytes.get(..HEADER) else { return Err("the file header is cut off".to_owned()) };
        let wanted = self.encode();
        if found == wanted {
            return Ok(());
        }
        let crc = crc32fast::hash(&found[..HEADER - 4]);
        if found[HEADER - 4..] != crc.to_le_bytes() || found[..8] != wanted[..8] {
            return Err("the file header is damaged".to_owned());
        }
        if found[8..24] != wanted[8..24] {
            return Err("it belongs to another store".to_owned());
        }
        Err("it belongs to another generation of this store".to_owned())
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}

/// Position of the next block: each block names the one before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain {
    file: u32,
    sequence: u32,
    previous: u32,
}

impl Chain {
    pub(super) fn new(header: &Header) -> Self {
        let file = header.checksum();
        Self { file, sequence: 0, previous: file }
    }

    fn advance(&mut self, block_crc: u32) {
        self.sequence = self.sequence.wrapping_add(1);
        self.previous = block_crc;
    }
}

/// A block that is being filled.
#[derive(Debug)]
pub(super) struct Block {
    bytes: Vec<u8>,
    records: u32,
}

impl Default for Block {
    fn default() -> Self {
        Self { bytes: vec![0; BLOCK_HEADER], records: 0 }
    }
}

impl Block {
    pub(super) fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn push(&mut self, write: &Write) {
        let out = &mut self.bytes;
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.push(if write.delete { DELETED } else { 0 });
        out.extend_from_slice(&write.revision.to_le_bytes());
        for part in [&write.table, &write.key] {
            out.extend_from_slice(&(part.len() as u32).to_le_bytes());
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(&write.entry.bytes);
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        self.records += 1;
    }

    /// Completes the block for its position in a file of which the first `durable` bytes are synced.
    pub(super) fn seal(&mut self, chain: &mut Chain, durable: u64) -> &[u8] {
        self.bytes.extend_from_slice(&BLOCK_END);
        let (head, payload) = self.bytes.split_at_mut(BLOCK_HEADER);
        head[..4].copy_from_slice(&BLOCK_MAGIC);
        let numbers =
            [(4, payload.len() as u32), (8, chain.file), (12, chain.sequence), (24, chain.previous)];
        for (at, number) in numbers.into_iter().chain([(28, crc32fast::hash(payload)), (32, self.records)]) {
            head[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        head[16..24].copy_from_slice(&durable.to_le_bytes());
        let crc = crc32fast::hash(&head[..36]);
        head[36..].copy_from_slice(&crc.to_le_bytes());
        chain.advance(crc);
        &self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.bytes.truncate(BLOCK_HEADER);
        self.bytes.shrink_to(1 << 20);
        self.records = 0;
    }
}

/// The header of a block, after its own checksum was verified.
struct BlockHeader {
    length: usize,
    file: u32,
    sequence: u32,
    durable: u64,
    previous: u32,
    checksum: u32,
    records: u32,
    crc: u32,
}

impl BlockHeader {
    fn read(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..BLOCK_HEADER)?;
        let crc = u32_at(head, 36);
        if head[..4] != BLOCK_MAGIC || crc32fast::hash(&head[..36]) != crc {
            return None;
        }
        Some(Self {
            length: u32_at(head, 4) as usize,
            file: u32_at(head, 8),
            sequence: u32_at(head, 12),
            durable: u64_at(head, 16),
            previous: u32_at(head, 24),
            checksum: u32_at(head, 28),
            records: u32_at(head, 32),
            crc,
        })
    }

    fn is_next(&self, chain: &Chain) -> bool {
        (self.file, self.sequence, self.previous) == (chain.file, chain.sequence, chain.previous)
    }
}

/// A complete block.
pub(super) struct ReadBlock<'a> {
    /// Where the next block begins.
    pub(super) end: usize,
    /// How much of the file was synced when this block was written.
    pub(super) durable: u64,
    records: u32,
    rest: &'a [u8],
}

/// Reads the block at `at`, if a complete one is there and it follows the last block of `chain`.
pub(super) fn next<'a>(bytes: &'a [u8], at: usize, chain: &mut Chain) -> Option<ReadBlock<'a>> {
    let head = BlockHeader::read(bytes.get(at..)?)?;
    let start = at + BLOCK_HEADER;
    let payload = bytes.get(start..start.checked_add(head.length)?)?;
    let rest = payload.strip_suffix(&BLOCK_END)?;
    if !head.is_next(chain) || crc32fast::hash(payload) != head.checksum {
        return None;
    }
    chain.advance(head.crc);
    Some(ReadBlock { end: start + head.length, durable: head.durable, records: head.records, rest })
}

impl ReadBlock<'_> {
    /// The records; an error if they do not fill the block.
    pub(super) fn records(&self) -> Result<Vec<Write>, String> {
        let mut rest = self.rest;
        let mut out = Vec::with_capacity(self.records as usize);
        for _ in 0..self.records {
            out.push(record(&mut rest).ok_or("a record is damaged")?);
        }
        if rest.is_empty() { Ok(out) } else { Err("a block holds more than its records".to_owned()) }
    }
}

fn take<'a>(rest: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(n)?;
    *rest = tail;
    Some(head)
}

fn take_length(rest: &mut &[u8]) -> Option<usize> {
    take(rest, 4).map(|b| u32_at(b, 0) as usize)
}

fn take_text(rest: &mut &[u8]) -> Option<Arc<str>> {
    let n = take_length(rest)?;
    std::str::from_utf8(take(rest, n)?).ok().map(Arc::from)
}

fn record(rest: &mut &[u8]) -> Option<Write> {
    let n = take_length(rest)?;
    fields(take(rest, n)?)
}

/// Reads flags, revision, names and object of a record.
pub(super) fn fields(mut fields: &[u8]) -> Option<Write> {
    let delete = take(&mut fields, 1)?[0] & DELETED != 0;
    let revision = u64_at(take(&mut fields, 8)?, 0);
    let table = take_text(&mut fields)?;
    let key = take_text(&mut fields)?;
    let entry = Arc::new(Entry { revision, bytes: Bytes::copy_from_slice(fields) });
    Some(Write { table, key, revision, delete, entry })
}

/// State of a log after its last complete block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tail {
    Empty,
    /// An unsynced write of which a part is missing.
    Torn,
    /// Bytes that differ from what was written.
    Corrupt(String),
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&b| b == 0)
}

/// Decides whether the bytes at `at`, where no complete block begins, are a torn write or corrupt.
pub(super) fn tail(bytes: &[u8], at: usize, chain: &Chain) -> Tail {
    let rest = &bytes[at..];
    let Some(last) = rest.iter().rposition(|&b| b != 0) else { return Tail::Empty };
    if was_synced(rest, at, chain) {
        return Tail::Corrupt(format!(
            "the block at byte {at} is damaged: a later one says that it was synced"
        ));
    }
    if is_torn(bytes, at, at + last, chain) {
        return Tail::Torn;
    }
    Tail::Corrupt(format!(
        "the block at byte {at} is damaged: all of it was written, and its checksum does not match"
    ))
}

/// Whether a later block says that the file was synced beyond `at`.
fn was_synced(rest: &[u8], at: usize, chain: &Chain) -> bool {
    rest.windows(BLOCK_MAGIC.len())
        .enumerate()
        .filter(|(_, window)| **window == BLOCK_MAGIC)
        .filter_map(|(offset, _)| BlockHeader::read(&rest[offset..]))
        .any(|head| head.file == chain.file && head.durable > at as u64)
}

/// Whether a part of the block at `at` was never written. The file was zeroed before, a block begins and ends
/// with bytes that are not zero, and none of its sectors is all zero. So a sector that is all zero was not
/// written, and neither was the end of a block if it is zero. Bytes beyond the end of the file count as zero.
/// `last` is the last byte in the file that is not zero.
fn is_torn(bytes: &[u8], at: usize, last: usize, chain: &Chain) -> bool {
    let end = if let Some(head) = BlockHeader::read(&bytes[at..]).filter(|head| head.is_next(chain)) {
        let end = at.saturating_add(BLOCK_HEADER).saturating_add(head.length);
        if bytes.get(end - 1).is_none_or(|&byte| byte == 0) {
            return true;
        }
        end
    } else {
        // The length is unknown: then the header itself must be torn.
        let end = at + BLOCK_HEADER;
        // A first byte of zero: not written, or a torn block that a start was zeroing when it was
        // interrupted.
        if last < end || end > bytes.len() || bytes[at] == 0 {
            return true;
        }
        bytes.len().min(end.next_multiple_of(SECTOR))
    };
    let mut from = at;
    while from < end {
        let to = end.min((from / SECTOR + 1) * SECTOR);
        if is_zero(&bytes[from..to]) {
            return true;
        }
        from = to;
    }
    false
}
