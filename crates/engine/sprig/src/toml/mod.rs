//! TOML functions of Helm, with the output of `BurntSushi/toml`.

mod lex;
mod read;
mod scalars;

use fl_gotemplate::{CallError, Functions, Kind, Value, fmt};

use crate::args::{A, S, bytes, fixed, string};
use crate::json::error_dict;

fn to_toml(value: &Value) -> Result<Writer, CallError> {
    if let Value::Nil = value {
        return Err(CallError::new(NOTHING));
    }
    let mut writer = Writer::default();
    writer.encode(&mut Vec::new(), value).map(|()| writer)
}

const NOTHING: &str = "reflect: call of reflect.Value.Type on zero Value";

/// Additional functions of Helm 4: the same, but errors stop the template.
pub(crate) fn add_strict(f: &mut Functions) {
    fixed(f, "mustToToml", &[A], |cx, a| string(cx, to_toml(&a[0])?.out));
}

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "toToml", &[A], |cx, a| {
        match to_toml(&a[0]) {
            Ok(writer) => string(cx, writer.out),
            Err(error) if error.message() == NOTHING => Err(error),
            Err(error) if error.is_budget() => Err(error),
            // Helm returns the error message as the text.
            Err(error) => string(cx, error.message().to_owned()),
        }
    });
    fixed(f, "fromToml", &[S], |_, a| Ok(read::read(bytes(a, 0)).unwrap_or_else(error_dict)));
}

/// Maximum depth of tables; a map can contain itself.
const MAX_DEPTH: usize = 100;

#[derive(Default)]
struct Writer {
    out: Vec<u8>,
}

type Write = Result<(), CallError>;

/// The layout of a value.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Shape {
    Nothing,
    Plain,
    Table,
    TableArray,
}

fn shape(value: &Value) -> Result<Shape, CallError> {
    Ok(match value {
        Value::Nil => Shape::Nothing,
        Value::Map(map) if map.is_nil() => Shape::Nothing,
        Value::Map(_) => Shape::Table,
        Value::List(list) if list.is_nil() => Shape::Nothing,
        Value::List(list) => {
            let mut tables = !list.is_empty();
            for item in list.items() {
                match shape(item)? {
                    Shape::Nothing => {
                        return Err(CallError::new("toml: cannot encode array with nil element"));
                    }
                    Shape::Table => {}
                    _ => tables = false,
                }
            }
            if tables { Shape::TableArray } else { Shape::Plain }
        }
        Value::Object(object) if object.is_nil() => Shape::Nothing,
        Value::Object(object) if object.string().is_none() && object.kind() == Kind::Struct => Shape::Table,
        Value::Complex(..) => return Err(CallError::new("unsupported type: complex128")),
        _ => Shape::Plain,
    })
}

/// The entries of a struct or map value.
fn entries_of(value: &Value) -> Vec<(Vec<u8>, Value)> {
    match value {
        Value::Map(map) => map.snapshot().into_iter().map(|(k, v)| (k.to_vec(), v)).collect(),
        Value::Object(object) => {
            object.fields().into_iter().map(|(k, v)| (k.as_bytes().to_vec(), v)).collect()
        }
        _ => Vec::new(),
    }
}

/// A time as written in TOML: zones of values without an offset are named after the missing part.
fn time_literal<'t>(shown: &[u8], text: &'t [u8]) -> &'t [u8] {
    let (date, clock) = match memchr::memchr(b'T', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, text),
    };
    let local = |text: &'t [u8]| text.strip_suffix(b"Z").unwrap_or(text);
    match () {
        () if shown.ends_with(b" datetime-local") => local(text),
        () if shown.ends_with(b" date-local") => date,
        () if shown.ends_with(b" time-local") => local(clock),
        () => text,
    }
}

impl Writer {
    fn newline(&mut self) {
        if !self.out.is_empty() {
            self.out.push(b'\n');
        }
    }

    fn indent(&mut self, keys: &[Vec<u8>]) {
        self.out.resize(self.out.len() + keys.len().saturating_sub(1) * 2, b' ');
    }

    fn encode(&mut self, keys: &mut Vec<Vec<u8>>, value: &Value) -> Write {
        if keys.len() > MAX_DEPTH {
            return Err(CallError::budget("value is nested too deeply for TOML"));
        }
        match shape(value)? {
            Shape::Nothing => Ok(()),
            Shape::Plain => {
                if let Some(key) = keys.last() {
                    let key = key.clone();
                    self.indent(keys);
                    self.key(&key);
                    self.out.extend_from_slice(b" = ");
                    self.element(value, keys.len())?;
                    self.newline();
                    return Ok(());
                }
                self.element(value, 0)
            }
            Shape::Table => {
                if keys.len() == 1 {
                    self.newline();
                }
                if !keys.is_empty() {
                    self.header(keys, "[", "]");
                }
                self.table(keys, value)
            }
            Shape::TableArray => {
                if keys.is_empty() {
                    return Err(CallError::new("toml: top-level values must be Go maps or structs"));
                }
                let Value::List(list) = value else { return Ok(()) };
                for item in list.items() {
                    self.newline();
                    self.header(keys, "[[", "]]");
                    self.table(keys, item)?;
                }
                Ok(())
            }
        }
    }

