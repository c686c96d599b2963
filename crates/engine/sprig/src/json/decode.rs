//! JSON decoder with the errors of Go's scanner.

use fl_gotemplate::{Entries, Map, Str, Value, runes};

use crate::error::DecodeError;

/// Go's limit is 10,000 levels; the code here is recursive and allows less.
const MAX_DEPTH: usize = 500;

/// `json.Unmarshal` into an `interface {}`: all numbers are float64.
///
/// # Errors
/// Go's message.
pub fn decode(text: &[u8]) -> Result<Value, DecodeError> {
    let mut reader = Reader { text, at: 0, out_of_range: None };
    let value = reader.value(0, "looking for beginning of value").map_err(DecodeError::Json)?;
    reader.blanks();
    match (reader.peek(), &reader.out_of_range) {
        (Some(_), _) => Err(DecodeError::Json(reader.invalid("after top-level value"))),
        (None, Some(error)) => Err(DecodeError::Json(error.clone())),
        (None, None) => Ok(value),
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    /// The first number out of range. Go scans the whole text before it decodes, so syntax errors come first.
    out_of_range: Option<String>,
}

type Read<T> = Result<T, String>;

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    /// The error for the current byte, where blanks would have been valid.
    fn invalid(&self, context: &str) -> String {
        match self.peek() {
            None => "unexpected end of JSON input".to_owned(),
            Some(_) => self.inside(context),
        }
    }

    /// The error for the current byte within a token. Go's scanner treats the end of the text as a blank,
    /// which is invalid there.
    fn inside(&self, context: &str) -> String {
        let b = self.peek().unwrap_or(b' ');
        let shown = match b {
            b'\'' => r"'\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            _ => {
                let mut quoted = Vec::new();
                let mut rune = Vec::new();
                runes::push(&mut rune, b as char);
                fl_gotemplate::fmt::quote_into(&mut quoted, &rune, b'"', false);
                let quoted = String::from_utf8_lossy(&quoted).into_owned();
                format!("'{}'", &quoted[1..quoted.len() - 1])
            }
        };
        format!("invalid character {shown} {context}")
    }

    fn value(&mut self, depth: usize, context: &str) -> Read<Value> {
        self.blanks();
        if depth > MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Value::Str(self.string()?)),
            Some(b't') => self.literal(b"true", Value::Bool(true)),
            Some(b'f') => self.literal(b"false", Value::Bool(false)),
            Some(b'n') => self.literal(b"null", Value::Nil),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.invalid(context)),
        }
    }

    fn literal(&mut self, word: &'static [u8], value: Value) -> Read<Value> {
        let name = std::str::from_utf8(word).unwrap_or("");
        for (i, expected) in word.iter().enumerate() {
            if self.peek() != Some(*expected) {
                return Err(self.inside(&format!("in literal {name} (expecting '{}')", word[i] as char)));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
    }

    fn number(&mut self) -> Read<Value> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.inside("in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if !matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.inside("after decimal point in numeric literal"));
            }
            self.digits();
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            if !matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.inside("in exponent of numeric literal"));
            }
            self.digits();
        }
        let text = &self.text[start..self.at];
        match fl_gotemplate::strconv::parse_float(text) {
            Ok(x) => Ok(Value::Float(x)),
            Err(_) => {
                let shown = String::from_utf8_lossy(text);
                self.out_of_range.get_or_insert_with(|| {
                    format!("json: cannot unmarshal number {shown} into Go value of type float64")
                });
                Ok(Value::Nil)
            }
        }
    }

    fn string(&mut self) -> Read<Str> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            let Some((c, width)) = runes::decode(rest) else { return Err(self.invalid("")) };
            match c {
                '"' => {
                    self.at += 1;
                    return Ok(out.into());
                }
                '\\' => {
                    self.at += 1;
                    self.escape(&mut out)?;
                }
                c if c < ' ' => return Err(self.invalid("in string literal")),
                c => {
                    runes::push(&mut out, c);
                    self.at += width;
                }
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Read<()> {
        let byte = match self.peek() {
            Some(b @ (b'"' | b'\\' | b'/')) => b,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                self.at += 1;
                let first = self.hex4()?;
                let c = match first {
                    0xD800..=0xDBFF if self.text[self.at..].starts_with(b"\\u") => {
                        let before = self.at;
                        self.at += 2;
                        let second = self.hex4()?;
                        if (0xDC00..=0xDFFF).contains(&second) {
                            0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
                        } else {
                            self.at = before;
                            0xFFFD
                        }
                    }
                    _ => first,
                };
                runes::push(out, char::from_u32(c).unwrap_or(runes::REPLACEMENT));
                return Ok(());
            }
            _ => return Err(self.inside("in string escape code")),
        };
        out.push(byte);
        self.at += 1;
        Ok(())
    }

    fn hex4(&mut self) -> Read<u32> {
        let mut value = 0;
        for _ in 0..4 {
            match self.peek().and_then(|b| (b as char).to_digit(16)) {
                Some(digit) => value = value * 16 + digit,
                None => return Err(self.inside("in \\u hexadecimal character escape")),
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Read<Value> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::list(items));
        }
        loop {
            items.push(self.value(depth + 1, "looking for beginning of value")?);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::list(items));
                }
                _ => return Err(self.invalid("after array element")),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Read<Value> {
        self.at += 1;
        let mut entries = Entries::new();
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Map::new(entries).into());
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.invalid("looking for beginning of object key string"));
            }
            let key = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.invalid("after object key"));
            }
            self.at += 1;
            let value = self.value(depth + 1, "looking for beginning of value")?;
            entries.insert(key, value);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Map::new(entries).into());
                }
                _ => return Err(self.invalid("after object key:value pair")),
            }
        }
    }
}
