//! Files of formats 1 and 2, which had no manifest: `snapshot` and `wal-REVISION`. They are read once and
//! replaced.
//!
//! Their headers have no checksum. Their consistency is checked as far as possible: a log is named after the
//! revision of the snapshot that it follows.

use std::io;

use super::files::Files;
use super::format::fields;
use super::{State, StoreError, Write};

const SNAPSHOT: &str = "snapshot";
const SNAPSHOT_MAGIC: &[u8; 8] = b"FLSNAP\0\x01";
const LOG_MAGIC: &[u8; 8] = b"FLWAL\0\0\x02";
const LOG_MAGIC_1: &[u8; 8] = b"FLWAL\0\0\x01";
const DELETED: u8 = 1;
/// Flag of the first record of a batch that was synced before the next one was written.
const BEGINS_BATCH: u8 = 2;

pub(super) fn is_log(name: &str) -> bool {
    log_revision(name).is_some()
}

fn log_revision(name: &str) -> Option<u64> {
    name.strip_prefix("wal-").filter(|digits| digits.len() == 20)?.parse().ok()
}

pub(super) fn is_legacy(name: &str) -> bool {
    name == SNAPSHOT || name == "snapshot.tmp" || is_log(name)
}

/// Reads the files of an older format, if there are any.
pub(super) fn load(files: &dyn Files, names: &[String], state: &mut State) -> Result<bool, StoreError> {
    let path = |name: &str| files.path(name).display().to_string();
    let corrupt =
        |name: &str, detail: &str| StoreError::Corrupt { path: path(name), detail: detail.to_owned() };
    let read = |name: &str| {
        files.read(name).map_err(|source: io::Error| StoreError::Io {
            what: "read",
            path: path(name),
            source,
        })
    };
    let logs: Vec<(u64, &String)> =
        names.iter().filter_map(|name| Some((log_revision(name)?, name))).collect();
    let mut base = 0;
    if names.iter().any(|name| name == SNAPSHOT) {
        let (revision, all) = read_snapshot(&read(SNAPSHOT)?).map_err(|what| corrupt(SNAPSHOT, &what))?;
        if logs.is_empty() {
            return Err(StoreError::Missing { path: path(&format!("wal-{revision:020}")) });
        }
        state.load(all, revision);
        base = revision;
    } else if let Some((first, _)) = logs.first().filter(|(first, _)| *first > 1) {
        let what = path(SNAPSHOT);
        return Err(StoreError::Missing { path: format!("{what} (of revision {first})") });
    }
    let mut last = None;
    for (_, name) in &logs {
        let writes = read_log(&read(name)?).map_err(|what| corrupt(name, &what))?;
        for write in writes {
            if write.revision > base {
                state.apply(&write);
            }
            last = Some(write);
        }
    }
    // A crash between the two leaves the previous log, which ends with the same write as the snapshot.
    let newest = logs.last().map_or(0, |(revision, _)| *revision);
    let ends_with = |write: Write| {
        let found = state.tables.get(&write.table).and_then(|table| table.entries.get(&write.key));
        let wanted = (!write.delete).then_some(write.revision);
        write.revision == base && found.map(|entry| entry.revision) == wanted
    };
    if base > 0 && newest != base && !last.is_some_and(ends_with) {
        let what = format!("it is damaged: its revision is {base}, but the log follows revision {newest}");
        return Err(corrupt(SNAPSHOT, &what));
    }
    Ok(!logs.is_empty())
}

fn u64_from(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

fn read_snapshot(bytes: &[u8]) -> Result<(u64, Vec<Write>), String> {
    let rest = bytes.strip_prefix(SNAPSHOT_MAGIC.as_slice()).ok_or("unknown file header")?;
    let (head, mut rest) = rest.split_at_checked(16).ok_or("the header is cut off")?;
    let (revision, count) = (u64_from(&head[..8]), u64_from(&head[8..]));
    let mut all = Vec::new();
    while let Some(write) = decode(&mut rest) {
        all.push(write);
    }
    if !rest.is_empty() || all.len() as u64 != count {
        return Err(format!("it is damaged: {} of {count} records can be read", all.len()));
    }
    match all.iter().find(|write| write.revision > revision) {
        Some(write) => Err(format!("it is damaged: a record of revision {} in {revision}", write.revision)),
        None => Ok((revision, all)),
    }
}

fn read_log(bytes: &[u8]) -> Result<Vec<Write>, String> {
    if bytes.len() < LOG_MAGIC.len() && LOG_MAGIC.starts_with(bytes) {
        // The process ended while it created the file.
        return Ok(Vec::new());
    }
    let known =
        bytes.strip_prefix(LOG_MAGIC.as_slice()).or_else(|| bytes.strip_prefix(LOG_MAGIC_1.as_slice()));
    let mut rest = known.ok_or("unknown file header")?;
    let mut writes: Vec<Write> = Vec::new();
    let mut last = 0;
    while let Some(write) = decode(&mut rest).filter(|write| write.revision > last) {
        last = write.revision;
        writes.push(write);
    }
    if has_later_batch(rest, last) {
        let position = bytes.len() - rest.len();
        return Err(format!("the record at byte {position} is damaged, and others follow it"));
    }
    Ok(writes)
}

/// The part of a record before its names, before the checksum was verified.
struct Frame<'a> {
    crc: u32,
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let (head, tail) = rest.split_at_checked(8)?;
        let part = |at: usize| head[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let (payload, tail) = tail.split_at_checked(part(0) as usize).filter(|(p, _)| p.len() >= 9)?;
        *rest = tail;
        Some(Self { crc: part(4), payload })
    }

    fn is_whole(&self) -> bool {
        crc32fast::hash(self.payload) == self.crc
    }
}

fn decode(rest: &mut &[u8]) -> Option<Write> {
    let mut here = *rest;
    let frame = Frame::take(&mut here).filter(Frame::is_whole)?;
    let write = fields(frame.payload)?;
    *rest = here;
    Some(write)
}

/// Whether a batch after revision `last` begins somewhere in `bytes`.
fn has_later_batch(bytes: &[u8], last: u64) -> bool {
    (0..bytes.len()).any(|at| {
        Frame::take(&mut &bytes[at..]).is_some_and(|frame| {
            frame.payload[0] & !DELETED == BEGINS_BATCH
                && u64_from(&frame.payload[1..9]) > last
                && frame.is_whole()
        })
    })
}
