//! Files without a name for content that is larger than memory should hold.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::HeldBytes;

/// A file without a name whose bytes are counted. Written once from start to end, then read; writes may block.
#[derive(Debug)]
pub struct SpoolFile {
    file: File,
    held: HeldBytes,
}

impl SpoolFile {
    pub(crate) fn new(file: File, held: HeldBytes) -> Self {
        Self { file, held }
    }

    /// The file and its bytes, which must be kept as long as the file.
    #[must_use]
    pub fn into_parts(self) -> (File, HeldBytes) {
        (self.file, self.held)
    }
}

impl Write for SpoolFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.held.add_blocking(buffer.len() as u64)?;
        self.file.write_all(buffer)?;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Read for SpoolFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Read for &SpoolFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(buffer)
    }
}

impl Seek for SpoolFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
