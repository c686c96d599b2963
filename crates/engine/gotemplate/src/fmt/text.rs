//! Strings: padding, quoting, hex.

use super::Printer;
use crate::runes::{self, is_print};

/// Appends `strconv.Quote` (or `QuoteRune` with `'`); `ascii` escapes everything else.
pub fn quote_into(out: &mut Vec<u8>, bytes: &[u8], quote: u8, ascii: bool) {
    out.push(quote);
    for (at, c, width) in runes::runes(bytes) {
        if c == runes::REPLACEMENT && width == 1 {
            out.extend_from_slice(format!("\\x{:02x}", bytes[at]).as_bytes());
        } else {
            quote_rune_into(out, c, quote, ascii);
        }
    }
    out.push(quote);
}

fn quote_rune_into(out: &mut Vec<u8>, c: char, quote: u8, ascii: bool) {
    if c as u32 == u32::from(quote) || c == '\\' {
        out.push(b'\\');
        return runes::push(out, c);
    }
    if (!ascii || c.is_ascii()) && is_print(c) {
        return runes::push(out, c);
    }
    let simple = match c {
        '\u{7}' => b'a',
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        '\u{b}' => b'v',
        _ => {
            let n = c as u32;
            let text = if n < 0x20 || n == 0x7f {
                format!("\\x{n:02x}")
            } else if n < 0x10000 {
                format!("\\u{n:04x}")
            } else {
                format!("\\U{n:08x}")
            };
            return out.extend_from_slice(text.as_bytes());
        }
    };
    out.extend_from_slice(&[b'\\', simple]);
}

/// `%q` of a string, as text.
pub fn quoted(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len() + 2);
    quote_into(&mut out, bytes, b'"', false);
    String::from_utf8_lossy(&out).into_owned()
}

/// `%#U` of a rune: `U+0041 'A'`.
pub fn unicode_sharp(c: char) -> String {
    let n = c as u32;
    if is_print(c) { format!("U+{n:04X} '{c}'") } else { format!("U+{n:04X}") }
}

impl Printer<'_> {
    pub(super) fn write_padding(&mut self, n: usize) {
        let byte = if self.flags.zero && !self.flags.minus { b'0' } else { b' ' };
        self.out.resize(self.out.len() + n, byte);
    }

    /// Appends bytes, padded to the width in runes.
    pub(super) fn pad(&mut self, bytes: &[u8]) {
        let Some(width) = self.flags.width.filter(|w| *w > 0) else {
            return self.out.extend_from_slice(bytes);
        };
        let fill = width.saturating_sub(runes::runes(bytes).count());
        if self.flags.minus {
            self.out.extend_from_slice(bytes);
            self.write_padding(fill);
        } else {
            self.write_padding(fill);
            self.out.extend_from_slice(bytes);
        }
    }

    fn truncate<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        match self.flags.precision {
            Some(n) => runes::runes(bytes).nth(n).map_or(bytes, |(at, _, _)| &bytes[..at]),
            None => bytes,
        }
    }

    pub(super) fn fmt_s(&mut self, bytes: &[u8]) {
        let cut = self.truncate(bytes);
        self.pad(cut);
    }

    pub(super) fn fmt_q(&mut self, bytes: &[u8]) {
        let cut = self.truncate(bytes);
        let mut quoted = Vec::with_capacity(cut.len() + 2);
        if self.flags.sharp && can_backquote(cut) {
            quoted.push(b'`');
            quoted.extend_from_slice(cut);
            quoted.push(b'`');
        } else {
            quote_into(&mut quoted, cut, b'"', self.flags.plus);
        }
        self.pad(&quoted);
    }

    /// `%x` and `%X` of bytes.
    pub(super) fn fmt_hex(&mut self, bytes: &[u8], upper: bool) {
        let bytes = &bytes[..self.flags.precision.unwrap_or(bytes.len()).min(bytes.len())];
        if bytes.is_empty() {
            let width = self.flags.width.unwrap_or(0);
            return self.write_padding(width);
        }
        let flags = self.flags;
        let prefix: &[u8] = match (flags.sharp, upper) {
            (false, _) => b"",
            (true, false) => b"0x",
            (true, true) => b"0X",
        };
        let digits: &[u8; 16] = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
        let mut text = prefix.to_vec();
        for (i, b) in bytes.iter().enumerate() {
            if flags.space && i > 0 {
                text.push(b' ');
                text.extend_from_slice(prefix);
            }
            text.push(digits[usize::from(b >> 4)]);
            text.push(digits[usize::from(b & 15)]);
        }
        self.pad(&text);
    }

    pub(super) fn fmt_rune(&mut self, n: u64) {
        let c = u32::try_from(n).ok().and_then(char::from_u32).unwrap_or(runes::REPLACEMENT);
        self.pad(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    pub(super) fn fmt_quoted_rune(&mut self, n: u64) {
        let c = u32::try_from(n).ok().and_then(char::from_u32).unwrap_or(runes::REPLACEMENT);
        let mut text = vec![b'\''];
        quote_rune_into(&mut text, c, b'\'', self.flags.plus);
        text.push(b'\'');
        self.pad(&text);
    }

    /// `%U`
    pub(super) fn fmt_unicode(&mut self, n: u64) {
        let digits = self.flags.precision.filter(|p| *p > 4).unwrap_or(4);
        let mut text = format!("U+{n:0digits$X}");
        if let Some(c) = u32::try_from(n).ok().and_then(char::from_u32)
            && self.flags.sharp
            && is_print(c)
        {
            text.push_str(&format!(" '{c}'"));
        }
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(text.as_bytes());
        self.flags.zero = zero;
    }
}

/// Whether a string can be written in back quotes unchanged.
fn can_backquote(bytes: &[u8]) -> bool {
    runes::runes(bytes).all(|(_, c, width)| {
        let broken = c == runes::REPLACEMENT && width == 1;
        !broken && c != '\u{feff}' && (c >= ' ' || c == '\t') && c != '`' && c != '\u{7f}'
    })
}
