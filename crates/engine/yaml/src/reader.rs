//! Decodes bytes to text: encodings, byte order marks, control characters.

use std::borrow::Cow;

use crate::error::{Error, Stage};

/// The text of `bytes` without byte order mark: UTF-8, or UTF-16 if the mark says so.
pub(crate) fn text(bytes: &[u8]) -> Result<Cow<'_, str>, Error> {
    let text = match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => Cow::Borrowed(utf8(rest)?),
        [0xFF, 0xFE, rest @ ..] => Cow::Owned(utf16(rest, u16::from_le_bytes)?),
        [0xFE, 0xFF, rest @ ..] => Cow::Owned(utf16(rest, u16::from_be_bytes)?),
        _ => Cow::Borrowed(utf8(bytes)?),
    };
    reject_control_characters(&text)?;
    Ok(text)
}

fn problem(before: &str, message: impl Into<String>) -> Error {
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    let line = memchr::memchr_iter(b'\n', before.as_bytes()).count();
    Error::at(Stage::Reader, clamp(line), clamp(before[line_start..].chars().count()), message)
}

fn clamp(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX - 1)
}

fn utf8(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|e| {
        let valid = std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default();
        if let Err(earlier) = reject_control_characters(valid) {
            return earlier;
        }
        let rest = &bytes[e.valid_up_to()..];
        let width = match rest.first() {
            Some(0xC0..=0xDF) => 2,
            Some(0xE0..=0xEF) => 3,
            Some(0xF0..=0xF7) => 4,
            _ => 0,
        };
        let message = if width == 0 {
            "invalid leading UTF-8 octet"
        } else if rest.iter().skip(1).take(width - 1).any(|b| b & 0xC0 != 0x80) {
            "invalid trailing UTF-8 octet"
        } else if rest.len() < width {
            "incomplete UTF-8 octet sequence"
        } else if matches!(rest, [0xED | 0xF4..=0xFF, ..]) {
            "invalid Unicode character"
        } else {
            "invalid length of a UTF-8 sequence"
        };
        problem(valid, message)
    })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, Error> {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let mut text = String::with_capacity(bytes.len() / 2);
    for decoded in char::decode_utf16(units) {
        match decoded {
            Ok(c) => text.push(c),
            Err(e) if e.unpaired_surrogate() >= 0xDC00 => {
                return Err(problem(&text, "unexpected low surrogate area"));
            }
            Err(_) => return Err(problem(&text, "expected low surrogate area")),
        }
    }
    if bytes.len() % 2 == 1 {
        return Err(problem(&text, "incomplete UTF-16 character"));
    }
    Ok(text)
}

fn reject_control_characters(text: &str) -> Result<(), Error> {
    let allowed = |b: u8| b >= 0x20 && b != 0x7F || matches!(b, b'\t' | b'\n' | b'\r');
    // Without early exit the compiler vectorizes this; the slow search runs only for invalid texts.
    let clean = |chunk: &[u8]| chunk.iter().fold(true, |ok, b| ok & allowed(*b));
    let wide = !text.is_ascii();
    if !wide && text.as_bytes().chunks(4096).all(clean) {
        return Ok(());
    }
    let bad = |c: char| match c {
        '\t' | '\n' | '\r' | '\u{85}' => false,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => true,
        _ => false,
    };
    match text.char_indices().find(|(_, c)| bad(*c)) {
        Some((at, _)) => Err(problem(&text[..at], "control characters are not allowed")),
        None => Ok(()),
    }
}
