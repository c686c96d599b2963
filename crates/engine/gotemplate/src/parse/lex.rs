//! The lexer: text, delimiters with trim markers, and what stands between them.

use memchr::memmem;

use crate::runes::{self, decode, is_word};

/// What a token is.
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
    // keywords from here on
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

/// A token: its bytes lie at `start..end` of the input; an error carries its text instead.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) tok: Tok,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) line: usize,
    pub(crate) error: Option<Box<str>>,
}

impl Item {
    pub(crate) fn text<'t>(&self, input: &'t [u8]) -> &'t [u8] {
        &input[self.start..self.end]
    }

    /// The token as error messages name it.
    pub(crate) fn describe(&self, input: &[u8]) -> String {
        if let Some(error) = &self.error {
            return error.to_string();
        }
        let text = self.text(input);
        if self.tok == Tok::Eof {
            return "EOF".to_owned();
        }
        if self.tok.is_keyword() {
            return format!("<{}>", String::from_utf8_lossy(text));
        }
        let mut out = Vec::new();
        if text.len() > 10 {
            let cut = runes::runes(text).nth(10).map_or(text.len(), |(at, _, _)| at);
            crate::fmt::quote_into(&mut out, &text[..cut], b'"', false);
            out.extend_from_slice(b"...");
        } else {
            crate::fmt::quote_into(&mut out, text, b'"', false);
        }
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// Splits a template into tokens, one at a time.
#[derive(Debug)]
pub(crate) struct Lexer<'t> {
    input: &'t [u8],
    left: &'t [u8],
    right: &'t [u8],
    pos: usize,
    start: usize,
    line: usize,
    start_line: usize,
    paren_depth: usize,
    inside_action: bool,
    failed: bool,
    keep_break: bool,
    keep_continue: bool,
}

const SPACES: &[u8] = b" \t\r\n";

fn is_space_byte(b: u8) -> bool {
    SPACES.contains(&b)
}

fn has_left_trim(s: &[u8]) -> bool {
    s.len() >= 2 && s[0] == b'-' && is_space_byte(s[1])
}

fn has_right_trim(s: &[u8]) -> bool {
    s.len() >= 2 && is_space_byte(s[0]) && s[1] == b'-'
}

impl<'t> Lexer<'t> {
    /// `keep_break` and `keep_continue` say whether these words are keywords (they are unless functions have the names).
    pub(crate) fn new(
        input: &'t [u8],
        left: &'t [u8],
        right: &'t [u8],
        keep_break: bool,
        keep_continue: bool,
    ) -> Self {
        Lexer {
            input,
            left,
            right,
            pos: 0,
            start: 0,
            line: 1,
            start_line: 1,
            paren_depth: 0,
            inside_action: false,
            failed: false,
            keep_break,
            keep_continue,
        }
    }

    pub(crate) fn next_item(&mut self) -> Item {
        if self.failed {
            // After an error Go's lexer has no input left.
            return Item { tok: Tok::Eof, start: 0, end: 0, line: self.start_line, error: None };
        }
        if self.inside_action { self.lex_action() } else { self.lex_text() }
    }

