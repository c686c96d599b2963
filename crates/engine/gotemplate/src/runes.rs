//! Runes: decoding bytes as Go does, and Go's character classes.

use unicode_general_category::{GeneralCategory as G, get_general_category};

/// Replacement for invalid UTF-8.
pub const REPLACEMENT: char = '\u{FFFD}';

/// Decodes the first rune: `(U+FFFD, 1)` for an invalid byte, `None` at the end.
pub fn decode(bytes: &[u8]) -> Option<(char, usize)> {
    let &first = bytes.first()?;
    if first < 0x80 {
        return Some((first as char, 1));
    }
    let width = match first {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return Some((REPLACEMENT, 1)),
    };
    match bytes.get(..width).and_then(|s| std::str::from_utf8(s).ok()).and_then(|s| s.chars().next()) {
        Some(c) => Some((c, width)),
        None => Some((REPLACEMENT, 1)),
    }
}

/// Decodes the last rune.
pub fn decode_last(bytes: &[u8]) -> Option<(char, usize)> {
    let end = bytes.len();
    if end == 0 {
        return None;
    }
    for start in (end.saturating_sub(4)..end).rev() {
        if bytes[start] & 0xC0 != 0x80 {
            return match decode(&bytes[start..]) {
                Some((c, width)) if start + width == end => Some((c, width)),
                _ => Some((REPLACEMENT, 1)),
            };
        }
    }
    Some((REPLACEMENT, 1))
}

/// Iterates over runes with their byte offsets; invalid bytes are `(offset, U+FFFD, 1)`.
pub fn runes(bytes: &[u8]) -> impl Iterator<Item = (usize, char, usize)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (c, width) = decode(&bytes[at..])?;
        let start = at;
        at += width;
        Some((start, c, width))
    })
}

/// Appends a rune as UTF-8.
pub fn push(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// `unicode.IsLetter`
pub fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphabetic();
    }
    use G::{LowercaseLetter, ModifierLetter, OtherLetter, TitlecaseLetter, UppercaseLetter};
    matches!(
        get_general_category(c),
        UppercaseLetter | LowercaseLetter | TitlecaseLetter | ModifierLetter | OtherLetter
    )
}

/// `unicode.IsDigit`
pub fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || (!c.is_ascii() && get_general_category(c) == G::DecimalNumber)
}

/// `unicode.IsUpper`
pub fn is_upper(c: char) -> bool {
    c.is_ascii_uppercase() || (!c.is_ascii() && get_general_category(c) == G::UppercaseLetter)
}

/// `unicode.IsLower`
pub fn is_lower(c: char) -> bool {
    c.is_ascii_lowercase() || (!c.is_ascii() && get_general_category(c) == G::LowercaseLetter)
}

/// `unicode.IsSpace`
pub fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | ' ' | '\u{85}' | '\u{a0}')
        || (!c.is_ascii() && c.is_whitespace())
}

/// `unicode.IsPrint` and `strconv.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    !matches!(
        get_general_category(c),
        G::Control
            | G::Format
            | G::Surrogate
            | G::PrivateUse
            | G::Unassigned
            | G::LineSeparator
            | G::ParagraphSeparator
            | G::SpaceSeparator
    )
}

/// A letter, digit or underscore: the characters of identifiers.
pub fn is_word(c: char) -> bool {
    c == '_' || is_letter(c) || is_digit(c)
}
