//! Error messages and escapes of Go's `encoding/json`.

/// The message of Go's `encoding/json` about the first invalid byte. `text` must be known to be invalid JSON.
#[must_use]
pub fn json_syntax_error(text: &[u8]) -> String {
    let mut scanner = Scanner { text, at: 0, depth: 0 };
    match scanner.value().and_then(|()| scanner.end()) {
        Err(SyntaxError::UnexpectedEnd) | Ok(()) => "unexpected end of JSON input".to_owned(),
        Err(SyntaxError::InvalidByte(byte, place)) => format!("invalid character {} {place}", quote(byte)),
        Err(SyntaxError::TooDeep) => "exceeded max depth".to_owned(),
    }
}

/// Go's name for the type of a JSON value in errors of `encoding/json`.
#[must_use]
pub fn json_kind(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "bool",
        serde_json::Value::Number(_) => "number",
        serde_json::Value::String(_) => "string",
        serde_json::Value::Array(_) => "array",
        serde_json::Value::Object(_) => "object",
    }
}

/// Escapes `<`, `>` and `&` in JSON, as Go's encoder does.
#[must_use]
pub fn escape_html(json: &str) -> String {
    if !json.contains(['<', '>', '&']) {
        return json.to_owned();
    }
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Go's limit on nesting.
const MAX_DEPTH: usize = 10_000;

enum SyntaxError {
    UnexpectedEnd,
    /// An invalid byte, and the description of its place.
    InvalidByte(u8, String),
    TooDeep,
}

/// A byte in single quotes, as Go prints it.
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
    fn peek(&mut self) -> Result<u8, SyntaxError> {
        while self.text.get(self.at).is_some_and(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.text.get(self.at).copied().ok_or(SyntaxError::UnexpectedEnd)
    }

    fn next(&mut self) -> Result<u8, SyntaxError> {
        let byte = self.text.get(self.at).copied().ok_or(SyntaxError::UnexpectedEnd)?;
        self.at += 1;
        Ok(byte)
    }

    fn end(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            Ok(byte) => Err(SyntaxError::InvalidByte(byte, "after top-level value".to_owned())),
            Err(_) => Ok(()),
        }
    }

    fn value(&mut self) -> Result<(), SyntaxError> {
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
                    return Err(SyntaxError::InvalidByte(digit, "in numeric literal".to_owned()));
                }
                self.number(digit)
            }
            b'0'..=b'9' => self.number(byte),
            other => Err(SyntaxError::InvalidByte(other, "looking for beginning of value".to_owned())),
        }
    }

    fn nested(&mut self, inside: fn(&mut Self) -> Result<(), SyntaxError>) -> Result<(), SyntaxError> {
        self.depth += 1;
        // The stack is smaller than Go's; no real document is nested this deep.
        if self.depth > MAX_DEPTH.min(512) {
            return Err(SyntaxError::TooDeep);
        }
        inside(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self) -> Result<(), SyntaxError> {
        let mut byte = self.peek()?;
        if byte == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            if byte != b'"' {
                return Err(SyntaxError::InvalidByte(
                    byte,
                    "looking for beginning of object key string".to_owned(),
                ));
            }
            self.at += 1;
            self.string()?;
            match self.peek()? {
                b':' => self.at += 1,
                other => return Err(SyntaxError::InvalidByte(other, "after object key".to_owned())),
            }
            self.value()?;
            let after = self.peek()?;
            self.at += 1;
            match after {
                b'}' => return Ok(()),
                b',' => byte = self.peek()?,
                other => {
                    return Err(SyntaxError::InvalidByte(other, "after object key:value pair".to_owned()));
                }
            }
        }
    }

    fn array(&mut self) -> Result<(), SyntaxError> {
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
                other => return Err(SyntaxError::InvalidByte(other, "after array element".to_owned())),
            }
        }
    }

    fn string(&mut self) -> Result<(), SyntaxError> {
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
                                return Err(SyntaxError::InvalidByte(digit, place));
                            }
                        }
                    }
                    other => return Err(SyntaxError::InvalidByte(other, "in string escape code".to_owned())),
                },
                other if other < 0x20 => {
                    return Err(SyntaxError::InvalidByte(other, "in string literal".to_owned()));
                }
                _ => {}
            }
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), SyntaxError> {
        for expected in word.bytes().skip(1) {
            let found = self.next()?;
            if found != expected {
                let place = format!("in literal {word} (expecting '{}')", expected as char);
                return Err(SyntaxError::InvalidByte(found, place));
            }
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn number(&mut self, first: u8) -> Result<(), SyntaxError> {
        if first != b'0' {
            self.digits();
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            let digit = self.next()?;
            if !digit.is_ascii_digit() {
                return Err(SyntaxError::InvalidByte(
                    digit,
                    "after decimal point in numeric literal".to_owned(),
                ));
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
                return Err(SyntaxError::InvalidByte(digit, "in exponent of numeric literal".to_owned()));
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
    fn error_messages_match_go() {
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
            assert_eq!(json_syntax_error(text.as_bytes()), wanted, "{text}");
        }
        assert_eq!(json_syntax_error(&[b'['; 100_000]), "exceeded max depth");
    }
}
