//! The manifest: which files make up the store. It is replaced atomically, and a checkpoint takes effect with
//! it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::files::{Files, write_all_at};
use super::format::{Header, Kind, StoreId};

pub(super) const NAME: &str = "manifest";
pub(super) const TEMPORARY: &str = "manifest.tmp";
const TITLE: &str = "fluorite store 3";

/// One file of the write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogFile {
    pub(super) segment: u64,
    /// Bytes after this offset are ignored; `None` for the log that is being written.
    pub(super) end: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) store: StoreId,
    /// Number of checkpoints so far.
    pub(super) generation: u64,
    /// The revision of the state that the generation begins with.
    pub(super) revision: u64,
    /// Whether that state is in a snapshot; otherwise it is empty.
    pub(super) snapshot: bool,
    pub(super) logs: Vec<LogFile>,
}

/// Why the manifest was not replaced.
#[derive(Debug)]
pub(super) enum ReplaceError {
    /// The old manifest is in effect.
    Unchanged(std::io::Error),
    /// After a crash either manifest may be found: nothing may be written that only one of them names.
    Unknown(std::io::Error),
}

impl Manifest {
    pub(super) fn snapshot_name(&self) -> String {
        format!("snapshot-{:010}", self.generation)
    }

    pub(super) fn log_name(&self, segment: u64) -> String {
        format!("wal-{:010}-{segment:05}", self.generation)
    }

    pub(super) fn header(&self, kind: Kind, segment: u64) -> Header {
        Header { kind, store: self.store, generation: self.generation, segment, revision: self.revision }
    }

    /// The names of all files.
    pub(super) fn names(&self) -> Vec<String> {
        let snapshot = self.snapshot.then(|| self.snapshot_name());
        snapshot.into_iter().chain(self.logs.iter().map(|log| self.log_name(log.segment))).collect()
    }

    fn encode(&self) -> String {
        let logs: Vec<Value> =
            self.logs.iter().map(|log| json!({"segment": log.segment, "end": log.end})).collect();
        let store = self.store.0.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let body = json!({"store": store, "generation": self.generation, "revision": self.revision,
            "snapshot": self.snapshot, "logs": logs});
        let text = format!("{TITLE}\n{body}\n");
        let crc = crc32fast::hash(text.as_bytes());
        format!("{text}{crc:08x}\n")
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is damaged")?;
        let (title, _) = text.split_once('\n').ok_or("it is damaged")?;
        let end =
            text.len().checked_sub(9).filter(|&end| text.is_char_boundary(end)).ok_or("it is damaged")?;
        let (body, checksum) = text.split_at(end);
        if format!("{:08x}\n", crc32fast::hash(body.as_bytes())) != checksum {
            return Err("its checksum does not match".to_owned());
        }
        if title != TITLE {
            return Err(format!("it begins with {title:?}: a newer version of fluorite wrote it"));
        }
        Self::read(&body[TITLE.len() + 1..]).ok_or_else(|| "a field is missing".to_owned())
    }

    fn read(body: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(body).ok()?;
        let hex = value["store"].as_str().filter(|hex| hex.len() == 32)?;
        let mut store = StoreId([0; 16]);
        for (i, byte) in store.0.iter_mut().enumerate() {
            *byte = u8::from_str_radix(hex.get(2 * i..2 * i + 2)?, 16).ok()?;
        }
        let log = |log: &Value| Some(LogFile { segment: log["segment"].as_u64()?, end: log["end"].as_u64() });
        Some(Self {
            store,
            generation: value["generation"].as_u64()?,
            revision: value["revision"].as_u64()?,
            snapshot: value["snapshot"].as_bool()?,
            logs: value["logs"].as_array()?.iter().map(log).collect::<Option<_>>()?,
        })
    }

    /// Replaces the previous manifest with this one. All files that it names must be durable.
    pub(super) fn replace(&self, files: &dyn Files) -> Result<(), ReplaceError> {
        let written = files.create(TEMPORARY).and_then(|mut file| {
            write_all_at(&mut *file, self.encode().as_bytes(), 0)?;
            file.sync()
        });
        if let Err(error) = written {
            let _ = files.remove(TEMPORARY);
            return Err(ReplaceError::Unchanged(error));
        }
        files.rename(TEMPORARY, NAME).and_then(|()| files.sync_dir()).map_err(ReplaceError::Unknown)
    }
}
