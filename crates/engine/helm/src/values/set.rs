//! Parser for `--set` and its relatives: `a.b[0].c=1,list={x,y}`.
//!
//! Helm's parser has corner cases (an index without value, a trailing `=` in a list) whose results charts can
//! see; the control flow here follows them on purpose.

use fl_gotemplate::{Entries, List, Map, Value};

/// The flag that an argument was given with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetKind {
    /// `--set`: booleans, null and integers are recognised.
    Typed,
    /// `--set-string`: everything is a string.
    String,
    /// `--set-json`: values are JSON.
    Json,
    /// `--set-file`: values are names of files to read.
    File,
    /// `--set-literal`: one key; the rest is its value, unparsed.
    Literal,
}

/// Syntax error in an argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SetError(String);

/// Maximum index; a list is as long as its largest index.
const MAX_INDEX: i64 = 65_536;
/// Maximum number of dots in one key.
const MAX_DOTS: usize = 30;
/// Maximum levels of tables and lists in one key; Helm has no limit for lists.
const MAX_LEVELS: usize = 500;

/// Reads the content of a file for [`SetKind::File`].
pub(crate) type FileReader<'a> = &'a mut dyn FnMut(&str) -> Result<Vec<u8>, String>;

/// Applies one argument to a table.
pub(crate) fn apply(text: &str, kind: SetKind, table: &Map, files: FileReader<'_>) -> Result<(), SetError> {
    let mut parser = Parser { rest: text, kind, files, levels: 0 };
    loop {
        parser.levels = 0;
        match parser.key(table, 0) {
            Ok(()) => {}
            Err(ParseStop::End) => return Ok(()),
            Err(ParseStop::Fail(message)) => return Err(SetError(message)),
        }
    }
}

/// Early end of a parsing step: end of the text, or an error.
enum ParseStop {
    End,
    Fail(String),
}

fn fail<T>(message: String) -> Result<T, ParseStop> {
    Err(ParseStop::Fail(message))
}

/// The value after `=`.
enum Assigned {
    Value(Value),
    /// The text ended.
    Nothing,
}

