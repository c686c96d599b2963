//! Gzip decompression in large chunks. Charts are mostly CRDs, which compress well; with small chunks the
//! per-call overhead dominates.

use std::io::{BufRead, Error, ErrorKind, Read, Result, Seek, SeekFrom};

use flate2::{Decompress, FlushDecompress, Status};

/// Bytes decompressed per call. The decompressor copies its 32 KiB window after each chunk, while parsers
/// wait for the first chunk.
const CHUNK_BYTES: usize = 128 << 10;

/// Reader of the decompressed content of a gzip file, including all its members.
pub(super) struct GzipReader<R> {
    /// The compressed input.
    packed: R,
    inflate: Decompress,
    piece: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes returned so far.
    position: u64,
    checksum: crc32fast::Hasher,
    length: u32,
    inside: bool,
    /// A decompression error, returned after all bytes before it were read.
    stopped: Option<Error>,
}

impl<R: BufRead> GzipReader<R> {
    pub(super) fn new(packed: R) -> Self {
        Self {
            packed,
            inflate: Decompress::new(false),
            piece: Vec::new(),
            start: 0,
            end: 0,
            position: 0,
            checksum: crc32fast::Hasher::new(),
            length: 0,
            inside: false,
            stopped: None,
        }
    }

    /// Decompresses the next chunk; leaves the buffer empty at the end.
    fn refill(&mut self) -> Result<()> {
        if let Some(error) = self.stopped.take() {
            return Err(error);
        }
        self.piece.resize(CHUNK_BYTES, 0);
        (self.start, self.end) = (0, 0);
        while self.end == 0 {
            if !self.inside {
                if self.packed.fill_buf()?.is_empty() {
                    return Ok(());
                }
                self.header()?;
            }
            self.inflate_some()?;
        }
        Ok(())
    }

    fn inflate_some(&mut self) -> Result<()> {
        let (consumed, produced) = (self.inflate.total_in(), self.inflate.total_out());
        let packed = self.packed.fill_buf()?;
        let status = self.inflate.decompress(packed, &mut self.piece, FlushDecompress::None);
        self.end = (self.inflate.total_out() - produced) as usize;
        let taken = (self.inflate.total_in() - consumed) as usize;
        self.packed.consume(taken);
        self.checksum.update(&self.piece[..self.end]);
        self.length = self.length.wrapping_add(self.end as u32);
        let outcome = match status {
            Ok(Status::StreamEnd) => self.trailer(),
            Ok(_) if self.end > 0 || taken > 0 => Ok(()),
            Ok(_) => Err(ErrorKind::UnexpectedEof.into()),
            Err(_) => Err(corrupt("flate: corrupt input")),
        };
        match outcome {
            Err(error) if self.end > 0 => self.stopped = Some(error),
            other => return other,
        }
        Ok(())
    }

    fn header(&mut self) -> Result<()> {
        const EXTRA: u8 = 4;
        const NAME: u8 = 8;
        const COMMENT: u8 = 16;
        const CHECKSUM: u8 = 2;
        let fixed: [u8; 10] = self.take()?;
        let [0x1f, 0x8b, 8, flags, ..] = fixed else { return Err(corrupt("gzip: invalid header")) };
        if flags & EXTRA != 0 {
            let length = u16::from_le_bytes(self.take()?);
            self.skip(usize::from(length))?;
        }
        for text in [NAME, COMMENT] {
            if flags & text != 0 {
                self.skip_text()?;
            }
        }
        if flags & CHECKSUM != 0 {
            self.skip(2)?;
        }
        self.inflate.reset(false);
        self.checksum = crc32fast::Hasher::new();
        self.length = 0;
        self.inside = true;
        Ok(())
    }

    fn trailer(&mut self) -> Result<()> {
        self.inside = false;
        let checksum = u32::from_le_bytes(self.take()?);
        let length = u32::from_le_bytes(self.take()?);
        if checksum == self.checksum.clone().finalize() && length == self.length {
            return Ok(());
        }
        Err(corrupt("gzip: invalid checksum"))
    }

