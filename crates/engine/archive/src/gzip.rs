//! Gzip-compressed archives, unpacked while they are read, with a limit on the compression ratio.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use crate::{Entry, ReadError, ReadLimits, read_tar};

/// Compression ratio above which an archive counts as a bomb: gzip reaches a thousand at most, text twenty.
const MAX_COMPRESSION_RATIO: u64 = 200;

/// Reads a gzip-compressed tar, see [`read_tar`]. `limits` sets the size from which on the ratio is checked.
pub fn read_tar_gz<R: Read, E: From<ReadError>>(
    input: R,
    limits: &ReadLimits,
    visit: impl FnMut(&Entry, &mut dyn Read) -> Result<(), E>,
) -> Result<(), E> {
    let mut input = BufReader::new(input);
    check_header(&mut input)?;
    let packed = Rc::new(Cell::new(0));
    let counted = CountingReader { inner: input, bytes: packed.clone() };
    let unzipped = flate2::bufread::MultiGzDecoder::new(BufReader::new(counted));
    let guarded = RatioLimitedReader {
        inner: unzipped,
        packed,
        unpacked: 0,
        ratio_checked_after: limits.ratio_checked_after,
    };
    read_tar(BufReader::with_capacity(64 << 10, guarded), limits, visit)
}

/// Go's reader checks the header first and has an error message of its own for it.
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

/// Counts the bytes that are read.
struct CountingReader<R> {
    inner: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.bytes.set(self.bytes.get() + n as u64);
        Ok(n)
    }
}

/// Fails as soon as the compression ratio exceeds the limit.
struct RatioLimitedReader<R> {
    inner: R,
    packed: Rc<Cell<u64>>,
    unpacked: u64,
    ratio_checked_after: u64,
}

/// The error of [`RatioLimitedReader`], which [`ReadError`] recognises.
#[derive(Debug, thiserror::Error)]
#[error("it grows more than {times} times when unpacked")]
pub(crate) struct RatioExceeded {
    pub(crate) times: u64,
}

impl<R: Read> Read for RatioLimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.unpacked += n as u64;
        if self.unpacked > self.ratio_checked_after
            && self.unpacked / MAX_COMPRESSION_RATIO > self.packed.get()
        {
            return Err(io::Error::other(RatioExceeded { times: MAX_COMPRESSION_RATIO }));
        }
        Ok(n)
    }
}