struct Parser<'a> {
    rest: &'a str,
    kind: SetKind,
    files: FileReader<'a>,
    /// Nesting of the current key; it only grows, since a key is one path.
    levels: usize,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// Reads up to one of the stop characters, which is consumed. Returns `None` at the end of the text.
    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        let mut text = String::new();
        while let Some(c) = self.next() {
            if stops.contains(&c) {
                return (text, Some(c));
            }
            if c == '\\' && self.kind != SetKind::Literal {
                match self.next() {
                    Some(escaped) => text.push(escaped),
                    None => return (text, None),
                }
            } else {
                text.push(c);
            }
        }
        (text, None)
    }

    fn descend(&mut self) -> Result<(), ParseStop> {
        self.levels += 1;
        if self.levels > MAX_LEVELS {
            return fail(format!("more than {MAX_LEVELS} nested levels"));
        }
        Ok(())
    }

    fn key(&mut self, table: &Map, dots: usize) -> Result<(), ParseStop> {
        self.descend()?;
        let stops: &[char] =
            if self.kind == SetKind::Literal { &['=', '[', '.'] } else { &['=', '[', ',', '.'] };
        let (key, stop) = self.until(stops);
        match stop {
            None if key.is_empty() => Err(ParseStop::End),
            None => fail(format!("key {key:?} has no value")),
            Some('[') => {
                let index = self.index()?;
                let list = match table.get(key.as_bytes()) {
                    None => Vec::new(),
                    Some(Value::List(list)) => list.items().to_vec(),
                    Some(other) => return conversion(&other, "[]interface {}"),
                };
                let mut list = list;
                let outcome = self.item(&mut list, index, dots);
                set(table, key, Value::List(List::new(list)));
                outcome
            }
            Some('=') => self.assign(table, key),
            Some(',') => {
                let message = format!("key {key:?} has no value (cannot end with ,)");
                set(table, key, Value::str(""));
                fail(message)
            }
            Some(_) => {
                if dots + 1 > MAX_DOTS {
                    return fail(format!(
                        "value name nested level is greater than maximum supported nested level of {MAX_DOTS}"
                    ));
                }
                let inner = match table.get(key.as_bytes()) {
                    None => Map::new(Entries::new()),
                    Some(Value::Map(map)) => map,
                    Some(other) => return conversion(&other, "map[string]interface {}"),
                };
                let outcome = self.key(&inner, dots + 1);
                if outcome.is_ok() && inner.is_empty() {
                    return fail(format!("key map {key:?} has no value"));
                }
                if !inner.is_empty() {
                    set(table, key, Value::Map(inner));
                }
                outcome
            }
        }
    }

    fn assign(&mut self, table: &Map, key: String) -> Result<(), ParseStop> {
        match self.assigned()? {
            Assigned::Value(value) => {
                set(table, key, value);
                Ok(())
            }
            Assigned::Nothing => {
                set(table, key, Value::str(""));
                Err(ParseStop::End)
            }
        }
    }

    /// Reads the value after `=`.
    fn assigned(&mut self) -> Result<Assigned, ParseStop> {
        match self.kind {
            SetKind::Literal => {
                let value = std::mem::take(&mut self.rest);
                Ok(Assigned::Value(Value::str(value)))
            }
            SetKind::Json => self.json().map(Assigned::Value),
            _ if self.rest.is_empty() => Ok(Assigned::Nothing),
            _ if self.rest.starts_with('{') => self.braces().map(Assigned::Value),
            _ => {
                let (text, _) = self.until(&[',']);
                self.convert(text).map(Assigned::Value)
            }
        }
    }

    /// Reads `{a,b,c}`.
    fn braces(&mut self) -> Result<Value, ParseStop> {
        self.next();
        let mut items = Vec::new();
        loop {
            let (text, stop) = self.until(&[',', '}']);
            match stop {
                None => return fail("list must terminate with '}'".into()),
                Some('}') => {
                    self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
                    items.push(self.convert(text)?);
                    return Ok(Value::List(List::new(items)));
                }
                Some(_) => items.push(self.convert(text)?),
            }
        }
    }

    fn json(&mut self) -> Result<Value, ParseStop> {
        if self.blank_value() {
            return Ok(Value::Nil);
        }
        let mut stream = serde_json::Deserializer::from_str(self.rest).into_iter::<serde_json::Value>();
        let value = match stream.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) => return fail(error.to_string()),
            None => return fail("EOF".into()),
        };
        let end = stream.byte_offset();
        self.rest = &self.rest[end..];
        self.blank_value();
        Ok(super::json::to_value(value))
    }

    /// Skips blanks and one comma; returns true if there was nothing else before the comma or the end.
    fn blank_value(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        let behind = self.rest.strip_prefix(',');
        let blank = behind.is_some() || self.rest.is_empty();
        self.rest = behind.unwrap_or(self.rest);
        blank
    }

    fn convert(&mut self, text: String) -> Result<Value, ParseStop> {
        match self.kind {
            SetKind::File => match (self.files)(&text) {
                Ok(data) => Ok(Value::str(data)),
                Err(message) => fail(message),
            },
            SetKind::Typed => Ok(typed(text)),
            _ => Ok(Value::str(text)),
        }
    }

    /// Reads the number in brackets; the opening bracket was consumed.
    fn index(&mut self) -> Result<i64, ParseStop> {
        let (text, stop) = self.until(&[']']);
        if stop.is_none() {
            return fail("error parsing index: EOF".into());
        }
        text.parse().or_else(|_| {
            let digits = text.strip_prefix(['+', '-']).unwrap_or(&text);
            let number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            let why = if number { "value out of range" } else { "invalid syntax" };
            fail(format!("error parsing index: strconv.Atoi: parsing {text:?}: {why}"))
        })
    }

    /// Parses what follows `]`. The list keeps what was stored before an error, as in Helm.
    fn item(&mut self, list: &mut Vec<Value>, index: i64, dots: usize) -> Result<(), ParseStop> {
        let Ok(at) = usize::try_from(index) else {
            return fail(format!("negative {index} index not allowed"));
        };
        self.descend()?;
        let (text, stop) = self.until(&['[', '.', '=']);
        if !text.is_empty() {
            let shown: Vec<String> = text.chars().map(|c| format!("{c:?}")).collect();
            return fail(format!("unexpected data at end of array index: [{}]", shown.join(" ")));
        }
        match stop {
            None => Err(ParseStop::End),
            Some('=') => {
                let value = match self.assigned()? {
                    Assigned::Value(value) => value,
                    Assigned::Nothing => Value::str(""),
                };
                put(list, index, at, value)
            }
            Some('[') => {
                let next = self.index()?;
                let mut inner = match list.get(at) {
                    None | Some(Value::Nil) => Vec::new(),
                    Some(Value::List(inner)) => inner.items().to_vec(),
                    Some(other) => return conversion(other, "[]interface {}"),
                };
                self.item(&mut inner, next, dots)?;
                put(list, index, at, Value::List(List::new(inner)))
            }
            Some(_) => {
                let inner = match list.get_mut(at) {
                    None => Map::new(Entries::new()),
                    Some(Value::Map(map)) => map.clone(),
                    Some(slot) => {
                        let map = Map::new(Entries::new());
                        *slot = Value::Map(map.clone());
                        map
                    }
                };
                self.key(&inner, dots)?;
                put(list, index, at, Value::Map(inner))
            }
        }
    }
}

fn set(table: &Map, key: String, value: Value) {
    if !key.is_empty() {
        table.insert(key, value);
    }
}

fn put(list: &mut Vec<Value>, index: i64, at: usize, value: Value) -> Result<(), ParseStop> {
    if index > MAX_INDEX {
        return fail(format!("index of {index} is greater than maximum supported index of {MAX_INDEX}"));
    }
    if list.len() <= at {
        list.resize(at + 1, Value::Nil);
    }
    list[at] = value;
    Ok(())
}

/// The message of Go's failed type assertion, which Helm passes on.
fn conversion<T>(found: &Value, wanted: &str) -> Result<T, ParseStop> {
    let found = match found {
        Value::Nil => "nil".into(),
        other => other.type_name(),
    };
    fail(format!("unable to parse key: interface conversion: interface {{}} is {found}, not {wanted}"))
}

fn typed(text: String) -> Value {
    if text.eq_ignore_ascii_case("true") {
        return Value::Bool(true);
    }
    if text.eq_ignore_ascii_case("false") {
        return Value::Bool(false);
    }
    if text.eq_ignore_ascii_case("null") {
        return Value::Nil;
    }
    if text == "0" {
        return Value::int64(0);
    }
    if !text.starts_with('0')
        && let Ok(number) = text.parse()
    {
        return Value::int64(number);
    }
    Value::str(text)
}
