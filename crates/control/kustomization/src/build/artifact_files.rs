//! The files of an artifact, in memory, never on disk.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fl_archive::{EntryKind, ReadError, ReadLimits, TreeBuilder, read_tar_gz};
use fl_kustomize::Files;
use fl_kustomize_build::{SharedBuild, SharedBuilds, SourceFiles, clean};

/// Limits of an artifact.
const MAX_BYTES: u64 = 1 << 30;
const MAX_FILES: usize = 1_000_000;
/// Archives within these limits are read at once; larger ones are first checked without keeping their content.
const MAX_UNCHECKED_FILES: usize = 20_000;
const MAX_UNCHECKED_GROWTH: u64 = 4 << 20;

/// Files and directories under a root that exists only in memory.
#[derive(Debug)]
pub(crate) struct ArtifactFiles {
    root: PathBuf,
    files: BTreeMap<PathBuf, Arc<[u8]>>,
    /// Each directory with the names in it.
    directories: BTreeMap<PathBuf, Vec<String>>,
    size: u64,
    /// The last build. Its result is kept from the second build on: most directories are built by one Kustomization.
    last_build: Mutex<Option<Arc<SharedBuild>>>,
}

impl ArtifactFiles {
    /// Files from `(path, content)`.
    pub(crate) fn new(root: PathBuf, files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) -> Self {
        let mut tree = ArtifactFiles {
            directories: BTreeMap::from([(root.clone(), Vec::new())]),
            root,
            files: BTreeMap::new(),
            size: 0,
            last_build: Mutex::default(),
        };
        for (path, content) in files {
            tree.add(&path, content);
        }
        for names in tree.directories.values_mut() {
            names.sort();
            names.dedup();
        }
        tree
    }

    /// Reads a `tar.gz`. Links are left out; names outside of the root, special files and bombs are rejected.
    ///
    /// The files stay in memory, so an archive that looks like a bomb is first read without keeping anything: it must end within
    /// the limits.
    pub(crate) fn read(root: PathBuf, mut archive: impl Read + Seek) -> Result<Self, ReadError> {
        let limits = ReadLimits { bytes: MAX_BYTES, entries: MAX_FILES, ..ReadLimits::default() };
        let unchecked =
            ReadLimits { entries: MAX_UNCHECKED_FILES, ratio_checked_after: MAX_UNCHECKED_GROWTH, ..limits };
        let tree = match unpack(&mut archive, &unchecked) {
            Err(ReadError::Limit { .. } | ReadError::CompressionRatio { .. }) => {
                archive.rewind()?;
                read_tar_gz(&mut archive, &limits, |_, _| Ok::<_, ReadError>(()))?;
                archive.rewind()?;
                unpack(&mut archive, &limits)?
            }
            done => done?,
        };
        let files = tree.into_files().map(|(name, content)| (PathBuf::from(name), content));
        Ok(ArtifactFiles::new(root, files))
    }

