//! Splits text into tokens.
//!
//! The token stream is that of libyaml: block structure becomes start and end tokens by indentation, and a
//! node that may be a mapping key ("simple key") holds back the tokens after it until a `:` decides.

mod block;
mod fast;
mod plain;
mod quoted;
mod tags;

use std::borrow::Cow;
use std::collections::VecDeque;

pub(crate) use self::fast::Syntax;

use crate::character_class::{break_len, byte, is_blank, is_blankz};
use crate::error::{Error, Stage};
use crate::node::Style;

/// A zero-based position in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// The kinds of token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token<'a> {
    StreamEnd,
    Version { major: u8, minor: u8 },
    TagDirective { handle: &'a str, prefix: String },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    Tag { handle: &'a str, suffix: String },
    Scalar(Cow<'a, str>, Style),
}

#[derive(Debug, Clone, Copy, Default)]
struct SimpleKey {
    possible: bool,
    required: bool,
    token: usize,
    mark: Mark,
}

/// A simple key must end on its line and within this many characters.
const MAX_SIMPLE_KEY_LENGTH: u32 = 1024;

#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    line: u32,
    /// A position before `pos` on the same line whose column is known: columns count characters, not bytes.
    known_pos: usize,
    known_column: u32,
    ascii: bool,
    tokens: VecDeque<(Token<'a>, Mark)>,
    taken: usize,
    indent: i32,
    indents: Vec<i32>,
    keys: Vec<SimpleKey>,
    key_allowed: bool,
    flow_level: usize,
    max_depth: usize,
    ended: bool,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str, max_depth: usize) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            pos: 0,
            line: 0,
            known_pos: 0,
            known_column: 0,
            ascii: text.is_ascii(),
            tokens: VecDeque::new(),
            taken: 0,
            indent: -1,
            indents: Vec::new(),
            keys: vec![SimpleKey::default()],
            key_allowed: true,
            flow_level: 0,
            max_depth,
            ended: false,
        }
    }

    /// The next token without taking it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<(&Token<'a>, Mark), Error> {
        self.fill()?;
        let (token, mark) = &self.tokens[0];
        Ok((token, *mark))
    }

    /// Takes the next token.
    #[inline]
    pub(crate) fn take(&mut self) -> Result<(Token<'a>, Mark), Error> {
        self.fill()?;
        self.taken += 1;
        Ok(self.tokens.pop_front().expect("fill leaves a token or fails"))
    }

    /// Fetches tokens until the first one cannot be part of a key any more.
    #[inline]
    fn fill(&mut self) -> Result<(), Error> {
        loop {
            if !self.tokens.is_empty() && !self.first_may_be_key()? {
                return Ok(());
            }
            self.fetch()?;
        }
    }

    fn first_may_be_key(&mut self) -> Result<bool, Error> {
        // Keys of outer flow levels began earlier, so the first possible one is the oldest.
        let Some(at) = self.keys.iter().position(|k| k.possible) else { return Ok(false) };
        if self.keys[at].token != self.taken { Ok(false) } else { self.key_is_valid(at) }
    }

    #[inline]
    fn column(&mut self) -> u32 {
        if self.ascii {
            return self.known_column + (self.pos - self.known_pos) as u32;
        }
        let between = &self.bytes[self.known_pos..self.pos];
        self.known_column += between.iter().filter(|b| **b & 0xC0 != 0x80).count() as u32;
        self.known_pos = self.pos;
        self.known_column
    }

    #[inline]
    fn mark(&mut self) -> Mark {
        Mark { line: self.line, column: self.column() }
    }

    #[inline]
    fn at(&self, offset: usize) -> u8 {
        byte(self.bytes, self.pos + offset)
    }

    /// Skips a line break of `len` bytes.
    #[inline]
    fn next_line(&mut self, len: usize) {
        self.pos += len;
        self.line += 1;
        self.known_pos = self.pos;
        self.known_column = 0;
    }

    fn error(&mut self, context: Mark, message: impl Into<String>) -> Error {
        let here = self.mark();
        Error::at(Stage::Scanner, here.line, here.column, message).with_context(context.line)
    }

    fn push(&mut self, token: Token<'a>, mark: Mark) {
        self.tokens.push_back((token, mark));
    }

    /// Scans one token (or the block ends before it) into the queue.
    fn fetch(&mut self) -> Result<(), Error> {
        self.skip_to_token();
        let mark = self.mark();
        self.unroll(mark.column as i32, mark);
        let c = self.at(0);
        let next_blank = |s: &Self| is_blankz(s.bytes, s.pos + 1);
        match c {
            0 => return self.fetch_end(),
            b'%' if mark.column == 0 => return self.fetch_directive(mark),
            b'-' | b'.' if mark.column == 0 && self.at_document_marker() => {
                return self.fetch_document_marker(c, mark);
            }
            b'[' | b'{' => return self.fetch_flow_start(c, mark),
            b']' | b'}' => return self.fetch_flow_end(c, mark),
            b',' => {
                self.remove_key()?;
                self.key_allowed = true;
                self.pos += 1;
                self.push(Token::FlowEntry, mark);
                return Ok(());
            }
            b'-' if next_blank(self) => return self.fetch_block_entry(mark),
            b'?' if self.flow_level > 0 || next_blank(self) => return self.fetch_key(mark),
            b':' if self.flow_level > 0 || next_blank(self) => return self.fetch_value(mark),
            _ => {}
        }
        match c {
            b'*' | b'&' => {
                self.save_key(mark)?;
                self.key_allowed = false;
                let name = self.scan_anchor(mark)?;
                self.push(if c == b'*' { Token::Alias(name) } else { Token::Anchor(name) }, mark);
            }
            b'!' => {
                self.save_key(mark)?;
                self.key_allowed = false;
                let (handle, suffix) = self.scan_tag(mark)?;
                self.push(Token::Tag { handle, suffix }, mark);
            }
            b'|' | b'>' if self.flow_level == 0 => {
                self.remove_key()?;
                self.key_allowed = true;
                let text = self.scan_block_scalar(mark, c == b'|')?;
                self.push(Token::Scalar(text, if c == b'|' { Style::Literal } else { Style::Folded }), mark);
            }
            b'\'' | b'"' => {
                self.save_key(mark)?;
                self.key_allowed = false;
                let text = self.scan_quoted(mark, c)?;
                let style = if c == b'\'' { Style::SingleQuoted } else { Style::DoubleQuoted };
                self.push(Token::Scalar(text, style), mark);
            }
            b'#' | b'\t' | b'%' | b'@' | b'`' | b'|' | b'>' => {
                return Err(self.error(mark, "found character that cannot start any token"));
            }
            _ => {
                self.save_key(mark)?;
                self.key_allowed = false;
                let text = self.scan_plain(mark)?;
                self.push(Token::Scalar(text, Style::Plain), mark);
            }
        }
        Ok(())
    }

    #[inline]
    fn skip_to_token(&mut self) {
        loop {
            loop {
                match self.at(0) {
                    b' ' => self.pos += 1,
                    b'\t' if self.flow_level > 0 || !self.key_allowed => self.pos += 1,
                    _ => break,
                }
            }
            if self.at(0) == b'#' {
                self.skip_comment();
            }
            let len = break_len(self.bytes, self.pos);
            if len == 0 {
                return;
            }
            self.next_line(len);
            if self.flow_level == 0 {
                self.key_allowed = true;
            }
        }
    }

    fn skip_comment(&mut self) {
        if self.ascii {
            let rest = &self.bytes[self.pos..];
            self.pos += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        } else {
            while !crate::character_class::is_breakz(self.bytes, self.pos) {
                self.pos += 1;
            }
        }
    }

    fn skip_blanks(&mut self) {
        while is_blank(self.at(0)) {
            self.pos += 1;
        }
    }

    /// `---` or `...` at the start of a line, alone or before a blank.
    fn at_document_marker(&self) -> bool {
        matches!(self.bytes.get(self.pos..self.pos + 3), Some(b"---" | b"..."))
            && is_blankz(self.bytes, self.pos + 3)
    }

    fn key_is_valid(&mut self, at: usize) -> Result<bool, Error> {
        let key = self.keys[at];
        if !key.possible {
            return Ok(false);
        }
        if key.mark.line == self.line && self.column() <= key.mark.column + MAX_SIMPLE_KEY_LENGTH {
            return Ok(true);
        }
        if key.required {
            return Err(self.error(key.mark, "could not find expected ':'"));
        }
        self.keys[at].possible = false;
        Ok(false)
    }

    /// Records that a key may begin here.
    fn save_key(&mut self, mark: Mark) -> Result<(), Error> {
        if self.key_allowed {
            self.remove_key()?;
            let required = self.flow_level == 0 && self.indent == mark.column as i32;
            let token = self.taken + self.tokens.len();
            *self.key() = SimpleKey { possible: true, required, token, mark };
        }
        Ok(())
    }

    fn key(&mut self) -> &mut SimpleKey {
        self.keys.last_mut().expect("one entry per flow level and one for the block level")
    }

    /// Records that a possible key is not one.
    fn remove_key(&mut self) -> Result<(), Error> {
        let key = *self.key();
        if key.possible && key.required {
            return Err(self.error(key.mark, "could not find expected ':'"));
        }
        self.key().possible = false;
        Ok(())
    }

    /// Opens a block collection at `column` when it is deeper than the current one.
    fn roll(
        &mut self,
        column: i32,
        token_number: Option<usize>,
        token: Token<'a>,
        mark: Mark,
    ) -> Result<(), Error> {
        if self.flow_level > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > self.max_depth {
            let context = self.key().mark;
            return Err(self.error(context, format!("exceeded max depth of {}", self.max_depth)));
        }
        match token_number {
            Some(number) => self.tokens.insert(number - self.taken, (token, mark)),
            None => self.push(token, mark),
        }
        Ok(())
    }

    /// Closes the block collections that are deeper than `column`.
    #[inline]
    fn unroll(&mut self, column: i32, mark: Mark) {
        if self.flow_level > 0 {
            return;
        }
        while self.indent > column {
            self.push(Token::BlockEnd, mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn fetch_end(&mut self) -> Result<(), Error> {
        if self.column() != 0 {
            self.line += 1;
            self.known_pos = self.pos;
            self.known_column = 0;
        }
        let mark = self.mark();
        self.unroll(-1, mark);
        self.remove_key()?;
        self.key_allowed = false;
        self.ended = true;
        self.push(Token::StreamEnd, mark);
        Ok(())
    }

    fn fetch_document_marker(&mut self, c: u8, mark: Mark) -> Result<(), Error> {
        self.unroll(-1, mark);
        self.remove_key()?;
        self.key_allowed = false;
        self.pos += 3;
        self.push(if c == b'-' { Token::DocumentStart } else { Token::DocumentEnd }, mark);
        Ok(())
    }

    fn fetch_flow_start(&mut self, c: u8, mark: Mark) -> Result<(), Error> {
        self.save_key(mark)?;
        self.keys.push(SimpleKey::default());
        self.flow_level += 1;
        if self.flow_level > self.max_depth {
            return Err(self.error(mark, format!("exceeded max depth of {}", self.max_depth)));
        }
        self.key_allowed = true;
        self.pos += 1;
        self.push(if c == b'[' { Token::FlowSequenceStart } else { Token::FlowMappingStart }, mark);
        Ok(())
    }

    fn fetch_flow_end(&mut self, c: u8, mark: Mark) -> Result<(), Error> {
        self.remove_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            self.keys.pop();
        }
        self.key_allowed = false;
        self.pos += 1;
        self.push(if c == b']' { Token::FlowSequenceEnd } else { Token::FlowMappingEnd }, mark);
        Ok(())
    }

    fn fetch_block_entry(&mut self, mark: Mark) -> Result<(), Error> {
        // Inside of flow collections a lone dash is an error, too, which the parser reports.
        if self.flow_level == 0 {
            if !self.key_allowed {
                return Err(self.error(mark, "block sequence entries are not allowed in this context"));
            }
            self.roll(mark.column as i32, None, Token::BlockSequenceStart, mark)?;
        }
        self.remove_key()?;
        self.key_allowed = true;
        self.pos += 1;
        self.push(Token::BlockEntry, mark);
        Ok(())
    }

    fn fetch_key(&mut self, mark: Mark) -> Result<(), Error> {
        if self.flow_level == 0 {
            if !self.key_allowed {
                return Err(self.error(mark, "mapping keys are not allowed in this context"));
            }
            self.roll(mark.column as i32, None, Token::BlockMappingStart, mark)?;
        }
        self.remove_key()?;
        self.key_allowed = self.flow_level == 0;
        self.pos += 1;
        self.push(Token::Key, mark);
        Ok(())
    }

    fn fetch_value(&mut self, mark: Mark) -> Result<(), Error> {
        let last = self.keys.len() - 1;
        if self.key_is_valid(last)? {
            let key = self.keys[last];
            self.tokens.insert(key.token - self.taken, (Token::Key, key.mark));
            self.roll(key.mark.column as i32, Some(key.token), Token::BlockMappingStart, key.mark)?;
            self.key().possible = false;
            self.key_allowed = false;
        } else {
            if self.flow_level == 0 {
                if !self.key_allowed {
                    return Err(self.error(mark, "mapping values are not allowed in this context"));
                }
                self.roll(mark.column as i32, None, Token::BlockMappingStart, mark)?;
            }
            self.key_allowed = self.flow_level == 0;
        }
        self.pos += 1;
        self.push(Token::Value, mark);
        Ok(())
    }
}
