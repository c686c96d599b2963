//! TOML strings and numbers.

use fl_gotemplate::{Value, fmt, strconv};

use super::lex::{Lex, SyntaxError, shown};
use super::read::Reader;

/// A triple-quoted string without the line ends that a backslash removes.
pub(super) fn joined_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let after = rest[1..].trim_start_matches([' ', '\t', '\r', '\n']);
        let blanks = &rest[1..rest.len() - after.len()];
        if blanks.contains('\n') {
            rest = after;
        } else {
            // The escaped character is skipped too, so that a second backslash does not start an escape.
            let width = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
            out.push_str(&rest[..width]);
            rest = &rest[width..];
        }
    }
    out.push_str(rest);
    out
}

impl Reader<'_> {
    fn invalid<T>(&self, message: String) -> Lex<T> {
        Err(SyntaxError { line: self.lex.line, message })
    }

    pub(super) fn unescaped(&self, text: &str) -> Lex<String> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('\\') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let Some(c) = rest.chars().next() else { break };
            let digits = match c {
                'x' => 2,
                'u' => 4,
                'U' => 8,
                _ => 0,
            };
            rest = &rest[c.len_utf8()..];
            match c {
                'b' => out.push('\u{8}'),
                't' => out.push('\t'),
                'n' => out.push('\n'),
                'f' => out.push('\u{c}'),
                'r' => out.push('\r'),
                'e' => out.push('\u{1b}'),
                ' ' | '\t' => return self.invalid(format!("invalid escape: '\\{c}'")),
                _ if digits > 0 => {
                    let hex = rest.get(..digits).unwrap_or(rest);
                    match u32::from_str_radix(hex, 16).ok().and_then(char::from_u32) {
                        Some(c) => out.push(c),
                        None => {
                            return self.invalid(format!("Escaped character '\\u{hex}' is not valid UTF-8."));
                        }
                    }
                    rest = &rest[hex.len()..];
                }
                c => out.push(c),
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    pub(super) fn signed(&mut self, start: usize) -> Lex<Value> {
        let c = self.lex.next()?;
        match c {
            Some('i' | 'n') => {
                let word = if c == Some('i') { ['n', 'f'] } else { ['a', 'n'] };
                if !self.lex.accept(word[0])? || !self.lex.accept(word[1])? {
                    return self.lex.fail(format!("invalid float: '{}'", self.lex.since(start)));
                }
                return self.float(&self.lex.since(start));
            }
            Some('0') => {
                if let Some(base @ ('b' | 'o' | 'x')) = self.lex.peek()? {
                    let read = self.lex.since(start);
                    return self
                        .lex
                        .fail(format!("cannot use sign with non-decimal numbers: '{read}{base}'"));
                }
            }
            Some('.') => return self.lex.fail("floats must start with a digit, not '.'"),
            Some('1'..='9') => {}
            _ => return self.lex.fail(format!("expected a digit but got {}", shown(c))),
        }
        self.decimal(start)
    }

    /// Parses the rest of a number after its first digit, unless it is a date.
    fn decimal(&mut self, start: usize) -> Lex<Value> {
        self.lex.take(|c| c.is_ascii_digit() || c == '_')?;
        if matches!(self.lex.peek()?, Some('.' | 'e' | 'E')) {
            self.lex.take(|c| c.is_ascii_digit() || matches!(c, '_' | '.' | '-' | '+' | 'e' | 'E'))?;
            return self.float(&self.lex.since(start));
        }
        self.integer(&self.lex.since(start))
    }

    pub(super) fn number_or_date(&mut self, start: usize, first: Option<char>) -> Lex<Value> {
        if first == Some('0') {
            let fits: Option<(Fits, &str)> = match self.lex.peek()? {
                Some('b') => Some((is_binary as Fits, "a binary")),
                Some('o') => Some((is_octal as Fits, "an octal")),
                Some('x') => Some((is_hex as Fits, "a hexadecimal")),
                Some('0'..='9' | '_' | '.' | 'e' | 'E') => None,
                _ => return self.integer("0"),
            };
            if let Some((fits, kind)) = fits {
                self.lex.next()?;
                let c = self.lex.peek()?;
                if !c.is_some_and(fits) {
                    let read = self.lex.since(start);
                    let c = c.unwrap_or('\0');
                    return self.lex.fail(format!("not {kind} number: '{read}{c}'"));
                }
                while self.lex.peek()?.is_some_and(|c| fits(c) || c == '_') {
                    self.lex.next()?;
                }
                return self.integer(&self.lex.since(start));
            }
        }
        self.lex.take(|c| c.is_ascii_digit())?;
        if (self.lex.since(start).len() > 1 || first != Some('0'))
            && let Some('-' | ':') = self.lex.peek()?
        {
            let date = |c: char| {
                c.is_ascii_digit() || matches!(c, '-' | ':' | 'T' | 't' | ' ' | '.' | 'Z' | 'z' | '+')
            };
            self.lex.take(date)?;
            let text = self.lex.since(start).trim_end_matches(' ').replace('z', "Z").replace(['t', ' '], "T");
            return match crate::dates::from_toml(&text) {
                Some(time) => Ok(time),
                None => self.invalid(format!("invalid datetime: {}", fmt::quoted(text.as_bytes()))),
            };
        }
        self.decimal(start)
    }

    fn integer(&self, text: &str) -> Lex<Value> {
        let quoted = || fmt::quoted(text.as_bytes());
        if !underscores_fit(text) {
            return self
                .invalid(format!("Invalid integer {}: underscores must be surrounded by digits", quoted()));
        }
        if leading_zero(text) {
            return self.invalid(format!("Invalid integer {}: cannot have leading zeroes", quoted()));
        }
        match strconv::parse_int(text.as_bytes(), 0) {
            Ok(n) => Ok(Value::int64(n)),
            Err(_) => self.invalid(format!("{text} is out of range for int64")),
        }
    }

    fn float(&self, text: &str) -> Lex<Value> {
        let quoted = || fmt::quoted(text.as_bytes());
        let special = matches!(text.trim_start_matches(['+', '-']), "inf" | "nan");
        let mut parts = text.split(['.', 'e', 'E']).filter(|part| !part.is_empty());
        if !special && !parts.clone().all(underscores_fit) {
            return self
                .invalid(format!("Invalid float {}: underscores must be surrounded by digits", quoted()));
        }
        if !special && parts.next().is_some_and(leading_zero) {
            return self.invalid(format!("Invalid float {}: cannot have leading zeroes", quoted()));
        }
        if text.split('.').skip(1).any(|after| !after.starts_with(|c: char| c.is_ascii_digit())) {
            return self
                .invalid(format!("Invalid float {}: '.' must be followed by one or more digits", quoted()));
        }
        let plain = text.replace('_', "");
        let number = match plain.as_str() {
            "+nan" => Ok(f64::NAN),
            "-nan" => Ok(-f64::NAN),
            plain => strconv::parse_float(plain.as_bytes()),
        };
        match number {
            Ok(x) => Ok(Value::Float(x)),
            Err(strconv::NumError::Range) => self.invalid(format!("{text} is out of range for float64")),
            Err(strconv::NumError::Syntax) => self.invalid(format!("Invalid float value: {}", quoted())),
        }
    }
}

/// Whether underscores are only between digits.
fn underscores_fit(text: &str) -> bool {
    let mut digit = false;
    for c in text.chars() {
        if c == '_' && !digit {
            return false;
        }
        digit = c.is_ascii_hexdigit();
    }
    digit
}

fn leading_zero(text: &str) -> bool {
    let b = text.as_bytes();
    match b {
        [b'0', next, ..] => !matches!(next, b'b' | b'o' | b'x'),
        [b'+' | b'-', b'0', _, ..] => true,
        _ => false,
    }
}

type Fits = fn(char) -> bool;

fn is_binary(c: char) -> bool {
    matches!(c, '0' | '1')
}

fn is_octal(c: char) -> bool {
    matches!(c, '0'..='7')
}

fn is_hex(c: char) -> bool {
    c.is_ascii_hexdigit()
}