    fn add(&mut self, path: &Path, content: Vec<u8>) {
        self.size += content.len() as u64;
        let mut parent = self.root.clone();
        let mut components = path.components().peekable();
        while let Some(component) = components.next() {
            let name = component.as_os_str().to_string_lossy().into_owned();
            self.directories.entry(parent.clone()).or_default().push(name.clone());
            parent.push(name);
            if components.peek().is_some() {
                self.directories.entry(parent.clone()).or_default();
            }
        }
        self.files.insert(parent, Arc::from(content));
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The path of a spec below the root: it cannot leave it.
    pub(crate) fn join(&self, path: &str) -> PathBuf {
        let mut joined = self.root.clone();
        for component in Path::new(path).components() {
            match component {
                Component::Normal(name) => joined.push(name),
                Component::ParentDir if joined != self.root => {
                    joined.pop();
                }
                _ => {}
            }
        }
        joined
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn exists(&self, path: &Path) -> bool {
        self.files.contains_key(path) || self.directories.contains_key(path)
    }

    /// A hash of the content of a file or of the names of a directory, to compare two artifacts.
    pub(crate) fn hash(&self, relative: &Path) -> Option<[u8; 32]> {
        let path = if relative.as_os_str().is_empty() { self.root.clone() } else { self.root.join(relative) };
        if let Some(content) = self.files.get(&path) {
            return Some(*blake3::hash(content).as_bytes());
        }
        let names = self.directories.get(&path)?;
        Some(*blake3::hash(names.join("/").as_bytes()).as_bytes())
    }
}

/// All files of an archive.
fn unpack(archive: &mut impl Read, limits: &ReadLimits) -> Result<fl_archive::Tree<Vec<u8>>, ReadError> {
    let mut listing = TreeBuilder::new(limits);
    read_tar_gz(archive, limits, |entry, content| match entry.kind {
        EntryKind::Directory => listing.directory(&entry.name),
        EntryKind::Symlink => Ok(()),
        EntryKind::Other => Err(ReadError::UnsupportedType(entry.name.clone())),
        EntryKind::File { executable } => {
            // The size in the header may be wrong.
            let mut data = Vec::with_capacity(usize::try_from(entry.size).unwrap_or(0).min(1 << 20));
            content.read_to_end(&mut data)?;
            listing.file(&entry.name, executable, data)
        }
    })?;
    listing.finish()
}

impl Files for ArtifactFiles {
    fn resolve(&self, path: &Path) -> io::Result<(PathBuf, bool)> {
        let path = clean(path);
        if self.files.contains_key(&path) {
            return Ok((path, false));
        }
        if self.directories.contains_key(&path) {
            return Ok((path, true));
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "no such file or directory"))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let path = clean(path);
        match self.files.get(&path) {
            Some(content) => Ok(content.to_vec()),
            None if self.directories.contains_key(&path) => {
                Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"))
            }
            None => Err(io::Error::new(io::ErrorKind::NotFound, "no such file or directory")),
        }
    }
}

impl SourceFiles for ArtifactFiles {
    fn list(&self, directory: &Path) -> Vec<(String, bool)> {
        let names = self.directories.get(directory).map_or(&[][..], Vec::as_slice);
        let is_directory = |name: &String| self.directories.contains_key(&directory.join(name));
        names.iter().map(|name| (name.clone(), is_directory(name))).collect()
    }

    fn normalize(&self, path: &Path) -> PathBuf {
        clean(path)
    }
}

impl SharedBuilds for ArtifactFiles {
    fn find(&self, directory: &Path, overlay: &BTreeMap<PathBuf, Vec<u8>>) -> Option<Arc<SharedBuild>> {
        let mut last = self.last_build.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| last.matches(directory, overlay)) {
            return Some(last.clone());
        }
        *last = Some(Arc::new(SharedBuild::new(directory, overlay)));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> ArtifactFiles {
        ArtifactFiles::new(
            "/artifact".into(),
            files.iter().map(|(p, c)| (PathBuf::from(p), c.as_bytes().to_vec())),
        )
    }

    #[test]
    fn paths_stay_below_the_root() {
        let tree = tree(&[("a/b.yaml", "x")]);
        assert_eq!(tree.join("../../a"), Path::new("/artifact/a"));
        assert_eq!(tree.join("./a/../a//"), Path::new("/artifact/a"));
        assert_eq!(tree.join("/etc"), Path::new("/artifact/etc"));
        assert!(tree.exists(Path::new("/artifact/a")) && tree.exists(Path::new("/artifact/a/b.yaml")));
    }

    #[test]
    fn hashes_differ_with_content_and_names() {
        let (one, two) = (tree(&[("a/b", "x"), ("c", "y")]), tree(&[("a/b", "x"), ("a/d", "z"), ("c", "Y")]));
        assert_eq!(one.hash(Path::new("a/b")), two.hash(Path::new("a/b")));
        assert_ne!(one.hash(Path::new("a")), two.hash(Path::new("a")));
        assert_ne!(one.hash(Path::new("c")), two.hash(Path::new("c")));
        assert_eq!(one.hash(Path::new("a/d")), None);
    }

