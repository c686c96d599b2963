//! The bytes of a chart's files, unpacked only when somebody asks for them.

use std::collections::HashMap;
use std::fmt;
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

/// An archive that was read once already, so that reading it again cannot fail.
pub(super) struct Packed {
    archive: Arc<Vec<u8>>,
    unpacked: OnceLock<HashMap<usize, Str>>,
}

impl Packed {
    pub(super) fn new(archive: Arc<Vec<u8>>) -> Self {
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
                let unpacked = packed.unpacked.get_or_init(|| archive::read_deferred(&packed.archive));
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
