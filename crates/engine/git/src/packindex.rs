//! The index file of a pack on disk (version 2): looks up where an object begins without reading all of it.

use std::io::{Read, Seek, SeekFrom};

use crate::{Error, HashKind, ObjectId};

const MAGIC: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
/// Magic, then 256 counts of four bytes.
const NAMES: u64 = 8 + 256 * 4;

/// An open index.
#[derive(Debug)]
pub(crate) struct PackIndex<F> {
    file: F,
    hash: HashKind,
    /// How many objects have a first byte up to this one.
    fanout: Vec<u32>,
}

impl<F: Read + Seek> PackIndex<F> {
    pub(crate) fn open(mut file: F, hash: HashKind) -> Result<Self, Error> {
        let mut head = vec![0; NAMES as usize];
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut head).map_err(|_| Error::pack(0, "its index is cut off"))?;
        if head[..8] != MAGIC {
            return Err(Error::pack(0, "its index is of a version before Git 1.6; run `git repack -ad`"));
        }
        let fanout: Vec<u32> =
            head[8..].chunks_exact(4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]])).collect();
        if fanout.windows(2).any(|w| w[0] > w[1]) {
            return Err(Error::pack(0, "the counts of its index are not in order"));
        }
        Ok(Self { file, hash, fanout })
    }

    fn count(&self) -> u64 {
        u64::from(self.fanout.last().copied().unwrap_or_default())
    }

    fn at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(buffer).map_err(|_| Error::pack(offset, "its index is cut off"))
    }

    /// Where an object's entry begins.
    pub(crate) fn find(&mut self, id: &ObjectId) -> Result<Option<u64>, Error> {
        let wanted = id.as_bytes();
        if id.kind() != self.hash {
            return Ok(None);
        }
        let first = usize::from(wanted[0]);
        let mut low = if first == 0 { 0 } else { self.fanout[first - 1] };
        let mut high = self.fanout[first];
        let size = self.hash.size() as u64;
        let mut name = vec![0; self.hash.size()];
        while low < high {
            let middle = low + (high - low) / 2;
            self.at(NAMES + u64::from(middle) * size, &mut name)?;
            match name.as_slice().cmp(wanted) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.offset(u64::from(middle)).map(Some),
            }
        }
        Ok(None)
    }

    fn offset(&mut self, place: u64) -> Result<u64, Error> {
        // Names, then a checksum of four bytes each, then offsets of four bytes, then the large ones of eight.
        let offsets = NAMES + self.count() * (self.hash.size() as u64 + 4);
        let mut small = [0; 4];
        self.at(offsets + place * 4, &mut small)?;
        let small = u32::from_be_bytes(small);
        if small & 0x8000_0000 == 0 {
            return Ok(u64::from(small));
        }
        let mut large = [0; 8];
        let place = u64::from(small & 0x7fff_ffff);
        self.at(offsets + self.count() * 4 + place * 8, &mut large)?;
        Ok(u64::from_be_bytes(large))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// An index of two objects; the second begins beyond four gigabytes.
    fn index() -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for first in 0..=255u32 {
            bytes.extend(u32::from(first >= 3).wrapping_add(u32::from(first >= 9)).to_be_bytes());
        }
        bytes.extend([3u8; 20]);
        bytes.extend([9u8; 20]);
        bytes.extend([0; 8]);
        bytes.extend(77u32.to_be_bytes());
        bytes.extend(0x8000_0000u32.to_be_bytes());
        bytes.extend((5u64 << 32).to_be_bytes());
        bytes
    }

    #[test]
    fn finds_small_and_large_offsets() {
        let mut open = PackIndex::open(Cursor::new(index()), HashKind::Sha1).unwrap();
        assert_eq!(open.find(&ObjectId::Sha1([3; 20])).unwrap(), Some(77));
        assert_eq!(open.find(&ObjectId::Sha1([9; 20])).unwrap(), Some(5 << 32));
        assert_eq!(open.find(&ObjectId::Sha1([4; 20])).unwrap(), None);
        assert_eq!(open.find(&ObjectId::Sha1([0; 20])).unwrap(), None);
    }

    #[test]
    fn corrupt_index_is_rejected() {
        assert!(PackIndex::open(Cursor::new(b"nothing".to_vec()), HashKind::Sha1).is_err());
        let mut cut = index();
        cut.truncate(cut.len() - 4);
        let mut open = PackIndex::open(Cursor::new(cut), HashKind::Sha1).unwrap();
        assert!(open.find(&ObjectId::Sha1([9; 20])).is_err());
    }
}
