//! Character classes of bytes. The input is valid UTF-8 without control characters, so byte 0 marks its end.

/// Stops the inner loop of a plain scalar: blanks, bytes that may begin a line break, `:` and the end.
pub(crate) const PLAIN_STOP: u8 = 1;
/// Also stops a plain scalar inside of a flow collection.
pub(crate) const FLOW_STOP: u8 = 2;
/// Stops a quoted scalar: quotes, backslash, line breaks, the end.
pub(crate) const QUOTED_STOP: u8 = 4;
/// A character of anchors and tag handles.
pub(crate) const WORD: u8 = 8;
/// Additional characters of tags.
pub(crate) const URI: u8 = 16;
/// Ends a run of characters: blank, line break or the end.
pub(crate) const BLANKZ: u8 = 32;

/// A character of a plain key without blanks.
pub(crate) const PLAIN_KEY: u8 = 64;
/// A character that always begins a plain scalar and never a document marker.
pub(crate) const PLAIN_START: u8 = 128;

/// The classes of every byte.
pub(crate) static CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        table[i] = match b {
            b' ' | b'\t' => PLAIN_STOP | BLANKZ,
            b'\n' | b'\r' => PLAIN_STOP | QUOTED_STOP | BLANKZ,
            0 => PLAIN_STOP | QUOTED_STOP | BLANKZ,
            0xC2 | 0xE2 => PLAIN_STOP | QUOTED_STOP,
            b'"' | b'\\' => QUOTED_STOP,
            b'\'' => QUOTED_STOP | URI,
            b':' => PLAIN_STOP | URI,
            b',' | b'?' | b'[' | b']' => FLOW_STOP | URI,
            b'{' | b'}' => FLOW_STOP,
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-' => WORD,
            b';' | b'/' | b'@' | b'&' | b'=' | b'+' | b'$' | b'.' | b'!' | b'~' | b'*' | b'(' | b')'
            | b'%' => URI,
            _ => 0,
        };
        if b > b' ' && b < 0x7F && b != b':' {
            table[i] |= PLAIN_KEY;
        }
        let special = matches!(
            b,
            b'-' | b'.'
                | b'?'
                | b':'
                | b','
                | b'['
                | b']'
                | b'{'
                | b'}'
                | b'#'
                | b'&'
                | b'*'
                | b'!'
                | b'|'
                | b'>'
                | b'\''
                | b'"'
                | b'%'
                | b'@'
                | b'`'
                | 0xC2
                | 0xE2
        );
        if b > b' ' && b != 0x7F && !special {
            table[i] |= PLAIN_START;
        }
        i += 1;
    }
    table
};

/// The byte at `at`, 0 after the end.
#[inline]
pub(crate) fn byte(b: &[u8], at: usize) -> u8 {
    b.get(at).copied().unwrap_or(0)
}

/// Length of the line break at `at`, 0 if there is none. CR LF is one break.
#[inline]
pub(crate) fn break_len(b: &[u8], at: usize) -> usize {
    match byte(b, at) {
        b'\n' => 1,
        b'\r' => 1 + usize::from(byte(b, at + 1) == b'\n'),
        0xC2 if byte(b, at + 1) == 0x85 => 2,
        0xE2 if byte(b, at + 1) == 0x80 && matches!(byte(b, at + 2), 0xA8 | 0xA9) => 3,
        _ => 0,
    }
}

#[inline]
pub(crate) fn is_blank(c: u8) -> bool {
    c == b' ' || c == b'\t'
}

/// A line break or the end.
#[inline]
pub(crate) fn is_breakz(b: &[u8], at: usize) -> bool {
    byte(b, at) == 0 || break_len(b, at) > 0
}

/// A blank, a line break or the end.
#[inline]
pub(crate) fn is_blankz(b: &[u8], at: usize) -> bool {
    let c = byte(b, at);
    CLASS[c as usize] & BLANKZ != 0 || (c >= 0x80 && break_len(b, at) > 0)
}
