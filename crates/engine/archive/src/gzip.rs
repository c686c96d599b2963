//! Compressed archives: unpacked as they are read, and only as long as they do not grow like a bomb.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use crate::{Entry, ReadError, ReadLimits, read_tar};

/// An archive that grows more than this many times is a bomb: gzip gives a thousand at most, text twenty.
const GROWTH: u64 = 200;

/// Reads a gzip-compressed tar, see [`read_tar`]. `limits` say from which size on its growth counts.
pub fn read_tar_gz<R: Read, E: From<ReadError>>(
    input: R,
    limits: &ReadLimits,
    visit: impl FnMut(&Entry, &mut dyn Read) -> Result<(), E>,
) -> Result<(), E> {
    let mut input = BufReader::new(input);
    check_header(&mut input)?;
    let packed = Rc::new(Cell::new(0));
    let counted = Counted { inner: input, bytes: packed.clone() };
    let unzipped = flate2::bufread::MultiGzDecoder::new(BufReader::new(counted));
    let guarded = Guarded { inner: unzipped, packed, unpacked: 0, free: limits.before_growth };
    read_tar(BufReader::with_capacity(64 << 10, guarded), limits, visit)
}

/// Go's reader looks at the header before anything else, and says so.
fn check_header(input: &mut impl BufRead) -> Result<(), ReadError> {
    let seen = input.fill_buf().map_err(|e| ReadError::Gzip(e.to_string()))?;
    if seen.is_empty() {
        return Err(ReadError::Gzip("EOF".to_owned()));
    }
    if !seen.starts_with(&[0x1f, 0x8b, 8]) {
        return Err(ReadError::Gzip("gzip: invalid header".to_owned()));
    }
    Ok(())
}

/// Counts what passes.
struct Counted<R> {
    inner: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.bytes.set(self.bytes.get() + n as u64);
        Ok(n)
    }
}

/// Ends in an error as soon as too much came of too little.
struct Guarded<R> {
    inner: R,
    packed: Rc<Cell<u64>>,
    unpacked: u64,
    free: u64,
}

/// The error of [`Guarded`]; [`ReadError`] knows it again.
#[derive(Debug, thiserror::Error)]
#[error("it grows more than {times} times when unpacked")]
pub(crate) struct Grown {
    pub(crate) times: u64,
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.unpacked += n as u64;
        if self.unpacked > self.free && self.unpacked / GROWTH > self.packed.get() {
            return Err(io::Error::other(Grown { times: GROWTH }));
        }
        Ok(n)
    }
}
