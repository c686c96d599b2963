//! Anchors, aliases, tags and directives.

use super::{Mark, Scanner, Token};
use crate::character_class::{CLASS, URI, WORD, break_len, is_blank, is_blankz, is_breakz};
use crate::error::Error;

impl<'a> Scanner<'a> {
    fn scan_word(&mut self) -> &'a str {
        let begin = self.pos;
        while CLASS[self.at(0) as usize] & WORD != 0 {
            self.pos += 1;
        }
        &self.text[begin..self.pos]
    }

    pub(super) fn scan_anchor(&mut self, start: Mark) -> Result<&'a str, Error> {
        self.pos += 1;
        let name = self.scan_word();
        let ends = is_blankz(self.bytes, self.pos)
            || matches!(self.at(0), b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`');
        if name.is_empty() || !ends {
            return Err(self.error(start, "did not find expected alphabetic or numeric character"));
        }
        Ok(name)
    }

    /// Returns handle and suffix; a verbatim tag (`!<…>`) has no handle.
    pub(super) fn scan_tag(&mut self, start: Mark) -> Result<(&'a str, String), Error> {
        let (handle, suffix) = if self.at(1) == b'<' {
            self.pos += 2;
            let suffix = self.scan_tag_uri("", start)?;
            if self.at(0) != b'>' {
                return Err(self.error(start, "did not find the expected '>'"));
            }
            self.pos += 1;
            ("", suffix)
        } else {
            let handle = self.scan_tag_handle(false, start)?;
            if handle.len() > 1 && handle.ends_with('!') {
                (handle, self.scan_tag_uri("", start)?)
            } else {
                let suffix = self.scan_tag_uri(handle, start)?;
                if suffix.is_empty() { ("", "!".to_owned()) } else { ("!", suffix) }
            }
        };
        if !is_blankz(self.bytes, self.pos) {
            return Err(self.error(start, "did not find expected whitespace or line break"));
        }
        Ok((handle, suffix))
    }

    fn scan_tag_handle(&mut self, directive: bool, start: Mark) -> Result<&'a str, Error> {
        let begin = self.pos;
        if self.at(0) != b'!' {
            return Err(self.error(start, "did not find expected '!'"));
        }
        self.pos += 1;
        self.scan_word();
        if self.at(0) == b'!' {
            self.pos += 1;
        } else if directive && self.pos - begin > 1 {
            return Err(self.error(start, "did not find expected '!'"));
        }
        Ok(&self.text[begin..self.pos])
    }

    /// `head` is a handle that is in fact the start of the tag (`!local`).
    fn scan_tag_uri(&mut self, head: &str, start: Mark) -> Result<String, Error> {
        let mut uri: Vec<u8> = head.bytes().skip(1).collect();
        let mut found = !head.is_empty();
        while CLASS[self.at(0) as usize] & (WORD | URI) != 0 {
            found = true;
            if self.at(0) == b'%' {
                let (high, low) = (char::from(self.at(1)).to_digit(16), char::from(self.at(2)).to_digit(16));
                let (Some(high), Some(low)) = (high, low) else {
                    return Err(self.error(start, "did not find URI escaped octet"));
                };
                uri.push((high << 4 | low) as u8);
                self.pos += 3;
            } else {
                uri.push(self.at(0));
                self.pos += 1;
            }
        }
        if !found {
            return Err(self.error(start, "did not find expected tag URI"));
        }
        match String::from_utf8(uri) {
            Ok(uri) => Ok(uri),
            Err(e) if e.utf8_error().error_len().is_none() => {
                Err(self.error(start, "did not find URI escaped octet"))
            }
            Err(_) => Err(self.error(start, "found an incorrect leading UTF-8 octet")),
        }
    }

    pub(super) fn fetch_directive(&mut self, start: Mark) -> Result<(), Error> {
        self.unroll(-1, start);
        self.remove_key()?;
        self.key_allowed = false;
        self.pos += 1;
        let name = self.scan_word();
        if name.is_empty() {
            return Err(self.error(start, "could not find expected directive name"));
        }
        if !is_blankz(self.bytes, self.pos) {
            return Err(self.error(start, "found unexpected non-alphabetical character"));
        }
        let token = match name {
            "YAML" => self.scan_version(start)?,
            "TAG" => self.scan_tag_directive(start)?,
            _ => return Err(self.error(start, "found unknown directive name")),
        };
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
        self.push(token, start);
        Ok(())
    }

    fn scan_version(&mut self, start: Mark) -> Result<Token<'a>, Error> {
        self.skip_blanks();
        let major = self.scan_version_number(start)?;
        if self.at(0) != b'.' {
            return Err(self.error(start, "did not find expected digit or '.' character"));
        }
        self.pos += 1;
        let minor = self.scan_version_number(start)?;
        Ok(Token::Version { major, minor })
    }

    fn scan_version_number(&mut self, start: Mark) -> Result<u8, Error> {
        let mut value = None;
        let mut length = 0;
        while self.at(0).is_ascii_digit() {
            length += 1;
            if length > 2 {
                return Err(self.error(start, "found extremely long version number"));
            }
            value = Some(value.unwrap_or(0) * 10 + (self.at(0) - b'0'));
            self.pos += 1;
        }
        match value {
            Some(value) => Ok(value),
            None => Err(self.error(start, "did not find expected version number")),
        }
    }

    fn scan_tag_directive(&mut self, start: Mark) -> Result<Token<'a>, Error> {
        self.skip_blanks();
        let handle = self.scan_tag_handle(true, start)?;
        if !is_blank(self.at(0)) {
            return Err(self.error(start, "did not find expected whitespace"));
        }
        self.skip_blanks();
        let prefix = self.scan_tag_uri("", start)?;
        if !is_blankz(self.bytes, self.pos) {
            return Err(self.error(start, "did not find expected whitespace or line break"));
        }
        Ok(Token::TagDirective { handle, prefix })
    }
}