    /// Threats A01 and A03: names and kinds of entries.
    #[test]
    fn archive_entries_outside_of_the_root_are_rejected() {
        let archive = |name: &str, kind: tar::EntryType| {
            // Only files have content.
            let content: &[u8] = if kind == tar::EntryType::Regular { b"x" } else { b"" };
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_entry_type(kind);
            let bytes = name.as_bytes();
            header.as_old_mut().name[..bytes.len()].copy_from_slice(bytes);
            header.set_cksum();
            let mut tar = tar::Builder::new(Vec::new());
            tar.append(&header, content).expect("written");
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            io::Write::write_all(&mut gz, &tar.into_inner().expect("written")).expect("written");
            gz.finish().expect("written")
        };
        let read = |bytes: &[u8]| ArtifactFiles::read("/r".into(), io::Cursor::new(bytes));
        for bad in ["../x", "/etc/x", "a/../../x"] {
            assert!(read(&archive(bad, tar::EntryType::Regular)).is_err(), "{bad}");
        }
        let good = read(&archive("./a/x", tar::EntryType::Regular)).expect("fine");
        assert!(good.exists(Path::new("/r/a/x")));
        let link = read(&archive("link", tar::EntryType::Symlink)).expect("left out");
        assert!(!link.exists(Path::new("/r/link")));
        assert!(read(b"not gzip").is_err());
        assert!(read(&archive("pipe", tar::EntryType::Fifo)).is_err());
    }

    fn packed(
        entries: impl FnOnce(&mut fl_archive::TarWriter<flate2::write::GzEncoder<Vec<u8>>>),
    ) -> io::Cursor<Vec<u8>> {
        let gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let mut tar = fl_archive::TarWriter::new(gz);
        entries(&mut tar);
        io::Cursor::new(tar.finish().expect("written").finish().expect("written"))
    }

    /// A05: a bomb is rejected before much of it is in memory; an archive within the limits is read.
    #[test]
    fn archive_bombs_are_rejected() {
        let zeros = |size: u64| {
            packed(|tar| {
                let mut content = io::repeat(0).take(size);
                tar.file("zeros", fl_archive::Mode::File, size, &mut content).expect("written");
                tar.file("a.yaml", fl_archive::Mode::File, 2, &mut b"a\n".as_slice()).expect("written");
            })
        };
        let limits = ReadLimits { ratio_checked_after: MAX_UNCHECKED_GROWTH, ..ReadLimits::default() };
        assert!(matches!(unpack(&mut zeros(8 << 20), &limits), Err(ReadError::CompressionRatio { .. })));
        let tree = ArtifactFiles::read("/r".into(), zeros(8 << 20)).expect("small enough all the same");
        assert_eq!(tree.size, (8 << 20) + 2);
        let bomb = zeros(256 << 20);
        let start = std::time::Instant::now();
        let refused = ArtifactFiles::read("/r".into(), bomb).expect_err("a bomb");
        assert!(refused.to_string().contains("grows more than 200 times"), "{refused}");
        assert!(start.elapsed().as_secs() < 2, "{:?}", start.elapsed());
    }

    /// A06, A08: many small files are read in one more round; a name that is a file and a directory is refused.
    #[test]
    fn many_files_are_read_and_clashing_names_rejected() {
        let many = packed(|tar| {
            for i in 0..MAX_UNCHECKED_FILES + 1 {
                let name = format!("d/f{i}");
                tar.file(&name, fl_archive::Mode::File, 0, &mut io::empty()).expect("written");
            }
        });
        assert_eq!(
            ArtifactFiles::read("/r".into(), many).expect("not too many").files.len(),
            MAX_UNCHECKED_FILES + 1
        );
        let clash = packed(|tar| {
            for name in ["a", "a/b"] {
                tar.file(name, fl_archive::Mode::File, 0, &mut io::empty()).expect("written");
            }
        });
        assert!(ArtifactFiles::read("/r".into(), clash).is_err());
    }
}
