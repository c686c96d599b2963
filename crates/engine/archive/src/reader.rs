//! Reads tar entries one by one, within limits. Never writes to a path that an archive names.

use std::io::{self, Read};

use crate::header::BLOCK;
use crate::parse::{Extensions, Header, Pax, bad};

/// Limits of file systems: nested directories, bytes of a name and of a path.
const MAX_DEPTH: usize = 1000;
const MAX_NAME: usize = 255;
const MAX_PATH: usize = 4096;

/// Limits on what an archive may cost; every loop over its bytes is bounded by one of them.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    /// Number of entries of any kind.
    pub entries: usize,
    /// Total size of all contents.
    pub bytes: u64,
    /// Size of one extension header, such as a long name.
    pub header_bytes: u64,
    /// Unpacked bytes from which on the compression ratio is checked.
    pub ratio_checked_after: u64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { entries: 200_000, bytes: 4 << 30, header_bytes: 1 << 20, ratio_checked_after: 64 << 20 }
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
    /// A symbolic link; its target is not read.
    Symlink,
    /// Devices and pipes.
    Other,
}

/// One entry. Its name is relative, clean and has no `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Without `.` and empty segments; empty for the root.
    pub name: String,
    pub kind: EntryKind,
    pub size: u64,
}

/// Why an archive is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    #[error("requires gzip-compressed body: {0}")]
    Gzip(String),
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
    /// For callers that reject devices and pipes.
    #[error("tar file entry {0} contained unsupported file type")]
    UnsupportedType(String),
    #[error("tar file entry {0} is both a file and a directory")]
    FileAndDirectory(String),
    #[error("the archive grows more than {times} times when unpacked")]
    CompressionRatio { times: u64 },
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        if let Some(crate::gzip::RatioExceeded { times }) = error.get_ref().and_then(|e| e.downcast_ref()) {
            return ReadError::CompressionRatio { times: *times };
        }
        if error.kind() == io::ErrorKind::UnexpectedEof { ReadError::Truncated } else { ReadError::Io(error) }
    }
}

/// Reads a plain tar. `visit` gets each entry and its content; content it does not read is skipped.
///
/// Yields the same entries as Flux's reader, or an error where that reader would yield others or fail. A name
/// that occurs twice is visited twice.
pub fn read_tar<R: Read, E: From<ReadError>>(
    mut input: R,
    limits: &ReadLimits,
    mut visit: impl FnMut(&Entry, &mut dyn Read) -> Result<(), E>,
) -> Result<(), E> {
    let mut budget = Budget { entries: 0, extensions: 0, bytes: 0, limits };
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
        let mut header = Header::parse(&block)?;
        match header.kind {
            kind @ (b'x' | b'L' | b'K') => {
                next.take(kind, &budget.extension(&mut input, &header)?)?;
                continue;
            }
            // A global header, which the reference reader shows as an empty file.
            b'g' => {
                let pax = Pax::parse(&budget.extension(&mut input, &header)?)?;
                // Flux reads its numbers in random order and stops at an invalid one, so its result would be
                // undefined.
                pax.checked()?;
                next = Extensions::default();
                budget.entry(0)?;
                let name = clean(&pax.path.unwrap_or(header.name))?;
                let entry = Entry { name, kind: EntryKind::File { executable: false }, size: 0 };
                visit(&entry, &mut io::empty())?;
                continue;
            }
            b'S' => return Err(ReadError::Format("sparse files are not read").into()),
            _ => {}
        }
        std::mem::take(&mut next).apply(&mut header)?;
        // Archives before POSIX mark a directory by its name alone.
        if header.kind == 0 {
            header.kind = if header.name.ends_with(b"/") { b'5' } else { b'0' };
        }
        let claimed = u64::try_from(header.size);
        let size = if header.has_content() { claimed.map_err(|_| bad())? } else { 0 };
        if header.kind == b'1' && claimed != Ok(0) {
            return Err(ReadError::Format("a hard link has no content").into());
        }
        budget.entry(claimed.unwrap_or(0))?;
        let entry = Entry { name: clean(&header.name)?, kind: kind(&header), size };
        let mut content = (&mut input).take(size);
        visit(&entry, &mut content)?;
        let left = content.limit();
        let skipped = io::copy(&mut content, &mut io::sink()).map_err(ReadError::from)?;
        if skipped < left {
            return Err(ReadError::Truncated.into());
        }
        skip(&mut input, padding(size))?;
    }
}

