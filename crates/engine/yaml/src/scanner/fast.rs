//! What the short way through plain block lines needs: looks at the text without making tokens.

use std::borrow::Cow;

use super::{LONGEST_SIMPLE_KEY, Mark, Scanner, Token};
use crate::chars::{CLASS, PLAIN_KEY, PLAIN_START, PLAIN_STOP, QUOTED_STOP, break_len, byte, is_blankz};
use crate::error::Error;
use crate::node::Style;

/// What stands behind `key:` or `- `.
pub(crate) enum Found<'a> {
    /// A scalar that ends on its line.
    Scalar(&'a str, Style),
    /// `[]` (true) or `{}`
    Empty(bool),
    /// A plain scalar with `: ` behind it: a key.
    Key(&'a str),
    /// `|` or `>`
    Block,
    /// Nothing more on the line.
    LineEnd,
    /// Something for the tokens.
    Other,
}

/// A place to go back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pos: usize,
    line: u32,
    known_pos: usize,
    known_column: u32,
}

impl<'a> Scanner<'a> {
    /// No token waits, and the scanner is outside of brackets.
    #[inline]
    pub(crate) fn is_drained(&self) -> bool {
        self.tokens.is_empty() && self.flow_level == 0 && !self.ended
    }

    /// Goes to the next content as the tokens would; its column when a block line may begin there.
    pub(crate) fn at_plain_line(&mut self) -> Option<u32> {
        self.skip_to_token();
        let ready = self.key_allowed && !self.key().possible && self.at(0) != 0;
        ready.then(|| self.column())
    }

    pub(crate) fn indent(&self) -> i32 {
        self.indent
    }

    pub(crate) fn line(&self) -> u32 {
        self.line
    }

    pub(crate) fn place(&self) -> Place {
        let Self { pos, line, known_pos, known_column, .. } = *self;
        Place { pos, line, known_pos, known_column }
    }

    /// A block collection at `column` begins.
    pub(crate) fn enter_block(&mut self, column: u32) {
        self.indents.push(self.indent);
        self.indent = column as i32;
    }

    /// The innermost block collection ends.
    pub(crate) fn leave_block(&mut self) {
        self.indent = self.indents.pop().unwrap_or(-1);
    }

    /// `-` with a blank, a line break or the end behind it.
    #[inline]
    pub(crate) fn at_dash(&self) -> bool {
        self.at(0) == b'-' && is_blankz(self.bytes, self.pos + 1)
    }

    pub(crate) fn skip_spaces(&mut self) -> u32 {
        let begin = self.pos;
        while self.at(0) == b' ' {
            self.pos += 1;
        }
        (self.pos - begin) as u32
    }

    /// Steps over a dash and the spaces behind it; how many these were.
    pub(crate) fn skip_dash(&mut self) -> u32 {
        self.pos += 1;
        self.skip_spaces()
    }

    /// The end of a plain key that begins here, when its colon is followed by a space or the end of the line.
    #[inline]
    fn plain_key_end(&self) -> Option<usize> {
        let b = self.bytes;
        let mut at = self.pos;
        if CLASS[self.at(0) as usize] & PLAIN_START == 0 {
            return None;
        }
        loop {
            while CLASS[byte(b, at) as usize] & PLAIN_KEY != 0 {
                at += 1;
            }
            match (byte(b, at), byte(b, at + 1)) {
                (b':', b' ' | b'\n') if at - self.pos <= LONGEST_SIMPLE_KEY as usize => return Some(at),
                (b':', next) if CLASS[next as usize] & PLAIN_KEY != 0 => at += 1,
                _ => return None,
            }
        }
    }

    pub(crate) fn peek_plain_key(&self) -> bool {
        self.plain_key_end().is_some()
    }

