//! Plain scalars.

use std::borrow::Cow;

use super::{Mark, Scanner};
use crate::character_class::{CLASS, FLOW_STOP, PLAIN_STOP, break_len, byte, is_blank, is_blankz};
use crate::error::Error;

impl<'a> Scanner<'a> {
    /// Scans a plain scalar. A single-line one is a slice of the text.
    pub(super) fn scan_plain(&mut self, start: Mark) -> Result<Cow<'a, str>, Error> {
        let indent = (self.indent + 1) as u32;
        let begin = self.pos;
        self.scan_plain_line();
        let mut end = self.pos;
        let mut joined: Option<String> = None;
        let mut leading_blanks = false;
        loop {
            // After the last word of a line: blanks, then possibly breaks and the next line of the scalar.
            self.skip_blanks();
            // Any character but a line break ends the scalar here.
            if break_len(self.bytes, self.pos) == 0 {
                break;
            }
            leading_blanks = true;
            let fold = self.fold_breaks(start, indent)?;
            if self.flow_level == 0 && self.column() < indent {
                break;
            }
            if self.column() == 0 && self.at_document_marker() || self.at(0) == b'#' {
                break;
            }
            let word = self.pos;
            self.scan_plain_line();
            if self.pos == word {
                break;
            }
            let text = joined.get_or_insert_with(|| self.text[begin..end].to_owned());
            text.push_str(&fold);
            text.push_str(&self.text[word..self.pos]);
            end = self.pos;
            leading_blanks = false;
        }
        if leading_blanks {
            self.key_allowed = true;
        }
        Ok(joined.map_or_else(|| Cow::Borrowed(&self.text[begin..end]), Cow::Owned))
    }

    /// Moves after the last word of a plain scalar on this line, including blanks between words.
    #[inline]
    fn scan_plain_line(&mut self) {
        let b = self.bytes;
        let stop = if self.flow_level > 0 { PLAIN_STOP | FLOW_STOP } else { PLAIN_STOP };
        let mut at = self.pos;
        loop {
            while CLASS[byte(b, at) as usize] & stop == 0 {
                at += 1;
            }
            match byte(b, at) {
                b':' if !is_blankz(b, at + 1) => at += 1,
                b' ' | b'\t' => {
                    let mut after = at + 1;
                    while is_blank(byte(b, after)) {
                        after += 1;
                    }
                    let c = byte(b, after);
                    let ends = c == b'#'
                        || (c == b':' && is_blankz(b, after + 1))
                        || (self.flow_level > 0 && CLASS[c as usize] & FLOW_STOP != 0)
                        || c == 0
                        || break_len(b, after) > 0;
                    if ends {
                        break;
                    }
                    at = after;
                }
                0xC2 | 0xE2 if break_len(b, at) == 0 => at += 1,
                _ => break,
            }
        }
        self.pos = at;
    }

    /// Skips line breaks and the blanks around them; returns their value inside of a scalar.
    fn fold_breaks(&mut self, start: Mark, indent: u32) -> Result<Cow<'static, str>, Error> {
        let first = self.read_break();
        let mut more = String::new();
        loop {
            while is_blank(self.at(0)) {
                if self.at(0) == b'\t' && self.column() < indent {
                    return Err(self.error(start, "found a tab character that violates indentation"));
                }
                self.pos += 1;
            }
            if break_len(self.bytes, self.pos) == 0 {
                break;
            }
            more.push_str(self.read_break());
        }
        Ok(match (first, more.is_empty()) {
            ("\n", true) => Cow::Borrowed(" "),
            ("\n", false) => Cow::Owned(more),
            (kept, true) => Cow::Borrowed(kept),
            (kept, false) => Cow::Owned(format!("{kept}{more}")),
        })
    }

    /// Skips one line break; returns a line feed, except for the Unicode line and paragraph separators.
    pub(super) fn read_break(&mut self) -> &'static str {
        let len = break_len(self.bytes, self.pos);
        let kept = match (len, self.at(2)) {
            (3, 0xA8) => "\u{2028}",
            (3, _) => "\u{2029}",
            (0, _) => return "",
            _ => "\n",
        };
        self.next_line(len);
        kept
    }
}
