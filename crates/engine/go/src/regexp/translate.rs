//! Translates Go's regular expression syntax to that of the `regex` crate.
//!
//! Both are linear-time engines of the same family, but the syntax differs: Go's `\d`, `\w`, `\s` and `\b`
//! are ASCII, a lone `{` is a literal, `\Q…\E` and octal escapes exist, classes do not nest, and stacked
//! repetitions are errors. Error messages are Go's.

use std::fmt::Write;

/// The names inside `[[:name:]]`.
const ASCII_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// Go's limit for counted repetitions.
const MAX_REPEAT: u32 = 1000;

/// A syntax error: Go's message and the part of the pattern it names (bytes of the pattern).
#[derive(Debug, PartialEq, Eq)]
pub struct SyntaxError {
    words: &'static str,
    from: usize,
    to: usize,
}

impl SyntaxError {
    /// The message, with the part of this pattern that it refers to.
    #[must_use]
    pub fn text(&self, pattern: &[u8]) -> String {
        format!("{}: `{}`", self.words, String::from_utf8_lossy(&pattern[self.from..self.to]))
    }
}

type Step<T> = Result<T, SyntaxError>;

fn error<T>(words: &'static str, from: usize, to: usize) -> Step<T> {
    Err(SyntaxError { words, from, to })
}

struct Translator<'p> {
    text: &'p str,
    /// The pattern.
    pattern: &'p [u8],
    at: usize,
    out: String,
    depth: usize,
    /// Whether there is an element that a repetition can apply to.
    repeatable: bool,
    /// Start of a repetition that ended at the current position.
    last_repeat: Option<usize>,
    /// Names of groups so far.
    names: Vec<String>,
    /// Size of the last element after expanding counted repetitions.
    weight: u32,
    /// Size of the largest element of every open group; the whole pattern is first.
    heaviest: Vec<u32>,
}

/// A unique name for a group whose name is in use. Go allows duplicate names; the crate's names may contain a
/// dot, Go's may not.
pub fn unique_group_name(name: &str, before: usize) -> String {
    format!("{name}.{before}")
}

/// Translates a pattern.
pub fn translate(pattern: &[u8]) -> Step<String> {
    let Ok(text) = std::str::from_utf8(pattern) else { return error("invalid UTF-8", 0, pattern.len()) };
    let mut t = Translator {
        text,
        pattern,
        at: 0,
        out: String::with_capacity(pattern.len() + 16),
        depth: 0,
        repeatable: false,
        last_repeat: None,
        names: Vec::new(),
        weight: 1,
        heaviest: vec![1],
    };
    while t.at < pattern.len() {
        let repeated = t.step()?;
        if !repeated {
            t.last_repeat = None;
        }
    }
    if t.depth > 0 {
        return error("missing closing )", 0, pattern.len());
    }
    Ok(t.out)
}

