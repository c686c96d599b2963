//! The words of Go's JSON scanner for text that is no JSON.

/// What Go says about the first byte that does not fit. Call it for text that is known to be broken.
#[must_use]
pub fn go_syntax_error(text: &[u8]) -> String {
    let mut scanner = Scanner { text, at: 0, depth: 0 };
    match scanner.value().and_then(|()| scanner.end()) {
        Err(Broken::Early) | Ok(()) => "unexpected end of JSON input".to_owned(),
        Err(Broken::Byte(byte, place)) => format!("invalid character {} {place}", quote(byte)),
        Err(Broken::Deep) => "exceeded max depth".to_owned(),
    }
}

/// Go nests this deep and no deeper.
const MAX_DEPTH: usize = 10_000;

enum Broken {
    /// The text ends too soon.
    Early,
    Byte(u8, String),
    Deep,
}

/// A byte as Go shows it in single quotes.
fn quote(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0x20..0x7f => format!("'{}'", byte as char),
        0x00..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..0xa1 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", byte as char),
    }
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Scanner<'_> {
    fn peek(&mut self) -> Result<u8, Broken> {
        while self.text.get(self.at).is_some_and(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.text.get(self.at).copied().ok_or(Broken::Early)
    }

    fn next(&mut self) -> Result<u8, Broken> {
        let byte = self.text.get(self.at).copied().ok_or(Broken::Early)?;
        self.at += 1;
        Ok(byte)
    }

    fn end(&mut self) -> Result<(), Broken> {
        match self.peek() {
            Ok(byte) => Err(Broken::Byte(byte, "after top-level value".to_owned())),
            Err(_) => Ok(()),
        }
    }

    fn value(&mut self) -> Result<(), Broken> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b'{' => self.nested(Self::object),
            b'[' => self.nested(Self::array),
            b'"' => self.string(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            b'-' => {
                let digit = self.next()?;
                if !digit.is_ascii_digit() {
                    return Err(Broken::Byte(digit, "in numeric literal".to_owned()));
                }
                self.number(digit)
            }
            b'0'..=b'9' => self.number(byte),
            other => Err(Broken::Byte(other, "looking for beginning of value".to_owned())),
        }
    }

    fn nested(&mut self, inside: fn(&mut Self) -> Result<(), Broken>) -> Result<(), Broken> {
        self.depth += 1;
        // Our own stack is smaller than Go's: what is deeper than any real document is said to be too deep.
        if self.depth > MAX_DEPTH.min(512) {
            return Err(Broken::Deep);
        }
        inside(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self) -> Result<(), Broken> {
        let mut byte = self.peek()?;
        if byte == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            if byte != b'"' {
                return Err(Broken::Byte(byte, "looking for beginning of object key string".to_owned()));
            }
            self.at += 1;
            self.string()?;
            match self.peek()? {
                b':' => self.at += 1,
                other => return Err(Broken::Byte(other, "after object key".to_owned())),
            }
            self.value()?;
            let after = self.peek()?;
            self.at += 1;
            match after {
                b'}' => return Ok(()),
                b',' => byte = self.peek()?,
                other => return Err(Broken::Byte(other, "after object key:value pair".to_owned())),
            }
        }
    }

    fn array(&mut self) -> Result<(), Broken> {
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value()?;
            let after = self.peek()?;
            self.at += 1;
            match after {
                b']' => return Ok(()),
                b',' => {}
                other => return Err(Broken::Byte(other, "after array element".to_owned())),
            }
        }
    }

    fn string(&mut self) -> Result<(), Broken> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let digit = self.next()?;
                            if !digit.is_ascii_hexdigit() {
                                let place = r"in \u hexadecimal character escape".to_owned();
                                return Err(Broken::Byte(digit, place));
                            }
                        }
                    }
                    other => return Err(Broken::Byte(other, "in string escape code".to_owned())),
                },
                other if other < 0x20 => return Err(Broken::Byte(other, "in string literal".to_owned())),
                _ => {}
            }
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), Broken> {
        for expected in word.bytes().skip(1) {
            let found = self.next()?;
            if found != expected {
                let place = format!("in literal {word} (expecting '{}')", expected as char);
                return Err(Broken::Byte(found, place));
            }
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn number(&mut self, first: u8) -> Result<(), Broken> {
        if first != b'0' {
            self.digits();
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            let digit = self.next()?;
            if !digit.is_ascii_digit() {
                return Err(Broken::Byte(digit, "after decimal point in numeric literal".to_owned()));
            }
            self.digits();
        }
        if self.text.get(self.at).is_some_and(|b| matches!(b, b'e' | b'E')) {
            self.at += 1;
            let mut digit = self.next()?;
            if matches!(digit, b'+' | b'-') {
                digit = self.next()?;
            }
            if !digit.is_ascii_digit() {
                return Err(Broken::Byte(digit, "in exponent of numeric literal".to_owned()));
            }
            self.digits();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_does_not_fit_is_named() {
        for (text, wanted) in [
            ("not json", "invalid character 'o' in literal null (expecting 'u')"),
            ("{", "unexpected end of JSON input"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("{bad", "invalid character 'b' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("[1.x]", "invalid character 'x' after decimal point in numeric literal"),
            ("\"\\q\"", "invalid character 'q' in string escape code"),
            ("", "unexpected end of JSON input"),
        ] {
            assert_eq!(go_syntax_error(text.as_bytes()), wanted, "{text}");
        }
        assert_eq!(go_syntax_error(&[b'['; 100_000]), "exceeded max depth");
    }
}
