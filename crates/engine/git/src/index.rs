//! A pack made readable by object id.
//!
//! Indexing reads the pack once in order (large blobs are hashed as they stream by and never held), then works through the
//! deltas from their bases outwards. Only the objects on the path from a base to the delta at hand are in memory.

use std::collections::HashMap;
use std::io::{Read, Seek};

use crate::delta;
use crate::pack::{Head, Reader, Stored};
use crate::packindex::PackIndex;
use crate::{Blob, Error, HashKind, Hasher, ObjectId, ObjectKind};

/// Limits of an untrusted pack.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one object that has to be held in memory: a delta, its base or its result.
    pub object: u64,
    /// Number of objects.
    pub objects: u32,
    /// Length of a delta chain.
    pub chain: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { object: 512 << 20, objects: 10_000_000, chain: 4096 }
    }
}

/// An indexed pack.
#[derive(Debug)]
pub struct Pack<F> {
    reader: Reader<F>,
    hash: HashKind,
    limits: Limits,
    /// Object id -> where its entry begins.
    offsets: HashMap<ObjectId, u64>,
    /// Asked instead, where a pack came with an index of its own.
    index: Option<PackIndex<F>>,
}

/// A delta whose base is not resolved yet.
struct Waiting {
    offset: u64,
    base: Stored,
}

/// The objects from a base to the current delta. Beyond a limit the content of the oldest is dropped and read again when
/// needed, so that a long chain of large objects costs time, not memory.
#[derive(Default)]
struct Path {
    levels: Vec<Level>,
    held: usize,
}

struct Level {
    offset: u64,
    content: Option<Vec<u8>>,
    children: Vec<u64>,
}

/// Bytes of contents on a path.
const HELD: usize = 16 << 20;

impl Path {
    fn push(&mut self, offset: u64, content: Vec<u8>, children: Vec<u64>) {
        self.held += content.len();
        self.levels.push(Level { offset, content: Some(content), children });
        let above = self.levels.len() - 1;
        for level in &mut self.levels[..above] {
            if self.held <= HELD {
                break;
            }
            self.held -= level.content.take().map_or(0, |c| c.len());
        }
    }

    fn pop(&mut self) {
        let gone = self.levels.pop().and_then(|l| l.content);
        self.held -= gone.map_or(0, |c| c.len());
    }
}

impl<F: Read + Seek> Pack<F> {
    /// Reads the whole pack, checks its checksum and every object, and indexes it.
    pub fn open(file: F, hash: HashKind, limits: Limits) -> Result<Self, Error> {
        let mut pack = Self { reader: Reader::new(file), hash, limits, offsets: HashMap::new(), index: None };
        let (waiting, mut kinds) = pack.first_pass()?;
        pack.resolve(waiting, &mut kinds)?;
        Ok(pack)
    }

    /// A pack of a repository on disk, read through its index file. Nothing is checked beforehand; callers that read an
    /// object compare its id.
    pub fn with_index(file: F, index: F, hash: HashKind, limits: Limits) -> Result<Self, Error> {
        let index = PackIndex::open(index, hash)?;
        Ok(Self { reader: Reader::new(file), hash, limits, offsets: HashMap::new(), index: Some(index) })
    }

    fn offset(&mut self, id: &ObjectId) -> Result<Option<u64>, Error> {
        match &mut self.index {
            Some(index) => index.find(id),
            None => Ok(self.offsets.get(id).copied()),
        }
    }

    /// Whether an object is in the pack, by its own index where it has one.
    pub fn holds(&mut self, id: &ObjectId) -> Result<bool, Error> {
        Ok(self.offset(id)?.is_some())
    }

    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    pub fn contains(&self, id: &ObjectId) -> bool {
        self.offsets.contains_key(id)
    }

    /// Kind and content of an object.
    pub fn read(&mut self, id: &ObjectId) -> Result<(ObjectKind, Vec<u8>), Error> {
        let offset = self.offset(id)?.ok_or(Error::NotFound(*id))?;
        self.read_at(offset)
    }

    /// Content of an object that must be of one kind.
    pub fn read_kind(&mut self, id: &ObjectId, wanted: ObjectKind) -> Result<Vec<u8>, Error> {
        match self.read(id)? {
            (found, content) if found == wanted => Ok(content),
            (found, _) => Err(Error::WrongKind { id: *id, found, wanted }),
        }
    }