impl Translator<'_> {
    fn peek(&self) -> Option<u8> {
        self.pattern.get(self.at).copied()
    }

    fn rest(&self) -> &[u8] {
        &self.pattern[self.at..]
    }

    /// Translates one element; returns true if it was a repetition.
    fn step(&mut self) -> Step<bool> {
        let start = self.at;
        match self.pattern[start] {
            b'(' => {
                if self.rest().starts_with(b"(?") {
                    self.perl_group()?;
                } else {
                    self.at += 1;
                    self.open("(");
                }
            }
            b')' => {
                if self.depth == 0 {
                    return error("unexpected )", 0, self.pattern.len());
                }
                self.depth -= 1;
                self.at += 1;
                self.out.push(')');
                self.repeatable = true;
                let inside = self.heaviest.pop().unwrap_or(1);
                self.weigh(inside);
                return Ok(false);
            }
            b'|' => {
                self.at += 1;
                self.out.push('|');
                self.repeatable = false;
            }
            b'*' | b'+' | b'?' => {
                self.at += 1;
                self.repeat(start)?;
                return Ok(true);
            }
            b'{' => match self.counts() {
                Some(()) => {
                    self.repeat(start)?;
                    return Ok(true);
                }
                None => {
                    self.at = start + 1;
                    self.literal('{');
                }
            },
            b'[' => self.class()?,
            b'\\' => self.escape()?,
            b'^' | b'$' | b'.' => {
                self.at += 1;
                self.out.push(self.pattern[start] as char);
                self.repeatable = true;
            }
            _ => {
                let c = self.rune();
                self.literal(c);
            }
        }
        self.weight = 1;
        Ok(false)
    }

    fn weigh(&mut self, weight: u32) {
        self.weight = weight;
        if let Some(heaviest) = self.heaviest.last_mut() {
            *heaviest = weight.max(*heaviest);
        }
    }

    fn rune(&mut self) -> char {
        let c = self.text.get(self.at..).and_then(|rest| rest.chars().next());
        let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
        self.at += c.len_utf8();
        c
    }

    fn open(&mut self, text: &str) {
        self.out.push_str(text);
        self.depth += 1;
        self.heaviest.push(1);
        self.repeatable = false;
    }

    fn literal(&mut self, c: char) {
        if c.is_ascii_alphanumeric() || !c.is_ascii() {
            self.out.push(c);
        } else {
            let _ = write!(self.out, "\\x{:02x}", c as u32);
        }
        self.repeatable = true;
    }

    /// Parses `{n}`, `{n,}` or `{n,m}` and advances; `None` for anything else.
    fn counts(&mut self) -> Option<()> {
        self.at += 1;
        self.digits()?;
        if self.peek() == Some(b',') {
            self.at += 1;
            if self.peek() != Some(b'}') {
                self.digits()?;
            }
        }
        (self.peek() == Some(b'}')).then(|| self.at += 1)
    }

    /// Parses digits without a leading zero, as Go does for counts.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        let digits = &self.pattern[start..self.at];
        match digits {
            [] | [b'0', _, ..] => None,
            _ => Some(()),
        }
    }

    /// Finishes a repetition that starts at `start` and was parsed up to its `?`.
    fn repeat(&mut self, start: usize) -> Step<()> {
        let operator_end = self.at;
        let operator = &self.pattern[start..operator_end];
        let mut times = 1;
        // Counts are checked first, regardless of what they repeat.
        if operator[0] == b'{' {
            let inner = String::from_utf8_lossy(&operator[1..operator.len() - 1]).into_owned();
            let (low, high) = inner.split_once(',').map_or((inner.as_str(), None), |(l, h)| (l, Some(h)));
            let read = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
            let bad = read(low) > MAX_REPEAT
                || high.is_some_and(|h| !h.is_empty() && (read(h) > MAX_REPEAT || read(h) < read(low)));
            if bad {
                return error("invalid repeat count", start, operator_end);
            }
            times = read(high.filter(|h| !h.is_empty()).unwrap_or(low));
        }
        if self.peek() == Some(b'?') {
            self.at += 1;
        }
        if let Some(previous) = self.last_repeat {
            return error("invalid nested repetition operator", previous, self.at);
        }
        if !self.repeatable {
            return error("missing argument to repetition operator", start, self.at);
        }
        // Nested counts multiply.
        let weight = self.weight.saturating_mul(times);
        if weight > MAX_REPEAT {
            return error("invalid repeat count", start, self.at);
        }
        self.weigh(weight);
        let text = String::from_utf8_lossy(&self.pattern[start..self.at]);
        self.out.push_str(&text);
        self.last_repeat = Some(start);
        Ok(())
    }

    /// `(?P<name>`, `(?<name>`, `(?flags)` and `(?flags:`
    fn perl_group(&mut self) -> Step<()> {
        let start = self.at;
        let rest = self.rest();
        let prefix = if rest.starts_with(b"(?P<") {
            Some(4)
        } else if rest.starts_with(b"(?<") {
            Some(3)
        } else {
            None
        };
        if let Some(prefix) = prefix {
            let Some(end) = memchr::memchr(b'>', rest) else {
                return error("invalid named capture", start, self.pattern.len());
            };
            let name = &rest[prefix..end];
            let good = !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
            if !good || name[0].is_ascii_digit() {
                return error("invalid named capture", start, start + end + 1);
            }
            let name = String::from_utf8_lossy(name).into_owned();
            let before = self.names.iter().filter(|n| **n == name).count();
            let text = match before {
                0 => format!("(?P<{name}>"),
                n => format!("(?P<{}>", unique_group_name(&name, n)),
            };
            self.names.push(name);
            self.at += end + 1;
            self.open(&text);
            return Ok(());
        }
        self.at += 2;
        let mut negative = false;
        let mut saw_flag = false;
        while self.at < self.pattern.len() {
            match self.rune() {
                'i' | 'm' | 's' | 'U' => saw_flag = true,
                '-' if !negative => {
                    negative = true;
                    saw_flag = false;
                }
                end @ (':' | ')') => {
                    if negative && !saw_flag {
                        break;
                    }
                    let text = String::from_utf8_lossy(&self.pattern[start..self.at]).into_owned();
                    if end == ':' {
                        self.open(&text);
                    } else if text != "(?)" {
                        self.out.push_str(&text);
                    }
                    return Ok(());
                }
                _ => break,
            }
        }
        if self.at >= self.pattern.len() && !matches!(self.pattern.last(), Some(b':' | b')')) {
            let last = self.pattern[self.pattern.len() - 1];
            if matches!(last, b'i' | b'm' | b's' | b'U' | b'-' | b'?') {
                return error("missing closing )", 0, self.pattern.len());
            }
        }
        error("invalid or unsupported Perl syntax", start, self.at)
    }

    /// Translates an escape outside of a class.
    fn escape(&mut self) -> Step<()> {
        let start = self.at;
        let plain = match self.pattern.get(start + 1) {
            Some(b'A') => r"\A",
            Some(b'z') => r"\z",
            Some(b'b') => r"(?-u:\b)",
            Some(b'B') => r"(?-u:\B)",
            Some(b'C') => return error("invalid escape sequence", start, start + 2),
            Some(b'Q') => {
                self.at += 2;
                let rest = self.rest();
                let end = memchr::memmem::find(rest, br"\E");
                let stop = self.at + end.unwrap_or(rest.len());
                while self.at < stop {
                    let c = self.rune();
                    self.literal(c);
                }
                self.at = stop + if end.is_some() { 2 } else { 0 };
                return Ok(());
            }
            _ => {
                if let Some(class) = self.shorthand()? {
                    let _ = write!(self.out, "[{class}]");
                    self.repeatable = true;
                    return Ok(());
                }
                let c = self.escaped_rune()?;
                self.literal(c);
                return Ok(());
            }
        };
        self.at += 2;
        self.out.push_str(plain);
        self.repeatable = true;
        Ok(())
    }

    /// Translates `\d` and its relatives and `\p{…}` to the content of a bracket class.
    fn shorthand(&mut self) -> Step<Option<String>> {
        let start = self.at;
        let fixed = match self.pattern.get(start + 1) {
            Some(b'd') => "0-9",
            Some(b'D') => "^0-9",
            Some(b'w') => "0-9A-Za-z_",
            Some(b'W') => "^0-9A-Za-z_",
            Some(b's') => r"\t\n\x0c\r\x20",
            Some(b'S') => r"^\t\n\x0c\r\x20",
            Some(b'p' | b'P') => return self.property().map(Some),
            _ => return Ok(None),
        };
        self.at += 2;
        Ok(Some(fixed.to_owned()))
    }

    fn property(&mut self) -> Step<String> {
        let start = self.at;
        let mut negated = self.pattern[start + 1] == b'P';
        self.at += 2;
        let name = match self.peek() {
            None => return error("invalid character class range", start, self.at),
            Some(b'{') => {
                let Some(end) = memchr::memchr(b'}', self.rest()) else {
                    return error("invalid character class range", start, self.pattern.len());
                };
                let name = String::from_utf8_lossy(&self.rest()[1..end]).into_owned();
                self.at += end + 1;
                name
            }
            Some(_) => self.rune().to_string(),
        };
        let name = match name.strip_prefix('^') {
            Some(rest) => {
                negated = !negated;
                rest.to_owned()
            }
            None => name,
        };
        let letter = if negated { 'P' } else { 'p' };
        let spelled = format!("\\{letter}{{{name}}}");
        if regex::Regex::new(&spelled).is_err() {
            return error("invalid character class range", start, self.at);
        }
        Ok(spelled)
    }

    /// Parses a single escaped character.
    fn escaped_rune(&mut self) -> Step<char> {
        let start = self.at;
        self.at += 1;
        if self.peek().is_none() {
            return error("trailing backslash at end of expression", start, start);
        }
        let c = self.rune();
        let bad = |to: usize| error("invalid escape sequence", start, to);
        match c {
            '0'..='7' => {
                let more = self.peek().is_some_and(|b| (b'0'..=b'7').contains(&b));
                if c != '0' && !more {
                    return bad(self.at);
                }
                let mut value = c as u32 - '0' as u32;
                for _ in 0..2 {
                    match self.peek() {
                        Some(b @ b'0'..=b'7') => {
                            value = value * 8 + u32::from(b - b'0');
                            self.at += 1;
                        }
                        _ => break,
                    }
                }
                char::from_u32(value).map_or_else(|| bad(self.at), Ok)
            }
            'x' => self.hex_rune(start),
            'a' => Ok('\u{7}'),
            'f' => Ok('\u{c}'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\u{b}'),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Ok(c),
            _ => bad(self.at),
        }
    }

    fn hex_rune(&mut self, start: usize) -> Step<char> {
        let bad = |to: usize| error("invalid escape sequence", start, to);
        if self.peek() == Some(b'{') {
            let Some(end) = memchr::memchr(b'}', self.rest()) else { return bad(self.pattern.len()) };
            let digits = String::from_utf8_lossy(&self.rest()[1..end]).into_owned();
            self.at += end + 1;
            let value = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
            return value.map_or_else(|| bad(self.at), Ok);
        }
        let digits = self.rest().get(..2).and_then(|d| std::str::from_utf8(d).ok()).unwrap_or("");
        match u32::from_str_radix(digits, 16).ok().and_then(char::from_u32) {
            Some(c) if digits.len() == 2 => {
                self.at += 2;
                Ok(c)
            }
            _ => bad((self.at + 1).min(self.pattern.len())),
        }
    }

    fn class(&mut self) -> Step<()> {
        let start = self.at;
        self.at += 1;
        let mut text = String::from("[");
        if self.peek() == Some(b'^') {
            self.at += 1;
            text.push('^');
        }
        let mut first = true;
        while self.peek() != Some(b']') || first {
            first = false;
            if self.rest().len() > 2
                && self.rest().starts_with(b"[:")
                && let Some(end) = memchr::memmem::find(&self.rest()[2..], b":]")
            {
                let name = String::from_utf8_lossy(&self.rest()[..end + 4]).into_owned();
                let inner = &name[2..name.len() - 2];
                if !ASCII_CLASSES.contains(&inner.strip_prefix('^').unwrap_or(inner)) {
                    return error("invalid character class range", self.at, self.at + end + 4);
                }
                text.push_str(&name);
                self.at += end + 4;
                continue;
            }
            if self.peek() == Some(b'\\')
                && let Some(inner) = self.shorthand()?
            {
                let _ = write!(text, "[{inner}]");
                continue;
            }
            let range_start = self.at;
            let low = self.class_rune(start)?;
            let mut high = low;
            let rest = self.rest();
            if rest.len() >= 2 && rest[0] == b'-' && rest[1] != b']' {
                self.at += 1;
                high = self.class_rune(start)?;
                if high < low {
                    return error("invalid character class range", range_start, self.at);
                }
            }
            let _ = write!(text, "\\x{{{:x}}}", low as u32);
            if high != low {
                let _ = write!(text, "-\\x{{{:x}}}", high as u32);
            }
        }
        self.at += 1;
        text.push(']');
        self.out.push_str(&text);
        self.repeatable = true;
        Ok(())
    }

    fn class_rune(&mut self, class_start: usize) -> Step<char> {
        match self.peek() {
            None => error("missing closing ]", class_start, self.pattern.len()),
            Some(b'\\') => self.escaped_rune(),
            Some(_) => Ok(self.rune()),
        }
    }
}
