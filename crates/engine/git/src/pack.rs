//! The entries of a pack file, one at a time.

use std::io::{Read, Seek, SeekFrom};

use flate2::{Decompress, FlushDecompress, Status};

use crate::{Error, HashKind, ObjectId, ObjectKind};

/// How the content of an entry is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Whole(ObjectKind),
    /// A delta on the entry that begins at this byte.
    DeltaAt(u64),
    /// A delta on the object with this id.
    DeltaOn(ObjectId),
}

/// The head of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) stored: Stored,
    /// Size of the content after inflating (of the delta, for a delta).
    pub(crate) size: u64,
    /// Where the deflated bytes begin.
    pub(crate) data: u64,
}

/// Reads a pack at any byte. Small reads go through one window.
#[derive(Debug)]
pub(crate) struct Reader<F> {
    file: F,
    window: Vec<u8>,
    /// Where the window begins in the file, and how much of it is filled.
    start: u64,
    filled: usize,
}

const WINDOW: usize = 64 * 1024;

impl<F: Read + Seek> Reader<F> {
    pub(crate) fn new(file: F) -> Self {
        Self { file, window: vec![0; WINDOW], start: 0, filled: 0 }
    }

    /// Some bytes from `at` on; empty only at the end of the file.
    pub(crate) fn peek(&mut self, at: u64) -> Result<&[u8], Error> {
        let inside =
            at.checked_sub(self.start).and_then(|d| usize::try_from(d).ok()).filter(|d| *d < self.filled);
        let from = match inside {
            Some(from) => from,
            None => {
                self.file.seek(SeekFrom::Start(at))?;
                self.start = at;
                self.filled = 0;
                while self.filled < WINDOW {
                    match self.file.read(&mut self.window[self.filled..])? {
                        0 => break,
                        n => self.filled += n,
                    }
                }
                0
            }
        };
        Ok(&self.window[from..self.filled])
    }

    fn byte(&mut self, at: &mut u64) -> Result<u8, Error> {
        let byte =
            *self.peek(*at)?.first().ok_or_else(|| Error::pack(*at, "it ends in the middle of an entry"))?;
        *at += 1;
        Ok(byte)
    }

    pub(crate) fn head(&mut self, offset: u64, hash: HashKind) -> Result<Head, Error> {
        let mut at = offset;
        let first = self.byte(&mut at)?;
        let mut size = u64::from(first & 0x0f);
        let (mut shift, mut more) = (4, first & 0x80 != 0);
        while more {
            let byte = self.byte(&mut at)?;
            if shift > 56 {
                return Err(Error::pack(offset, "an entry claims an absurd size"));
            }
            size |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            more = byte & 0x80 != 0;
        }
        let stored = match (first >> 4) & 7 {
            1 => Stored::Whole(ObjectKind::Commit),
            2 => Stored::Whole(ObjectKind::Tree),
            3 => Stored::Whole(ObjectKind::Blob),
            4 => Stored::Whole(ObjectKind::Tag),
            6 => Stored::DeltaAt(self.base_offset(offset, &mut at)?),
            7 => {
                let mut id = vec![0; hash.size()];
                for byte in &mut id {
                    *byte = self.byte(&mut at)?;
                }
                Stored::DeltaOn(
                    ObjectId::from_bytes(&id).ok_or_else(|| Error::pack(offset, "a base id is malformed"))?,
                )
            }
            other => return Err(Error::pack(offset, format!("an entry has the type {other}"))),
        };
        Ok(Head { stored, size, data: at })
    }

    /// A base is always earlier in the pack, so chains cannot be circular.
    fn base_offset(&mut self, offset: u64, at: &mut u64) -> Result<u64, Error> {
        let mut byte = self.byte(at)?;
        let mut back = u64::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.byte(at)?;
            back = back
                .checked_add(1)
                .and_then(|b| b.checked_mul(128))
                .ok_or_else(|| Error::pack(offset, "a base is too far away"))?;
            back |= u64::from(byte & 0x7f);
        }
        offset
            .checked_sub(back)
            .filter(|base| *base >= 12 && back > 0)
            .ok_or_else(|| Error::pack(offset, "a base lies outside the pack"))
    }

    /// Inflates an entry's content piece by piece into `sink`; answers where the next entry begins.
    pub(crate) fn inflate(&mut self, head: &Head, mut sink: impl FnMut(&[u8])) -> Result<u64, Error> {
        let mut inflater = Decompress::new(true);
        let mut buffer = vec![0; 32 * 1024];
        let mut at = head.data;
        let mut out = 0u64;
        loop {
            let input = self.peek(at)?;
            let ended = input.is_empty();
            let (in_before, out_before) = (inflater.total_in(), inflater.total_out());
            let status = inflater
                .decompress(input, &mut buffer, FlushDecompress::None)
                .map_err(|_| Error::pack(head.data, "deflated bytes are damaged"))?;
            let consumed = inflater.total_in() - in_before;
            let produced = inflater.total_out() - out_before;
            at += consumed;
            out += produced;
            if out > head.size {
                return Err(Error::pack(head.data, "an entry is longer than it says"));
            }
            sink(&buffer[..usize::try_from(produced).unwrap_or(0)]);
            match status {
                Status::StreamEnd if out == head.size => return Ok(at),
                Status::StreamEnd => return Err(Error::pack(head.data, "an entry is shorter than it says")),
                _ if ended || (consumed == 0 && produced == 0) => {
                    return Err(Error::pack(head.data, "it ends in the middle of an entry"));
                }
                _ => {}
            }
        }
    }
}