    fn rest(&self) -> &'t [u8] {
        &self.input[self.pos..]
    }

    fn next(&mut self) -> Option<char> {
        let (c, width) = decode(self.rest())?;
        self.pos += width;
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        decode(self.rest()).map(|(c, _)| c)
    }

    fn emit(&mut self, tok: Tok) -> Item {
        let item = Item { tok, start: self.start, end: self.pos, line: self.start_line, error: None };
        self.start = self.pos;
        self.start_line = self.line;
        item
    }

    fn count_lines(&self) -> usize {
        memchr::memchr_iter(b'\n', &self.input[self.start..self.pos]).count()
    }

    fn ignore(&mut self) {
        self.line += self.count_lines();
        self.start = self.pos;
        self.start_line = self.line;
    }

    fn fail(&mut self, message: impl Into<Box<str>>) -> Item {
        self.failed = true;
        Item {
            tok: Tok::Error,
            start: self.start,
            end: self.start,
            line: self.start_line,
            error: Some(message.into()),
        }
    }

    fn lex_text(&mut self) -> Item {
        loop {
            let Some(x) = memmem::find(self.rest(), self.left) else {
                self.pos = self.input.len();
                if self.pos > self.start {
                    self.line += self.count_lines();
                    return self.emit(Tok::Text);
                }
                return self.emit(Tok::Eof);
            };
            if x > 0 {
                self.pos += x;
                let after = &self.input[self.pos + self.left.len()..];
                let text = &self.input[self.start..self.pos];
                let trimmed = if has_left_trim(after) {
                    text.iter().rev().take_while(|b| is_space_byte(**b)).count()
                } else {
                    0
                };
                self.pos -= trimmed;
                self.line += self.count_lines();
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

    /// `None` after a comment: text goes on.
    fn lex_left_delim(&mut self) -> Option<Item> {
        self.pos += self.left.len();
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
        self.line += self.count_lines();
        self.emit(Tok::Text);
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

    /// Whether the right delimiter is next, and if so whether it trims.
    fn at_right_delim(&self) -> Option<bool> {
        let rest = self.rest();
        if has_right_trim(rest) && rest[2..].starts_with(self.right) {
            return Some(true);
        }
        rest.starts_with(self.right).then_some(false)
    }

    fn lex_right_delim(&mut self) -> Item {
        let trim = self.at_right_delim() == Some(true);
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
        if self.at_right_delim().is_some() {
            if self.paren_depth == 0 {
                return self.lex_right_delim();
            }
            return self.fail("unclosed left paren");
        }
        let before = (self.pos, self.line);
        let Some(c) = self.next() else {
            return self.fail("unclosed action");
        };
        match c {
            ' ' | '\t' | '\r' | '\n' => {
                (self.pos, self.line) = before;
                self.lex_space()
            }
            '=' => self.emit(Tok::Assign),
            ':' => {
                if self.next() != Some('=') {
                    return self.fail("expected :=");
                }
                self.emit(Tok::Declare)
            }
            '|' => self.emit(Tok::Pipe),
            '"' => self.lex_quote(b'"', Tok::String, "unterminated quoted string"),
            '\'' => self.lex_quote(b'\'', Tok::CharConstant, "unterminated character constant"),
            '`' => self.lex_raw_quote(),
            '$' => self.lex_field_or_variable(Tok::Variable),
            '.' if self.rest().first().is_some_and(|b| !b.is_ascii_digit()) => {
                self.lex_field_or_variable(Tok::Field)
            }
            '.' | '+' | '-' | '0'..='9' => {
                (self.pos, self.line) = before;
                self.lex_number()
            }
            c if is_word(c) => {
                (self.pos, self.line) = before;
                self.lex_identifier()
            }
            '(' => {
                self.paren_depth += 1;
                self.emit(Tok::LeftParen)
            }
            ')' => {
                if self.paren_depth == 0 {
                    return self.fail("unexpected right paren");
                }
                self.paren_depth -= 1;
                self.emit(Tok::RightParen)
            }
            ' '..='~' => self.emit(Tok::Char),
            c => self.fail(format!("unrecognized character in action: {}", crate::fmt::unicode_sharp(c))),
        }
    }

    fn lex_space(&mut self) -> Item {
        let mut count = 0;
        while let Some(b) = self.rest().first()
            && is_space_byte(*b)
        {
            if *b == b'\n' {
                self.line += 1;
            }
            self.pos += 1;
            count += 1;
        }
        let last = &self.input[self.pos - 1..];
        if has_right_trim(last) && last[2..].starts_with(self.right) {
            self.pos -= 1;
            if last[0] == b'\n' {
                self.line -= 1;
            }
            if count == 1 {
                return self.lex_right_delim();
            }
        }
        self.emit(Tok::Space)
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None | Some(' ' | '\t' | '\r' | '\n' | '.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(_) => self.rest().starts_with(self.right),
        }
    }

    /// Skips identifier characters; the character after them, for an error.
    fn skip_word(&mut self) -> Option<char> {
        loop {
            match self.peek() {
                Some(c) if is_word(c) => self.pos += c.len_utf8(),
                other => return other,
            }
        }
    }

    fn bad_character(&mut self, c: Option<char>) -> Item {
        let shown = c.map_or_else(|| "U+FFFFFFFFFFFFFFFF".to_owned(), crate::fmt::unicode_sharp);
        self.fail(format!("bad character {shown}"))
    }

    fn lex_identifier(&mut self) -> Item {
        let after = self.skip_word();
        if !self.at_terminator() {
            return self.bad_character(after);
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
        let after = self.skip_word();
        if !self.at_terminator() {
            return self.bad_character(after);
        }
        self.emit(tok)
    }

    fn lex_quote(&mut self, close: u8, tok: Tok, unterminated: &str) -> Item {
        loop {
            match self.next() {
                Some('\\') => {
                    if matches!(self.next(), None | Some('\n')) {
                        return self.fail(unterminated);
                    }
                }
                None | Some('\n') => return self.fail(unterminated),
                Some(c) if c as u32 == u32::from(close) => return self.emit(tok),
                Some(_) => {}
            }
        }
    }

    fn lex_raw_quote(&mut self) -> Item {
        loop {
            match self.next() {
                None => return self.fail("unterminated raw quoted string"),
                Some('`') => return self.emit(Tok::RawString),
                Some(_) => {}
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
