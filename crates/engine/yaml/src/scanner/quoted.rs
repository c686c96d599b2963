//! Quoted scalars.

use std::borrow::Cow;

use super::{Mark, Scanner};
use crate::character_class::{CLASS, QUOTED_STOP, break_len};
use crate::error::Error;

impl<'a> Scanner<'a> {
    /// Scans a quoted scalar. A single-line one without escapes is a slice of the text.
    pub(super) fn scan_quoted(&mut self, start: Mark, quote: u8) -> Result<Cow<'a, str>, Error> {
        self.pos += 1;
        let begin = self.pos;
        self.skip_quoted_run();
        if self.at(0) == quote && !(quote == b'\'' && self.at(1) == b'\'') {
            let text = &self.text[begin..self.pos];
            self.pos += 1;
            return Ok(Cow::Borrowed(text));
        }
        let mut text = String::from(&self.text[begin..self.pos]);
        // Blanks before a line break are dropped, except those from an escape before this length.
        let mut solid = 0;
        loop {
            let run = self.pos;
            self.skip_quoted_run();
            text.push_str(&self.text[run..self.pos]);
            match self.at(0) {
                0 => return Err(self.error(start, "found unexpected end of stream")),
                b'\'' if quote == b'\'' && self.at(1) == b'\'' => {
                    text.push('\'');
                    self.pos += 2;
                }
                c if c == quote => {
                    self.pos += 1;
                    return Ok(Cow::Owned(text));
                }
                b'\\' if quote == b'"' => {
                    let len = break_len(self.bytes, self.pos + 1);
                    if len > 0 {
                        self.pos += 1;
                        self.next_line(len);
                        let more = self.breaks_behind(start)?;
                        text.push_str(&more);
                    } else {
                        let c = self.scan_escape(start)?;
                        text.push(c);
                    }
                    solid = text.len();
                }
                c @ (b'\'' | b'"' | b'\\') => {
                    text.push(char::from(c));
                    self.pos += 1;
                }
                _ if break_len(self.bytes, self.pos) > 0 => {
                    text.truncate(text.trim_end_matches([' ', '\t']).len().max(solid));
                    let first = self.read_break();
                    let more = self.breaks_behind(start)?;
                    if first != "\n" {
                        text.push_str(first);
                    } else if more.is_empty() {
                        text.push(' ');
                    }
                    text.push_str(&more);
                    solid = text.len();
                }
                // The first byte of a multi-byte character that is not a line break.
                _ => {
                    let wide = self.text[self.pos..].chars().next().map_or(1, char::len_utf8);
                    text.push_str(&self.text[self.pos..self.pos + wide]);
                    self.pos += wide;
                }
            }
        }
    }

    #[inline]
    fn skip_quoted_run(&mut self) {
        while CLASS[self.at(0) as usize] & QUOTED_STOP == 0 {
            self.pos += 1;
        }
    }

    /// After a line break inside of quotes: keeps further breaks, drops blanks.
    fn breaks_behind(&mut self, start: Mark) -> Result<String, Error> {
        let mut more = String::new();
        loop {
            self.skip_blanks();
            if break_len(self.bytes, self.pos) == 0 {
                break;
            }
            more.push_str(self.read_break());
        }
        if self.column() == 0 && self.at_document_marker() {
            return Err(self.error(start, "found unexpected document indicator"));
        }
        Ok(more)
    }

    fn scan_escape(&mut self, start: Mark) -> Result<char, Error> {
        let digits = match self.at(1) {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            simple => {
                let c = match simple {
                    b'0' => '\0',
                    b'a' => '\x07',
                    b'b' => '\x08',
                    b't' | b'\t' => '\t',
                    b'n' => '\n',
                    b'v' => '\x0b',
                    b'f' => '\x0c',
                    b'r' => '\r',
                    b'e' => '\x1b',
                    b' ' => ' ',
                    b'"' => '"',
                    b'\'' => '\'',
                    b'\\' => '\\',
                    b'N' => '\u{85}',
                    b'_' => '\u{a0}',
                    b'L' => '\u{2028}',
                    b'P' => '\u{2029}',
                    _ => return Err(self.error(start, "found unknown escape character")),
                };
                self.pos += 2;
                return Ok(c);
            }
        };
        self.pos += 2;
        let mut code = 0u32;
        for k in 0..digits {
            let Some(digit) = char::from(self.at(k)).to_digit(16) else {
                return Err(self.error(start, "did not find expected hexdecimal number"));
            };
            code = code << 4 | digit;
        }
        let Some(c) = char::from_u32(code) else {
            return Err(self.error(start, "found invalid Unicode character escape code"));
        };
        self.pos += digits;
        Ok(c)
    }
}
