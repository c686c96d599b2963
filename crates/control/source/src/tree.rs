//! Trees of files from anywhere, and how they become an archive.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};

use fl_archive::{EntryKind, Mode, ReadError, ReadLimits, read_tar};
use fl_ignore::{IGNORE_FILE, Rules};
use fl_store::TarGz;

/// An ignore file larger than this is nobody's handwork.
const IGNORE_BYTES: u64 = 1 << 20;
/// A stream that grows more than this many times while being unpacked is a bomb, once it is past [`SMALL`].
const GROWTH: u64 = 200;
const SMALL: u64 = 64 << 20;

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    Directory,
    File { executable: bool },
}

/// Files and directories with relative paths. Links are not among them.
pub trait Tree: Send {
    /// All paths, in any order; the root is not among them.
    fn paths(&self) -> Vec<(String, Node)>;
    /// A file's size and content.
    fn open(&mut self, path: &str) -> io::Result<(u64, Box<dyn Read + '_>)>;
    /// Whether anything is at this path, links included.
    fn has(&self, path: &str) -> bool {
        let clean = clean(path);
        clean.is_empty() || self.paths().iter().any(|(p, _)| *p == clean)
    }
}

/// `./a//b/` is `a/b`.
pub fn clean(path: &str) -> String {
    path.split('/').filter(|p| !p.is_empty() && *p != ".").collect::<Vec<_>>().join("/")
}

/// A path that stays inside whatever it is joined to: `..` stops at the root, as in Flux.
pub fn confined(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// A tree in memory; the twin of fetched ones in tests.
#[derive(Clone, Debug, Default)]
pub struct MemoryTree {
    files: BTreeMap<String, (bool, Vec<u8>)>,
}

impl MemoryTree {
    pub fn new(files: impl IntoIterator<Item = (impl Into<String>, impl Into<Vec<u8>>)>) -> Self {
        MemoryTree { files: files.into_iter().map(|(p, c)| (p.into(), (false, c.into()))).collect() }
    }
}

impl Tree for MemoryTree {
    fn paths(&self) -> Vec<(String, Node)> {
        let mut all: BTreeMap<String, Node> = BTreeMap::new();
        for (path, (executable, _)) in &self.files {
            for (at, _) in path.match_indices('/') {
                all.insert(path[..at].to_owned(), Node::Directory);
            }
            all.insert(path.clone(), Node::File { executable: *executable });
        }
        all.into_iter().collect()
    }

    fn open(&mut self, path: &str) -> io::Result<(u64, Box<dyn Read + '_>)> {
        let (_, content) = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok((content.len() as u64, Box::new(content.as_slice())))
    }
}

/// Why an archive could not be unpacked. The texts are what Flux's users know.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    #[error("requires gzip-compressed body: {0}")]
    Gzip(String),
    #[error("{0}")]
    Tar(#[from] ReadError),
    #[error("tar file entry {0} contained unsupported file type")]
    Special(String),
    #[error("tar file entry {0} is a symlink, which is not allowed in this context")]
    Link(String),
    #[error("tar file entry {0} is both a file and a directory")]
    Clash(String),
    #[error("the archive grows more than {GROWTH} times when unpacked")]
    Bomb,
    #[error("cannot keep the content: {0}")]
    Spool(#[source] io::Error),
}

/// The content of a compressed tar, spooled into one unnamed file. No path of the archive ever exists on disk.
#[derive(Debug)]
pub struct TarTree {
    spool: File,
    nodes: BTreeMap<String, Slot>,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Directory,
    File { executable: bool, offset: u64, size: u64 },
}

impl TarTree {
    /// Unpacks a gzip-compressed tar. Symbolic links are left out or refused.
    pub fn unpack(input: impl Read, allow_links: bool, limits: &ReadLimits) -> Result<Self, UnpackError> {
        let mut input = BufReader::new(input);
        gzip_header(&mut input)?;
        let counted = Counted::new(input);
        let taken = counted.taken.clone();
        let unzipped = flate2::bufread::MultiGzDecoder::new(BufReader::new(counted));
        let mut spool = tempfile::tempfile().map_err(UnpackError::Spool)?;
        let mut nodes: BTreeMap<String, Slot> = BTreeMap::new();
        let mut offset = 0u64;
        read_tar(BufReader::new(unzipped), limits, |entry, content| {
            if entry.name.is_empty() {
                return Ok(());
            }
            let clash = || UnpackError::Clash(entry.name.clone());
            match entry.kind {
                EntryKind::Symlink if allow_links => return Ok(()),
                EntryKind::Symlink => return Err(UnpackError::Link(entry.name.clone())),
                EntryKind::Other => return Err(UnpackError::Special(entry.name.clone())),
                EntryKind::Directory => {
                    if matches!(nodes.insert(entry.name.clone(), Slot::Directory), Some(Slot::File { .. })) {
                        return Err(clash());
                    }
                }
                EntryKind::File { executable } => {
                    let mut written = 0;
                    let mut piece = vec![0; 64 << 10];
                    loop {
                        let n = content.read(&mut piece).map_err(ReadError::Io)?;
                        if n == 0 {
                            break;
                        }
                        spool.write_all(&piece[..n]).map_err(UnpackError::Spool)?;
                        written += n as u64;
                        let grown = offset + written;
                        if grown > SMALL && grown / GROWTH > taken.get() {
                            return Err(UnpackError::Bomb);
                        }
                    }
                    // Cut short: the reader says so as soon as it goes on.
                    let slot = Slot::File { executable, offset, size: written };
                    offset += written;
                    if matches!(nodes.insert(entry.name.clone(), slot), Some(Slot::Directory)) {
                        return Err(clash());
                    }
                }
            }
            for (at, _) in entry.name.match_indices('/') {
                let parent = nodes.entry(entry.name[..at].to_owned()).or_insert(Slot::Directory);
                if matches!(parent, Slot::File { .. }) {
                    return Err(clash());
                }
            }
            Ok(())
        })?;
        Ok(TarTree { spool, nodes })
    }
}

/// Go's reader looks at the header before anything else, and says so.
fn gzip_header(input: &mut impl io::BufRead) -> Result<(), UnpackError> {
    let seen = input.fill_buf().map_err(|e| UnpackError::Gzip(e.to_string()))?;
    if seen.is_empty() {
        return Err(UnpackError::Gzip("EOF".to_owned()));
    }
    if !seen.starts_with(&[0x1f, 0x8b, 8]) {
        return Err(UnpackError::Gzip("gzip: invalid header".to_owned()));
    }
    Ok(())
}

/// Counts what passes.
struct Counted<R> {
    inner: R,
    taken: std::rc::Rc<std::cell::Cell<u64>>,
}

impl<R> Counted<R> {
    fn new(inner: R) -> Self {
        Counted { inner, taken: std::rc::Rc::default() }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.taken.set(self.taken.get() + n as u64);
        Ok(n)
    }
}

impl Tree for TarTree {
    fn paths(&self) -> Vec<(String, Node)> {
        let node = |slot: &Slot| match slot {
            Slot::Directory => Node::Directory,
            Slot::File { executable, .. } => Node::File { executable: *executable },
        };
        self.nodes.iter().map(|(path, slot)| (path.clone(), node(slot))).collect()
    }

    fn open(&mut self, path: &str) -> io::Result<(u64, Box<dyn Read + '_>)> {
        match self.nodes.get(path) {
            Some(Slot::File { offset, size, .. }) => {
                self.spool.seek(SeekFrom::Start(*offset))?;
                Ok((*size, Box::new((&self.spool).take(*size))))
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// A tree with parts of others put into it.
pub struct Overlay {
    base: Box<dyn Tree>,
    parts: Vec<Part>,
}

struct Part {
    tree: Box<dyn Tree>,
    /// What of it is taken; empty for all.
    from: String,
    /// Where it is put; never empty.
    to: String,
}

/// Why something cannot be put at a path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OverlayError {
    #[error("'{0}' does not exist in the artifact")]
    NoSuchPath(String),
    #[error("rename to '{0}': file exists")]
    Occupied(String),
}

impl std::fmt::Debug for Overlay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Overlay").field("parts", &self.parts.len()).finish_non_exhaustive()
    }
}

impl Overlay {
    pub fn new(base: Box<dyn Tree>) -> Self {
        Overlay { base, parts: Vec::new() }
    }

    /// Puts `from` of another tree at `to`, which must be free (or an empty directory).
    pub fn put(&mut self, tree: Box<dyn Tree>, from: &str, to: &str) -> Result<(), OverlayError> {
        let (from, to) = (confined(from), confined(to));
        if !from.is_empty() && !tree.paths().iter().any(|(p, _)| *p == from) {
            return Err(OverlayError::NoSuchPath(from));
        }
        let below = format!("{to}/");
        let taken = self.paths().iter().any(|(p, node)| {
            p.starts_with(&below) || (*p == to && matches!(node, Node::File { .. })) || to.is_empty()
        });
        if taken {
            return Err(OverlayError::Occupied(to));
        }
        self.parts.push(Part { tree, from, to });
        Ok(())
    }
}

impl Part {
    /// Where a path of the part's tree ends up.
    fn place(&self, path: &str) -> Option<String> {
        if self.from.is_empty() {
            return Some(format!("{}/{path}", self.to));
        }
        let rest = path.strip_prefix(self.from.as_str())?;
        if rest.is_empty() {
            Some(self.to.clone())
        } else {
            rest.strip_prefix('/').map(|r| format!("{}/{r}", self.to))
        }
    }

    fn origin(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(self.to.as_str())?;
        if rest.is_empty() {
            return Some(self.from.clone());
        }
        let rest = rest.strip_prefix('/')?;
        Some(if self.from.is_empty() { rest.to_owned() } else { format!("{}/{rest}", self.from) })
    }
}

impl Tree for Overlay {
    fn paths(&self) -> Vec<(String, Node)> {
        let mut all: BTreeMap<String, Node> = self.base.paths().into_iter().collect();
        for part in &self.parts {
            for (at, _) in part.to.match_indices('/') {
                all.entry(part.to[..at].to_owned()).or_insert(Node::Directory);
            }
            if part.from.is_empty() {
                all.insert(part.to.clone(), Node::Directory);
            }
            all.extend(part.tree.paths().into_iter().filter_map(|(p, node)| Some((part.place(&p)?, node))));
        }
        all.into_iter().collect()
    }

    fn open(&mut self, path: &str) -> io::Result<(u64, Box<dyn Read + '_>)> {
        let holder = self.parts.iter().rposition(|p| p.origin(path).is_some());
        match holder {
            Some(i) => {
                let origin = self.parts[i].origin(path).unwrap_or_default();
                self.parts[i].tree.open(&origin)
            }
            None => self.base.open(path),
        }
    }
}

/// Why a tree could not be archived.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    #[error("{path}: {source}")]
    Read { path: String, source: io::Error },
    #[error("{}", crate::storage::chain(.0))]
    Archive(#[from] fl_archive::Error),
    #[error("{}", crate::storage::chain(.0))]
    Store(#[from] fl_store::Error),
}

/// Writes a tree the way Flux does: the root first, each directory before its content, names in byte order, ignored entries
/// left out one by one.
pub fn write_archive(
    tree: &mut dyn Tree,
    spec_ignore: Option<&str>,
    tar: &mut TarGz<'_>,
) -> Result<(), ArchiveError> {
    let mut paths = tree.paths();
    // By names within each directory, not by whole paths.
    paths.sort_by(|(a, _), (b, _)| a.split('/').cmp(b.split('/')));
    let rules = rules(tree, &paths, spec_ignore)?;
    tar.directory(".")?;
    for (path, node) in &paths {
        if rules.ignores(path, *node == Node::Directory) {
            continue;
        }
        match node {
            Node::Directory => tar.directory(path)?,
            Node::File { executable } => {
                let read = |source| ArchiveError::Read { path: path.clone(), source };
                let (size, mut content) = tree.open(path).map_err(read)?;
                let mode = if *executable { Mode::Executable } else { Mode::File };
                tar.file(path, mode, size, &mut content)?;
            }
        }
    }
    Ok(())
}

/// The ignore files of a tree, parents before children, and the line of the spec.
fn rules(tree: &mut dyn Tree, paths: &[(String, Node)], spec: Option<&str>) -> Result<Rules, ArchiveError> {
    let mut files = Vec::new();
    for (path, node) in paths {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name != IGNORE_FILE
            || !matches!(node, Node::File { .. })
            || directory.split('/').any(|d| d == ".git")
        {
            continue;
        }
        let read = |source| ArchiveError::Read { path: path.clone(), source };
        let (_, content) = tree.open(path).map_err(read)?;
        let mut bytes = Vec::new();
        content.take(IGNORE_BYTES).read_to_end(&mut bytes).map_err(read)?;
        files.push((directory.to_owned(), String::from_utf8_lossy(&bytes).into_owned()));
    }
    // Siblings of a directory come before what is in it: the root's file first, whatever it is called.
    files.sort_by(|(a, _), (b, _)| {
        a.split('/').filter(|s| !s.is_empty()).cmp(b.split('/').filter(|s| !s.is_empty()))
    });
    Ok(Rules::for_source(files.iter().map(|(d, t)| (d.as_str(), t.as_str())), spec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fl_archive::TarWriter;
    use flate2::write::GzEncoder;

    fn gz(fill: impl FnOnce(&mut TarWriter<GzEncoder<Vec<u8>>>)) -> Vec<u8> {
        gz_at(flate2::Compression::fast(), fill)
    }

    fn gz_at(level: flate2::Compression, fill: impl FnOnce(&mut TarWriter<GzEncoder<Vec<u8>>>)) -> Vec<u8> {
        let mut tar = TarWriter::new(GzEncoder::new(Vec::new(), level));
        fill(&mut tar);
        tar.finish().unwrap().finish().unwrap()
    }

    fn names(tree: &dyn Tree) -> Vec<String> {
        tree.paths().into_iter().map(|(p, _)| p).collect()
    }

    #[test]
    fn unpacks_without_a_path_on_disk() {
        let data = gz(|tar| {
            tar.file("a/b.txt", Mode::File, 2, &mut b"hi".as_slice()).unwrap();
            tar.file("x.sh", Mode::Executable, 3, &mut b"run".as_slice()).unwrap();
        });
        let mut tree = TarTree::unpack(data.as_slice(), true, &ReadLimits::default()).unwrap();
        assert_eq!(names(&tree), ["a", "a/b.txt", "x.sh"]);
        let mut text = String::new();
        tree.open("x.sh").unwrap().1.read_to_string(&mut text).unwrap();
        assert_eq!(text, "run");
        assert!(tree.has("./a/") && !tree.has("c"));
    }

    #[test]
    fn what_is_no_gzip_is_said_to_be_none() {
        let error =
            |data: &[u8]| TarTree::unpack(data, true, &ReadLimits::default()).unwrap_err().to_string();
        assert_eq!(error(b"plain text"), "requires gzip-compressed body: gzip: invalid header");
        assert_eq!(error(b""), "requires gzip-compressed body: EOF");
        let data = gz(|tar| tar.file("a", Mode::File, 5000, &mut [7u8; 5000].as_slice()).unwrap());
        assert!(error(&data[..data.len() / 2]).starts_with("tar error: "));
    }

    #[test]
    fn a_bomb_is_stopped_early() {
        let size = 1u64 << 28;
        let data = gz_at(flate2::Compression::best(), |tar| {
            tar.file("zeros", Mode::File, size, &mut io::repeat(0).take(size)).unwrap();
        });
        let start = std::time::Instant::now();
        let error = TarTree::unpack(data.as_slice(), true, &ReadLimits::default()).unwrap_err();
        assert!(matches!(error, UnpackError::Bomb), "{error}");
        assert!(start.elapsed().as_secs() < 2);
    }

    #[test]
    fn overlays() {
        let base = MemoryTree::new([("main.yaml", "m"), ("lib/keep.yaml", "k")]);
        let part = || Box::new(MemoryTree::new([("deploy/a.yaml", "a"), ("b.yaml", "b")]));
        let mut tree = Overlay::new(Box::new(base));
        tree.put(part(), "./deploy", "vendor/deploy").unwrap();
        tree.put(part(), "/", "all").unwrap();
        assert!(matches!(tree.put(part(), "nope", "x"), Err(OverlayError::NoSuchPath(_))));
        assert!(matches!(tree.put(part(), "/", "lib"), Err(OverlayError::Occupied(_))));
        assert!(matches!(tree.put(part(), "/", "../.."), Err(OverlayError::Occupied(_))));
        assert_eq!(
            names(&tree),
            [
                "all",
                "all/b.yaml",
                "all/deploy",
                "all/deploy/a.yaml",
                "lib",
                "lib/keep.yaml",
                "main.yaml",
                "vendor",
                "vendor/deploy",
                "vendor/deploy/a.yaml"
            ]
        );
        let mut text = String::new();
        tree.open("vendor/deploy/a.yaml").unwrap().1.read_to_string(&mut text).unwrap();
        tree.open("main.yaml").unwrap().1.read_to_string(&mut text).unwrap();
        assert_eq!(text, "am");
    }

    #[test]
    fn archives_in_order_and_without_what_is_ignored() {
        let mut tree = MemoryTree::new([
            ("a-b/x", "1"),
            ("a/y", "2"),
            ("logo.png", "3"),
            ("a/.sourceignore", "y\n"),
            ("top.txt", "4"),
        ]);
        let mut out: Vec<u8> = Vec::new();
        let sink: &mut dyn Write = &mut out;
        let mut tar = TarWriter::new(GzEncoder::new(sink, flate2::Compression::default()));
        write_archive(&mut tree, None, &mut tar).unwrap();
        tar.finish().unwrap().finish().unwrap();
        let mut names = Vec::new();
        let plain = flate2::read::GzDecoder::new(out.as_slice());
        read_tar(plain, &ReadLimits::default(), |e, _| {
            names.push(e.name.clone());
            Ok::<_, ReadError>(())
        })
        .unwrap();
        // One line of the user, and the usual set no longer applies.
        assert_eq!(names, ["", "a", "a/.sourceignore", "a-b", "a-b/x", "logo.png", "top.txt"]);
    }
}
