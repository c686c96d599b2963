//! Parses header blocks and extensions as Go's archive/tar does: differences between readers are used to
//! smuggle files in.

use crate::ReadError;
use crate::header::BLOCK;

/// The fields of a header block. All numbers of a block must be valid, though only two are used.
pub(crate) struct Header {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: u8,
    pub(crate) size: i64,
    pub(crate) mode: i64,
}

pub(crate) fn bad() -> ReadError {
    ReadError::Format("archive/tar: invalid tar header")
}

impl Header {
    pub(crate) fn parse(block: &[u8; BLOCK]) -> Result<Self, ReadError> {
        checksum(block)?;
        let number = |range: std::ops::Range<usize>| numeric(&block[range]).ok_or_else(bad);
        let mut name = text(&block[0..100]).to_vec();
        let (mode, size) = (number(100..108)?, number(124..136)?);
        for ignored in [108..116, 116..124, 136..148] {
            number(ignored)?;
        }
        let prefix = match (&block[257..263], &block[263..265], &block[508..512]) {
            (b"ustar\0", _, b"tar\0") => {
                number(476..488)?;
                number(488..500)?;
                Some(345..476)
            }
            (b"ustar\0", ..) => Some(345..500),
            // GNU has times where others have a prefix; very old writers put a prefix there nevertheless.
            (b"ustar ", b" \0", _) => {
                let time = |field: &[u8]| field[0] == 0 || numeric(field).is_some();
                let misused = !time(&block[345..357]) || !time(&block[357..369]);
                Some(if misused && text(&block[345..500]).is_ascii() { 345..500 } else { 345..345 })
            }
            _ => None,
        };
        if let Some(prefix) = prefix {
            number(329..337)?;
            number(337..345)?;
            let prefix = text(&block[prefix]);
            if !prefix.is_empty() {
                name = [prefix, b"/", &name].concat();
            }
        }
        Ok(Header { name, kind: block[156], size, mode })
    }

    /// Whether content follows. Links and directories have none, whatever size they claim.
    pub(crate) fn has_content(&self) -> bool {
        !matches!(self.kind, b'1'..=b'6')
    }
}

fn checksum(block: &[u8; BLOCK]) -> Result<(), ReadError> {
    let stored = octal(&block[148..156]).ok_or_else(bad)?;
    let bytes = || block.iter().enumerate().map(|(i, b)| if (148..156).contains(&i) { b' ' } else { *b });
    // Some old writers sum signed bytes.
    let unsigned: i64 = bytes().map(i64::from).sum();
    let signed: i64 = bytes().map(|b| i64::from(b.cast_signed())).sum();
    if stored == unsigned || stored == signed { Ok(()) } else { Err(bad()) }
}

/// A field up to its first NUL.
fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    &field[..end]
}

/// Octal digits, or big-endian bytes in two's complement when the first bit is set.
fn numeric(field: &[u8]) -> Option<i64> {
    if field[0] & 0x80 == 0 {
        return octal(field);
    }
    let invert = if field[0] & 0x40 != 0 { 0xff } else { 0 };
    let mut value = 0u64;
    for (i, byte) in field.iter().enumerate() {
        let byte = (byte ^ invert) & if i == 0 { 0x7f } else { 0xff };
        if value >> 56 > 0 {
            return None;
        }
        value = value << 8 | u64::from(byte);
    }
    let value = i64::try_from(value).ok()?;
    Some(if invert == 0 { value } else { !value })
}

fn octal(field: &[u8]) -> Option<i64> {
    let blank = |b: &u8| matches!(b, b' ' | 0);
    let Some(first) = field.iter().position(|b| !blank(b)) else { return Some(0) };
    let last = field.iter().rposition(|b| !blank(b)).unwrap_or(first);
    let digits = text(&field[first..=last]);
    let value = digits.iter().try_fold(0u64, |n, b| match b {
        b'0'..=b'7' => n.checked_mul(8)?.checked_add(u64::from(b - b'0')),
        _ => None,
    })?;
    Some(value.cast_signed())
}

/// The extension headers of the next entry.
#[derive(Default)]
pub(crate) struct Extensions {
    pax: Pax,
    long_name: Vec<u8>,
}

impl Extensions {
    pub(crate) fn take(&mut self, kind: u8, data: &[u8]) -> Result<(), ReadError> {
        match kind {
            b'L' => self.long_name = text(data).to_vec(),
            // Only the last PAX header counts, also for fields that only an earlier one sets.
            b'x' => self.pax = Pax::parse(data)?,
            // The long target of a link, which is not read.
            _ => {}
        }
        Ok(())
    }

