//! The bytes of a chart's files, unpacked only when somebody asks for them.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
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
    Packed(Arc<Packed>, usize, Arc<str>),
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

/// An archive that was read once already. A file can still fail or change under the second reading, which then says so.
pub(super) struct Packed {
    archive: Source,
    unpacked: OnceLock<Result<HashMap<usize, Str>, String>>,
}

impl Packed {
    pub(super) fn new(archive: Source) -> Self {
        Self { archive, unpacked: OnceLock::new() }
    }
}

impl Content {
    /// The file that is entry number `entry` of the archive; `name` is for messages.
    pub(super) fn packed(archive: Arc<Packed>, entry: usize, name: &str) -> Self {
        Self(Kept::Packed(archive, entry, name.into()))
    }

    /// The bytes.
    ///
    /// # Errors
    /// The archive cannot be read a second time, or it is another one by now; the sentence names the file.
    pub fn read(&self) -> std::io::Result<&Str> {
        let (packed, entry, name) = match &self.0 {
            Kept::Here(data) => return Ok(data),
            Kept::Packed(packed, entry, name) => (packed, entry, name),
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

    /// Why the bytes could not be read, if somebody has tried in vain.
    pub(crate) fn failure(&self) -> Option<std::io::Error> {
        match &self.0 {
            Kept::Packed(packed, ..) if packed.unpacked.get().is_some() => self.read().err(),
            _ => None,
        }
    }
}

impl From<Str> for Content {
    fn from(data: Str) -> Self {
        Self(Kept::Here(data))
    }
}

impl From<Vec<u8>> for Content {
    fn from(data: Vec<u8>) -> Self {
        Self(Kept::Here(data.into()))
    }
}

/// What cannot be read is equal to nothing.
impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        matches!((self.read(), other.read()), (Ok(one), Ok(two)) if one == two)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kept::Here(data) => data.fmt(f),
            Kept::Packed(_, _, name) => write!(f, "{name} in the archive"),
        }
    }
}
