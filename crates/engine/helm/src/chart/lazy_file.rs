//! Content of a chart's files, unpacked on first use.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::sync::{Arc, OnceLock};

use fl_gotemplate::Str;

use super::archive;

/// The content of a file.
///
/// CRDs are most of a large chart and rarely used by a render, so CRDs of an archive stay packed until one of
/// them is read; then all of them are unpacked in one run.
#[derive(Clone)]
pub struct Content(ContentState);

#[derive(Clone)]
enum ContentState {
    Loaded(Str),
    PackedArchive(Arc<PackedArchive>, usize, Arc<str>),
}

/// An archive that can be read more than once, by one reader at a time.
#[derive(Clone, Debug)]
pub enum ArchiveSource {
    /// An archive in memory.
    Memory(Arc<Vec<u8>>),
    /// An open file, so that a large archive need not be in memory.
    File(Arc<File>),
}

impl ArchiveSource {
    /// Size in bytes, or 0 if unknown.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Memory(data) => data.len(),
            Self::File(file) => file.metadata().map_or(0, |about| usize::try_from(about.len()).unwrap_or(0)),
        }
    }

    /// Opens a reader at the start of the archive.
    pub(super) fn open(&self) -> std::io::Result<Box<dyn BufRead + '_>> {
        Ok(match self {
            Self::Memory(data) => Box::new(data.as_slice()),
            Self::File(file) => {
                let mut file = file.as_ref();
                file.rewind()?;
                Box::new(BufReader::with_capacity(CHUNK_BYTES, file))
            }
        })
    }
}

/// Read buffer for files.
const CHUNK_BYTES: usize = 64 << 10;

/// An archive that was read successfully once. A second read can still fail if the file changed.
pub(super) struct PackedArchive {
    archive: ArchiveSource,
    unpacked: OnceLock<Result<HashMap<usize, Str>, String>>,
}

impl PackedArchive {
    pub(super) fn new(archive: ArchiveSource) -> Self {
        Self { archive, unpacked: OnceLock::new() }
    }
}

impl Content {
    /// The file that is entry number `entry` of the archive; `name` is used in error messages.
    pub(super) fn packed(archive: Arc<PackedArchive>, entry: usize, name: &str) -> Self {
        Self(ContentState::PackedArchive(archive, entry, name.into()))
    }

    /// Returns the bytes, unpacking them if needed.
    ///
    /// # Errors
    /// The archive cannot be read a second time or has changed; the message names the file.
    pub fn read(&self) -> std::io::Result<&Str> {
        let (packed, entry, name) = match &self.0 {
            ContentState::Loaded(data) => return Ok(data),
            ContentState::PackedArchive(packed, entry, name) => (packed, entry, name),
        };
        let unpacked = packed.unpacked.get_or_init(|| {
            packed.archive.open().and_then(archive::read_deferred).map_err(|error| error.to_string())
        });
        let unreadable = |why: &str| {
            std::io::Error::other(format!(
                "cannot read {name} of the chart's archive a second time: {why}; try again with a copy nobody changes"
            ))
        };
        match unpacked {
            Ok(files) => files.get(entry).ok_or_else(|| unreadable("the archive has changed")),
            Err(why) => Err(unreadable(why)),
        }
    }

    /// The error of an earlier failed `read`, if any.
    pub(crate) fn failure(&self) -> Option<std::io::Error> {
        match &self.0 {
            ContentState::PackedArchive(packed, ..) if packed.unpacked.get().is_some() => self.read().err(),
            _ => None,
        }
    }
}

impl From<Str> for Content {
    fn from(data: Str) -> Self {
        Self(ContentState::Loaded(data))
    }
}

impl From<Vec<u8>> for Content {
    fn from(data: Vec<u8>) -> Self {
        Self(ContentState::Loaded(data.into()))
    }
}

/// Content that cannot be read equals nothing, including itself.
impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        matches!((self.read(), other.read()), (Ok(one), Ok(two)) if one == two)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ContentState::Loaded(data) => data.fmt(f),
            ContentState::PackedArchive(_, _, name) => write!(f, "{name} in the archive"),
        }
    }
}
