//! Lexer: text, delimiters with trim markers, and the tokens between them.

use memchr::memmem;

use crate::runes::{decode, is_word};

/// Type of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tok {
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    // Keywords from here on.
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl Tok {
    fn is_keyword(self) -> bool {
        self as u8 >= Tok::Block as u8
    }
}

/// A token with its range `start..end` in the input. The lexer stops at the first error and keeps its
/// message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) tok: Tok,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Item {
    pub(crate) fn text(self, input: &[u8]) -> &[u8] {
        &input[self.start as usize..self.end as usize]
    }
}

/// Splits a template into tokens, one at a time. It does not count lines: errors compute them from the start
/// of a token.
#[derive(Debug)]
pub(crate) struct Lexer<'t> {
    input: &'t [u8],
    left: memmem::Finder<'t>,
    right: &'t [u8],
    pos: usize,
    start: usize,
    paren_depth: usize,
    inside_action: bool,
    error: Option<String>,
    keep_break: bool,
    keep_continue: bool,
}

/// ASCII characters of identifiers.
static WORD: [bool; 256] = {
    let mut word = [false; 256];
    let mut b = 0;
    while b < 128 {
        word[b] = (b as u8).is_ascii_alphanumeric() || b as u8 == b'_';
        b += 1;
    }
    word
};

#[inline]
fn is_space_byte(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r' | b'\n')
}

fn has_left_trim(s: &[u8]) -> bool {
    s.len() >= 2 && s[0] == b'-' && is_space_byte(s[1])
}

fn has_right_trim(s: &[u8]) -> bool {
    s.len() >= 2 && s[1] == b'-' && is_space_byte(s[0])
}

impl<'t> Lexer<'t> {
    /// `keep_break` and `keep_continue` say whether these words are keywords, which they are unless functions
    /// have these names. The input must be shorter than 4 GiB.
    pub(crate) fn new(
        input: &'t [u8],
        left: &'t [u8],
        right: &'t [u8],
        keep_break: bool,
        keep_continue: bool,
    ) -> Self {
        Lexer {
            input,
            left: memmem::Finder::new(left),
            right,
            pos: 0,
            start: 0,
            paren_depth: 0,
            inside_action: false,
            error: None,
            keep_break,
            keep_continue,
        }
    }

    pub(crate) fn next_item(&mut self) -> Item {
        if self.error.is_some() {
            // After an error Go's lexer has no input left.
            return Item { tok: Tok::Eof, start: self.start as u32, end: self.start as u32 };
        }
        if self.inside_action { self.lex_action() } else { self.lex_text() }
    }