/// How much of the limits is used.
struct Budget<'a> {
    entries: usize,
    extensions: usize,
    bytes: u64,
    limits: &'a ReadLimits,
}

impl Budget<'_> {
    fn bytes(&mut self, more: u64) -> Result<(), ReadError> {
        let limit = self.limits.bytes;
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes > limit { Err(ReadError::Limit { what: "bytes", limit }) } else { Ok(()) }
    }

    fn entry(&mut self, size: u64) -> Result<(), ReadError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(ReadError::Limit { what: "entries", limit: self.limits.entries as u64 });
        }
        self.bytes(size)
    }

    /// Reads the content of an extension header.
    fn extension(&mut self, input: &mut impl Read, header: &Header) -> Result<Vec<u8>, ReadError> {
        let size = u64::try_from(header.size).map_err(|_| bad())?;
        let limit = self.limits.header_bytes;
        if size > limit {
            return Err(ReadError::Limit { what: "bytes in one header", limit });
        }
        // An entry can have three of them: two long names and a PAX header.
        self.extensions += 1;
        let limit = self.limits.entries.saturating_mul(3);
        if self.extensions > limit {
            return Err(ReadError::Limit { what: "extension headers", limit: limit as u64 });
        }
        self.bytes(size)?;
        let mut data = Vec::new();
        input.take(size).read_to_end(&mut data)?;
        if (data.len() as u64) < size {
            return Err(ReadError::Truncated);
        }
        skip(input, padding(size))?;
        Ok(data)
    }
}

/// The kind, from type and mode; as in Go, either of them can make it a directory.
fn kind(header: &Header) -> EntryKind {
    let format = header.mode & !0o7777;
    if header.kind == b'5' || format == 0o040_000 {
        EntryKind::Directory
    } else if header.kind == b'2' || format == 0o120_000 {
        EntryKind::Symlink
    } else if matches!(header.kind, b'3' | b'4' | b'6')
        || matches!(format, 0o10_000 | 0o20_000 | 0o60_000 | 0o140_000)
    {
        EntryKind::Other
    } else {
        // The reference reader makes a hard link an empty file, and reads unknown types as files.
        EntryKind::File { executable: header.mode & 0o111 != 0 }
    }
}

/// Normalizes a name to a relative path that stays below the root and that a file system accepts.
fn clean(name: &[u8]) -> Result<String, ReadError> {
    let name = String::from_utf8_lossy(name);
    let refuse = || ReadError::Name(name.chars().take(MAX_NAME).collect());
    if name.is_empty()
        || name.len() > MAX_PATH
        || name.starts_with('/')
        || name.contains(['\\', '\0'])
        || name.contains("../")
    {
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
    if parts.len() > MAX_DEPTH || parts.iter().any(|part| part.len() > MAX_NAME) {
        return Err(refuse());
    }
    Ok(parts.join("/"))
}

fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64).saturating_sub(size)
}

fn skip(input: &mut impl Read, bytes: u64) -> Result<(), ReadError> {
    let skipped = io::copy(&mut input.take(bytes), &mut io::sink())?;
    if skipped == bytes { Ok(()) } else { Err(ReadError::Truncated) }
}

