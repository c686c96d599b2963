//! Trees of files from any source, and how they become an archive.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};

use fl_archive::{EntryKind, Mode, ReadError, ReadLimits, TreeBuilder, read_tar_gz};
use fl_artifact_store::TarGz;
use fl_http::{Lease, SpoolFile};
use fl_ignore::{IGNORE_FILE, Rules};

/// Bytes of an ignore file that are read.
const MAX_IGNORE_BYTES: u64 = 1 << 20;

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

/// A tree in memory, for tests.
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

/// Why an archive could not be unpacked, with Flux's messages.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    #[error("{0}")]
    Tar(#[from] ReadError),
    #[error("tar file entry {0} is a symlink, which is not allowed in this context")]
    Link(String),
    #[error("cannot keep the content: {0}")]
    Spool(#[source] io::Error),
}

/// The content of a compressed tar, spooled into one unnamed file. No path of the archive ever exists on disk.
#[derive(Debug)]
pub struct TarTree {
    spool: SpoolFile,
    nodes: fl_archive::Tree<Span>,
}

/// Where a file's content is.
#[derive(Clone, Copy, Debug)]
struct Span {
    offset: u64,
    size: u64,
}

impl TarTree {
    /// Unpacks a gzip-compressed tar; what it holds is counted by `lease`. Symbolic links are left out or refused.
    pub fn unpack(
        input: impl Read,
        allow_links: bool,
        limits: &ReadLimits,
        lease: &Lease,
    ) -> Result<Self, UnpackError> {
        let mut spool = lease.spool().map_err(UnpackError::Spool)?;
        let mut nodes = TreeBuilder::new(limits);
        let (mut offset, mut piece) = (0u64, vec![0; 64 << 10]);
        read_tar_gz(input, limits, |entry, content| {
            match entry.kind {
                EntryKind::Symlink if allow_links => {}
                EntryKind::Symlink => return Err(UnpackError::Link(entry.name.clone())),
                EntryKind::Other => return Err(ReadError::UnsupportedType(entry.name.clone()).into()),
                EntryKind::Directory => nodes.directory(&entry.name)?,
                EntryKind::File { executable } => {
                    let start = offset;
                    loop {
                        let n = content.read(&mut piece).map_err(ReadError::from)?;
                        if n == 0 {
                            break;
                        }
                        spool.write_all(&piece[..n]).map_err(UnpackError::Spool)?;
                        offset += n as u64;
                    }
                    // The reader reports an entry that was cut short when it continues.
                    nodes.file(&entry.name, executable, Span { offset: start, size: offset - start })?;
                }
            }
            Ok(())
        })?;
        Ok(TarTree { spool, nodes: nodes.finish()? })
    }
}

impl Tree for TarTree {
    fn paths(&self) -> Vec<(String, Node)> {
        let node = |found: Option<(&Span, bool)>| match found {
            None => Node::Directory,
            Some((_, executable)) => Node::File { executable },
        };
        self.nodes.iter().map(|(path, found)| (path.to_owned(), node(found))).collect()
    }

    fn open(&mut self, path: &str) -> io::Result<(u64, Box<dyn Read + '_>)> {
        let Some(Some((span, _))) = self.nodes.get(path) else { return Err(io::ErrorKind::NotFound.into()) };
        self.spool.seek(SeekFrom::Start(span.offset))?;
        Ok((span.size, Box::new((&self.spool).take(span.size))))
    }
}

/// A tree with parts of other trees copied into it.
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

/// Why a tree cannot be copied to a path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OverlayError {
    #[error("'{0}' does not exist in the artifact")]
    NoSuchPath(String),
    #[error("rename to '{to}': file exists")]
    Occupied { from: String, to: String },
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
            return Err(OverlayError::Occupied { from, to });
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
    Store(#[from] fl_artifact_store::Error),
}

/// Writes a tree as Flux does: the root first, each directory before its content, names in byte order, without ignored
/// entries.
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
        content.take(MAX_IGNORE_BYTES).read_to_end(&mut bytes).map_err(read)?;
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

    fn lease() -> Lease {
        fl_http::ByteBudget::shared().lease(fl_http::Owner::engine(), std::time::Duration::from_secs(1))
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
        let mut tree = TarTree::unpack(data.as_slice(), true, &ReadLimits::default(), &lease()).unwrap();
        assert_eq!(names(&tree), ["a", "a/b.txt", "x.sh"]);
        let mut text = String::new();
        tree.open("x.sh").unwrap().1.read_to_string(&mut text).unwrap();
        assert_eq!(text, "run");
        assert!(tree.has("./a/") && !tree.has("c"));
    }

    /// A02, A08: links are not followed, and the last of several entries with one path wins.
    #[test]
    fn links_are_not_followed_and_the_last_content_wins() {
        let link = |target: &str| {
            let mut block = [0u8; 512];
            block[..4].copy_from_slice(b"evil");
            block[100..107].copy_from_slice(b"0000777");
            block[156] = b'2';
            block[157..157 + target.len()].copy_from_slice(target.as_bytes());
            block[148..156].copy_from_slice(b"        ");
            let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
            block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
            block
        };
        let outside = tempfile::tempdir().unwrap();
        let mut files = TarWriter::new(Vec::new());
        files.file("evil/taken", Mode::File, 5, &mut b"first".as_slice()).unwrap();
        files.file("evil/taken", Mode::Executable, 4, &mut b"last".as_slice()).unwrap();
        files.file("Evil/taken", Mode::File, 5, &mut b"other".as_slice()).unwrap();
        // A chain, a loop and a way out, each before what would be written through it.
        let mut plain: Vec<u8> = Vec::new();
        for target in [outside.path().to_str().unwrap(), "evil", "../.."] {
            plain.extend(link(target));
        }
        plain.extend(files.finish().unwrap());
        let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&plain).unwrap();
        let data = packed.finish().unwrap();
        let refused = TarTree::unpack(data.as_slice(), false, &ReadLimits::default(), &lease()).unwrap_err();
        assert!(matches!(refused, UnpackError::Link(_)), "{refused}");
        let mut tree = TarTree::unpack(data.as_slice(), true, &ReadLimits::default(), &lease()).unwrap();
        assert_eq!(names(&tree), ["Evil", "Evil/taken", "evil", "evil/taken"]);
        assert_eq!(tree.paths()[3].1, Node::File { executable: false });
        let mut text = String::new();
        tree.open("evil/taken").unwrap().1.read_to_string(&mut text).unwrap();
        assert_eq!(text, "last");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn input_that_is_not_gzip_is_rejected() {
        let error = |data: &[u8]| {
            TarTree::unpack(data, true, &ReadLimits::default(), &lease()).unwrap_err().to_string()
        };
        assert_eq!(error(b"plain text"), "requires gzip-compressed body: gzip: invalid header");
        assert_eq!(error(b""), "requires gzip-compressed body: EOF");
        let data = gz(|tar| tar.file("a", Mode::File, 5000, &mut [7u8; 5000].as_slice()).unwrap());
        assert!(error(&data[..data.len() / 2]).starts_with("tar error: "));
    }

    /// A05: a bomb is stopped early.
    #[test]
    fn a_bomb_is_stopped_early() {
        let size = 1u64 << 28;
        let data = gz_at(flate2::Compression::best(), |tar| {
            tar.file("zeros", Mode::File, size, &mut io::repeat(0).take(size)).unwrap();
        });
        let start = std::time::Instant::now();
        let error = TarTree::unpack(data.as_slice(), true, &ReadLimits::default(), &lease()).unwrap_err();
        assert!(matches!(error, UnpackError::Tar(ReadError::CompressionRatio { .. })), "{error}");
        assert!(start.elapsed().as_secs() < 2);
    }

    #[test]
    fn overlays_copy_parts_to_free_paths() {
        let base = MemoryTree::new([("main.yaml", "m"), ("lib/keep.yaml", "k")]);
        let part = || Box::new(MemoryTree::new([("deploy/a.yaml", "a"), ("b.yaml", "b")]));
        let mut tree = Overlay::new(Box::new(base));
        tree.put(part(), "./deploy", "vendor/deploy").unwrap();
        tree.put(part(), "/", "all").unwrap();
        assert!(matches!(tree.put(part(), "nope", "x"), Err(OverlayError::NoSuchPath(_))));
        assert!(matches!(tree.put(part(), "/", "lib"), Err(OverlayError::Occupied { .. })));
        assert!(matches!(tree.put(part(), "/", "../.."), Err(OverlayError::Occupied { .. })));
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
    fn archives_are_ordered_and_without_ignored_files() {
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
        read_tar_gz(out.as_slice(), &ReadLimits::default(), |e, _| {
            names.push(e.name.clone());
            Ok::<_, ReadError>(())
        })
        .unwrap();
        // One line of the user, and the usual set no longer applies.
        assert_eq!(names, ["", "a", "a/.sourceignore", "a-b", "a-b/x", "logo.png", "top.txt"]);
    }
}
