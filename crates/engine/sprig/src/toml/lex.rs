//! The characters and tokens of TOML text, with the refusals of the reference implementation.

use fl_gotemplate::{fmt, runes};

/// A refusal: the line it names and its words.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) line: usize,
    pub(super) words: String,
}

pub(super) type Lex<T> = Result<T, Refusal>;

/// A place in a text. Lines count as soon as their end has been read.
pub(super) struct Lexer<'t> {
    pub(super) text: &'t [u8],
    pub(super) at: usize,
    pub(super) line: usize,
    at_end: bool,
}

pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r')
}

pub(super) fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// `%q` of a rune; the end of the text is the zero rune.
pub(super) fn shown(c: Option<char>) -> String {
    match c {
        Some('\'') => r"'\''".to_owned(),
        Some('"') => "'\"'".to_owned(),
        c => {
            let mut rune = Vec::new();
            runes::push(&mut rune, c.unwrap_or('\0'));
            let quoted = fmt::quoted(&rune);
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

/// A character in its own quotes, or the words for the end.
pub(super) fn or_end(c: Option<char>) -> String {
    c.map_or_else(|| "end of file".to_owned(), |c| format!("'{c}'"))
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Lexer { text, at: 0, line: 1, at_end: false }
    }

    pub(super) fn next(&mut self) -> Lex<Option<char>> {
        let Some((c, width)) = runes::decode(&self.text[self.at..]) else {
            self.at_end = true;
            return Ok(None);
        };
        if c == '\n' {
            self.line += 1;
        }
        if c == runes::REPLACEMENT && width == 1 {
            return Err(self.refusal(format!("invalid UTF-8 byte: 0x{:02x}", self.text[self.at])));
        }
        let lone_return = c == '\r' && self.text.get(self.at + 1) != Some(&b'\n');
        if lone_return || (c.is_ascii_control() && !matches!(c, '\t' | '\r' | '\n')) {
            let words = format!("TOML files cannot contain control characters: '0x{:02x}'", c as u32);
            return Err(self.refusal(words));
        }
        self.at += width;
        Ok(Some(c))
    }

    /// Takes back what `next` gave.
    pub(super) fn back(&mut self, c: Option<char>) {
        match c {
            None => self.at_end = false,
            Some(c) => {
                self.at -= c.len_utf8();
                self.line -= usize::from(c == '\n');
            }
        }
    }

    pub(super) fn peek(&mut self) -> Lex<Option<char>> {
        let c = self.next()?;
        self.back(c);
        Ok(c)
    }

    pub(super) fn accept(&mut self, wanted: char) -> Lex<bool> {
        let c = self.next()?;
        if c != Some(wanted) {
            self.back(c);
        }
        Ok(c == Some(wanted))
    }

    pub(super) fn blanks(&mut self) -> Lex<()> {
        while self.peek()?.is_some_and(is_blank) {
            self.next()?;
        }
        Ok(())
    }

    /// To the end of the line, which stays.
    pub(super) fn comment(&mut self) -> Lex<()> {
        while self.peek()?.is_some_and(|c| !is_break(c)) {
            self.next()?;
        }
        Ok(())
    }

    /// Takes characters while they fit.
    pub(super) fn take(&mut self, fits: fn(char) -> bool) -> Lex<()> {
        while self.peek()?.is_some_and(fits) {
            self.next()?;
        }
        Ok(())
    }

    /// The text since a place.
    pub(super) fn since(&self, start: usize) -> String {
        String::from_utf8_lossy(&self.text[start..self.at]).into_owned()
    }

    fn refusal(&self, words: impl Into<String>) -> Refusal {
        Refusal { line: self.line, words: words.into() }
    }

    /// A refusal here. Behind the last line it names that line.
    pub(super) fn fail<T>(&self, words: impl Into<String>) -> Lex<T> {
        let mut refusal = self.refusal(words);
        if self.at_end && self.at > 0 && self.text[self.at - 1] == b'\n' {
            refusal.line -= 1;
        }
        Err(refusal)
    }

    /// A refusal that names the line before.
    pub(super) fn fail_before<T>(&self, words: impl Into<String>) -> Lex<T> {
        Err(Refusal { line: self.line - 1, words: words.into() })
    }

    /// A key's part without quotes; it can be empty.
    pub(super) fn bare_name(&mut self) -> Lex<String> {
        let start = self.at;
        self.take(is_bare)?;
        Ok(self.since(start))
    }

    /// The inside of `"…"` as written, and whether it holds escapes. The first quote has been read.
    pub(super) fn string(&mut self) -> Lex<(String, bool)> {
        let (start, mut escapes) = (self.at, false);
        loop {
            match self.next()? {
                None => return self.fail("unexpected EOF; expected '\"'"),
                Some(c) if is_break(c) => return self.fail_before("strings cannot contain newlines"),
                Some('\\') => {
                    escapes = true;
                    self.escape()?;
                }
                Some('"') => {
                    let inside = String::from_utf8_lossy(&self.text[start..self.at - 1]).into_owned();
                    return Ok((inside, escapes));
                }
                Some(_) => {}
            }
        }
    }

    /// The inside of `'…'`.
    pub(super) fn raw_string(&mut self) -> Lex<String> {
        let start = self.at;
        loop {
            match self.next()? {
                None => return self.fail("unexpected EOF; expected \"'\""),
                Some(c) if is_break(c) => return self.fail_before("strings cannot contain newlines"),
                Some('\'') => return Ok(String::from_utf8_lossy(&self.text[start..self.at - 1]).into_owned()),
                Some(_) => {}
            }
        }
    }

    /// The inside of a string between three quotes, as written.
    pub(super) fn long_string(&mut self, quote: char) -> Lex<String> {
        let start = self.at;
        let shown = if quote == '"' { "'\"\"\"'" } else { "\"'''\"" };
        loop {
            match self.next()? {
                None => return self.fail(format!("unexpected EOF; expected {shown}")),
                Some('\\') if quote == '"' => {
                    let c = self.next()?;
                    if !c.is_some_and(is_break) {
                        self.back(c);
                        self.escape()?;
                    }
                }
                Some(c) if c == quote && self.accept(quote)? => {
                    if !self.accept(quote)? {
                        continue;
                    }
                    if self.peek()? != Some(quote) {
                        return Ok(String::from_utf8_lossy(&self.text[start..self.at - 3]).into_owned());
                    }
                    // One or two quotes may stand before the three at the end, not three.
                    let read = &self.text[start..self.at];
                    let five: &[u8] = if quote == '"' { b"\"\"\"\"\"" } else { b"'''''" };
                    if read.ends_with(five) && !(quote == '"' && read.ends_with(b"\\\"\"\"\"\"")) {
                        let six = if quote == '"' { "'\"\"\"\"\"\"'" } else { "\"''''''\"" };
                        return self.fail(format!("unexpected {six}"));
                    }
                    self.at -= 2;
                }
                Some(_) => {}
            }
        }
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Lex<()> {
        let c = self.next()?;
        let (digits, words) = match c {
            Some('e' | 'b' | 't' | 'n' | 'f' | 'r' | '"' | ' ' | '\t' | '\\') => return Ok(()),
            Some('x') => (2, "two hexadecimal digits after '\\x'"),
            Some('u') => (4, "four hexadecimal digits after '\\u'"),
            Some('U') => (8, "eight hexadecimal digits after '\\U'"),
            _ => {
                let words = format!("invalid escape in string '\\{}'", c.unwrap_or('\0'));
                return if c.is_none() { self.fail_before(words) } else { self.fail(words) };
            }
        };
        // The reference shows all of the string that it has read.
        let start = self.text[..self.at].iter().rposition(|b| *b == b'"').map_or(0, |at| at + 1);
        for _ in 0..digits {
            if !self.next()?.is_some_and(|c| c.is_ascii_hexdigit()) {
                let read = self.since(start);
                return self
                    .fail(format!("expected {words}, but got {} instead", fmt::quoted(read.as_bytes())));
            }
        }
        Ok(())
    }
}
