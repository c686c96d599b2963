//! The little language of `--set` and its relatives: `a.b[0].c=1,list={x,y}`.
//!
//! The reference parser has corners (an index without value, a trailing `=` in a list) whose outcome charts can see;
//! the flow here follows them on purpose.

use fl_gotemplate::{Entries, List, Map, Value};

/// Which flag an argument came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetKind {
    /// `--set`: booleans, null and integers are recognised.
    Typed,
    /// `--set-string`: everything is text.
    String,
    /// `--set-json`: values are JSON.
    Json,
    /// `--set-file`: values are names of files whose content is taken.
    File,
    /// `--set-literal`: one key, and the rest is its value as it stands.
    Literal,
}

/// Why an argument was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SetError(String);

/// Largest index; a list is as long as its largest index.
const MAX_INDEX: i64 = 65_536;
/// Most dots in one key.
const MAX_DOTS: usize = 30;
/// Most levels of tables and lists in one key; for lists the reference has no bound but its stack.
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
            Err(Halt::End) => return Ok(()),
            Err(Halt::Fail(message)) => return Err(SetError(message)),
        }
    }
}

/// Why a step did not finish: the text ended, or an error.
enum Halt {
    End,
    Fail(String),
}

fn fail<T>(message: String) -> Result<T, Halt> {
    Err(Halt::Fail(message))
}

/// What follows `=`.
enum Assigned {
    Value(Value),
    /// Nothing: the text ended.
    Nothing,
}

struct Parser<'a> {
    rest: &'a str,
    kind: SetKind,
    files: FileReader<'a>,
    /// Levels of the key being read; it only grows, since a key is one path.
    levels: usize,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// Reads up to one of the stop characters, which is consumed. `None` at the end of the text.
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

    fn go_deeper(&mut self) -> Result<(), Halt> {
        self.levels += 1;
        if self.levels > MAX_LEVELS {
            return fail(format!("more than {MAX_LEVELS} nested levels"));
        }
        Ok(())
    }

    fn key(&mut self, table: &Map, dots: usize) -> Result<(), Halt> {
        self.go_deeper()?;
        let stops: &[char] =
            if self.kind == SetKind::Literal { &['=', '[', '.'] } else { &['=', '[', ',', '.'] };
        let (key, stop) = self.until(stops);
        match stop {
            None if key.is_empty() => Err(Halt::End),
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

    fn assign(&mut self, table: &Map, key: String) -> Result<(), Halt> {
        match self.assigned()? {
            Assigned::Value(value) => {
                set(table, key, value);
                Ok(())
            }
            Assigned::Nothing => {
                set(table, key, Value::str(""));
                Err(Halt::End)
            }
        }
    }

    /// Reads the value behind `=`.
    fn assigned(&mut self) -> Result<Assigned, Halt> {
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

    /// `{a,b,c}`
    fn braces(&mut self) -> Result<Value, Halt> {
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

    fn json(&mut self) -> Result<Value, Halt> {
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

    /// Skips blanks and one comma; true when there was nothing else before the comma or the end.
    fn blank_value(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        let behind = self.rest.strip_prefix(',');
        let blank = behind.is_some() || self.rest.is_empty();
        self.rest = behind.unwrap_or(self.rest);
        blank
    }

    fn convert(&mut self, text: String) -> Result<Value, Halt> {
        match self.kind {
            SetKind::File => match (self.files)(&text) {
                Ok(data) => Ok(Value::str(data)),
                Err(message) => fail(message),
            },
            SetKind::Typed => Ok(typed(text)),
            _ => Ok(Value::str(text)),
        }
    }

    /// The number in brackets; the opening one has been read.
    fn index(&mut self) -> Result<i64, Halt> {
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

    /// What follows `]`. The list keeps what was stored before an error, as in the reference.
    fn item(&mut self, list: &mut Vec<Value>, index: i64, dots: usize) -> Result<(), Halt> {
        let Ok(at) = usize::try_from(index) else {
            return fail(format!("negative {index} index not allowed"));
        };
        self.go_deeper()?;
        let (text, stop) = self.until(&['[', '.', '=']);
        if !text.is_empty() {
            let shown: Vec<String> = text.chars().map(|c| format!("{c:?}")).collect();
            return fail(format!("unexpected data at end of array index: [{}]", shown.join(" ")));
        }
        match stop {
            None => Err(Halt::End),
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

fn put(list: &mut Vec<Value>, index: i64, at: usize, value: Value) -> Result<(), Halt> {
    if index > MAX_INDEX {
        return fail(format!("index of {index} is greater than maximum supported index of {MAX_INDEX}"));
    }
    if list.len() <= at {
        list.resize(at + 1, Value::Nil);
    }
    list[at] = value;
    Ok(())
}

/// The words of Go's failed type assertion, which the reference turns into its message.
fn conversion<T>(found: &Value, wanted: &str) -> Result<T, Halt> {
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
