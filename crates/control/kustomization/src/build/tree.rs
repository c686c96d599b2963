//! The files of an artifact, in memory, never on disk.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fl_api::meta::artifact::Artifact;
use fl_kustomize::Files;
use fl_runtime::{ArtifactError, ArtifactFetcher};
use tokio::time::Instant;

/// The most an artifact may hold.
const LARGEST: u64 = 1 << 30;
const MOST_FILES: usize = 1_000_000;
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
}

impl Tree {
    /// A tree of `(path, content)`.
    pub(crate) fn new(root: PathBuf, files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) -> Self {
        let mut tree = Tree {
            directories: BTreeMap::from([(root.clone(), Vec::new())]),
            root,
            files: BTreeMap::new(),
            size: 0,
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

    /// Reads a `tar.gz`. Links and special files are left out; names that leave the root are refused.
    pub(crate) fn read(root: PathBuf, archive: impl Read) -> io::Result<Self> {
        let mut archive = tar::Archive::new(flate2::read::MultiGzDecoder::new(archive));
        let (mut files, mut total) = (Vec::new(), 0u64);
        let refuse = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
        for entry in archive.entries()? {
            let entry = entry?;
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let path = entry.path()?.into_owned();
            let mut inside = PathBuf::new();
            for component in path.components() {
                match component {
                    Component::Normal(name) => inside.push(name),
                    Component::CurDir => {}
                    _ => {
                        return Err(refuse(format!(
                            "the archive names a file outside of it: {}",
                            path.display()
                        )));
                    }
                }
            }
            let mut content = Vec::new();
            entry.take(LARGEST - total + 1).read_to_end(&mut content)?;
            total += content.len() as u64;
            if total > LARGEST || files.len() >= MOST_FILES {
                return Err(refuse("the archive is larger than this engine reads".to_owned()));
            }
            files.push((inside, content));
        }
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
    pub(crate) async fn open(&self, artifact: &Artifact) -> Result<Arc<Tree>, ArtifactError> {
        let Some(digest) = artifact.digest.as_ref().map(ToString::to_string) else {
            return self.read(artifact, "").await;
        };
        // An address that does not answer must not hold up the same content from another one.
        let slot = self.slot(&format!("{digest} {}", artifact.url));
        let mut kept = slot.lock().await;
        if let Some(tree) = &*kept {
            return Ok(tree.clone());
        }
        let tree = self.read(artifact, &digest).await?;
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

    async fn read(&self, artifact: &Artifact, digest: &str) -> Result<Arc<Tree>, ArtifactError> {
        let file = self.fetcher.open(artifact).await?;
        let name = blake3::hash(format!("{digest} {}", artifact.revision).as_bytes()).to_hex();
        let root = std::env::temp_dir().join(format!("kustomization-{}", &name[..10]));
        let tree = tokio::task::spawn_blocking(move || {
            let archive = io::BufReader::new(std::fs::File::open(file.path())?);
            Tree::read(root, archive)
        })
        .await
        .map_err(io::Error::other)??;
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
            let mut header = tar::Header::new_gnu();
            header.set_size(1);
            header.set_entry_type(kind);
            let bytes = name.as_bytes();
            header.as_old_mut().name[..bytes.len()].copy_from_slice(bytes);
            header.set_cksum();
            let mut tar = tar::Builder::new(Vec::new());
            tar.append(&header, &b"x"[..]).expect("written");
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            io::Write::write_all(&mut gz, &tar.into_inner().expect("written")).expect("written");
            gz.finish().expect("written")
        };
        let read = |bytes: &[u8]| Tree::read("/r".into(), bytes);
        for bad in ["../x", "/etc/x", "a/../../x"] {
            assert!(read(&archive(bad, tar::EntryType::Regular)).is_err(), "{bad}");
        }
        let good = read(&archive("./a/x", tar::EntryType::Regular)).expect("fine");
        assert!(good.exists(Path::new("/r/a/x")));
        let link = read(&archive("link", tar::EntryType::Symlink)).expect("left out");
        assert!(!link.exists(Path::new("/r/link")));
        assert!(read(b"not gzip").is_err());
    }
}
