//! OpenPGP armor and packets (RFC 4880, RFC 9580), common to keys, signatures and messages.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Maximum bytes of an armored text.
const MAX_ARMOR_BYTES: usize = 8 << 20;

/// A packet: its tag and its content.
#[derive(Clone, Debug)]
pub struct Packet<'a> {
    /// Tag.
    pub tag: u8,
    /// Content.
    pub body: &'a [u8],
}

/// Decodes the text between the line `-----BEGIN PGP <kind>-----` and its end.
pub fn unarmor(text: &str, kind: &str) -> Option<Vec<u8>> {
    if text.len() > MAX_ARMOR_BYTES {
        return None;
    }
    let begin = format!("-----BEGIN PGP {kind}-----");
    let end = format!("-----END PGP {kind}-----");
    let inside = text.split_once(&begin)?.1.split_once(&end)?.0;
    let mut lines = inside.lines().map(str::trim).skip(1).peekable();
    // Headers such as `Version:` end with an empty line.
    while lines.peek().is_some_and(|l| l.contains(": ")) {
        lines.next();
    }
    let base64: String = lines.filter(|l| !l.starts_with('=') && !l.is_empty()).collect();
    STANDARD.decode(base64).ok()
}

/// Splits bytes into packets; `None` if they are malformed.
pub fn packets(mut bytes: &[u8]) -> Option<Vec<Packet<'_>>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (packet, rest) = packet(bytes)?;
        all.push(packet);
        bytes = rest;
    }
    Some(all)
}

/// The first packet and the rest.
fn packet(bytes: &[u8]) -> Option<(Packet<'_>, &[u8])> {
    let (&head, rest) = bytes.split_first()?;
    if head & 0x80 == 0 {
        return None;
    }
    let (tag, length, rest) = if head & 0x40 != 0 {
        let (length, rest) = new_length(rest)?;
        (head & 0x3f, length, rest)
    } else {
        let size = match head & 3 {
            0 => 1,
            1 => 2,
            2 => 4,
            // A packet without a length extends to the end of the file; keys and signatures never do.
            _ => return None,
        };
        let (number, rest) = rest.split_at_checked(size)?;
        ((head >> 2) & 0x0f, big_endian(number), rest)
    };
    let (body, rest) = rest.split_at_checked(length)?;
    Some((Packet { tag, body }, rest))
}

/// Splits a message into packets, which may have partial or indeterminate lengths. `None` if they are
/// malformed.
pub fn message_packets(mut bytes: &[u8]) -> Option<Vec<(u8, Cow<'_, [u8]>)>> {
    let mut all = Vec::new();
    while let Some((&head, rest)) = bytes.split_first() {
        let whole = head & 0x80 != 0 && head & 0x40 == 0;
        if whole && head & 3 == 3 {
            all.push(((head >> 2) & 0x0f, Cow::Borrowed(rest)));
            return Some(all);
        }
        if !whole && matches!(rest.first(), Some(224..=254)) {
            let (body, rest) = partial(rest)?;
            all.push((head & 0x3f, Cow::Owned(body)));
            bytes = rest;
            continue;
        }
        let (packet, rest) = packet(bytes)?;
        all.push((packet.tag, Cow::Borrowed(packet.body)));
        bytes = rest;
    }
    Some(all)
}

/// Reads a body with partial lengths; the last part has an ordinary length.
fn partial(mut bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut body = Vec::new();
    loop {
        let (&first, rest) = bytes.split_first()?;
        let (length, rest, last) = match first {
            224..=254 => (1usize << (first & 0x1f), rest, false),
            _ => new_length(bytes).map(|(length, rest)| (length, rest, true))?,
        };
        let (part, rest) = rest.split_at_checked(length)?;
        body.extend_from_slice(part);
        bytes = rest;
        if last {
            return Some((body, bytes));
        }
    }
}

/// Parses a length of one, two or five bytes. Partial lengths are only valid in messages.
fn new_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    match first {
        0..192 => Some((usize::from(first), rest)),
        192..224 => {
            let (&second, rest) = rest.split_first()?;
            Some(((usize::from(first) - 192) * 256 + usize::from(second) + 192, rest))
        }
        255 => {
            let (number, rest) = rest.split_at_checked(4)?;
            Some((big_endian(number), rest))
        }
        _ => None,
    }
}

/// A big-endian number; only the last eight bytes count.
pub fn big_endian(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |n, b| (n << 8) | usize::from(*b))
}

/// A multiprecision integer: length in bits, then bytes.
pub fn mpi<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (bits, rest) = bytes.split_at_checked(2)?;
    let (number, rest) = rest.split_at_checked(big_endian(bits).div_ceil(8))?;
    *bytes = rest;
    Some(number)
}

/// Subpackets of a signature: type (with its critical bit) and content.
pub(crate) fn subpackets(mut bytes: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        // The same lengths as for packets, except for the range of two-byte lengths.
        let first = *bytes.first()?;
        let (length, rest) = if (192..255).contains(&first) {
            let second = *bytes.get(1)?;
            ((usize::from(first) - 192) * 256 + usize::from(second) + 192, &bytes[2..])
        } else {
            new_length(bytes)?
        };
        let (body, rest) = rest.split_at_checked(length)?;
        let (&kind, content) = body.split_first()?;
        all.push((kind, content));
        bytes = rest;
    }
    Some(all)
}
