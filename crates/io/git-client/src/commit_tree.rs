//! The tree of a commit, read straight from packs.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use fl_git::{EntryKind, ObjectId, ObjectKind, Pack, parse_tree};
use fl_http::{HeldBytes, Lease, SpoolFile};

use crate::transport::SpooledPack;

/// Directories one inside the other.
const DEPTH: usize = 1000;
/// Entries of a tree, all directories together. Equal directories are stored once, so a few objects can name any number.
const ENTRIES: usize = 1_000_000;
/// Bytes of one path: no file system takes more.
const PATH: usize = 4096;
/// Bytes of all paths together.
const PATHS: usize = 256 << 20;

/// What an entry is. Links are never entries: no archive may hold one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File { executable: bool },
}

/// A file or directory of a commit.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Relative to the root, `/` between names.
    pub path: String,
    pub kind: Kind,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    None,
    Object { store: usize, id: ObjectId },
    Text(String),
}

/// Why a tree cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    #[error("{0}")]
    Git(#[from] fl_git::Error),
    #[error("{0}")]
    TooLarge(&'static str),
    #[error("{0}")]
    Budget(#[from] fl_http::BudgetError),
    /// Of a repository on this machine.
    #[error("{0}")]
    Disk(#[from] crate::DiskError),
    #[error("it is a {0}")]
    NotACommit(ObjectKind),
}

/// The packs of one repository.
#[derive(Debug)]
pub(crate) struct Store(Vec<SpooledPack>);

impl Store {
    pub(crate) fn new(pack: SpooledPack) -> Self {
        Self(vec![pack])
    }

    fn pack(&mut self, id: &ObjectId) -> Result<&mut Pack<SpoolFile>, fl_git::Error> {
        let found = self.0.iter_mut().map(|spooled| &mut spooled.pack).find(|pack| pack.contains(id));
        found.ok_or(fl_git::Error::NotFound(*id))
    }

    fn contains(&self, id: &ObjectId) -> bool {
        self.0.iter().any(|spooled| spooled.pack.contains(id))
    }

    pub(crate) fn read_kind(&mut self, id: &ObjectId, kind: ObjectKind) -> Result<Vec<u8>, fl_git::Error> {
        self.pack(id)?.read_kind(id, kind)
    }
}

/// A submodule and the commit that the tree names.
#[derive(Clone, Debug)]
pub(crate) struct PinnedSubmodule {
    pub(crate) path: String,
    pub(crate) commit: ObjectId,
}

/// Files and directories of a commit, in the order of an archive: each directory before its content, names in byte order.
#[derive(Debug)]
pub struct Snapshot {
    stores: Vec<Store>,
    entries: Vec<Entry>,
    /// Links and submodules: their paths exist, but no archive contains them.
    links: Vec<String>,
    pinned: Vec<PinnedSubmodule>,
    /// Of the entries and their paths.
    held: Vec<HeldBytes>,
}

/// Bytes of memory of an entry besides its path, roughly.
const ENTRY_BYTES: usize = 128;

impl Snapshot {
    pub(crate) async fn open(
        store: Store,
        commit: ObjectId,
        sparse: &[String],
        lease: &Lease,
    ) -> Result<Self, SnapshotError> {
        let mut snapshot = Self::walk(store, commit, sparse)?;
        let paths =
            snapshot.entries.iter().map(|e| e.path.len()).chain(snapshot.links.iter().map(String::len));
        let bytes: usize = paths.map(|length| length + ENTRY_BYTES).sum();
        let mut held = lease.hold();
        held.add(bytes as u64).await?;
        snapshot.held.push(held);
        Ok(snapshot)
    }

    fn walk(mut store: Store, commit: ObjectId, sparse: &[String]) -> Result<Self, SnapshotError> {
        let tree = fl_git::parse_commit(&store.read_kind(&commit, ObjectKind::Commit)?)?.tree;
        let mut walk = Walk {
            store: &mut store,
            sparse,
            entries: Vec::new(),
            links: Vec::new(),
            pinned: Vec::new(),
            names: 0,
        };
        walk.directory(tree, "", 0)?;
        let Walk { entries, links, pinned, .. } = walk;
        Ok(Self { stores: vec![store], entries, links, pinned, held: Vec::new() })
    }

    /// All entries; the root itself is not among them.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether a file, directory or link is at this path; `.` and the empty path are the root.
    pub fn has_path(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').filter(|n| !n.is_empty() && *n != ".").collect();
        let path = names.join("/");
        path.is_empty() || self.entries.iter().any(|e| e.path == path) || self.links.contains(&path)
    }

    /// The content of a file, with its size known beforehand.
    pub fn open_file(&mut self, entry: &Entry) -> Result<(u64, Box<dyn Read + '_>), fl_git::Error> {
        match &entry.content {
            Content::None => Ok((0, Box::new(std::io::empty()))),
            Content::Text(text) => Ok((text.len() as u64, Box::new(Cursor::new(text.clone().into_bytes())))),
            Content::Object { store, id } => {
                let store = self.stores.get_mut(*store).ok_or(fl_git::Error::NotFound(*id))?;
                let blob = store.pack(id)?.open_object(id)?;
                Ok((blob.size(), Box::new(blob)))
            }
        }
    }

    /// The whole content of a file, at most `limit` bytes.
    pub fn read_file(&mut self, entry: &Entry, limit: u64) -> Result<Vec<u8>, fl_git::Error> {
        let (size, reader) = self.open_file(entry)?;
        if size > limit {
            return Err(fl_git::Error::TooLarge { what: entry.path.clone(), limit });
        }
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        reader.take(size).read_to_end(&mut content)?;
        Ok(content)
    }

    /// Files whose content has not been fetched.
    pub(crate) fn missing(&self) -> Vec<ObjectId> {
        let wanted = |entry: &Entry| match entry.content {
            Content::Object { store, id } if !self.stores.get(store)?.contains(&id) => Some(id),
            _ => None,
        };
        let mut ids: Vec<ObjectId> = self.entries.iter().filter_map(wanted).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// More packs of the same repository.
    pub(crate) fn add(&mut self, mut more: Store) {
        if let Some(first) = self.stores.first_mut() {
            first.0.append(&mut more.0);
        }
    }

    pub(crate) fn pinned(&self) -> &[PinnedSubmodule] {
        &self.pinned
    }

    /// Puts a submodule's tree at its path. Git keeps a file there that points to the submodule's own folder; Flux archives it.
    pub(crate) fn mount(&mut self, path: &str, pointer: String, mut inner: Snapshot) {
        let first = self.stores.len();
        self.stores.append(&mut inner.stores);
        self.held.append(&mut inner.held);
        self.entries.push(Entry {
            path: format!("{path}/.git"),
            kind: Kind::File { executable: false },
            content: Content::Text(pointer),
        });
        for mut entry in inner.entries {
            entry.path = format!("{path}/{}", entry.path);
            if let Content::Object { store, .. } = &mut entry.content {
                *store += first;
            }
            self.entries.push(entry);
        }
        self.links.extend(inner.links.into_iter().map(|l| format!("{path}/{l}")));
        // Byte order of names within each directory, not of whole paths: `/` sorts before every other character here.
        self.entries.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
    }
}

struct Walk<'a> {
    store: &'a mut Store,
    sparse: &'a [String],
    entries: Vec<Entry>,
    links: Vec<String>,
    pinned: Vec<PinnedSubmodule>,
    /// Bytes of all paths so far.
    names: usize,
}

impl Walk<'_> {
    /// Git sorts a directory as if its name ended in a slash; an archive does not.
    fn directory(&mut self, tree: ObjectId, at: &str, depth: usize) -> Result<(), SnapshotError> {
        if depth > DEPTH {
            return Err(SnapshotError::TooLarge("its directories are nested too deeply"));
        }
        let content = self.store.read_kind(&tree, ObjectKind::Tree)?;
        let children: BTreeMap<_, _> =
            parse_tree(&content, tree.kind())?.into_iter().map(|e| (e.name.clone(), e)).collect();
        for (name, child) in children {
            let path = format!("{at}{name}");
            self.names += path.len();
            if self.entries.len() + self.links.len() > ENTRIES || self.names > PATHS {
                return Err(SnapshotError::TooLarge("it has too many files"));
            }
            if path.len() > PATH {
                return Err(SnapshotError::TooLarge("a path in it is longer than 4096 bytes"));
            }
            match child.kind {
                EntryKind::Directory => {
                    let before = (self.entries.len(), self.links.len());
                    self.entries.push(Entry {
                        path: path.clone(),
                        kind: Kind::Directory,
                        content: Content::None,
                    });
                    self.directory(child.id, &format!("{path}/"), depth + 1)?;
                    // A directory exists for what is in it: of a sparse checkout many have nothing.
                    if (self.entries.len(), self.links.len()) == (before.0 + 1, before.1) {
                        self.entries.pop();
                    }
                }
                _ if !self.wanted(&path) => {}
                EntryKind::File | EntryKind::Executable => self.entries.push(Entry {
                    path,
                    kind: Kind::File { executable: child.kind == EntryKind::Executable },
                    content: Content::Object { store: 0, id: child.id },
                }),
                EntryKind::Symlink => self.links.push(path),
                EntryKind::Submodule => {
                    self.entries.push(Entry {
                        path: path.clone(),
                        kind: Kind::Directory,
                        content: Content::None,
                    });
                    self.pinned.push(PinnedSubmodule { path, commit: child.id });
                }
            }
        }
        Ok(())
    }

    /// Flux's sparse checkout compares beginnings of paths, not whole names.
    fn wanted(&self, path: &str) -> bool {
        self.sparse.is_empty() || self.sparse.iter().any(|prefix| path.starts_with(prefix.as_str()))
    }
}
