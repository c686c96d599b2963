//! The files of an artifact, in memory, never on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use fl_api::meta::artifact::Artifact;
use fl_archive::{EntryKind, Listing, ReadError, ReadLimits, read_tar_gz};
use fl_http::Owner;
use fl_kustomize::Files;
use fl_runtime::{ArtifactError, ArtifactFetcher};
use fl_yaml::Node;
use tokio::time::Instant;

/// The most an artifact may hold.
const LARGEST: u64 = 1 << 30;
const MOST_FILES: usize = 1_000_000;
/// What nobody looks at twice: files, and bytes that came of very few.
const MODEST_FILES: usize = 20_000;
const MODEST_GROWTH: u64 = 4 << 20;
/// Trees that stay in memory for the next Kustomization of the same source.
const KEPT: usize = 8;
const KEPT_FOR: Duration = Duration::from_secs(60);
/// Larger trees are not kept.
const KEPT_SIZE: u64 = 64 << 20;

/// Files and directories under a made-up root.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    files: BTreeMap<PathBuf, Arc<[u8]>>,
    /// Each directory with the names in it.
    directories: BTreeMap<PathBuf, Vec<String>>,
    size: u64,
    last: Mutex<Option<Arc<Common>>>,
}

/// The objects of a directory, and what was read for them.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) objects: Vec<Node>,
    pub(super) reads: BTreeSet<PathBuf>,
}

/// What one kustomization makes, before variables are replaced. Kustomizations that differ in their variables only begin with it.
#[derive(Debug)]
pub(super) struct Common {
    directory: PathBuf,
    own: BTreeMap<PathBuf, Vec<u8>>,
    /// Kept from the second build on: most kustomizations are built by one alone.
    pub(super) made: OnceLock<Made>,
}

