//! One file of the write-ahead log, open for appending.
//!
//! The file is zeroed ahead of its writes: its length and extents do not change, so that a sync writes data
//! only.

use std::io;

use super::Write;
use super::files::{File, Files, write_all_at};
use super::format::{self, Block, Chain, HEADER, Header, Tail};

#[derive(Debug)]
pub(super) struct Log {
    file: Box<dyn File>,
    chain: Chain,
    /// Offset of the next block.
    position: u64,
    /// End of the synced bytes.
    durable: u64,
    /// End of the zeroed bytes.
    zeroed: u64,
    /// How far the file is zeroed ahead.
    preallocate: u64,
}

/// The decoded contents of a log.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) writes: Vec<Write>,
    chain: Chain,
    position: usize,
    /// End of the bytes known to be synced when the last block was written.
    durable: usize,
}

/// Reads the blocks of a log. A log that is `closed` must be complete up to that offset; what follows is
/// ignored.
pub(super) fn read(bytes: &[u8], header: &Header, closed: Option<u64>) -> Result<Contents, String> {
    header.check(bytes)?;
    let end = closed.map_or(bytes.len(), |end| usize::try_from(end).unwrap_or(usize::MAX));
    let Some(bytes) = bytes.get(..end) else {
        return Err(format!("it is damaged: {} of {end} bytes are left", bytes.len()));
    };
    let mut chain = Chain::new(header);
    let (mut position, mut durable, mut writes) = (HEADER, HEADER, Vec::new());
    while let Some(block) = format::next(bytes, position, &mut chain) {
        writes.extend(block.records()?);
        durable = position.min(usize::try_from(block.durable).unwrap_or(position));
        position = block.end;
    }
    match format::tail(bytes, position, &chain) {
        Tail::Corrupt(what) => return Err(what),
        Tail::Torn if closed.is_some() => {
            return Err(format!(
                "the block at byte {position} is damaged: the log was synced up to byte {end}"
            ));
        }
        Tail::Empty if closed.is_some() && position < end => {
            return Err(format!("it is damaged: the blocks end at byte {position} instead of {end}"));
        }
        Tail::Torn | Tail::Empty => {}
    }
    Ok(Contents { writes, chain, position, durable })
}

impl Log {
    /// Creates a log, zeroed for `reserve` bytes. It is durable except for its name.
    pub(super) fn create(
        files: &dyn Files,
        name: &str,
        header: &Header,
        preallocate: u64,
        reserve: u64,
    ) -> io::Result<Self> {
        let mut file = files.create(name)?;
        write_all_at(&mut *file, &header.encode(), 0)?;
        let position = HEADER as u64;
        let mut log = Self {
            file,
            chain: Chain::new(header),
            position,
            durable: position,
            zeroed: position,
            preallocate,
        };
        log.zero(position + reserve)?;
        log.file.sync()?;
        Ok(log)
    }

    /// Opens a log that was read, and makes all of it durable.
    pub(super) fn open(
        files: &dyn Files,
        name: &str,
        bytes: &[u8],
        contents: &Contents,
        preallocate: u64,
    ) -> io::Result<Self> {
        let mut file = files.open(name)?;
        let Contents { chain, position, durable, .. } = *contents;
        // Bytes that the last process did not sync are written again: if its own sync failed, the kernel may
        // consider them written although they are not on the disk, and another sync would not write them.
        write_all_at(&mut *file, &bytes[durable..position], durable as u64)?;
        // For the same reason the rest is zeroed even if it reads as zero: remains of a torn block on the
        // disk must never line up with later blocks.
        write_all_at(&mut *file, &vec![0; bytes.len() - position], position as u64)?;
        file.sync()?;
        let position = position as u64;
        Ok(Self { file, chain, position, durable: position, zeroed: bytes.len() as u64, preallocate })
    }

    fn zero(&mut self, to: u64) -> io::Result<()> {
        let chunk = vec![0u8; (to.saturating_sub(self.zeroed) as usize).min(1 << 18)];
        while self.zeroed < to {
            let n = chunk.len().min((to - self.zeroed) as usize);
            match self.file.write_at(&chunk[..n], self.zeroed) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => self.zeroed += n as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Appends a block. After an error the log must not be written to again.
    pub(super) fn append(&mut self, block: &mut Block) -> io::Result<()> {
        let bytes = block.seal(&mut self.chain, self.durable);
        let end = self.position + bytes.len() as u64;
        if end > self.zeroed {
            // On an almost full disk, room for this block is enough.
            let zeroed = self.zero(end.max(self.zeroed + self.preallocate));
            if self.zeroed < end {
                zeroed?;
            }
        }
        write_all_at(&mut *self.file, bytes, self.position)?;
        self.position = end;
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync()?;
        self.durable = self.position;
        Ok(())
    }

    pub(super) fn durable(&self) -> u64 {
        self.durable
    }

    pub(super) fn is_synced(&self) -> bool {
        self.durable == self.position
    }

    /// Bytes of the file in use.
    pub(super) fn len(&self) -> u64 {
        self.position
    }
}
