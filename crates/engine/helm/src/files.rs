//! File trees that chart directories are loaded from, on disk or in memory.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file and its size in bytes.
    File(u64),
    /// A directory.
    Directory,
    /// A device, pipe or socket; never read.
    Special,
}

/// A directory entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name.
    pub name: String,
    /// Type, after following symlinks.
    pub kind: Kind,
    /// Target of a symlink, for the notice about it.
    pub link: Option<PathBuf>,
}

/// A file tree. Paths are relative to its root, with slashes; the root is the empty path.
pub trait Files {
    /// The entries of a directory, in any order.
    fn list(&self, directory: &str) -> io::Result<Vec<Entry>>;
    /// Reads a file; fails if it is larger than `limit`.
    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>>;
    /// The path as shown in messages.
    fn shown(&self, path: &str) -> String {
        path.to_owned()
    }
}

/// A directory on disk. Symlinks that lead out of it are rejected: a chart must not read files next to it.
#[derive(Debug, Clone)]
pub struct DiskFiles {
    root: PathBuf,
    links: Links,
}

/// Which symlinks may lead out of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// None.
    Inside,
    /// Those in `charts/` that lead to another chart, for a library that several charts link to. Symlinks
    /// inside the linked chart must not lead out of it.
    Subcharts,
}

impl DiskFiles {
    /// Opens a directory; no symlink may lead out of it.
    pub fn open(root: &Path) -> io::Result<Self> {
        Self::with_links(root, Links::Inside)
    }

    /// Opens a directory with the given rule for symlinks.
    pub fn with_links(root: &Path, links: Links) -> io::Result<Self> {
        Ok(Self { root: root.canonicalize()?, links })
    }

    /// The real path, which must be inside the root or inside a linked subchart.
    fn resolve(&self, path: &str) -> io::Result<PathBuf> {
        let real = self.root.join(path).canonicalize()?;
        if real.starts_with(&self.root) || self.is_in_linked_subchart(path, &real) {
            return Ok(real);
        }
        let shown = self.shown(path);
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{shown} is a link to {} outside the chart", real.display()),
        ))
    }
}

impl DiskFiles {
    fn is_in_linked_subchart(&self, path: &str, real: &Path) -> bool {
        let steps: Vec<&str> = path.split('/').collect();
        self.links == Links::Subcharts
            && steps
                .chunks_exact(2)
                .take_while(|pair| pair[0] == "charts")
                .enumerate()
                .map(|(depth, _)| self.root.join(steps[..2 * (depth + 1)].join("/")))
                .filter_map(|subchart| subchart.canonicalize().ok())
                .any(|subchart| real.starts_with(&subchart) && is_chart(&subchart))
    }
}

/// Whether a path looks like a chart: a directory with a `Chart.yaml`, or an archive.
fn is_chart(path: &Path) -> bool {
    path.join("Chart.yaml").is_file() || (path.is_file() && path.extension().is_some_and(|e| e == "tgz"))
}

impl Files for DiskFiles {
    fn list(&self, directory: &str) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(self.resolve(directory)?)? {
            let entry = entry?;
            let name = entry.file_name().into_string().map_err(|name| {
                let message =
                    format!("the name {} in {} is not UTF-8", name.display(), self.shown(directory));
                io::Error::new(io::ErrorKind::InvalidData, message)
            })?;
            let mut meta = entry.metadata()?;
            let mut link = None;
            if meta.is_symlink() {
                let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
                let real = self.resolve(&path)?;
                meta = real.metadata()?;
                link = Some(real);
            }
            let kind = if meta.is_dir() {
                Kind::Directory
            } else if meta.is_file() {
                Kind::File(meta.len())
            } else {
                Kind::Special
            };
            entries.push(Entry { name, kind, link });
        }
        Ok(entries)
    }

    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(self.resolve(path)?)?;
        let mut data = Vec::with_capacity(usize::try_from(file.metadata()?.len().min(limit)).unwrap_or(0));
        // One byte more than allowed detects a file that grew since it was listed.
        file.by_ref().take(limit + 1).read_to_end(&mut data)?;
        if data.len() as u64 > limit {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("{path} is larger than {limit} bytes"),
            ));
        }
        Ok(data)
    }

    fn shown(&self, path: &str) -> String {
        self.root.join(path).display().to_string()
    }
}

/// Files in memory, by path.
#[derive(Debug, Clone, Default)]
pub struct MemoryFiles(BTreeMap<String, Vec<u8>>);

impl MemoryFiles {
    /// Adds or replaces a file.
    pub fn insert(&mut self, path: impl Into<String>, data: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), data.into());
    }
}

impl<P: Into<String>, D: Into<Vec<u8>>> FromIterator<(P, D)> for MemoryFiles {
    fn from_iter<T: IntoIterator<Item = (P, D)>>(files: T) -> Self {
        Self(files.into_iter().map(|(path, data)| (path.into(), data.into())).collect())
    }
}

impl Files for MemoryFiles {
    fn list(&self, directory: &str) -> io::Result<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        for (path, data) in &self.0 {
            let rest = match path.strip_prefix(directory) {
                Some(rest) if directory.is_empty() => rest,
                Some(rest) if rest.starts_with('/') => &rest[1..],
                _ => continue,
            };
            let (name, kind) = match rest.split_once('/') {
                Some((name, _)) => (name, Kind::Directory),
                None => (rest, Kind::File(data.len() as u64)),
            };
            if entries.last().is_none_or(|last| last.name != name) {
                entries.push(Entry { name: name.to_owned(), kind, link: None });
            }
        }
        Ok(entries)
    }

    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        match self.0.get(path) {
            None => Err(io::Error::new(io::ErrorKind::NotFound, format!("{path}: no such file"))),
            Some(data) if data.len() as u64 > limit => Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("{path} is larger than {limit} bytes"),
            )),
            Some(data) => Ok(data.clone()),
        }
    }
}
