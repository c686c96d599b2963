//! TOML characters and tokens, with the errors of `BurntSushi/toml`.

use fl_gotemplate::{fmt, runes};

/// A syntax error: its line and message.
#[derive(Debug)]
pub(super) struct SyntaxError {
    pub(super) line: usize,
    pub(super) message: String,
}

pub(super) type Lex<T> = Result<T, SyntaxError>;

/// A position in a text. A line counts as soon as its end was read.
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

/// A quoted character, or the phrase for the end.
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
            return Err(self.syntax_error(format!("invalid UTF-8 byte: 0x{:02x}", self.text[self.at])));
        }
        let lone_return = c == '\r' && self.text.get(self.at + 1) != Some(&b'\n');
        if lone_return || (c.is_ascii_control() && !matches!(c, '\t' | '\r' | '\n')) {
            let message = format!("TOML files cannot contain control characters: '0x{:02x}'", c as u32);
            return Err(self.syntax_error(message));
        }
        self.at += width;
        Ok(Some(c))
    }

    /// Puts back a character of `next`.
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

    /// Skips to the end of the line, which is not consumed.
    pub(super) fn comment(&mut self) -> Lex<()> {
        while self.peek()?.is_some_and(|c| !is_break(c)) {
            self.next()?;
        }
        Ok(())
    }

    /// Consumes characters while `fits` accepts them.
    pub(super) fn take(&mut self, fits: fn(char) -> bool) -> Lex<()> {
        while self.peek()?.is_some_and(fits) {
            self.next()?;
        }
        Ok(())
    }

    /// The text since a position.
    pub(super) fn since(&self, start: usize) -> String {
        String::from_utf8_lossy(&self.text[start..self.at]).into_owned()
    }

    fn syntax_error(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError { line: self.line, message: message.into() }
    }

    /// An error here. After the last line it names that line.
    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Lex<T> {
        let mut syntax_error = self.syntax_error(message);
        if self.at_end && self.at > 0 && self.text[self.at - 1] == b'\n' {
            syntax_error.line -= 1;
        }
        Err(syntax_error)
    }

    /// An error that names the previous line.
    pub(super) fn fail_before<T>(&self, message: impl Into<String>) -> Lex<T> {
        Err(SyntaxError { line: self.line - 1, message: message.into() })
    }

    /// An unquoted key part; it can be empty.
    pub(super) fn bare_name(&mut self) -> Lex<String> {
        let start = self.at;
        self.take(is_bare)?;
        Ok(self.since(start))
    }

    /// The content of `"…"` as written, and whether it has escapes. The opening quote was consumed.
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

    /// The content of `'…'`.
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

    /// The content of a triple-quoted string as written.
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
                    // One or two quotes may precede the closing three.
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

    /// Checks an escape sequence.
    fn escape(&mut self) -> Lex<()> {
        let c = self.next()?;
        let (digits, message) = match c {
            Some('e' | 'b' | 't' | 'n' | 'f' | 'r' | '"' | ' ' | '\t' | '\\') => return Ok(()),
            Some('x') => (2, "two hexadecimal digits after '\\x'"),
            Some('u') => (4, "four hexadecimal digits after '\\u'"),
            Some('U') => (8, "eight hexadecimal digits after '\\U'"),
            _ => {
                let message = format!("invalid escape in string '\\{}'", c.unwrap_or('\0'));
                return if c.is_none() { self.fail_before(message) } else { self.fail(message) };
            }
        };
        // `BurntSushi/toml` shows all of the string read so far.
        let start = self.text[..self.at].iter().rposition(|b| *b == b'"').map_or(0, |at| at + 1);
        for _ in 0..digits {
            if !self.next()?.is_some_and(|c| c.is_ascii_hexdigit()) {
                let read = self.since(start);
                return self
                    .fail(format!("expected {message}, but got {} instead", fmt::quoted(read.as_bytes())));
            }
        }
        Ok(())
    }
}
