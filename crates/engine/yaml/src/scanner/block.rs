//! Literal and folded block scalars.

use std::borrow::Cow;

use super::{Mark, Scanner};
use crate::character_class::{break_len, is_blank, is_breakz};
use crate::error::Error;

#[derive(Clone, Copy, PartialEq)]
enum Chomp {
    Strip,
    Clip,
    Keep,
}

impl<'a> Scanner<'a> {
    pub(super) fn scan_block_scalar(&mut self, start: Mark, literal: bool) -> Result<Cow<'a, str>, Error> {
        self.pos += 1;
        let (chomp, increment) = self.scan_block_header(start)?;
        let mut indent = match increment {
            0 => 0,
            n => n + self.indent.max(0) as u32,
        };
        let mut text = String::new();
        let mut leading_break = "";
        let mut trailing = String::new();
        self.block_breaks(&mut indent, &mut trailing, start)?;
        let mut leading_blank = false;
        while self.column() == indent && self.at(0) != 0 {
            let blank = is_blank(self.at(0));
            if !literal && leading_break == "\n" && !leading_blank && !blank {
                if trailing.is_empty() {
                    text.push(' ');
                }
            } else {
                text.push_str(leading_break);
            }
            text.push_str(&trailing);
            trailing.clear();
            leading_blank = blank;
            let line = self.pos;
            self.skip_line_content();
            text.push_str(&self.text[line..self.pos]);
            leading_break = self.read_break();
            self.block_breaks(&mut indent, &mut trailing, start)?;
        }
        if chomp != Chomp::Strip {
            text.push_str(leading_break);
        }
        if chomp == Chomp::Keep {
            text.push_str(&trailing);
        }
        Ok(Cow::Owned(text))
    }

    fn skip_line_content(&mut self) {
        let rest = &self.bytes[self.pos..];
        let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        if self.ascii || rest[..end].is_ascii() {
            self.pos += end;
            return;
        }
        while !is_breakz(self.bytes, self.pos) {
            self.pos += 1;
        }
    }

    /// `|` or `>` with chomping and indentation indicators in either order, a comment, and the end of the
    /// line.
    fn scan_block_header(&mut self, start: Mark) -> Result<(Chomp, u32), Error> {
        let (mut chomp, mut increment) = (Chomp::Clip, 0);
        for _ in 0..2 {
            match self.at(0) {
                sign @ (b'+' | b'-') if chomp == Chomp::Clip => {
                    chomp = if sign == b'+' { Chomp::Keep } else { Chomp::Strip };
                }
                b'0' if increment == 0 => {
                    return Err(self.error(start, "found an indentation indicator equal to 0"));
                }
                digit @ b'1'..=b'9' if increment == 0 => increment = u32::from(digit - b'0'),
                _ => break,
            }
            self.pos += 1;
        }
        self.skip_blanks();
        if self.at(0) == b'#' {
            self.skip_comment();
        }
        if !is_breakz(self.bytes, self.pos) {
            return Err(self.error(start, "did not find expected comment or line break"));
        }
        let len = break_len(self.bytes, self.pos);
        if len > 0 {
            self.next_line(len);
        }
        Ok((chomp, increment))
    }

    /// Skips empty lines and the indentation of the next one; detects the indentation if it is not known (0).
    fn block_breaks(&mut self, indent: &mut u32, breaks: &mut String, start: Mark) -> Result<(), Error> {
        let mut deepest = 0;
        loop {
            let mut column = self.column();
            while (*indent == 0 || column < *indent) && self.at(0) == b' ' {
                self.pos += 1;
                column += 1;
            }
            deepest = deepest.max(column);
            if (*indent == 0 || column < *indent) && self.at(0) == b'\t' {
                return Err(self.error(start, "found a tab character where an indentation space is expected"));
            }
            if break_len(self.bytes, self.pos) == 0 {
                break;
            }
            breaks.push_str(self.read_break());
        }
        if *indent == 0 {
            *indent = deepest.max((self.indent + 1) as u32).max(1);
        }
        Ok(())
    }
}
