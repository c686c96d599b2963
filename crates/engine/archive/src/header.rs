//! Writes the 512-byte header blocks of entries, with the layout of Go's archive/tar.

pub(crate) const BLOCK: usize = 512;
const NAME: usize = 100;
const PREFIX: usize = 155;

/// Kind of an entry; the permission bits follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Directory,
    File,
    Executable,
}

impl Mode {
    fn bits(self) -> u64 {
        match self {
            Mode::Directory => 0o750,
            Mode::File => 0o600,
            Mode::Executable => 0o700,
        }
    }

    fn flag(self) -> u8 {
        if self == Mode::Directory { b'5' } else { b'0' }
    }
}

/// All blocks before the content of an entry: a PAX extension where needed, then the header.
pub(crate) fn blocks(name: &str, mode: Mode, size: u64) -> Vec<u8> {
    let split = if name.len() <= NAME && name.is_ascii() { Some(("", name)) } else { split(name) };
    let fits = octal_fits(size, 12);
    if let (Some((prefix, rest)), true) = (split, fits) {
        let mut block = Block::new(rest, mode.flag());
        block.numbers(mode.bits(), size);
        block.put(345, prefix.as_bytes(), PREFIX);
        return block.seal().to_vec();
    }
    let mut records = String::new();
    if split.is_none_or(|(prefix, _)| !prefix.is_empty()) {
        records.push_str(&record("path", name));
    }
    if !fits {
        records.push_str(&record("size", &size.to_string()));
    }
    let mut out = extension(name, &records);
    let mut block = Block::new(&ascii(name), mode.flag());
    block.numbers(mode.bits(), if fits { size } else { 0 });
    out.extend_from_slice(block.seal());
    out
}

/// The PAX extension entry: a file of records before the entry itself.
fn extension(name: &str, records: &str) -> Vec<u8> {
    let (directory, file) = name.rsplit_once('/').map_or(("", name), |(d, f)| (d, f));
    let path = if directory.is_empty() {
        format!("PaxHeaders.0/{file}")
    } else {
        format!("{directory}/PaxHeaders.0/{file}")
    };
    let path = ascii(&path);
    let path = path[..path.len().min(NAME)].trim_end_matches('/');
    let mut block = Block::new(path, b'x');
    block.fields(0, records.len() as u64);
    let mut out = block.seal().to_vec();
    out.extend_from_slice(records.as_bytes());
    out.resize(out.len().next_multiple_of(BLOCK), 0);
    out
}

/// `LENGTH key=value\n`, where the length counts its own digits.
fn record(key: &str, value: &str) -> String {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + rest.to_string().len();
    if length.to_string().len() > rest.to_string().len() {
        length = rest + length.to_string().len();
    }
    format!("{length} {key}={value}\n")
}

/// Splits a path too long for the name field into prefix and name, if a slash is in reach of both fields.
fn split(name: &str) -> Option<(&str, &str)> {
    if !name.is_ascii() {
        return None;
    }
    let at = name[..name.len().min(PREFIX + 1)].rfind('/').filter(|at| *at > 0)?;
    let rest = &name[at + 1..];
    (!rest.is_empty() && rest.len() <= NAME).then_some((&name[..at], rest))
}

/// Replaces what is not ASCII; the real name is in the PAX record then.
fn ascii(text: &str) -> String {
    text.chars().filter(char::is_ascii).collect()
}

fn octal_fits(value: u64, field: usize) -> bool {
    value < 1 << (3 * (field - 1))
}

struct Block([u8; BLOCK]);

impl Block {
    fn new(name: &str, flag: u8) -> Self {
        let mut block = Self([0; BLOCK]);
        // A name that is truncated at a slash must not look like a directory.
        let name = if name.len() > NAME { name[..NAME].trim_end_matches('/') } else { name };
        block.put(0, name.as_bytes(), NAME);
        block.0[156] = flag;
        block
    }

    fn put(&mut self, at: usize, bytes: &[u8], width: usize) {
        let n = bytes.len().min(width);
        self.0[at..at + n].copy_from_slice(&bytes[..n]);
    }

    /// Octal digits, padded with zeros, terminated by NUL.
    fn octal(&mut self, at: usize, width: usize, value: u64) {
        let digits = format!("{value:0>fill$o}", fill = width - 1);
        self.put(at, digits.as_bytes(), width);
    }

    fn fields(&mut self, mode: u64, size: u64) {
        self.octal(100, 8, mode);
        self.octal(108, 8, 0); // uid
        self.octal(116, 8, 0); // gid
        self.octal(124, 12, size);
        self.octal(136, 12, 0); // mtime
    }

    fn numbers(&mut self, mode: u64, size: u64) {
        self.fields(mode, size);
        self.octal(329, 8, 0); // device major
        self.octal(337, 8, 0); // device minor
    }

    fn seal(&mut self) -> &[u8; BLOCK] {
        self.put(257, b"ustar\x0000", 8);
        self.put(148, b"        ", 8);
        let sum: u64 = self.0.iter().map(|b| u64::from(*b)).sum();
        self.octal(148, 7, sum);
        self.0[154] = 0;
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{record, split};

    #[test]
    fn record_length_includes_itself() {
        assert_eq!(record("path", "x"), "10 path=x\n".replace("10", "9"));
        for n in 1..300 {
            let r = record("path", &"y".repeat(n));
            assert_eq!(r.split(' ').next().unwrap().parse::<usize>().unwrap(), r.len());
        }
    }

    #[test]
    fn split_needs_a_slash_in_reach_of_both_fields() {
        assert_eq!(split(&format!("{}/{}", "d".repeat(120), "f".repeat(90))).unwrap().0.len(), 120);
        assert!(split(&format!("d/{}", "f".repeat(101))).is_none());
        assert!(split(&"f".repeat(101)).is_none());
    }
}