    /// Takes a plain key and its colon.
    #[inline]
    pub(crate) fn plain_key(&mut self) -> Option<&'a str> {
        let end = self.plain_key_end()?;
        let key = &self.text[self.pos..end];
        self.pos = end + 1;
        Some(key)
    }

    /// Gives a place back to the tokens; `colon` is the mark of a key's colon that stands before it.
    pub(crate) fn leave_to_tokens(&mut self, place: Place, colon: Option<Mark>) {
        Place {
            pos: self.pos,
            line: self.line,
            known_pos: self.known_pos,
            known_column: self.known_column,
        } = place;
        self.key_allowed = colon.is_none();
        if let Some(mark) = colon {
            self.push(Token::Value, mark);
        }
    }

    /// Scans the block scalar that begins here.
    pub(crate) fn block_scalar(&mut self, mark: Mark) -> Result<(Cow<'a, str>, Style), Error> {
        let literal = self.at(0) == b'|';
        self.key_allowed = true;
        let text = self.scan_block_scalar(mark, literal)?;
        Ok((text, if literal { Style::Literal } else { Style::Folded }))
    }

    /// From the end of a line to the next content; its column, unless it begins with something unusual.
    pub(crate) fn next_plain_line(&mut self) -> Option<u32> {
        loop {
            if self.at(0) != b'\n' {
                return None;
            }
            self.next_line(1);
            let column = self.skip_spaces();
            match self.at(0) {
                b'\n' => {}
                b'#' => self.skip_comment(),
                0 | b'\t' | b'\r' | 0xC2 | 0xE2 => return None,
                _ => {
                    self.key_allowed = true;
                    return Some(column);
                }
            }
        }
    }

    /// Looks at what stands here behind a key or a dash, and takes it when it is simple.
    pub(crate) fn plain_value(&mut self) -> Found<'a> {
        let c = self.at(0);
        match c {
            b'\n' => Found::LineEnd,
            b'#' => {
                self.skip_comment();
                if self.at(0) == b'\n' { Found::LineEnd } else { Found::Other }
            }
            b'|' | b'>' => Found::Block,
            b'"' | b'\'' => self.simple_quoted(c),
            b'[' | b'{' => {
                let closes = self.at(1) == if c == b'[' { b']' } else { b'}' };
                if !closes || self.at(2) != b'\n' {
                    return Found::Other;
                }
                self.pos += 2;
                self.key_allowed = false;
                Found::Empty(c == b'[')
            }
            b'-' if is_blankz(self.bytes, self.pos + 1) => Found::Other,
            _ if c == b'-' || c == b'.' || CLASS[c as usize] & PLAIN_START != 0 => self.simple_plain(),
            _ => Found::Other,
        }
    }

    /// A quoted scalar without escapes that ends on its line.
    fn simple_quoted(&mut self, quote: u8) -> Found<'a> {
        let b = self.bytes;
        let begin = self.pos + 1;
        let mut end = begin;
        while CLASS[byte(b, end) as usize] & QUOTED_STOP == 0 || (quote == b'"' && byte(b, end) == b'\'') {
            end += 1;
        }
        if byte(b, end) != quote {
            return Found::Other;
        }
        let mut after = end + 1;
        while byte(b, after) == b' ' {
            after += 1;
        }
        if byte(b, after) != b'\n' {
            return Found::Other;
        }
        self.pos = after;
        self.key_allowed = false;
        let style = if quote == b'"' { Style::DoubleQuoted } else { Style::SingleQuoted };
        Found::Scalar(&self.text[begin..end], style)
    }

    /// A plain scalar that ends on its line, or a key.
    fn simple_plain(&mut self) -> Found<'a> {
        let b = self.bytes;
        let begin = self.pos;
        let mut at = begin;
        let mut spaces = false;
        loop {
            while CLASS[byte(b, at) as usize] & PLAIN_STOP == 0 {
                at += 1;
            }
            match byte(b, at) {
                b':' if !is_blankz(b, at + 1) => at += 1,
                b':' => {
                    return if spaces {
                        Found::Other
                    } else {
                        self.plain_key().map_or(Found::Other, Found::Key)
                    };
                }
                b' ' => {
                    spaces = true;
                    let end = at;
                    while byte(b, at) == b' ' {
                        at += 1;
                    }
                    match byte(b, at) {
                        b'#' => {
                            // A comment ends the scalar, whatever the next line looks like.
                            self.pos = at;
                            self.key_allowed = false;
                            return Found::Scalar(&self.text[begin..end], Style::Plain);
                        }
                        b'\n' => return self.plain_to_line_end(begin, end, at),
                        _ => {}
                    }
                }
                b'\n' => return self.plain_to_line_end(begin, at, at),
                0xC2 | 0xE2 if break_len(b, at) == 0 => at += 1,
                _ => return Found::Other,
            }
        }
    }

    /// A plain scalar from `begin` to `end`, with the end of the line at `line_end`: its own end only when the next
    /// content does not go on with it.
    fn plain_to_line_end(&mut self, begin: usize, end: usize, line_end: usize) -> Found<'a> {
        let b = self.bytes;
        let (mut line, mut line_start) = (self.line, line_end);
        let mut at = line_end;
        while byte(b, at) == b'\n' {
            line += 1;
            line_start = at + 1;
            at = line_start;
            while byte(b, at) == b' ' {
                at += 1;
            }
        }
        let column = (at - line_start) as i32;
        match byte(b, at) {
            0 | b'#' => {}
            b'\t' | b'\r' | 0xC2 | 0xE2 => return Found::Other,
            _ if column > self.indent => return Found::Other,
            _ => {}
        }
        (self.pos, self.line, self.known_pos, self.known_column) = (at, line, line_start, 0);
        self.key_allowed = true;
        Found::Scalar(&self.text[begin..end], Style::Plain)
    }
}