    /// An object's content as a stream, with its size known beforehand.
    pub fn open_object(&mut self, id: &ObjectId) -> Result<Blob<'_, F>, Error> {
        let offset = self.offset(id)?.ok_or(Error::NotFound(*id))?;
        let head = self.reader.head(offset, self.hash)?;
        match head.stored {
            Stored::Whole(_) => Ok(Blob::whole(&mut self.reader, head)),
            _ => Ok(Blob::held(self.read_at(offset)?.1)),
        }
    }

    pub fn hash(&self) -> HashKind {
        self.hash
    }

    fn first_pass(&mut self) -> Result<(Vec<Waiting>, HashMap<u64, ObjectKind>), Error> {
        let head: Vec<u8> = self.reader.peek(0)?.iter().take(12).copied().collect();
        let word = |at: usize| head.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
        let (Some(b"PACK"), Some(2 | 3), Some(count)) = (head.get(..4), word(4), word(8)) else {
            return Err(Error::pack(0, "it does not begin like a pack"));
        };
        if count > self.limits.objects {
            return Err(Error::pack(
                0,
                format!("it has {count} objects, the limit is {}", self.limits.objects),
            ));
        }
        let (mut offset, mut waiting, mut kinds) = (12, Vec::new(), HashMap::new());
        for _ in 0..count {
            let head = self.reader.head(offset, self.hash)?;
            let next = match head.stored {
                Stored::Whole(kind) => {
                    let mut hasher = Hasher::for_object(self.hash, kind, head.size);
                    let next = self.reader.inflate(&head, |piece| hasher.update(piece))?;
                    self.offsets.insert(hasher.finish()?, offset);
                    kinds.insert(offset, kind);
                    next
                }
                base => {
                    waiting.push(Waiting { offset, base });
                    self.reader.inflate(&head, |_| {})?
                }
            };
            offset = next;
        }
        self.check_trailer(offset)?;
        Ok((waiting, kinds))
    }

    /// The last bytes are the hash of all before; nothing may follow.
    fn check_trailer(&mut self, end: u64) -> Result<(), Error> {
        let mut hasher = Hasher::new(self.hash);
        let mut at = 0;
        while at < end {
            let piece = self.reader.peek(at)?;
            let take = piece.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
            if take == 0 {
                return Err(Error::pack(at, "it ends too early"));
            }
            hasher.update(&piece[..take]);
            at += take as u64;
        }
        let trailer = self.reader.peek(end)?.to_vec();
        if ObjectId::from_bytes(&trailer) == Some(hasher.finish()?) {
            Ok(())
        } else {
            Err(Error::pack(end, "its checksum is wrong"))
        }
    }

    /// Gives every delta its id, walking from bases outwards with an explicit stack.
    fn resolve(&mut self, waiting: Vec<Waiting>, kinds: &mut HashMap<u64, ObjectKind>) -> Result<(), Error> {
        let total = waiting.len();
        let (mut by_offset, mut by_id): (HashMap<u64, Vec<u64>>, HashMap<ObjectId, Vec<u64>>) =
            Default::default();
        for w in waiting {
            match w.base {
                Stored::DeltaAt(base) => by_offset.entry(base).or_default().push(w.offset),
                Stored::DeltaOn(id) => by_id.entry(id).or_default().push(w.offset),
                Stored::Whole(_) => {}
            }
        }
        let roots: Vec<(ObjectId, u64)> = self.offsets.iter().map(|(id, at)| (*id, *at)).collect();
        let mut done = 0;
        for (id, root) in roots {
            let Some(kind) = kinds.get(&root).copied() else { continue };
            let mut children = by_offset.remove(&root).unwrap_or_default();
            children.extend(by_id.remove(&id).unwrap_or_default());
            if children.is_empty() {
                continue;
            }
            let head = self.reader.head(root, self.hash)?;
            let mut path = Path::default();
            path.push(root, self.content(&head)?, children);
            while let Some(level) = path.levels.last_mut() {
                let Some(child) = level.children.pop() else {
                    path.pop();
                    continue;
                };
                if level.content.is_none() {
                    let content = self.read_at(level.offset)?.1;
                    path.held += content.len();
                    level.content = Some(content);
                }
                let base = level.content.as_deref().unwrap_or_default();
                let head = self.reader.head(child, self.hash)?;
                let content = self.patch(base, &head)?;
                let mut hasher = Hasher::for_object(self.hash, kind, content.len() as u64);
                hasher.update(&content);
                let child_id = hasher.finish()?;
                self.offsets.insert(child_id, child);
                done += 1;
                let mut below = by_offset.remove(&child).unwrap_or_default();
                below.extend(by_id.remove(&child_id).unwrap_or_default());
                if !below.is_empty() {
                    if path.levels.len() >= self.limits.chain {
                        return Err(Error::pack(child, "its delta chain is too long"));
                    }
                    path.push(child, content, below);
                }
            }
        }
        if done == total {
            Ok(())
        } else {
            Err(Error::pack(12, format!("{} deltas have no base", total - done)))
        }
    }

    fn patch(&mut self, base: &[u8], head: &Head) -> Result<Vec<u8>, Error> {
        let delta = self.content(head)?;
        delta::apply(base, &delta, self.limits.object)
            .map_err(|why| Error::pack(head.data, format!("a delta is broken: {why}")))
    }

    fn content(&mut self, head: &Head) -> Result<Vec<u8>, Error> {
        if head.size > self.limits.object {
            return Err(Error::TooLarge { what: "an object".to_owned(), limit: self.limits.object });
        }
        // The capacity grows with the data, because the announced size is not trusted.
        let mut content = Vec::with_capacity(usize::try_from(head.size.min(1 << 20)).unwrap_or(0));
        self.reader.inflate(head, |piece| content.extend_from_slice(piece))?;
        Ok(content)
    }

    fn read_at(&mut self, offset: u64) -> Result<(ObjectKind, Vec<u8>), Error> {
        let mut deltas = Vec::new();
        let mut at = offset;
        let (kind, mut content) = loop {
            let head = self.reader.head(at, self.hash)?;
            let base = match head.stored {
                Stored::Whole(kind) => break (kind, self.content(&head)?),
                Stored::DeltaAt(base) => base,
                Stored::DeltaOn(id) => self.offset(&id)?.ok_or(Error::NotFound(id))?,
            };
            if deltas.len() >= self.limits.chain {
                return Err(Error::pack(offset, "its delta chain is too long"));
            }
            deltas.push(head);
            at = base;
        };
        for head in deltas.iter().rev() {
            content = self.patch(&content, head)?;
        }
        Ok((kind, content))
    }
}
