//! The bytes of a chart's files, unpacked only when somebody asks for them.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use fl_gotemplate::Str;

use super::archive;

/// The bytes of a file.
///
/// CRDs are most of a large chart and a render seldom looks at them, so those of an archive stay packed until they are
/// read for the first time; then all of the archive's are unpacked at once.
#[derive(Clone)]
pub struct Content(Kept);

#[derive(Clone)]
enum Kept {
    Here(Str),
    Packed(Arc<Packed>, usize),
}

/// Where an archive can be read from, more than once but by one reader at a time.
#[derive(Clone, Debug)]
pub enum Source {
    /// Memory.
    Memory(Arc<Vec<u8>>),
    /// An open file: large archives need not be in memory as a whole.
    File(Arc<File>),
}

impl Source {
    /// How many bytes there are, as far as anybody knows.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Memory(data) => data.len(),
            Self::File(file) => file.metadata().map_or(0, |about| usize::try_from(about.len()).unwrap_or(0)),
        }
    }

    /// A reader from the beginning.
    pub(super) fn open(&self) -> std::io::Result<Box<dyn BufRead + '_>> {
        Ok(match self {
            Self::Memory(data) => Box::new(data.as_slice()),
            Self::File(file) => {
                let mut file = file.as_ref();
                file.rewind()?;
                Box::new(BufReader::with_capacity(PIECE, file))
            }
        })
    }
}

/// Bytes that are read from a file at once.
const PIECE: usize = 64 << 10;

/// An archive that was read once already, so that reading it again cannot fail.
pub(super) struct Packed {
    archive: Source,
    unpacked: OnceLock<HashMap<usize, Str>>,
}

impl Packed {
    pub(super) fn new(archive: Source) -> Self {
        Self { archive, unpacked: OnceLock::new() }
    }
}

impl Content {
    /// The file that is entry number `entry` of the archive.
    pub(super) fn packed(archive: Arc<Packed>, entry: usize) -> Self {
        Self(Kept::Packed(archive, entry))
    }
}

impl Deref for Content {
    type Target = Str;

    fn deref(&self) -> &Str {
        static NOTHING: OnceLock<Str> = OnceLock::new();
        match &self.0 {
            Kept::Here(data) => data,
            Kept::Packed(packed, entry) => {
                let unpacked = packed
                    .unpacked
                    .get_or_init(|| packed.archive.open().map(archive::read_deferred).unwrap_or_default());
                unpacked.get(entry).unwrap_or_else(|| NOTHING.get_or_init(|| Str::from("")))
            }
        }
    }
}

impl From<Arc<[u8]>> for Content {
    fn from(data: Arc<[u8]>) -> Self {
        Self(Kept::Here(data.into()))
    }
}

impl From<Vec<u8>> for Content {
    fn from(data: Vec<u8>) -> Self {
        Self(Kept::Here(data.into()))
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Content {}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kept::Here(data) => data.fmt(f),
            Kept::Packed(_, entry) => write!(f, "entry {entry} of the archive"),
        }
    }
}
