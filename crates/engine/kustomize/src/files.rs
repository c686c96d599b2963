//! File trees: a trait, and its implementations on disk and in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

/// A file tree with absolute paths. The engine reads only what a kustomization refers to.
pub trait Files {
    /// The path with all links resolved, and whether it is a directory.
    ///
    /// # Errors
    /// The path does not exist, or a link is broken or part of a cycle.
    fn resolve(&self, path: &Path) -> io::Result<(PathBuf, bool)>;

    /// The content of a file.
    ///
    /// # Errors
    /// It does not exist or cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// The file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Files for Disk {
    fn resolve(&self, path: &Path) -> io::Result<(PathBuf, bool)> {
        let path = std::fs::canonicalize(path)?;
        let is_dir = std::fs::metadata(&path)?.is_dir();
        Ok((path, is_dir))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }
}

/// Files in memory, for tests and for artifacts that are not on disk.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: BTreeMap<PathBuf, Vec<u8>>,
    links: BTreeMap<PathBuf, PathBuf>,
}

impl Memory {
    /// An empty tree.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file and its parent directories.
    pub fn add(&mut self, path: impl AsRef<Path>, content: impl Into<Vec<u8>>) -> &mut Self {
        self.files.insert(clean(path.as_ref()), content.into());
        self
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: impl AsRef<Path>, target: impl Into<PathBuf>) -> &mut Self {
        self.links.insert(clean(path.as_ref()), target.into());
        self
    }

    fn is_dir(&self, path: &Path) -> bool {
        let below = |p: &PathBuf| p.starts_with(path) && p != path;
        let next = |map_first: Option<&PathBuf>| map_first.is_some_and(below);
        path == Path::new("/")
            || next(self.files.range(path.to_path_buf()..).map(|(p, _)| p).find(|p| *p != path))
            || next(self.links.range(path.to_path_buf()..).map(|(p, _)| p).find(|p| *p != path))
    }
}

impl Files for Memory {
    fn resolve(&self, path: &Path) -> io::Result<(PathBuf, bool)> {
        let mut rest: Vec<std::ffi::OsString> =
            path.components().rev().map(|c| c.as_os_str().to_owned()).collect();
        let mut at = PathBuf::from("/");
        let mut hops = 0;
        while let Some(part) = rest.pop() {
            match part.to_str() {
                Some("/" | ".") => continue,
                Some("..") => {
                    at.pop();
                    continue;
                }
                _ => at.push(&part),
            }
            if let Some(target) = self.links.get(&at) {
                hops += 1;
                if hops > 40 {
                    return Err(io::Error::other("too many links"));
                }
                at.pop();
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                rest.extend(target.components().rev().map(|c| c.as_os_str().to_owned()));
            }
        }
        if self.files.contains_key(&at) {
            return Ok((at, false));
        }
        if self.is_dir(&at) {
            return Ok((at, true));
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "no such file or directory"))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let (path, is_dir) = self.resolve(path)?;
        if is_dir {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
        }
        self.files.get(&path).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

/// A path without `.` and `..`, by its names only.
pub(crate) fn clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    out.push("..");
                }
            }
            other => out.push(other),
        }
    }
    if out.as_os_str().is_empty() { PathBuf::from(".") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_in_memory() {
        let mut files = Memory::new();
        files.add("/a/b/file", "x").link("/a/link", "b").link("/a/loop", "loop").link("/out", "/a/b/file");
        assert_eq!(
            files.resolve(Path::new("/a/link/file")).expect("there"),
            (PathBuf::from("/a/b/file"), false)
        );
        assert_eq!(files.resolve(Path::new("/a/link/..")).expect("there"), (PathBuf::from("/a"), true));
        assert_eq!(files.read(Path::new("/out")).expect("there"), b"x");
        assert!(files.resolve(Path::new("/a/loop")).is_err());
        assert!(files.resolve(Path::new("/a/none")).is_err());
    }
}