    fn header(&mut self, keys: &[Vec<u8>], open: &str, close: &str) {
        self.indent(keys);
        self.out.extend_from_slice(open.as_bytes());
        for (i, key) in keys.iter().enumerate() {
            if i > 0 {
                self.out.push(b'.');
            }
            self.key(key);
        }
        self.out.extend_from_slice(close.as_bytes());
        self.newline();
    }

    /// Writes plain values first, then tables, each in key order.
    fn table(&mut self, keys: &mut Vec<Vec<u8>>, value: &Value) -> Write {
        let entries = entries_of(value);
        for tables in [false, true] {
            for (key, item) in &entries {
                let is_table = matches!(shape(item)?, Shape::Table | Shape::TableArray);
                if is_table == tables {
                    keys.push(key.clone());
                    self.encode(keys, item)?;
                    keys.pop();
                }
            }
        }
        Ok(())
    }

    fn key(&mut self, key: &[u8]) {
        let bare =
            !key.is_empty() && key.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        if bare { self.out.extend_from_slice(key) } else { self.quoted(key) }
    }

    fn quoted(&mut self, bytes: &[u8]) {
        quote_into(&mut self.out, bytes);
    }

    fn element(&mut self, value: &Value, depth: usize) -> Write {
        if depth > MAX_DEPTH {
            return Err(CallError::budget("value is nested too deeply for TOML"));
        }
        match value {
            Value::Nil => {}
            Value::Str(text) => self.quoted(text),
            Value::Bool(b) => self.out.extend_from_slice(if *b { b"true" } else { b"false" }),
            Value::Int(..) => self.out.extend_from_slice(fmt::display(value).as_bytes()),
            Value::Float(x) => self.float(*x),
            Value::Bytes(_) | Value::List(_) => {
                self.out.push(b'[');
                let items = crate::args::items(value).unwrap_or_default();
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        self.out.extend_from_slice(b", ");
                    }
                    self.element(item, depth + 1)?;
                }
                self.out.push(b']');
            }
            Value::Map(_) => self.inline(value, depth)?,
            Value::Object(object) => match (object.string(), object.plain()) {
                (Some(text), _) if object.type_name() != "time.Time" => self.quoted(&text),
                (Some(shown), _) => {
                    if let Some(Value::Str(text)) = object.json() {
                        self.out.extend_from_slice(time_literal(&shown, &text));
                    }
                }
                (None, Some(plain)) => self.element(&plain, depth + 1)?,
                (None, None) => self.inline(value, depth)?,
            },
            Value::Complex(..) => return Err(CallError::new("unexpected type: complex128")),
        }
        Ok(())
    }

    fn float(&mut self, x: f64) {
        let text = if x.is_nan() {
            "nan".to_owned()
        } else if x.is_infinite() {
            if x < 0.0 { "-inf" } else { "inf" }.to_owned()
        } else {
            let mut text = fmt::format_float(x, b'g', None);
            if !text.contains(['e', '.']) {
                text.push_str(".0");
            }
            text
        };
        self.out.extend_from_slice(text.as_bytes());
    }

    fn inline(&mut self, value: &Value, depth: usize) -> Write {
        self.out.push(b'{');
        let entries = entries_of(value);
        let mut ordered = Vec::with_capacity(entries.len());
        for tables in [false, true] {
            for (key, item) in &entries {
                if matches!(shape(item)?, Shape::Table | Shape::TableArray) == tables {
                    ordered.push((key, item));
                }
            }
        }
        let count = ordered.len();
        for (i, (key, item)) in ordered.into_iter().enumerate() {
            if shape(item)? == Shape::Nothing {
                continue;
            }
            self.key(key);
            self.out.extend_from_slice(b" = ");
            self.element(item, depth + 1)?;
            if i + 1 < count {
                self.out.extend_from_slice(b", ");
            }
        }
        self.out.push(b'}');
        Ok(())
    }
}

/// Appends a quoted string.
fn quote_into(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    for b in bytes {
        match b {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            8 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            12 => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0..=31 | 127 => out.extend_from_slice(format!("\\u{b:04x}").as_bytes()),
            _ => out.push(*b),
        }
    }
    out.push(b'"');
}
