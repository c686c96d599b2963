//! Packet lines: four hexadecimal digits of length, then the payload.

use std::io::Read;

use crate::Error;

/// Bytes of the payload of one packet.
const MAX_PAYLOAD: usize = 65_520 - 4;

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    Data(Vec<u8>),
    /// `0000`: the end of a message.
    Flush,
    /// `0001`: the end of a section.
    Delimiter,
    /// `0002`: the end of a response over a stateless connection.
    ResponseEnd,
}

/// A payload as a packet line.
///
/// # Panics
/// Never: a payload longer than a packet is split by the callers that can have one.
pub fn encode(payload: &[u8], out: &mut Vec<u8>) {
    for chunk in payload.chunks(MAX_PAYLOAD) {
        out.extend_from_slice(format!("{:04x}", chunk.len() + 4).as_bytes());
        out.extend_from_slice(chunk);
    }
}

/// Bytes of all lines of one response: listings, capabilities, progress. Packs have a limit of their own.
const MAX_LINE_BYTES: u64 = 128 << 20;

/// Reads packets from a stream.
#[derive(Debug)]
pub struct PacketReader<R> {
    inner: R,
    /// Bytes of lines so far.
    line_bytes: u64,
}

impl<R: Read> PacketReader<R> {
    pub fn new(inner: R) -> Self {
        Self { inner, line_bytes: 0 }
    }

    /// Counts bytes that are kept in memory or dropped, so that a response that is not a pack ends.
    pub(crate) fn count_line(&mut self, bytes: usize) -> Result<(), Error> {
        self.line_bytes += bytes as u64;
        if self.line_bytes > MAX_LINE_BYTES {
            return Err(Error::TooLarge { what: "the response".to_owned(), limit: MAX_LINE_BYTES });
        }
        Ok(())
    }

    /// The stream, at the byte after the last packet.
    pub fn into_inner(self) -> R {
        self.inner
    }

    /// The next packet; the end of the stream in between two packets is `None`.
    pub fn next_packet(&mut self) -> Result<Option<Packet>, Error> {
        let mut head = [0; 4];
        if !self.fill(&mut head)? {
            return Ok(None);
        }
        let text = std::str::from_utf8(&head).ok().filter(|t| t.bytes().all(|b| b.is_ascii_hexdigit()));
        let length = text.and_then(|t| usize::from_str_radix(t, 16).ok());
        match length {
            Some(0) => Ok(Some(Packet::Flush)),
            Some(1) => Ok(Some(Packet::Delimiter)),
            Some(2) => Ok(Some(Packet::ResponseEnd)),
            Some(n) if (4..=MAX_PAYLOAD + 4).contains(&n) => {
                let mut payload = vec![0; n - 4];
                self.inner.read_exact(&mut payload)?;
                Ok(Some(Packet::Data(payload)))
            }
            _ => Err(Error::PacketLine(format!("length `{}`", head.escape_ascii()))),
        }
    }

    /// The next packet as a line of text without its line end; `None` at a flush or the end.
    pub fn next_line(&mut self) -> Result<Option<String>, Error> {
        match self.next_packet()? {
            Some(Packet::Data(mut bytes)) => {
                self.count_line(bytes.len().max(4))?;
                if bytes.last() == Some(&b'\n') {
                    bytes.pop();
                }
                let line = String::from_utf8(bytes)
                    .map_err(|_| Error::PacketLine("a line is not UTF-8".to_owned()))?;
                match line.strip_prefix("ERR ") {
                    Some(message) => Err(Error::Remote(message.to_owned())),
                    None => Ok(Some(line)),
                }
            }
            _ => Ok(None),
        }
    }

    /// Fills the buffer; `false` if the stream ended before its first byte.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.inner.read(&mut buffer[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
                Ok(n) => filled += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_as_they_went_in() {
        let mut bytes = Vec::new();
        encode(b"hello\n", &mut bytes);
        bytes.extend_from_slice(b"000100020000");
        let mut reader = PacketReader::new(bytes.as_slice());
        assert_eq!(reader.next_packet().unwrap(), Some(Packet::Data(b"hello\n".to_vec())));
        assert_eq!(reader.next_packet().unwrap(), Some(Packet::Delimiter));
        assert_eq!(reader.next_packet().unwrap(), Some(Packet::ResponseEnd));
        assert_eq!(reader.next_packet().unwrap(), Some(Packet::Flush));
        assert_eq!(reader.next_packet().unwrap(), None);
    }

    /// E07: a listing ends, whatever the server sends.
    #[test]
    fn endless_lines_are_stopped() {
        struct Endless(Vec<u8>, usize);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let rest = &self.0[self.1..];
                let n = rest.len().min(buffer.len());
                buffer[..n].copy_from_slice(&rest[..n]);
                self.1 = (self.1 + n) % self.0.len();
                Ok(n)
            }
        }
        let mut line = Vec::new();
        encode(format!("{} refs/heads/{}\n", "a".repeat(40), "x".repeat(60_000)).as_bytes(), &mut line);
        let error = crate::read_refs(Endless(line, 0), usize::MAX).unwrap_err();
        assert!(matches!(error, Error::TooLarge { limit: MAX_LINE_BYTES, .. }), "{error}");
        let mut progress = Vec::new();
        encode(b"packfile\n", &mut progress);
        let pack = [progress, Vec::new()].concat();
        let mut packet = Vec::new();
        encode(&[&[2][..], &[b'.'; 60_000]].concat(), &mut packet);
        let input = std::io::Cursor::new(pack).chain(Endless(packet, 0));
        let error = crate::FetchResponse::read(input, &mut Vec::new(), 10).unwrap_err();
        assert!(matches!(error, Error::TooLarge { limit: MAX_LINE_BYTES, .. }), "{error}");
    }

    #[test]
    fn bad_lengths_and_cut_packets_are_errors() {
        for bad in [b"0003".as_slice(), b"zzzz", b"+00a1", b"fff5", b"0009abc", b"00"] {
            assert!(PacketReader::new(bad).next_packet().is_err(), "{bad:?}");
        }
        let refused = PacketReader::new(b"0010ERR go away!".as_slice()).next_line();
        assert!(matches!(refused, Err(Error::Remote(m)) if m == "go away!"));
    }
}
