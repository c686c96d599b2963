//! The visitor, which builds a value along with the schema.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::errors::{DecodeError, StrictError, TypeMismatch};
use super::{Decoded, MAX_STRICT};
use crate::node::Node;
use crate::print::print_number;
use crate::structural::{Schema, Type};

/// Position of the visitor: a linked list on the stack, which is formatted only for errors.
#[derive(Clone, Copy)]
pub(super) enum At<'a> {
    Root,
    /// `field` distinguishes a field of a struct from a key of a map: Go names only fields in type errors.
    Key {
        parent: &'a At<'a>,
        name: &'a str,
        field: bool,
        owner: Option<&'a str>,
    },
    Index {
        parent: &'a At<'a>,
        index: usize,
    },
}

impl At<'_> {
    fn path(&self, out: &mut String) {
        match self {
            At::Root => {}
            At::Key { parent, name, .. } => {
                parent.path(out);
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            At::Index { parent, index } => {
                parent.path(out);
                out.push_str(&format!("[{index}]"));
            }
        }
    }

    fn child(&self, name: &str) -> String {
        let mut out = String::new();
        self.path(&mut out);
        if !out.is_empty() {
            out.push('.');
        }
        out.push_str(name);
        out
    }

    /// The name of the innermost struct and the dotted path of field names.
    fn go_context(&self) -> (Option<&str>, String) {
        match self {
            At::Root => (None, String::new()),
            At::Index { parent, .. } | At::Key { parent, field: false, .. } => parent.go_context(),
            At::Key { parent, name, owner, .. } => {
                let (outer, mut stack) = parent.go_context();
                if !stack.is_empty() {
                    stack.push('.');
                }
                stack.push_str(name);
                (owner.or(outer), stack)
            }
        }
    }
}

/// The errors of one document.
#[derive(Default)]
pub(super) struct State {
    strict: RefCell<Vec<StrictError>>,
    wrong: RefCell<Option<(TypeMismatch, String)>>,
}

impl State {
    pub(super) fn finish(self, value: Value) -> Result<Decoded, DecodeError> {
        match self.wrong.into_inner() {
            Some((mismatch, text)) => Err(DecodeError::Value { mismatch, text }),
            None => Ok(Decoded { value, strict: self.strict.into_inner() }),
        }
    }

    fn note(&self, error: StrictError) {
        let mut list = self.strict.borrow_mut();
        if list.len() < MAX_STRICT && !list.contains(&error) {
            list.push(error);
        }
    }