impl Tree {
    /// A tree of `(path, content)`.
    pub(crate) fn new(root: PathBuf, files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) -> Self {
        let mut tree = Tree {
            directories: BTreeMap::from([(root.clone(), Vec::new())]),
            root,
            files: BTreeMap::new(),
            size: 0,
            last: Mutex::default(),
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

    /// Reads a `tar.gz`. Links are left out; names that leave the root, special files and bombs are refused.
    ///
    /// The files stay in memory, so an archive that looks like a bomb is first read without keeping anything: it must end within
    /// the limits.
    pub(crate) fn read(root: PathBuf, mut archive: impl Read + Seek) -> Result<Self, ReadError> {
        let limits = ReadLimits { bytes: LARGEST, entries: MOST_FILES, ..ReadLimits::default() };
        let modest = ReadLimits { entries: MODEST_FILES, before_growth: MODEST_GROWTH, ..limits };
        let tree = match unpack(&mut archive, &modest) {
            Err(ReadError::Limit { .. } | ReadError::Growth { .. }) => {
                archive.rewind()?;
                read_tar_gz(&mut archive, &limits, |_, _| Ok::<_, ReadError>(()))?;
                archive.rewind()?;
                unpack(&mut archive, &limits)?
            }
            done => done?,
        };
        let files = tree.into_files().map(|(name, content)| (PathBuf::from(name), content));
        Ok(Tree::new(root, files))
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

    /// A path of the spec inside the tree: it cannot leave it.
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

    pub(crate) fn exists(&self, path: &Path) -> bool {
        self.files.contains_key(path) || self.directories.contains_key(path)
    }

    /// What a path holds, so that two trees can be compared: content of a file, names of a directory.
    pub(crate) fn print(&self, relative: &Path) -> Option<[u8; 32]> {
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
    let mut listing = Listing::new(limits);
    read_tar_gz(archive, limits, |entry, content| match entry.kind {
        EntryKind::Directory => listing.directory(&entry.name),
        EntryKind::Symlink => Ok(()),
        EntryKind::Other => Err(ReadError::Special(entry.name.clone())),
        EntryKind::File { executable } => {
            // Sizes are only claims.
            let mut data = Vec::with_capacity(usize::try_from(entry.size).unwrap_or(0).min(1 << 20));
            content.read_to_end(&mut data)?;
            listing.file(&entry.name, executable, data)
        }
    })?;
    listing.finish()
}

/// A tree with a few files of its own before it: the generated kustomization and what was decrypted.
#[derive(Debug)]
pub(crate) struct View {
    tree: Arc<Tree>,
    own: BTreeMap<PathBuf, Vec<u8>>,
}

impl View {
    pub(crate) fn new(tree: Arc<Tree>) -> Self {
        View { tree, own: BTreeMap::new() }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn put(&mut self, path: PathBuf, content: Vec<u8>) {
        self.own.insert(path, content);
    }

    pub(crate) fn file(&self, path: &Path) -> Option<&[u8]> {
        match self.own.get(path) {
            Some(content) => Some(content),
            None => self.tree.files.get(path).map(|c| &**c),
        }
    }

    /// What is built here, when the last build of the tree was made of the same directory and files.
    pub(super) fn common(&self, directory: &Path) -> Option<Arc<Common>> {
        let mut last = self.tree.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && last.directory == directory
            && last.own == self.own
        {
            return Some(last.clone());
        }
        let (directory, own) = (directory.to_owned(), self.own.clone());
        *last = Some(Arc::new(Common { directory, own, made: OnceLock::new() }));
        None
    }

    pub(crate) fn is_directory(&self, path: &Path) -> bool {
        self.tree.directories.contains_key(path)
    }

    /// The names in a directory, sorted.
    pub(crate) fn names(&self, directory: &Path) -> &[String] {
        self.tree.directories.get(directory).map_or(&[], Vec::as_slice)
    }
}

/// Without `.` and `..`; there are no links here.
pub(crate) fn clean(path: &Path) -> PathBuf {
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

impl Files for View {
    fn resolve(&self, path: &Path) -> io::Result<(PathBuf, bool)> {
        let path = clean(path);
        if self.file(&path).is_some() {
            return Ok((path, false));
        }
        if self.is_directory(&path) {
            return Ok((path, true));
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "no such file or directory"))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let path = clean(path);
        match self.file(&path) {
            Some(content) => Ok(content.to_vec()),
            None if self.is_directory(&path) => {
                Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"))
            }
            None => Err(io::Error::new(io::ErrorKind::NotFound, "no such file or directory")),
        }
    }
}

/// Trees by the digest of their artifact: many Kustomizations build from one source.
pub(crate) struct Trees {
    fetcher: ArtifactFetcher,
    kept: Mutex<Vec<(String, Instant, Slot)>>,
}

/// Locked while its tree is read, so that others that want the same one wait for it instead of reading it again.
type Slot = Arc<tokio::sync::Mutex<Option<Arc<Tree>>>>;

impl Trees {
    pub(crate) fn new(fetcher: ArtifactFetcher) -> Self {
        Trees { fetcher, kept: Mutex::default() }
    }

    /// The files of an artifact, checked by its digest.
    pub(crate) async fn open(&self, artifact: &Artifact, owner: &Owner) -> Result<Arc<Tree>, ArtifactError> {
        let digest = artifact.digest.as_ref().ok_or(ArtifactError::NoDigest)?.to_string();
        // An address that does not answer must not hold up the same content from another one.
        let slot = self.slot(&format!("{digest} {}", artifact.url));
        let mut kept = slot.lock().await;
        if let Some(tree) = &*kept {
            return Ok(tree.clone());
        }
        let tree = self.read(artifact, owner, &digest).await?;
        if tree.size <= KEPT_SIZE {
            *kept = Some(tree.clone());
        }
        Ok(tree)
    }

    fn slot(&self, id: &str) -> Slot {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, used, _)| known == id || used.elapsed() < KEPT_FOR);
        if let Some((_, used, slot)) = kept.iter_mut().find(|(known, _, _)| known == id) {
            *used = Instant::now();
            return slot.clone();
        }
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        let slot = Slot::default();
        kept.push((id.to_owned(), Instant::now(), slot.clone()));
        slot
    }

    async fn read(
        &self,
        artifact: &Artifact,
        owner: &Owner,
        digest: &str,
    ) -> Result<Arc<Tree>, ArtifactError> {
        let file = self.fetcher.open(artifact, owner).await?;
        let name = blake3::hash(format!("{digest} {}", artifact.revision).as_bytes()).to_hex();
        let root = std::env::temp_dir().join(format!("kustomization-{}", &name[..10]));
        let tree = tokio::task::spawn_blocking(move || Tree::read(root, file.into_file()))
            .await
            .map_err(io::Error::other)?
            .map_err(|e| ArtifactError::Extract(e.to_string()))?;
        Ok(Arc::new(tree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        Tree::new("/artifact".into(), files.iter().map(|(p, c)| (PathBuf::from(p), c.as_bytes().to_vec())))
    }

    #[test]
    fn paths_cannot_leave() {
        let tree = tree(&[("a/b.yaml", "x")]);
        assert_eq!(tree.join("../../a"), Path::new("/artifact/a"));
        assert_eq!(tree.join("./a/../a//"), Path::new("/artifact/a"));
        assert_eq!(tree.join("/etc"), Path::new("/artifact/etc"));
        assert!(tree.exists(Path::new("/artifact/a")) && tree.exists(Path::new("/artifact/a/b.yaml")));
    }

    #[test]
    fn prints_differ_with_content_and_names() {
        let (one, two) = (tree(&[("a/b", "x"), ("c", "y")]), tree(&[("a/b", "x"), ("a/d", "z"), ("c", "Y")]));
        assert_eq!(one.print(Path::new("a/b")), two.print(Path::new("a/b")));
        assert_ne!(one.print(Path::new("a")), two.print(Path::new("a")));
        assert_ne!(one.print(Path::new("c")), two.print(Path::new("c")));
        assert_eq!(one.print(Path::new("a/d")), None);
    }

    /// Threats A01 and A03: names and kinds of entries.
    #[test]
    fn archives_stay_inside() {
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
        let read = |bytes: &[u8]| Tree::read("/r".into(), io::Cursor::new(bytes));
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

    /// A05: a bomb is refused before much of it is in memory; what only looks like one is read.
    #[test]
    fn bombs_are_refused() {
        let zeros = |size: u64| {
            packed(|tar| {
                let mut content = io::repeat(0).take(size);
                tar.file("zeros", fl_archive::Mode::File, size, &mut content).expect("written");
                tar.file("a.yaml", fl_archive::Mode::File, 2, &mut b"a\n".as_slice()).expect("written");
            })
        };
        let limits = ReadLimits { before_growth: MODEST_GROWTH, ..ReadLimits::default() };
        assert!(matches!(unpack(&mut zeros(8 << 20), &limits), Err(ReadError::Growth { .. })));
        let tree = Tree::read("/r".into(), zeros(8 << 20)).expect("small enough all the same");
        assert_eq!(tree.size, (8 << 20) + 2);
        let bomb = zeros(256 << 20);
        let start = std::time::Instant::now();
        let refused = Tree::read("/r".into(), bomb).expect_err("a bomb");
        assert!(refused.to_string().contains("grows more than 200 times"), "{refused}");
        assert!(start.elapsed().as_secs() < 2, "{:?}", start.elapsed());
    }

    /// A06, A08: many small files are read in one more round; a name that is a file and a directory is refused.
    #[test]
    fn many_files_and_names_that_clash() {
        let many = packed(|tar| {
            for i in 0..MODEST_FILES + 1 {
                let name = format!("d/f{i}");
                tar.file(&name, fl_archive::Mode::File, 0, &mut io::empty()).expect("written");
            }
        });
        assert_eq!(Tree::read("/r".into(), many).expect("not too many").files.len(), MODEST_FILES + 1);
        let clash = packed(|tar| {
            for name in ["a", "a/b"] {
                tar.file(name, fl_archive::Mode::File, 0, &mut io::empty()).expect("written");
            }
        });
        assert!(Tree::read("/r".into(), clash).is_err());
    }
}
