//! Letter case with Go's rune-to-rune mappings.

use fl_gotemplate::runes::{self, is_letter, is_lower, is_space, is_upper};

/// Applies a mapping to every rune; invalid bytes become U+FFFD, as in Go's `strings.Map`.
pub(crate) fn map_runes(s: &[u8], mut map: impl FnMut(char) -> char) -> Vec<u8> {
    let mut out = Vec::with_capacity(s.len());
    for (_, c, _) in runes::runes(s) {
        runes::push(&mut out, map(c));
    }
    out
}

/// `unicode.ToUpper`: one rune to one rune.
pub(crate) fn to_upper(c: char) -> char {
    match c {
        // Their full upper case is two runes; Go uses the single title-case one.
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => shifted(c, 8),
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => shifted(c, 9),
        _ => single(c.to_uppercase(), c),
    }
}

/// `unicode.ToLower`
pub(crate) fn to_lower(c: char) -> char {
    if c == '\u{130}' { 'i' } else { single(c.to_lowercase(), c) }
}

/// `unicode.ToTitle`
fn to_title(c: char) -> char {
    match c {
        '\u{1c4}' | '\u{1c6}' => '\u{1c5}',
        '\u{1c7}' | '\u{1c9}' => '\u{1c8}',
        '\u{1ca}' | '\u{1cc}' => '\u{1cb}',
        '\u{1f1}' | '\u{1f3}' => '\u{1f2}',
        '\u{1c5}' | '\u{1c8}' | '\u{1cb}' | '\u{1f2}' | '\u{10d0}'..='\u{10ff}' => c,
        _ => to_upper(c),
    }
}

fn shifted(c: char, by: u32) -> char {
    char::from_u32(c as u32 + by).unwrap_or(c)
}

fn single(mut mapped: impl Iterator<Item = char>, c: char) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// `strings.Title`: capitalizes the first letter of every word.
pub(crate) fn title(s: &[u8]) -> Vec<u8> {
    let mut previous = ' ';
    map_runes(s, |c| {
        let mapped = if is_separator(previous) { to_title(c) } else { c };
        previous = c;
        mapped
    })
}

fn is_separator(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_alphanumeric() && c != '_';
    }
    !is_letter(c) && !runes::is_digit(c) && is_space(c)
}

/// `goutils.Uncapitalize`
pub(crate) fn untitle(s: &[u8]) -> Vec<u8> {
    let mut next = true;
    map_runes(s, |c| {
        if is_space(c) {
            next = true;
            c
        } else if std::mem::take(&mut next) {
            to_lower(c)
        } else {
            c
        }
    })
}

/// `goutils.SwapCase`
pub(crate) fn swap_case(s: &[u8]) -> Vec<u8> {
    let mut after_space = true;
    map_runes(s, |c| {
        if is_upper(c) || matches!(c, '\u{1c5}' | '\u{1c8}' | '\u{1cb}' | '\u{1f2}') {
            after_space = false;
            to_lower(c)
        } else if is_lower(c) {
            if std::mem::take(&mut after_space) { to_title(c) } else { to_upper(c) }
        } else {
            after_space = is_space(c);
            c
        }
    })
}

/// `goutils.Initials`, which works on bytes: a byte of a multi-byte character becomes the rune with that
/// number.
pub(crate) fn initials(s: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut gap = true;
    for b in s {
        let c = *b as char;
        if is_space(c) {
            gap = true;
        } else if std::mem::take(&mut gap) {
            runes::push(&mut out, c);
        }
    }
    out
}

/// `goutils.DeleteWhiteSpace`, which works on bytes: text without white space is not changed at all.
pub(crate) fn delete_white_space(s: &[u8]) -> Vec<u8> {
    if !s.iter().any(|b| is_space(*b as char)) {
        return s.to_vec();
    }
    let mut out = Vec::with_capacity(s.len());
    for b in s {
        let c = *b as char;
        if !is_space(c) {
            runes::push(&mut out, c);
        }
    }
    out
}
