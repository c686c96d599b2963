//! Support for the fast path of plain block lines: inspects the text without creating tokens.

use std::borrow::Cow;

use super::{MAX_SIMPLE_KEY_LENGTH, Mark, Scanner, Token};
use crate::character_class::{
    CLASS, PLAIN_KEY, PLAIN_START, PLAIN_STOP, QUOTED_STOP, break_len, byte, is_blankz,
};
use crate::error::Error;
use crate::node::Style;

/// The syntax after `key:` or `- `.
pub(crate) enum Syntax<'a> {
    /// A scalar that ends on its line.
    Scalar(&'a str, Style),
    /// `[]` (true) or `{}`
    Empty(bool),
    /// A plain scalar followed by `: `: a key.
    Key(&'a str),
    /// `|` or `>`
    Block,
    /// The end of the line.
    LineEnd,
    /// Anything that needs tokens.
    Other,
}

/// A position to return to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    pos: usize,
    line: u32,
    known_pos: usize,
    known_column: u32,
}

impl<'a> Scanner<'a> {
    /// Whether no token is queued, and the scanner is outside of flow collections.
    #[inline]
    pub(crate) fn is_drained(&self) -> bool {
        self.tokens.is_empty() && self.flow_level == 0 && !self.ended
    }

    /// Moves to the next content; its column if a block line may begin there.
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

    pub(crate) fn position(&self) -> Position {
        let Self { pos, line, known_pos, known_column, .. } = *self;
        Position { pos, line, known_pos, known_column }
    }

    /// Begins a block collection at `column`.
    pub(crate) fn enter_block(&mut self, column: u32) {
        self.indents.push(self.indent);
        self.indent = column as i32;
    }

    /// Ends the innermost block collection.
    pub(crate) fn leave_block(&mut self) {
        self.indent = self.indents.pop().unwrap_or(-1);
    }

    /// Whether there is a `-` before a blank, a line break or the end.
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

    /// Skips a dash and the spaces after it; returns the number of spaces.
    pub(crate) fn skip_dash(&mut self) -> u32 {
        self.pos += 1;
        self.skip_spaces()
    }

    /// The end of a plain key that begins here, if its colon is followed by a space or the end of the line.
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
                (b':', b' ' | b'\n') if at - self.pos <= MAX_SIMPLE_KEY_LENGTH as usize => return Some(at),
                (b':', next) if CLASS[next as usize] & PLAIN_KEY != 0 => at += 1,
                _ => return None,
            }
        }
    }

    pub(crate) fn peek_plain_key(&self) -> bool {
        self.plain_key_end().is_some()
    }

    /// Consumes a plain key and its colon.
    #[inline]
    pub(crate) fn plain_key(&mut self) -> Option<&'a str> {
        let end = self.plain_key_end()?;
        let key = &self.text[self.pos..end];
        self.pos = end + 1;
        Some(key)
    }

    /// Returns to a position for the tokens; `colon` is the mark of the key's colon before it.
    pub(crate) fn return_to(&mut self, position: Position, colon: Option<Mark>) {
        Position {
            pos: self.pos,
            line: self.line,
            known_pos: self.known_pos,
            known_column: self.known_column,
        } = position;
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

    /// Moves from the end of a line to the next content; its column, unless it begins with unusual syntax.
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

    /// Inspects the syntax after a key or a dash, and consumes it if it is simple.
    pub(crate) fn plain_value(&mut self) -> Syntax<'a> {
        let c = self.at(0);
        match c {
            b'\n' => Syntax::LineEnd,
            b'#' => {
                self.skip_comment();
                if self.at(0) == b'\n' { Syntax::LineEnd } else { Syntax::Other }
            }
            b'|' | b'>' => Syntax::Block,
            b'"' | b'\'' => self.simple_quoted(c),
            b'[' | b'{' => {
                let closes = self.at(1) == if c == b'[' { b']' } else { b'}' };
                if !closes || self.at(2) != b'\n' {
                    return Syntax::Other;
                }
                self.pos += 2;
                self.key_allowed = false;
                Syntax::Empty(c == b'[')
            }
            b'-' if is_blankz(self.bytes, self.pos + 1) => Syntax::Other,
            _ if c == b'-' || c == b'.' || CLASS[c as usize] & PLAIN_START != 0 => self.simple_plain(),
            _ => Syntax::Other,
        }
    }

    /// A quoted scalar without escapes that ends on its line.
    fn simple_quoted(&mut self, quote: u8) -> Syntax<'a> {
        let b = self.bytes;
        let begin = self.pos + 1;
        let mut end = begin;
        while CLASS[byte(b, end) as usize] & QUOTED_STOP == 0 || (quote == b'"' && byte(b, end) == b'\'') {
            end += 1;
        }
        if byte(b, end) != quote {
            return Syntax::Other;
        }
        let mut after = end + 1;
        while byte(b, after) == b' ' {
            after += 1;
        }
        if byte(b, after) != b'\n' {
            return Syntax::Other;
        }
        self.pos = after;
        self.key_allowed = false;
        let style = if quote == b'"' { Style::DoubleQuoted } else { Style::SingleQuoted };
        Syntax::Scalar(&self.text[begin..end], style)
    }

    /// A plain scalar that ends on its line, or a key.
    fn simple_plain(&mut self) -> Syntax<'a> {
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
                        Syntax::Other
                    } else {
                        self.plain_key().map_or(Syntax::Other, Syntax::Key)
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
                            // A comment ends the scalar, regardless of the next line.
                            self.pos = at;
                            self.key_allowed = false;
                            return Syntax::Scalar(&self.text[begin..end], Style::Plain);
                        }
                        b'\n' => return self.plain_to_line_end(begin, end, at),
                        _ => {}
                    }
                }
                b'\n' => return self.plain_to_line_end(begin, at, at),
                0xC2 | 0xE2 if break_len(b, at) == 0 => at += 1,
                _ => return Syntax::Other,
            }
        }
    }

    /// A plain scalar from `begin` to `end`, with the end of the line at `line_end`, unless the next line
    /// continues it.
    fn plain_to_line_end(&mut self, begin: usize, end: usize, line_end: usize) -> Syntax<'a> {
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
            b'\t' | b'\r' | 0xC2 | 0xE2 => return Syntax::Other,
            _ if column > self.indent => return Syntax::Other,
            _ => {}
        }
        (self.pos, self.line, self.known_pos, self.known_column) = (at, line, line_start, 0);
        self.key_allowed = true;
        Syntax::Scalar(&self.text[begin..end], Style::Plain)
    }
}
