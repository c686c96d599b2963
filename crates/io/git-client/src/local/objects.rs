//! The object database: loose objects, packs with their indexes, alternates.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use fl_git::{EntryKind, Error, HashKind, Hasher, Limits, ObjectId, ObjectKind, Pack, parse_tree};

use super::{DiskError, io_error};

/// Bytes of one object.
const OBJECT: u64 = 512 << 20;
/// Nested directories and entries of a tree.
const DEPTH: usize = 256;
const ENTRIES: usize = 500_000;
const ALTERNATES: usize = 16;

/// A file or link of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskEntry {
    pub kind: EntryKind,
    pub id: ObjectId,
}

/// An open object database.
#[derive(Debug)]
pub struct Objects {
    directories: Vec<PathBuf>,
    packs: Vec<Pack<File>>,
    hash: HashKind,
}

impl Objects {
    pub(super) fn open(directory: &Path, hash: HashKind) -> Result<Self, DiskError> {
        let mut directories = vec![directory.to_owned()];
        let mut at = 0;
        while let Some(place) = directories.get(at).cloned() {
            at += 1;
            let text = std::fs::read_to_string(place.join("info/alternates")).unwrap_or_default();
            let more = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).map(|l| place.join(l));
            directories.extend(more.take(ALTERNATES.saturating_sub(at)));
        }
        let mut packs = Vec::new();
        for place in &directories {
            let Ok(entries) = std::fs::read_dir(place.join("pack")) else { continue };
            for index in entries.filter_map(|e| Some(e.ok()?.path())) {
                let pack = index.with_extension("pack");
                if index.extension().is_none_or(|e| e != "idx") || !pack.is_file() {
                    continue;
                }
                let file = File::open(&pack).map_err(io_error(&pack))?;
                let table = File::open(&index).map_err(io_error(&index))?;
                let limits = Limits { object: OBJECT, ..Limits::default() };
                let opened = Pack::with_index(file, table, hash, limits);
                let bad = |e: Error| DiskError::Malformed { path: index.clone(), problem: e.to_string() };
                packs.push(opened.map_err(bad)?);
            }
        }
        Ok(Self { directories, packs, hash })
    }

    /// Kind and content of an object; its bytes are those its id stands for.
    pub fn read(&mut self, id: &ObjectId) -> Result<(ObjectKind, Vec<u8>), Error> {
        let (kind, content) = match self.loose(id)? {
            Some(found) => found,
            None => self.packed(id)?.ok_or(Error::NotFound(*id))?,
        };
        let mut hasher = Hasher::for_object(self.hash, kind, content.len() as u64);
        hasher.update(&content);
        if hasher.finish()? != *id {
            return Err(Error::Object { kind, problem: format!("its content is not that of {id}") });
        }
        Ok((kind, content))
    }

    /// Content of an object of one kind.
    pub fn read_kind(&mut self, id: &ObjectId, wanted: ObjectKind) -> Result<Vec<u8>, Error> {
        match self.read(id)? {
            (kind, content) if kind == wanted => Ok(content),
            (found, _) => Err(Error::WrongKind { id: *id, found, wanted }),
        }
    }

    fn packed(&mut self, id: &ObjectId) -> Result<Option<(ObjectKind, Vec<u8>)>, Error> {
        for pack in &mut self.packs {
            if pack.holds(id)? {
                return pack.read(id).map(Some);
            }
        }
        Ok(None)
    }

    fn loose(&self, id: &ObjectId) -> Result<Option<(ObjectKind, Vec<u8>)>, Error> {
        let name = id.to_string();
        let (folder, rest) = name.split_at(2);
        let Some(file) = self.directories.iter().find_map(|d| File::open(d.join(folder).join(rest)).ok())
        else {
            return Ok(None);
        };
        let bad =
            |problem: &str| Error::Object { kind: ObjectKind::Blob, problem: format!("{id}: {problem}") };
        let mut bytes = Vec::new();
        let mut inflated = flate2::read::ZlibDecoder::new(file).take(OBJECT + 64);
        inflated.read_to_end(&mut bytes).map_err(|_| bad("its file is damaged"))?;
        let end = bytes.iter().take(64).position(|b| *b == 0).ok_or_else(|| bad("it has no header"))?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let (kind, size) = head.split_once(' ').ok_or_else(|| bad("its header is malformed"))?;
        let kind = match kind {
            "commit" => ObjectKind::Commit,
            "tree" => ObjectKind::Tree,
            "blob" => ObjectKind::Blob,
            "tag" => ObjectKind::Tag,
            _ => return Err(bad("it is of no known kind")),
        };
        let content = bytes.split_off(end + 1);
        if size.parse() != Ok(content.len() as u64) {
            return Err(bad("it is not as long as it says"));
        }
        Ok(Some((kind, content)))
    }

    /// Files, links and submodules of a commit by path.
    pub fn files(&mut self, commit: &ObjectId) -> Result<BTreeMap<String, DiskEntry>, Error> {
        let commit = fl_git::parse_commit(&self.read_kind(commit, ObjectKind::Commit)?)?;
        let mut files = BTreeMap::new();
        let mut todo = vec![(String::new(), commit.tree, 0)];
        while let Some((at, tree, depth)) = todo.pop() {
            if depth > DEPTH || files.len() > ENTRIES {
                return Err(Error::TooLarge {
                    what: "the tree of the commit".to_owned(),
                    limit: ENTRIES as u64,
                });
            }
            for entry in parse_tree(&self.read_kind(&tree, ObjectKind::Tree)?, self.hash)? {
                let path = format!("{at}{}", entry.name);
                match entry.kind {
                    EntryKind::Directory => todo.push((format!("{path}/"), entry.id, depth + 1)),
                    kind => {
                        files.insert(path, DiskEntry { kind, id: entry.id });
                    }
                }
            }
        }
        Ok(files)
    }
}