    /// A token as shown in error messages.
    pub(crate) fn describe(&self, item: Item) -> String {
        if item.tok == Tok::Error {
            return self.error.clone().unwrap_or_default();
        }
        let text = item.text(self.input);
        if item.tok == Tok::Eof {
            return "EOF".to_owned();
        }
        if item.tok.is_keyword() {
            return format!("<{}>", String::from_utf8_lossy(text));
        }
        let mut out = Vec::new();
        if text.len() > 10 {
            let cut = crate::runes::runes(text).nth(10).map_or(text.len(), |(at, _, _)| at);
            crate::fmt::quote_into(&mut out, &text[..cut], b'"', false);
            out.extend_from_slice(b"...");
        } else {
            crate::fmt::quote_into(&mut out, text, b'"', false);
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    fn rest(&self) -> &'t [u8] {
        &self.input[self.pos..]
    }

    fn next(&mut self) -> Option<char> {
        let (c, width) = decode(self.rest())?;
        self.pos += width;
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        decode(self.rest()).map(|(c, _)| c)
    }

    fn emit(&mut self, tok: Tok) -> Item {
        let item = Item { tok, start: self.start as u32, end: self.pos as u32 };
        self.start = self.pos;
        item
    }

    fn ignore(&mut self) {
        self.start = self.pos;
    }

    fn fail(&mut self, message: impl Into<String>) -> Item {
        self.error = Some(message.into());
        Item { tok: Tok::Error, start: self.start as u32, end: self.start as u32 }
    }

    fn lex_text(&mut self) -> Item {
        loop {
            let Some(x) = self.left.find(self.rest()) else {
                self.pos = self.input.len();
                return self.emit(if self.pos > self.start { Tok::Text } else { Tok::Eof });
            };
            if x > 0 {
                self.pos += x;
                let after = &self.input[self.pos + self.left.needle().len()..];
                let text = &self.input[self.start..self.pos];
                let trimmed = if has_left_trim(after) {
                    text.iter().rev().take_while(|b| is_space_byte(**b)).count()
                } else {
                    0
                };
                self.pos -= trimmed;
                let item = self.emit(Tok::Text);
                self.pos += trimmed;
                self.ignore();
                if item.end > item.start {
                    return item;
                }
            }
            if let Some(item) = self.lex_left_delim() {
                return item;
            }
        }
    }

    /// Returns `None` after a comment: text continues.
    fn lex_left_delim(&mut self) -> Option<Item> {
        self.pos += self.left.needle().len();
        let marker = if has_left_trim(self.rest()) { 2 } else { 0 };
        if self.input[self.pos + marker..].starts_with(b"/*") {
            self.pos += marker;
            self.ignore();
            return self.lex_comment();
        }
        let item = self.emit(Tok::LeftDelim);
        self.inside_action = true;
        self.pos += marker;
        self.ignore();
        self.paren_depth = 0;
        Some(item)
    }

    fn lex_comment(&mut self) -> Option<Item> {
        self.pos += 2;
        let Some(x) = memmem::find(self.rest(), b"*/") else {
            return Some(self.fail("unclosed comment"));
        };
        self.pos += x + 2;
        let Some(trim) = self.at_right_delim() else {
            return Some(self.fail("comment ends before closing delimiter"));
        };
        if trim {
            self.pos += 2;
        }
        self.pos += self.right.len();
        if trim {
            self.skip_spaces();
        }
        self.ignore();
        None
    }

    fn skip_spaces(&mut self) {
        self.pos += self.rest().iter().take_while(|b| is_space_byte(**b)).count();
    }

    /// Whether the right delimiter starts here. Most bytes differ from its first byte.
    #[inline]
    fn right_delim_at(&self, pos: usize) -> bool {
        self.input.get(pos) == self.right.first() && self.input[pos..].starts_with(self.right)
    }

    /// Whether the right delimiter is next, and if so whether it trims.
    fn at_right_delim(&self) -> Option<bool> {
        if has_right_trim(self.rest()) && self.right_delim_at(self.pos + 2) {
            return Some(true);
        }
        self.right_delim_at(self.pos).then_some(false)
    }

    fn lex_right_delim(&mut self, trim: bool) -> Item {
        if trim {
            self.pos += 2;
            self.ignore();
        }
        self.pos += self.right.len();
        let item = self.emit(Tok::RightDelim);
        if trim {
            self.skip_spaces();
            self.ignore();
        }
        self.inside_action = false;
        item
    }

    fn lex_action(&mut self) -> Item {
        let Some(&first) = self.input.get(self.pos) else {
            return self.fail("unclosed action");
        };
        let may_end = Some(&first) == self.right.first() || is_space_byte(first);
        if may_end && let Some(trim) = self.at_right_delim() {
            if self.paren_depth == 0 {
                return self.lex_right_delim(trim);
            }
            return self.fail("unclosed left paren");
        }
        if WORD[usize::from(first)] && !first.is_ascii_digit() {
            return self.lex_identifier();
        }
        if is_space_byte(first) {
            return self.lex_space();
        }
        self.pos += 1;
        match first {
            b'=' => self.emit(Tok::Assign),
            b':' => {
                if self.next() != Some('=') {
                    return self.fail("expected :=");
                }
                self.emit(Tok::Declare)
            }
            b'|' => self.emit(Tok::Pipe),
            b'"' => self.lex_quote(b'"', Tok::String, "unterminated quoted string"),
            b'\'' => self.lex_quote(b'\'', Tok::CharConstant, "unterminated character constant"),
            b'`' => self.lex_raw_quote(),
            b'$' => self.lex_field_or_variable(Tok::Variable),
            b'.' if self.rest().first().is_some_and(|b| !b.is_ascii_digit()) => {
                self.lex_field_or_variable(Tok::Field)
            }
            b'.' | b'+' | b'-' | b'0'..=b'9' => {
                self.pos -= 1;
                self.lex_number()
            }
            b'(' => {
                self.paren_depth += 1;
                self.emit(Tok::LeftParen)
            }
            b')' => {
                if self.paren_depth == 0 {
                    return self.fail("unexpected right paren");
                }
                self.paren_depth -= 1;
                self.emit(Tok::RightParen)
            }
            b' '..=b'~' => self.emit(Tok::Char),
            _ => {
                self.pos -= 1;
                self.lex_unusual()
            }
        }
    }

    /// A letter outside ASCII, or a character that is invalid in an action.
    fn lex_unusual(&mut self) -> Item {
        match self.next() {
            Some(c) if is_word(c) => {
                self.pos = self.start;
                self.lex_identifier()
            }
            c => {
                let shown = crate::fmt::unicode_sharp(c.unwrap_or_default());
                self.fail(format!("unrecognized character in action: {shown}"))
            }
        }
    }

    fn lex_space(&mut self) -> Item {
        let before = self.pos;
        self.skip_spaces();
        // The last blank may belong to a trimming delimiter.
        if has_right_trim(&self.input[self.pos - 1..]) && self.right_delim_at(self.pos + 1) {
            self.pos -= 1;
            if self.pos == before {
                return self.lex_right_delim(true);
            }
        }
        self.emit(Tok::Space)
    }

    fn at_terminator(&self) -> bool {
        match self.input.get(self.pos) {
            None | Some(b' ' | b'\t' | b'\r' | b'\n' | b'.' | b',' | b'|' | b':' | b')' | b'(') => true,
            Some(_) => self.right_delim_at(self.pos),
        }
    }

    /// Skips identifier characters.
    fn skip_word(&mut self) {
        loop {
            while self.input.get(self.pos).is_some_and(|b| WORD[usize::from(*b)]) {
                self.pos += 1;
            }
            match self.input.get(self.pos) {
                Some(0x80..) => {}
                _ => return,
            }
            match self.peek() {
                Some(c) if is_word(c) => self.pos += c.len_utf8(),
                _ => return,
            }
        }
    }

    fn bad_character(&mut self) -> Item {
        let shown = self.peek().map_or_else(|| "U+FFFFFFFFFFFFFFFF".to_owned(), crate::fmt::unicode_sharp);
        self.fail(format!("bad character {shown}"))
    }

    fn lex_identifier(&mut self) -> Item {
        self.skip_word();
        if !self.at_terminator() {
            return self.bad_character();
        }
        let tok = match &self.input[self.start..self.pos] {
            b"block" => Tok::Block,
            b"break" if self.keep_break => Tok::Break,
            b"continue" if self.keep_continue => Tok::Continue,
            b"define" => Tok::Define,
            b"else" => Tok::Else,
            b"end" => Tok::End,
            b"if" => Tok::If,
            b"range" => Tok::Range,
            b"nil" => Tok::Nil,
            b"template" => Tok::Template,
            b"with" => Tok::With,
            b"true" | b"false" => Tok::Bool,
            _ => Tok::Identifier,
        };
        self.emit(tok)
    }

    fn lex_field_or_variable(&mut self, tok: Tok) -> Item {
        if self.at_terminator() {
            return self.emit(if tok == Tok::Variable { tok } else { Tok::Dot });
        }
        self.skip_word();
        if !self.at_terminator() {
            return self.bad_character();
        }
        self.emit(tok)
    }

    fn lex_quote(&mut self, close: u8, tok: Tok, unterminated: &str) -> Item {
        loop {
            let Some(at) = memchr::memchr3(close, b'\\', b'\n', self.rest()) else {
                return self.fail(unterminated);
            };
            self.pos += at + 1;
            let found = self.input[self.pos - 1];
            if found == close {
                return self.emit(tok);
            }
            if found == b'\n' || matches!(self.next(), None | Some('\n')) {
                return self.fail(unterminated);
            }
        }
    }

    fn lex_raw_quote(&mut self) -> Item {
        match memchr::memchr(b'`', self.rest()) {
            None => self.fail("unterminated raw quoted string"),
            Some(at) => {
                self.pos += at + 1;
                self.emit(Tok::RawString)
            }
        }
    }

    fn lex_number(&mut self) -> Item {
        if !self.scan_number() {
            return self.bad_number();
        }
        if matches!(self.peek(), Some('+' | '-')) {
            if !self.scan_number() || self.input[self.pos - 1] != b'i' {
                return self.bad_number();
            }
            return self.emit(Tok::Complex);
        }
        self.emit(Tok::Number)
    }

    fn bad_number(&mut self) -> Item {
        let mut out = b"bad number syntax: ".to_vec();
        crate::fmt::quote_into(&mut out, &self.input[self.start..self.pos], b'"', false);
        self.fail(String::from_utf8_lossy(&out).into_owned())
    }

    fn accept(&mut self, valid: &[u8]) -> bool {
        let ok = self.rest().first().is_some_and(|b| valid.contains(b));
        if ok {
            self.pos += 1;
        }
        ok
    }

    fn accept_run(&mut self, valid: &[u8]) {
        while self.accept(valid) {}
    }

    fn scan_number(&mut self) -> bool {
        const DECIMAL: &[u8] = b"0123456789_";
        const HEX: &[u8] = b"0123456789abcdefABCDEF_";
        self.accept(b"+-");
        let mut digits = DECIMAL;
        if self.accept(b"0") {
            if self.accept(b"xX") {
                digits = HEX;
            } else if self.accept(b"oO") {
                digits = b"01234567_";
            } else if self.accept(b"bB") {
                digits = b"01_";
            }
        }
        self.accept_run(digits);
        if self.accept(b".") {
            self.accept_run(digits);
        }
        let exponent: &[u8] = if digits == DECIMAL {
            b"eE"
        } else if digits == HEX {
            b"pP"
        } else {
            b""
        };
        if self.accept(exponent) {
            self.accept(b"+-");
            self.accept_run(DECIMAL);
        }
        self.accept(b"i");
        if self.peek().is_some_and(is_word) {
            self.next();
            return false;
        }
        true
    }
}
