//! An object's content read piece by piece.

use std::io::{self, Cursor, Read, Seek};

use flate2::{Decompress, FlushDecompress, Status};

use crate::pack::{Head, Reader};

/// The content of one object. What the pack stores whole is inflated as it is read and never held; what it stores as a delta
/// has to be put together in memory first.
#[derive(Debug)]
pub struct Blob<'a, F> {
    size: u64,
    content: Content<'a, F>,
}

#[derive(Debug)]
enum Content<'a, F> {
    Whole { reader: &'a mut Reader<F>, inflater: Box<Decompress>, at: u64 },
    Held(Cursor<Vec<u8>>),
}

impl<'a, F> Blob<'a, F> {
    pub(crate) fn whole(reader: &'a mut Reader<F>, head: Head) -> Self {
        let inflater = Box::new(Decompress::new(true));
        Self { size: head.size, content: Content::Whole { reader, inflater, at: head.data } }
    }

    pub(crate) fn held(content: Vec<u8>) -> Self {
        Self { size: content.len() as u64, content: Content::Held(Cursor::new(content)) }
    }

    /// Bytes in all.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl<F: Read + Seek> Read for Blob<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Content::Whole { reader, inflater, at } = &mut self.content else {
            let Content::Held(held) = &mut self.content else { return Ok(0) };
            return held.read(buffer);
        };
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let input = reader.peek(*at).map_err(io::Error::other)?;
            let (before_in, before_out) = (inflater.total_in(), inflater.total_out());
            let status = inflater.decompress(input, buffer, FlushDecompress::None)?;
            let taken = inflater.total_in() - before_in;
            *at += taken;
            let given = usize::try_from(inflater.total_out() - before_out).unwrap_or(0);
            match status {
                _ if given > 0 => return Ok(given),
                Status::StreamEnd => return Ok(0),
                _ if taken == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => {}
            }
        }
    }
}
