//! Entries read one after the other, within limits. Nothing is ever written to a path an archive names.

use std::io::{self, Read};

const BLOCK: usize = 512;

/// What an archive may cost. Every loop over its bytes ends at one of these.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    /// Entries of any kind.
    pub entries: usize,
    /// Content of all entries together.
    pub bytes: u64,
    /// One extension header: long names and the like.
    pub header_bytes: u64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { entries: 200_000, bytes: 4 << 30, header_bytes: 1 << 20 }
    }
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    File {
        /// Any of the three execute bits.
        executable: bool,
    },
    Directory,
    /// A symbolic link; its target is nobody's business.
    Symlink,
    /// Devices, pipes, sparse files.
    Other,
}

/// One entry. Its name is relative, clean and has no `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Without `.` and empty parts; empty for the root itself.
    pub name: String,
    pub kind: EntryKind,
    pub size: u64,
}

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    #[error("tar contained invalid name error {0:?}")]
    Name(String),
    #[error("tar error: {0}")]
    Format(&'static str),
    #[error("tar error: unexpected EOF")]
    Truncated,
    #[error("tar error: {0}")]
    Io(#[source] io::Error),
    #[error("the archive has more than {limit} {what}")]
    Limit { what: &'static str, limit: u64 },
}

/// Reads a plain tar. `visit` gets each entry and its content; what it leaves unread is skipped.
pub fn read_tar<R: Read, E: From<ReadError>>(
    mut input: R,
    limits: &ReadLimits,
    mut visit: impl FnMut(&Entry, &mut dyn Read) -> Result<(), E>,
) -> Result<(), E> {
    let mut entries = 0usize;
    let mut bytes = 0u64;
    let mut next = Extensions::default();
    let mut zero_blocks = 0;
    loop {
        let Some(block) = read_block(&mut input)? else { return Ok(()) };
        if block.iter().all(|b| *b == 0) {
            zero_blocks += 1;
            if zero_blocks == 2 {
                return Ok(());
            }
            continue;
        }
        if zero_blocks == 1 {
            return Err(ReadError::Format("a zero block in the middle").into());
        }
        let header = Header::parse(&block)?;
        if matches!(header.kind, b'x' | b'L' | b'K') {
            if header.size > limits.header_bytes {
                let limit = limits.header_bytes;
                return Err(ReadError::Limit { what: "bytes in one header", limit }.into());
            }
            let mut data = vec![0; usize::try_from(header.size).unwrap_or(0)];
            input.read_exact(&mut data).map_err(cut)?;
            skip(&mut input, padding(header.size))?;
            next.take(header.kind, &data)?;
            continue;
        }
        let extensions = std::mem::take(&mut next);
        let size = extensions.size.unwrap_or(header.size);
        let kind = header.entry_kind();
        // Links and directories have no content whatever they claim.
        let size = if matches!(header.kind, b'1'..=b'6') { 0 } else { size };
        entries += 1;
        if entries > limits.entries {
            return Err(ReadError::Limit { what: "entries", limit: limits.entries as u64 }.into());
        }
        bytes = bytes.saturating_add(size);
        if bytes > limits.bytes {
            return Err(ReadError::Limit { what: "bytes", limit: limits.bytes }.into());
        }
        // The header of a whole archive is data about it, but the reference reader shows it as an empty file.
        let shown = if header.kind == b'g' { 0 } else { size };
        let name = clean(&extensions.name.unwrap_or(header.name))?;
        let entry = Entry { name, kind, size: shown };
        let mut content = (&mut input).take(size);
        if header.kind == b'g' {
            io::copy(&mut content, &mut io::sink()).map_err(ReadError::Io)?;
            visit(&entry, &mut io::empty())?;
        } else {
            visit(&entry, &mut content)?;
        }
        let left = content.limit();
        let skipped = io::copy(&mut content, &mut io::sink()).map_err(ReadError::Io)?;
        if skipped < left {
            return Err(ReadError::Truncated.into());
        }
        skip(&mut input, padding(size))?;
    }
}

/// What the headers before an entry say about it.
#[derive(Default)]
struct Extensions {
    name: Option<String>,
    size: Option<u64>,
}

impl Extensions {
    fn take(&mut self, kind: u8, data: &[u8]) -> Result<(), ReadError> {
        match kind {
            b'L' => {
                let end = data.iter().position(|b| *b == 0).unwrap_or(data.len());
                self.name = Some(String::from_utf8_lossy(&data[..end]).into_owned());
            }
            b'x' => self.records(data)?,
            // The long target of a link: links are not followed.
            _ => {}
        }
        Ok(())
    }

    /// `length key=value\n`, the length counting itself.
    fn records(&mut self, mut data: &[u8]) -> Result<(), ReadError> {
        let bad = || ReadError::Format("invalid tar header");
        while !data.is_empty() {
            let space = data.iter().take(20).position(|b| *b == b' ').ok_or_else(bad)?;
            let length: usize =
                std::str::from_utf8(&data[..space]).ok().and_then(|t| t.parse().ok()).ok_or_else(bad)?;
            if length <= space + 1 || length > data.len() || data[length - 1] != b'\n' {
                return Err(bad());
            }
            let record = &data[space + 1..length - 1];
            data = &data[length..];
            let equals = record.iter().position(|b| *b == b'=').ok_or_else(bad)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            match key {
                b"path" => {
                    if value.contains(&0) {
                        return Err(bad());
                    }
                    self.name = Some(String::from_utf8_lossy(value).into_owned());
                }
                b"size" => {
                    let size = std::str::from_utf8(value).ok().and_then(|t| t.parse().ok());
                    self.size = Some(size.ok_or_else(bad)?);
                }
                // A sparse file claims a size of its own; nobody needs one in a source.
                _ if key.starts_with(b"GNU.sparse.") => {
                    return Err(ReadError::Format("sparse files are not read"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

struct Header {
    name: String,
    kind: u8,
    size: u64,
    mode: u64,
}

impl Header {
    fn parse(block: &[u8; BLOCK]) -> Result<Self, ReadError> {
        let bad = || ReadError::Format("invalid tar header");
        let stored = number(&block[148..156]).ok_or_else(bad)?;
        let sum: u64 = block
            .iter()
            .enumerate()
            .map(|(i, b)| if (148..156).contains(&i) { u64::from(b' ') } else { u64::from(*b) })
            .sum();
        if sum != stored {
            return Err(bad());
        }
        let text = |range: std::ops::Range<usize>| {
            let field = &block[range];
            let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
            String::from_utf8_lossy(&field[..end]).into_owned()
        };
        let mut name = text(0..100);
        // Only POSIX tar has a prefix; GNU keeps times in its place.
        if &block[257..263] == b"ustar\0" {
            let prefix = text(345..500);
            if !prefix.is_empty() {
                name = format!("{prefix}/{name}");
            }
        }
        let mut kind = block[156];
        // Very old archives mark a directory by its name alone.
        if kind == 0 {
            kind = b'0';
        }
        if kind == b'0' && name.ends_with('/') {
            kind = b'5';
        }
        Ok(Header {
            name,
            kind,
            size: number(&block[124..136]).ok_or_else(bad)?,
            mode: number(&block[100..108]).ok_or_else(bad)?,
        })
    }

    fn entry_kind(&self) -> EntryKind {
        match self.kind {
            // A hard link has no bytes of its own: the reference reader makes it an empty file.
            b'0' | b'1' | b'7' => EntryKind::File { executable: self.mode & 0o111 != 0 },
            b'g' => EntryKind::File { executable: false },
            b'5' => EntryKind::Directory,
            b'2' => EntryKind::Symlink,
            _ => EntryKind::Other,
        }
    }
}

/// Octal text, or big-endian bytes when the first bit is set.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        // Negative numbers begin with 0xff.
        if field[0] != 0x80 || field[1..].len() > 8 && field[1..field.len() - 8].iter().any(|b| *b != 0) {
            return None;
        }
        let low = &field[field.len().saturating_sub(8).max(1)..];
        return Some(low.iter().fold(0, |n, b| n << 8 | u64::from(*b)));
    }
    let text: Vec<u8> = field.iter().copied().skip_while(|b| *b == b' ').collect();
    let end = text.iter().position(|b| *b == 0 || *b == b' ').unwrap_or(text.len());
    if text[end..].iter().any(|b| !matches!(b, 0 | b' ')) {
        return None;
    }
    text[..end].iter().try_fold(0u64, |n, b| match b {
        b'0'..=b'7' => n.checked_mul(8)?.checked_add(u64::from(b - b'0')),
        _ => None,
    })
}

/// A name as a relative path that stays where it is.
fn clean(name: &str) -> Result<String, ReadError> {
    let refuse = || ReadError::Name(name.to_owned());
    if name.is_empty() || name.starts_with('/') || name.contains(['\\', '\0']) {
        return Err(refuse());
    }
    let mut parts = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(refuse()),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64).saturating_sub(size)
}

fn cut(error: io::Error) -> ReadError {
    if error.kind() == io::ErrorKind::UnexpectedEof { ReadError::Truncated } else { ReadError::Io(error) }
}

fn skip(input: &mut impl Read, bytes: u64) -> Result<(), ReadError> {
    let skipped = io::copy(&mut input.take(bytes), &mut io::sink()).map_err(ReadError::Io)?;
    if skipped == bytes { Ok(()) } else { Err(ReadError::Truncated) }
}

/// A whole block; `None` at the end of the input.
fn read_block(input: &mut impl Read) -> Result<Option<[u8; BLOCK]>, ReadError> {
    let mut block = [0; BLOCK];
    let mut filled = 0;
    while filled < BLOCK {
        match input.read(&mut block[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(ReadError::Truncated),
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(ReadError::Io(e)),
        }
    }
    Ok(Some(block))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, TarWriter};

    fn list(tar: &[u8]) -> Result<Vec<(String, EntryKind, Vec<u8>)>, ReadError> {
        let mut found = Vec::new();
        read_tar(tar, &ReadLimits { bytes: 1 << 20, entries: 100, header_bytes: 4096 }, |entry, content| {
            let mut data = Vec::new();
            content.read_to_end(&mut data).map_err(ReadError::Io)?;
            found.push((entry.name.clone(), entry.kind, data));
            Ok::<_, ReadError>(())
        })?;
        Ok(found)
    }

    fn raw(name: &str, kind: u8, size: u64) -> [u8; BLOCK] {
        let mut block = [0u8; BLOCK];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[100..107].copy_from_slice(b"0000644");
        if size < 1 << 33 {
            block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        } else {
            block[124] = 0x80; // too large for octal digits: a binary number
            block[128..136].copy_from_slice(&size.to_be_bytes());
        }
        block[156] = kind;
        block[257..263].copy_from_slice(b"ustar\0");
        block[148..156].copy_from_slice(b"        ");
        let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        block
    }

    #[test]
    fn reads_what_the_writer_writes() {
        let mut tar = TarWriter::new(Vec::new());
        let long = format!("{}/x.yaml", "d".repeat(300));
        tar.directory(".").unwrap();
        tar.file("a.sh", Mode::Executable, 3, &mut b"abc".as_slice()).unwrap();
        tar.file(&long, Mode::File, 2, &mut b"hi".as_slice()).unwrap();
        let found = list(&tar.finish().unwrap()).unwrap();
        assert_eq!(found[0], (String::new(), EntryKind::Directory, vec![]));
        assert_eq!(found[1], ("a.sh".into(), EntryKind::File { executable: true }, b"abc".to_vec()));
        assert_eq!(found[2], (long, EntryKind::File { executable: false }, b"hi".to_vec()));
    }

    #[test]
    fn names_that_lead_out_are_refused() {
        for name in ["../x", "/etc/passwd", "a/../../x", "a\\b", "..", "a/.."] {
            let mut tar = raw(name, b'0', 0).to_vec();
            tar.extend([0; 2 * BLOCK]);
            assert!(matches!(list(&tar), Err(ReadError::Name(_))), "{name}");
        }
        let mut tar = raw("./a//b", b'0', 0).to_vec();
        tar.extend([0; 2 * BLOCK]);
        assert_eq!(list(&tar).unwrap()[0].0, "a/b");
    }

    #[test]
    fn special_entries_never_have_content() {
        for (kind, expected) in [
            (b'1', EntryKind::File { executable: false }),
            (b'2', EntryKind::Symlink),
            (b'3', EntryKind::Other),
            (b'6', EntryKind::Other),
        ] {
            let mut tar = raw("x", kind, 512).to_vec();
            tar.extend([0; 2 * BLOCK]);
            assert_eq!(list(&tar).unwrap(), [("x".to_owned(), expected, vec![])]);
        }
    }

    #[test]
    fn stops_at_the_limits() {
        let mut tar = raw("big", b'0', 1 << 40).to_vec();
        tar.extend([0; BLOCK]);
        assert!(matches!(list(&tar), Err(ReadError::Limit { what: "bytes", .. })));
        let tar = raw("x", b'x', 1 << 30).to_vec();
        assert!(matches!(list(&tar), Err(ReadError::Limit { what: "bytes in one header", .. })));
        let tar: Vec<u8> = (0..200).flat_map(|_| raw("x", b'0', 0)).collect();
        assert!(matches!(list(&tar), Err(ReadError::Limit { what: "entries", .. })));
    }

    #[test]
    fn damage_is_an_error() {
        let mut tar = TarWriter::new(Vec::new());
        tar.file("a", Mode::File, 600, &mut [1u8; 600].as_slice()).unwrap();
        let whole = tar.finish().unwrap();
        assert!(matches!(list(&whole[..700]), Err(ReadError::Truncated)));
        let mut flipped = whole.clone();
        flipped[0] ^= 1;
        assert!(matches!(list(&flipped), Err(ReadError::Format(_))));
        assert!(list(b"not a tar at all").is_err());
    }
}
