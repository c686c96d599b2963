//! A JSON parser that keeps positions and the text of numbers.

use smol_str::SmolStr;
use thin_vec::ThinVec;

use crate::error::{Error, Stage};
use crate::map::Map;
use crate::node::{Node, Style, Tag, Value};

/// The same limit as for YAML.
const MAX_DEPTH: usize = 1000;

/// Parses JSON. Numbers keep their text; as in Go, the last of duplicate keys wins.
///
/// # Errors
/// The text is not JSON, or is nested too deeply.
pub fn from_json(text: &str) -> Result<Node, Error> {
    let mut reader =
        Reader { text, bytes: text.as_bytes(), pos: 0, line: 0, line_start: 0, ascii: text.is_ascii() };
    let node = reader.tree()?;
    reader.skip_space();
    if reader.pos < text.len() {
        return Err(reader.error("unexpected text after the top-level value"));
    }
    Ok(node)
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    line: u32,
    line_start: usize,
    ascii: bool,
}

enum Open {
    Seq(ThinVec<Node>),
    Map(Map, Option<SmolStr>, (u32, u32)),
}

impl Reader<'_> {
    fn at(&self) -> u8 {
        crate::character_class::byte(self.bytes, self.pos)
    }

    fn place(&self) -> (u32, u32) {
        let column = match self.ascii {
            true => self.pos - self.line_start,
            false => self.text.get(self.line_start..self.pos).map_or(0, |s| s.chars().count()),
        };
        (self.line, u32::try_from(column).unwrap_or(u32::MAX - 1))
    }

    fn error(&self, message: impl Into<String>) -> Error {
        let (line, column) = self.place();
        Error::at(Stage::Parser, line, column, message)
    }

    fn skip_space(&mut self) {
        while let b @ (b' ' | b'\t' | b'\r' | b'\n') = self.at() {
            self.pos += 1;
            if b == b'\n' {
                self.line += 1;
                self.line_start = self.pos;
            }
        }
    }

    fn tree(&mut self) -> Result<Node, Error> {
        let mut stack: Vec<(Open, (u32, u32))> = Vec::new();
        loop {
            self.skip_space();
            let place = self.place();
            let mut done = match self.at() {
                b'{' | b'[' if stack.len() >= MAX_DEPTH => {
                    return Err(self.error(format!("exceeded max depth of {MAX_DEPTH}")));
                }
                b'{' => {
                    self.pos += 1;
                    stack.push((Open::Map(Map::default(), None, place), place));
                    self.skip_space();
                    if self.at() != b'}' {
                        self.key(&mut stack)?;
                        continue;
                    }
                    self.pos += 1;
                    close(stack.pop().expect("just pushed"))
                }
                b'[' => {
                    self.pos += 1;
                    stack.push((Open::Seq(ThinVec::new()), place));
                    self.skip_space();
                    if self.at() != b']' {
                        continue;
                    }
                    self.pos += 1;
                    close(stack.pop().expect("just pushed"))
                }
                b'"' => {
                    let text = self.string()?;
                    scalar(text, place, Style::DoubleQuoted, Tag::Str)
                }
                b'-' | b'0'..=b'9' => scalar(self.number()?, place, Style::Plain, Tag::Auto),
                b't' => self.word("true", place, Tag::Bool)?,
                b'f' => self.word("false", place, Tag::Bool)?,
                b'n' => self.word("null", place, Tag::Null)?,
                0 if self.pos >= self.bytes.len() => return Err(self.error("unexpected end of JSON input")),
                _ => return Err(self.unexpected("looking for beginning of value")),
            };
            // Add the value to the open collection, and close as many as end here.
            loop {
                let Some((open, _)) = stack.last_mut() else { return Ok(done) };
                let (end, wanted) = match open {
                    Open::Seq(items) => {
                        items.push(done);
                        (b']', "after array element")
                    }
                    Open::Map(map, key, place) => {
                        let key = key.take().expect("a key is read before its value");
                        match map.position(&key) {
                            Some(at) if !map.is_empty() => map.entries_mut()[at].value = done,
                            _ => map.push(scalar(key, *place, Style::DoubleQuoted, Tag::Str), done),
                        }
                        (b'}', "after object key:value pair")
                    }
                };
                self.skip_space();
                match self.at() {
                    b',' => {
                        self.pos += 1;
                        if end == b'}' {
                            self.skip_space();
                            self.key(&mut stack)?;
                        }
                        break;
                    }
                    c if c == end => {
                        self.pos += 1;
                        done = close(stack.pop().expect("matched above"));
                    }
                    _ => return Err(self.unexpected(wanted)),
                }
            }
        }
    }

    fn unexpected(&self, wanted: &str) -> Error {
        match self.text.get(self.pos..).and_then(|s| s.chars().next()) {
            None => self.error("unexpected end of JSON input"),
            Some(c) => self.error(format!("invalid character {c:?} {wanted}")),
        }
    }

    fn key(&mut self, stack: &mut [(Open, (u32, u32))]) -> Result<(), Error> {
        let here = self.place();
        if self.at() != b'"' {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        let name = self.string()?;
        self.skip_space();
        if self.at() != b':' {
            return Err(self.unexpected("after object key"));
        }
        self.pos += 1;
        if let Some((Open::Map(_, key, place), _)) = stack.last_mut() {
            (*key, *place) = (Some(name), here);
        }
        Ok(())
    }

    fn word(&mut self, word: &'static str, place: (u32, u32), tag: Tag) -> Result<Node, Error> {
        if !self.text[self.pos..].starts_with(word) {
            return Err(self.error(format!("invalid literal, expected `{word}`")));
        }
        self.pos += word.len();
        Ok(scalar(SmolStr::new_static(word), place, Style::Plain, tag))
    }

    fn number(&mut self) -> Result<SmolStr, Error> {
        let begin = self.pos;
        if self.at() == b'-' {
            self.pos += 1;
        }
        if self.at() == b'0' {
            self.pos += 1;
        } else {
            self.digits()?;
        }
        if self.at() == b'.' {
            self.pos += 1;
            self.digits()?;
        }
        if matches!(self.at(), b'e' | b'E') {
            self.pos += 1;
            if matches!(self.at(), b'+' | b'-') {
                self.pos += 1;
            }
            self.digits()?;
        }
        Ok(SmolStr::new(&self.text[begin..self.pos]))
    }

    fn digits(&mut self) -> Result<(), Error> {
        let begin = self.pos;
        while self.at().is_ascii_digit() {
            self.pos += 1;
        }
        if self.pos == begin { Err(self.unexpected("in numeric literal")) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<SmolStr, Error> {
        self.pos += 1;
        let begin = self.pos;
        let mut owned: Option<String> = None;
        let mut clean = begin;
        loop {
            while !matches!(self.at(), b'"' | b'\\' | 0..0x20) {
                self.pos += 1;
            }
            match self.at() {
                b'"' => {
                    let rest = &self.text[clean..self.pos];
                    self.pos += 1;
                    return Ok(match owned {
                        None => SmolStr::new(rest),
                        Some(text) => SmolStr::from(text + rest),
                    });
                }
                b'\\' => {
                    let text = owned.get_or_insert_default();
                    text.push_str(&self.text[clean..self.pos]);
                    let c = self.escape()?;
                    owned.get_or_insert_default().push(c);
                    clean = self.pos;
                }
                _ => return Err(self.unexpected("in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        self.pos += 1;
        let c = match self.at() {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.pos += 1;
        Ok(c)
    }

    /// `\uXXXX` including surrogate pairs; as in Go, a lone surrogate becomes the replacement character.
    fn unicode_escape(&mut self) -> Result<char, Error> {
        let Some(first) = self.hex4(self.pos + 1) else {
            return Err(self.error("invalid character in \\u hexadecimal character escape"));
        };
        self.pos += 5;
        if let 0xD800..0xDC00 = first
            && self.at() == b'\\'
            && crate::character_class::byte(self.bytes, self.pos + 1) == b'u'
            && let Some(second @ 0xDC00..0xE000) = self.hex4(self.pos + 2)
        {
            self.pos += 6;
            let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex4(&self, at: usize) -> Option<u32> {
        let digits = self.bytes.get(at..at + 4)?;
        digits.iter().try_fold(0, |n, b| Some(n << 4 | char::from(*b).to_digit(16)?))
    }
}

fn scalar(text: SmolStr, (line, column): (u32, u32), style: Style, tag: Tag) -> Node {
    Node::read(Value::Scalar(text), line + 1, column + 1, style, tag)
}

fn close((open, (line, column)): (Open, (u32, u32))) -> Node {
    let value = match open {
        Open::Seq(items) => Value::Seq(items),
        Open::Map(map, ..) => Value::Map(map),
    };
    Node::read(value, line + 1, column + 1, Style::Flow, Tag::Auto)
}