    fn skip(&mut self, mut bytes: usize) -> Result<()> {
        while bytes > 0 {
            let ready = self.packed.fill_buf()?.len().min(bytes);
            if ready == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.packed.consume(ready);
            bytes -= ready;
        }
        Ok(())
    }

    /// Skips a zero-terminated string of the header.
    fn skip_text(&mut self) -> Result<()> {
        loop {
            let ready = self.packed.fill_buf()?;
            if ready.is_empty() {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let end = memchr::memchr(0, ready);
            let taken = end.map_or(ready.len(), |end| end + 1);
            self.packed.consume(taken);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.packed.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

fn corrupt(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

impl<R: BufRead> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.start == self.end {
            self.refill()?;
        }
        let count = buffer.len().min(self.end - self.start);
        buffer[..count].copy_from_slice(&self.piece[self.start..self.start + count]);
        self.start += count;
        self.position += count as u64;
        Ok(count)
    }
}

/// Seeks forward without copying. Seeking backwards or beyond the end is an error.
impl<R: BufRead> Seek for GzipReader<R> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let SeekFrom::Current(bytes) = to else { return Err(ErrorKind::Unsupported.into()) };
        let mut left = u64::try_from(bytes).map_err(|_| ErrorKind::Unsupported)?;
        while left > 0 {
            if self.start == self.end {
                self.refill()?;
            }
            let ready = (self.end - self.start) as u64;
            if ready == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let step = left.min(ready);
            self.start += step as usize;
            self.position += step;
            left -= step;
        }
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn packed(content: &[u8]) -> Vec<u8> {
        let mut out = flate2::GzBuilder::new()
            .filename("a")
            .comment("b")
            .extra("c")
            .write(Vec::new(), flate2::Compression::default());
        out.write_all(content).expect("memory");
        out.finish().expect("memory")
    }

    fn unpacked(data: &[u8]) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        GzipReader::new(data).read_to_end(&mut all)?;
        // Members may end anywhere within a chunk.
        let mut pieces = Vec::new();
        let source = std::io::BufReader::with_capacity(7, data);
        GzipReader::new(source).read_to_end(&mut pieces).map(|_| assert!(pieces == all))?;
        Ok(all)
    }

    #[test]
    fn all_gzip_members_are_read() {
        let long: Vec<u8> = (0..1_000_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        for content in [b"".as_slice(), b"x", &long] {
            let one = packed(content);
            assert_eq!(unpacked(&one).expect("one member"), content);
            let two = [one.clone(), one].concat();
            assert_eq!(unpacked(&two).expect("two members"), [content, content].concat());
        }
        assert_eq!(unpacked(b"").expect("nothing"), b"");
    }

    #[test]
    fn content_can_be_skipped() {
        let content: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
        let data = packed(&content);
        let mut reader = GzipReader::new(&data[..]);
        let mut four = [0; 4];
        assert_eq!(reader.seek(SeekFrom::Current(4 * 150_000)).expect("inside"), 600_000);
        reader.read_exact(&mut four).expect("inside");
        assert_eq!(u32::from_le_bytes(four), 150_000);
        assert!(reader.seek(SeekFrom::Current(-4)).is_err());
        assert_eq!(reader.seek(SeekFrom::Current(4 * 49_999)).expect("the end"), 800_000);
        assert!(reader.seek(SeekFrom::Current(1)).is_err());
    }

    #[test]
    fn corrupt_input_fails_after_the_valid_part() {
        let good = packed(&vec![7; 600_000]);
        let mut wrong = good.clone();
        let at = wrong.len() - 6;
        wrong[at] ^= 1;
        let mut reader = GzipReader::new(&wrong[..]);
        let mut content = vec![0; 600_000];
        reader.read_exact(&mut content).expect("the content is all there");
        assert!(reader.read(&mut [0]).expect_err("the checksum is wrong").to_string().contains("checksum"));
        for cut in [3, 12, good.len() / 2, good.len() - 3] {
            assert!(unpacked(&good[..cut]).is_err(), "{cut}");
        }
        assert!(unpacked(&[good, b"tail".to_vec()].concat()).is_err());
    }
}
