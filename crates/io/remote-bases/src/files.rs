//! The build's own files together with checkouts of remote bases.

use std::io;
use std::path::{Path, PathBuf};

use fl_kustomize::{Disk, Files};

use crate::RemoteBases;

/// The files of a build and what was fetched for it.
pub struct FilesWithBases<'a> {
    /// The build's own.
    pub own: &'a dyn Files,
    /// What was fetched.
    pub bases: &'a RemoteBases,
}

impl std::fmt::Debug for FilesWithBases<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilesWithBases").field("bases", self.bases).finish_non_exhaustive()
    }
}

impl Files for FilesWithBases<'_> {
    fn resolve(&self, path: &Path) -> io::Result<(PathBuf, bool)> {
        if self.bases.holds(path) { Disk.resolve(path) } else { self.own.resolve(path) }
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if self.bases.holds(path) { Disk.read(path) } else { self.own.read(path) }
    }
}
