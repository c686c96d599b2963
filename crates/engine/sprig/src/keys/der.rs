//! Minimal DER: writes certificates and keys, and reads those that templates pass back.

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OID: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// An element: tag, length, content.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let skip = bytes.iter().take_while(|b| **b == 0).count();
        out.push(0x80 | (bytes.len() - skip) as u8);
        out.extend_from_slice(&bytes[skip..]);
    }
    out.extend_from_slice(content);
    out
}

/// A sequence of encoded elements.
pub(super) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

/// A non-negative integer from big-endian bytes.
pub(super) fn unsigned(bytes: &[u8]) -> Vec<u8> {
    let skip = bytes.iter().take_while(|b| **b == 0).count();
    let mut content = bytes[skip..].to_vec();
    if content.first().is_none_or(|b| *b & 0x80 != 0) {
        content.insert(0, 0);
    }
    element(INTEGER, &content)
}

/// A bit string of whole bytes.
pub(super) fn bits(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// A decoded element: tag, content, all its bytes, and the rest of the input.
pub(super) struct Read<'d> {
    pub(super) tag: u8,
    pub(super) content: &'d [u8],
    pub(super) whole: &'d [u8],
    pub(super) rest: &'d [u8],
}

/// Reads the first element.
pub(super) fn read(data: &[u8]) -> Option<Read<'_>> {
    let (&tag, after) = data.split_first()?;
    let (&first, mut after) = after.split_first()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 {
            return None;
        }
        length = 0;
        for byte in after.get(..count)? {
            length = length << 8 | usize::from(*byte);
        }
        after = &after[count..];
    }
    let content = after.get(..length)?;
    let rest = &after[length..];
    Some(Read { tag, content, whole: &data[..data.len() - rest.len()], rest })
}

/// Reads the first element if it has the tag.
pub(super) fn expect(data: &[u8], tag: u8) -> Option<Read<'_>> {
    read(data).filter(|r| r.tag == tag)
}

/// The elements of a content.
pub(super) fn all(mut data: &[u8]) -> Option<Vec<Read<'_>>> {
    let mut found = Vec::new();
    while !data.is_empty() {
        let one = read(data)?;
        data = one.rest;
        found.push(one);
    }
    Some(found)
}

/// A PEM block with lines of 64 characters.
pub(super) fn to_pem(label: &str, der: &[u8]) -> String {
    let text = crate::encoding::base64_encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}

/// The first PEM block: its label and content.
pub(super) fn from_pem(text: &[u8]) -> Option<(String, Vec<u8>)> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().map(str::trim_end);
    loop {
        let line = lines.next()?;
        let Some(label) = line.strip_prefix("-----BEGIN ").and_then(|l| l.strip_suffix("-----")) else {
            continue;
        };
        let end = format!("-----END {label}-----");
        let mut body = String::new();
        for line in lines.by_ref() {
            if line == end {
                let data = crate::encoding::base64_decode(body.as_bytes()).ok()?;
                return Some((label.to_owned(), data));
            }
            // Headers such as `Proc-Type:` are not part of the data.
            if !line.contains(':') {
                body.push_str(line);
            }
        }
        return None;
    }
}