    /// Only the first type error is reported.
    fn record(&self, mismatch: TypeMismatch, text: impl FnOnce() -> String) {
        let mut slot = self.wrong.borrow_mut();
        if slot.is_none() {
            *slot = Some((mismatch, text()));
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Seed<'a> {
    pub(super) schema: Option<&'a Schema>,
    pub(super) state: &'a State,
    pub(super) at: At<'a>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Seed<'_> {
    /// The schema to check types with; `None` for free-form documents and raw JSON inside of typed ones.
    fn typed(&self) -> Option<&Schema> {
        self.schema.filter(|s| !s.preserve_unknown && (s.ty != Type::Any || s.int_or_string))
    }

    fn type_error(&self, found: &str, schema: &Schema) -> Value {
        if let Some(why) = quantity_error(found).filter(|_| is_quantity(schema)) {
            // Quantities unmarshal themselves in Go, so their errors have no path.
            self.state.record(TypeMismatch::Text, || why.to_owned());
            return Value::Null;
        }
        let mismatch = if schema.int_or_string { TypeMismatch::IntOrString } else { TypeMismatch::Type };
        self.report(mismatch, found, schema)
    }

    fn report(&self, mismatch: TypeMismatch, found: &str, schema: &Schema) -> Value {
        self.state.record(mismatch, || {
            let (owner, stack) = self.at.go_context();
            let into = match owner {
                Some(name) => format!("Go struct field {name}.{stack}"),
                None => "Go value".to_owned(),
            };
            let wanted = match schema.format.as_deref() {
                _ if schema.int_or_string => "int32".to_owned(),
                // Times are unmarshalled from strings in Go.
                Some("date-time" | "micro-time") => "string".to_owned(),
                _ => go_type(schema),
            };
            format!("json: cannot unmarshal {found} into {into} of type {wanted}")
        });
        Value::Null
    }

    fn number(&self, number: Number) -> Value {
        let Some(schema) = self.typed() else { return Value::Number(number) };
        if schema.int_or_string {
            let fits = number.as_i64().is_some_and(|n| i32::try_from(n).is_ok());
            if fits || is_quantity(schema) {
                return Value::Number(number);
            }
            return self.type_error(&format!("number {}", print_number(&number)), schema);
        }
        match schema.ty {
            Type::Number => Value::Number(number),
            Type::Integer => {
                let narrow = schema.format.as_deref() == Some("int32");
                match number.as_i64() {
                    Some(n) if !narrow || i32::try_from(n).is_ok() => Value::Number(number),
                    whole => {
                        let mismatch = if whole.is_some() { TypeMismatch::Range } else { TypeMismatch::Type };
                        let found = format!("number {}", print_number(&number));
                        self.report(mismatch, &found, schema)
                    }
                }
            }
            _ => self.type_error("number", schema),
        }
    }

    fn text(&self, text: String) -> Value {
        let Some(schema) = self.typed() else { return Value::String(text) };
        if schema.int_or_string {
            if is_quantity(schema)
                && let Some(why) = quantity_error(&text)
            {
                self.state.record(TypeMismatch::Text, || why.to_owned());
            }
            return Value::String(text);
        }
        if schema.ty != Type::String {
            return self.type_error("string", schema);
        }
        match schema.format.as_deref() {
            Some("byte") => {
                if let Some(at) = invalid_base64_position(&text) {
                    self.state
                        .record(TypeMismatch::Base64, || format!("illegal base64 data at input byte {at}"));
                }
            }
            Some("date-time") if crate::formats::check("date-time", &text) == Some(false) => {
                self.state.record(TypeMismatch::Text, || time_error(&text, SECONDS));
            }
            Some("micro-time")
                if crate::formats::check("date-time", &text) == Some(false) || !has_micros(&text) =>
            {
                self.state.record(TypeMismatch::Text, || time_error(&text, MICROSECONDS));
            }
            _ => {}
        }
        Value::String(text)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(match self.typed() {
            Some(schema) if schema.ty != Type::Boolean || schema.int_or_string => {
                self.type_error("bool", schema)
            }
            _ => Value::Bool(value),
        })
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(self.number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        // Go decodes integers beyond int64 as floats.
        Ok(match i64::try_from(value) {
            Ok(n) => self.number(n.into()),
            Err(_) => Number::from_f64(value as f64).map_or(Value::Null, |n| self.number(n)),
        })
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        // An integral float is encoded without a fraction, so it is an integer when it is decoded again.
        let whole = value.fract() == 0.0 && value.abs() < 9.0e15;
        if whole && self.typed().is_none_or(|s| s.ty != Type::Integer) {
            return Ok(self.number((value as i64).into()));
        }
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        Ok(self.number(number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(self.text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(self.text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        if let Some(schema) = self.typed().filter(|s| s.ty != Type::Array) {
            let wrong = self.type_error("array", schema);
            while access.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(wrong);
        }
        let items = self.schema.and_then(|s| s.items.as_ref());
        let mut list = Vec::new();
        loop {
            let at = At::Index { parent: &self.at, index: list.len() };
            let seed = Seed { schema: items.map(|n| &**n), state: self.state, at };
            match access.next_element_seed(seed)? {
                Some(Value::Null) => list.push(zero(items)),
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        if let Some(schema) = self.typed().filter(|s| s.ty != Type::Object) {
            let wrong = self.type_error("object", schema);
            while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(wrong);
        }
        let closed = self.typed().is_some_and(|s| s.map_values().is_none());
        let owner = self.schema.and_then(|s| s.name.as_deref()).map(short_name);
        let mut map = Map::new();
        let mut dropped: Vec<String> = Vec::new();
        while let Some(key) = access.next_key::<String>()? {
            let property = self.schema.and_then(|s| s.property(&key));
            if property.is_none() && closed {
                self.state.note(StrictError::Unknown(self.at.child(&key)));
                access.next_value::<IgnoredAny>()?;
                continue;
            }
            let values = self.schema.and_then(Schema::map_values);
            let below = property.or(values).map(|n| &**n);
            let at = At::Key { parent: &self.at, name: &key, field: property.is_some(), owner };
            let value = access.next_value_seed(Seed { schema: below, state: self.state, at })?;
            if map.contains_key(&key) || dropped.contains(&key) {
                self.state.note(StrictError::Duplicate(self.at.child(&key)));
            }
            if value.is_null() && below.is_some_and(|s| !s.preserve_unknown) {
                // In Go null leaves a struct field unset, and sets a map value to its zero value.
                if property.is_some() {
                    map.remove(&key);
                    dropped.push(key);
                    continue;
                }
                map.insert(key, zero(values));
                continue;
            }
            map.insert(key, value);
        }
        if map.len() > 1_000_000 {
            return Err(A::Error::custom("too many fields in one object"));
        }
        Ok(Value::Object(map))
    }
}

/// Go's zero value, for a list element or map value that is null.
fn zero(node: Option<&Node>) -> Value {
    let Some(schema) = node.filter(|n| !n.preserve_unknown) else { return Value::Null };
    match schema.ty {
        Type::Object => Value::Object(Map::new()),
        Type::String => Value::String(String::new()),
        Type::Integer | Type::Number => Value::from(0),
        Type::Boolean => Value::Bool(false),
        Type::Array | Type::Any => Value::Null,
    }
}

/// `io.k8s.api.apps.v1.DeploymentSpec` -> `DeploymentSpec`.
fn short_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn is_quantity(schema: &Schema) -> bool {
    schema.format.as_deref() == Some("quantity")
}

fn go_type(schema: &Schema) -> String {
    if let Some(name) = &schema.go_type {
        return name.to_string();
    }
    if let Some(name) = schema.name.as_deref() {
        let mut parts = name.rsplit('.');
        let (last, package) = (parts.next().unwrap_or(name), parts.next().unwrap_or(""));
        return format!("{package}.{last}");
    }
    match schema.ty {
        Type::Any => "interface {}".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::Number => "float64".to_owned(),
        Type::Integer => schema.format.as_deref().unwrap_or("int64").to_owned(),
        Type::String => match schema.format.as_deref() {
            Some("byte") => "[]uint8".to_owned(),
            Some("date-time") => "v1.Time".to_owned(),
            _ => "string".to_owned(),
        },
        Type::Array => {
            format!("[]{}", schema.items.as_ref().map_or("interface {}".to_owned(), |i| go_type(i)))
        }
        Type::Object => match schema.map_values() {
            Some(values) => format!("map[string]{}", go_type(values)),
            None => "map[string]interface {}".to_owned(),
        },
    }
}

/// Position of the first character that is invalid in standard base64. Like in Go, line breaks are skipped.
fn invalid_base64_position(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut seen = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\r' | b'\n' => {}
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => seen += 1,
            b'=' => {
                let rest = bytes[at..].iter().filter(|b| !matches!(b, b'\r' | b'\n')).count();
                let fits = (seen % 4 == 2 && rest == 2) || (seen % 4 == 3 && rest == 1);
                let padding_only = bytes[at..].iter().all(|b| matches!(b, b'=' | b'\r' | b'\n'));
                // After complete padding, the first character that follows is invalid.
                let whole = match (seen % 4, bytes.get(at + 1)) {
                    (2, Some(b'=')) => 2,
                    (3, _) => 1,
                    _ => 0,
                };
                return if fits && padding_only { None } else { Some(at + whole) };
            }
            _ => return Some(at),
        }
    }
    if seen % 4 == 0 { None } else { Some(bytes.len() - bytes.len() % 4) }
}

/// Go's layouts of times.
const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
const MICROSECONDS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Whether a time has exactly six decimals.
fn has_micros(text: &str) -> bool {
    text.get(19..)
        .and_then(|rest| rest.strip_prefix('.'))
        .is_some_and(|rest| rest.bytes().take_while(u8::is_ascii_digit).count() == 6)
}

/// The error of Go's parser for a text that is not a quantity.
fn quantity_error(text: &str) -> Option<&'static str> {
    if matches!(text, "-" | "+") {
        // A sign alone is read as zero.
        return None;
    }
    const WRONG: &str =
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = unsigned.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let digits = &unsigned[..unsigned.len() - number.len()];
    let rest = number.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest).trim_start_matches(|c: char| c.is_ascii_digit());
    if digits.is_empty() || digits.matches('.').count() > 1 || !rest.is_empty() {
        return Some(WRONG);
    }
    let exponent = number.strip_prefix(['e', 'E']).is_some_and(|power| {
        let power = power.strip_prefix(['+', '-']).unwrap_or(power);
        !power.is_empty() && power.bytes().all(|b| b.is_ascii_digit())
    });
    const SUFFIXES: &[&str] =
        &["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    (!exponent && !SUFFIXES.contains(&number)).then_some("unable to parse quantity's suffix")
}

fn time_error(text: &str, layout: &str) -> String {
    const LAYOUT: &[(&str, usize, u8)] = &[
        ("2006", 4, b'-'),
        ("01", 2, b'-'),
        ("02", 2, b'T'),
        ("15", 2, b':'),
        ("04", 2, b':'),
        ("05", 2, 0),
    ];
    let quoted = fl_go::quote(text);
    let error = |rest: &str, piece: &str| {
        format!("parsing time {quoted} as \"{layout}\": cannot parse {} as \"{piece}\"", fl_go::quote(rest))
    };
    let mut rest = text;
    for (piece, width, then) in LAYOUT {
        let digits = rest.as_bytes().iter().take(*width).filter(|b| b.is_ascii_digit()).count();
        if digits < *width {
            return error(rest, piece);
        }
        rest = &rest[*width..];
        if *then != 0 {
            if rest.as_bytes().first() != Some(then) {
                return error(rest, std::str::from_utf8(&[*then]).unwrap_or("-"));
            }
            rest = &rest[1..];
        }
    }
    if layout == MICROSECONDS {
        let micros =
            rest.len() >= 7 && rest.starts_with('.') && rest[1..7].bytes().all(|b| b.is_ascii_digit());
        if !micros {
            return error(rest, ".000000");
        }
        rest = &rest[7..];
    }
    if let Some(extra) = rest.strip_prefix('Z').filter(|extra| !extra.is_empty()) {
        return format!("parsing time {quoted}: extra text: {}", fl_go::quote(extra));
    }
    error(rest, "Z07:00")
}