/// Reads a whole block; `None` at the end of the input.
fn read_block(input: &mut impl Read) -> Result<Option<[u8; BLOCK]>, ReadError> {
    let mut block = [0; BLOCK];
    let mut filled = 0;
    while filled < BLOCK {
        match input.read(&mut block[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(ReadError::Truncated),
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
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
        read_tar(
            tar,
            &ReadLimits { bytes: 1 << 20, entries: 100, header_bytes: 4096, ..ReadLimits::default() },
            |entry, content| {
                let mut data = Vec::new();
                content.read_to_end(&mut data).map_err(ReadError::Io)?;
                found.push((entry.name.clone(), entry.kind, data));
                Ok::<_, ReadError>(())
            },
        )?;
        Ok(found)
    }

    fn raw(name: &str, kind: u8, size: u64) -> [u8; BLOCK] {
        let mut block = [0u8; BLOCK];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[100..107].copy_from_slice(b"0000644");
        if size < 1 << 33 {
            block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        } else {
            block[124] = 0x80; // Too large for octal digits: a binary number.
            block[128..136].copy_from_slice(&size.to_be_bytes());
        }
        block[156] = kind;
        block[257..263].copy_from_slice(b"ustar\0");
        seal(&mut block);
        block
    }

    fn seal(block: &mut [u8; BLOCK]) {
        block[148..156].copy_from_slice(b"        ");
        let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    }

    #[test]
    fn written_archives_can_be_read() {
        let mut tar = TarWriter::new(Vec::new());
        let long = format!("{}/{}/x.yaml", "d".repeat(200), "e".repeat(100));
        tar.directory(".").unwrap();
        tar.file("a.sh", Mode::Executable, 3, &mut b"abc".as_slice()).unwrap();
        tar.file(&long, Mode::File, 2, &mut b"hi".as_slice()).unwrap();
        let found = list(&tar.finish().unwrap()).unwrap();
        assert_eq!(found[0], (String::new(), EntryKind::Directory, vec![]));
        assert_eq!(found[1], ("a.sh".into(), EntryKind::File { executable: true }, b"abc".to_vec()));
        assert_eq!(found[2], (long, EntryKind::File { executable: false }, b"hi".to_vec()));
    }

    #[test]
    fn names_outside_of_the_root_are_rejected() {
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
    fn links_and_devices_have_no_content() {
        for (kind, expected) in [
            (b'1', EntryKind::File { executable: false }),
            (b'2', EntryKind::Symlink),
            (b'3', EntryKind::Other),
            (b'6', EntryKind::Other),
        ] {
            let claimed = if kind == b'1' { 0 } else { 512 };
            let mut tar = raw("x", kind, claimed).to_vec();
            tar.extend([0; 2 * BLOCK]);
            assert_eq!(list(&tar).unwrap(), [("x".to_owned(), expected, vec![])]);
        }
    }

    #[test]
    fn limits_are_enforced() {
        let mut tar = raw("big", b'0', 1 << 40).to_vec();
        tar.extend([0; BLOCK]);
        assert!(matches!(list(&tar), Err(ReadError::Limit { what: "bytes", .. })));
        let tar = raw("x", b'x', 1 << 30).to_vec();
        assert!(matches!(list(&tar), Err(ReadError::Limit { what: "bytes in one header", .. })));
        let tar: Vec<u8> = (0..200).flat_map(|_| raw("x", b'0', 0)).collect();
        assert!(matches!(list(&tar), Err(ReadError::Limit { what: "entries", .. })));
    }

    /// A04: directories nested deeper than file systems allow are rejected; the allowed ones are walked at
    /// once.
    #[test]
    fn nesting_of_directories_is_limited() {
        for (depth, fine) in [(1000, true), (1001, false), (4096, false), (100_000, false)] {
            let mut tar = TarWriter::new(Vec::new());
            tar.directory(&vec!["d"; depth].join("/")).unwrap();
            let bytes = tar.finish().unwrap();
            let (start, limits) = (std::time::Instant::now(), ReadLimits::default());
            let mut listing = crate::TreeBuilder::<()>::new(&limits);
            let read = read_tar(bytes.as_slice(), &limits, |entry, _| listing.directory(&entry.name));
            assert_eq!(read.is_ok(), fine, "{depth}");
            assert_eq!(listing.finish().unwrap().iter().count(), if fine { depth } else { 0 });
            assert!(start.elapsed().as_millis() < 500, "{depth}: {:?}", start.elapsed());
        }
    }

    /// A02: of a link only its name is read.
    #[test]
    fn link_targets_are_ignored() {
        let mut tar = Vec::new();
        for target in ["/etc", "../../etc", "link", "."] {
            let mut block = raw("link", b'2', 0);
            block[157..157 + target.len()].copy_from_slice(target.as_bytes());
            seal(&mut block);
            tar.extend(block);
        }
        tar.extend(raw("link/passwd", b'0', 0));
        tar.extend([0; 2 * BLOCK]);
        let found = list(&tar).unwrap();
        assert!(found[..4].iter().all(|f| *f == ("link".into(), EntryKind::Symlink, vec![])));
        assert_eq!(found[4].0, "link/passwd");
    }

    #[test]
    fn corrupt_archive_is_rejected() {
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
