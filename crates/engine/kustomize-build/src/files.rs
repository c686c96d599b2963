//! What a build reads: files, overlays of them, remote bases, and results of other builds.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use fl_kustomize::{Fetcher, Files};
use fl_yaml::Node;

/// The files of a source.
pub trait SourceFiles: Files {
    /// The names in a directory, sorted, and whether each is a directory.
    fn list(&self, directory: &Path) -> Vec<(String, bool)>;

    /// The form of a path in which overlays are looked up. File trees without links drop `.` and `..`.
    fn normalize(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
}

/// Fetches remote bases.
pub trait RemoteBases: Fetcher {
    /// Calls `build` with files that also have the checkouts of remote bases.
    fn with_checkouts(&self, files: &dyn Files, build: &mut dyn FnMut(&dyn Files));

    /// Whether something was fetched. Such a build is not repeatable.
    fn used(&self) -> bool;
}

/// The objects of a directory before decryption and substitution.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The objects in the order of the build.
    pub objects: Vec<Node>,
    /// Every path whose change may change the result.
    pub reads: BTreeSet<PathBuf>,
    /// Deprecations that kustomize reports.
    pub warnings: Vec<String>,
    /// Whether remote bases were fetched.
    pub remote: bool,
}

/// A result that Kustomizations share which differ in their variables only.
#[derive(Debug)]
pub struct SharedBuild {
    directory: PathBuf,
    overlay: BTreeMap<PathBuf, Vec<u8>>,
    pub(crate) rendered: OnceLock<Rendered>,
}

impl SharedBuild {
    /// An entry without a result.
    #[must_use]
    pub fn new(directory: &Path, overlay: &BTreeMap<PathBuf, Vec<u8>>) -> Self {
        SharedBuild { directory: directory.to_owned(), overlay: overlay.clone(), rendered: OnceLock::new() }
    }

    /// Whether the result is that of the same directory and overlay.
    #[must_use]
    pub fn matches(&self, directory: &Path, overlay: &BTreeMap<PathBuf, Vec<u8>>) -> bool {
        self.directory == directory && self.overlay == *overlay
    }
}

/// Results of earlier builds of the same files.
pub trait SharedBuilds {
    /// The entry for a build; none when the result need not be kept.
    fn find(&self, directory: &Path, overlay: &BTreeMap<PathBuf, Vec<u8>>) -> Option<Arc<SharedBuild>>;
}

/// Files with others in front of them: the generated kustomization.yaml and decrypted files.
pub(crate) struct Overlay<'a> {
    pub(crate) base: &'a dyn SourceFiles,
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
}

impl<'a> Overlay<'a> {
    pub(crate) fn new(base: &'a dyn SourceFiles) -> Self {
        Overlay { base, files: BTreeMap::new() }
    }

    pub(crate) fn put(&mut self, path: PathBuf, content: Vec<u8>) {
        self.files.insert(path, content);
    }

    pub(crate) fn is_file(&self, path: &Path) -> bool {
        self.resolve(path).is_ok_and(|(_, is_directory)| !is_directory)
    }

    pub(crate) fn is_directory(&self, path: &Path) -> bool {
        self.resolve(path).is_ok_and(|(_, is_directory)| is_directory)
    }
}

impl Files for Overlay<'_> {
    fn resolve(&self, path: &Path) -> io::Result<(PathBuf, bool)> {
        let path = self.base.normalize(path);
        if self.files.contains_key(&path) { Ok((path, false)) } else { self.base.resolve(&path) }
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let path = self.base.normalize(path);
        match self.files.get(&path) {
            Some(content) => Ok(content.clone()),
            None => self.base.read(&path),
        }
    }
}

/// A path without `.` and `..`, for file trees without links.
#[must_use]
pub fn clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}