    /// Overrides the fields of the entry's own header.
    pub(crate) fn apply(self, header: &mut Header) -> Result<(), ReadError> {
        if let Some(size) = self.pax.checked()? {
            header.size = size;
        }
        if let Some(path) = self.pax.path {
            header.name = path;
        }
        if !self.long_name.is_empty() {
            header.name = self.long_name;
        }
        Ok(())
    }
}

/// PAX records of the form `length key=value\n`, where the length includes itself. Empty values are ignored.
#[derive(Default)]
pub(crate) struct Pax {
    pub(crate) path: Option<Vec<u8>>,
    size: Option<Vec<u8>>,
    /// Parsed only to check that they are well-formed.
    ids: [Option<Vec<u8>>; 2],
    times: [Option<Vec<u8>>; 3],
}

impl Pax {
    pub(crate) fn parse(mut data: &[u8]) -> Result<Self, ReadError> {
        let mut found = Pax::default();
        while !data.is_empty() {
            let space = data.iter().take(20).position(|b| *b == b' ').ok_or_else(bad)?;
            let length: usize =
                std::str::from_utf8(&data[..space]).ok().and_then(|t| t.parse().ok()).ok_or_else(bad)?;
            if length < 5 || length <= space + 1 || length > data.len() || data[length - 1] != b'\n' {
                return Err(bad());
            }
            let record = &data[space + 1..length - 1];
            data = &data[length..];
            let equals = record.iter().position(|b| *b == b'=').filter(|at| *at > 0).ok_or_else(bad)?;
            found.put(&record[..equals], &record[equals + 1..])?;
        }
        Ok(found)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), ReadError> {
        let must_be_text = matches!(key, b"path" | b"linkpath" | b"uname" | b"gname");
        if (if must_be_text { value } else { key }).contains(&0) {
            return Err(bad());
        }
        let place = match key {
            b"path" => &mut self.path,
            b"size" => &mut self.size,
            b"uid" => &mut self.ids[0],
            b"gid" => &mut self.ids[1],
            b"mtime" => &mut self.times[0],
            b"atime" => &mut self.times[1],
            b"ctime" => &mut self.times[2],
            // A sparse file has a second size; sources do not need them.
            _ if key.starts_with(b"GNU.sparse.") => {
                return Err(ReadError::Format("sparse files are not read"));
            }
            _ => return Ok(()),
        };
        *place = Some(value.to_vec()).filter(|v| !v.is_empty());
        Ok(())
    }

    /// The size, after all numbers have been checked.
    pub(crate) fn checked(&self) -> Result<Option<i64>, ReadError> {
        let decimal = |value: &[u8]| std::str::from_utf8(value).ok()?.parse::<i64>().ok();
        for id in self.ids.iter().flatten() {
            decimal(id).ok_or_else(bad)?;
        }
        for time in self.times.iter().flatten() {
            let (seconds, rest) = match time.iter().position(|b| *b == b'.') {
                Some(dot) => (&time[..dot], &time[dot + 1..]),
                None => (time.as_slice(), b"".as_slice()),
            };
            decimal(seconds).filter(|_| rest.iter().all(u8::is_ascii_digit)).ok_or_else(bad)?;
        }
        self.size.as_deref().map(|size| decimal(size).ok_or_else(bad)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_binary() {
        for (field, value) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b" \0 12 \0 ", Some(0o12)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"12\x0034\0\0\0", Some(0o12)),
            (b"1 2\0\0\0\0\0", None),
            (b"9\0\0\0\0\0\0\0", None),
            (b"\x80\0\0\0\0\0\x01\0", Some(256)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2)),
            (b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
        ] {
            assert_eq!(numeric(field), value, "{field:?}");
        }
    }

    #[test]
    fn records_with_wrong_lengths_are_rejected() {
        for wrong in [
            &b"9 path=x"[..],
            b"99 path=x\n",
            b"4 =\n",
            b"path=x\n",
            b"8 path=x\n",
            b"6 =x\n\n",
            b"10 pa\0=x\n",
        ] {
            assert!(Pax::parse(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
        let found = Pax::parse(b"9 path=x\n11 size=12\n").unwrap();
        assert_eq!((found.path.as_deref(), found.checked().unwrap()), (Some(&b"x"[..]), Some(12)));
        assert!(Pax::parse(b"13 mtime=1.x\n").unwrap().checked().is_err());
    }
}
