//! Values. JSON objects and lists are wrapped by reference and converted lazily.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use fl_schema::{ListType, Schema, Type as SchemaType};
use serde_json::{Map as JsonMap, Value as Json};

use crate::functions::quantity::Quantity;
use crate::functions::semver::Semver;
use crate::functions::time;
use crate::functions::url::Url;

/// A CEL value.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Cow<'a, str>),
    Bytes(Arc<[u8]>),
    /// Unix time in nanoseconds.
    Timestamp(i128),
    /// Nanoseconds.
    Duration(i64),
    List(List<'a>),
    Map(Map<'a>),
    Type(Arc<str>),
    Optional(Option<Box<Value<'a>>>),
    /// Values of the Kubernetes libraries.
    Opaque(Opaque),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Opaque {
    Quantity(Quantity),
    Ip(std::net::IpAddr),
    Cidr(std::net::IpAddr, u8),
    Url(Url),
    Semver(Semver),
    /// A named format.
    Format(&'static str),
}

#[derive(Debug, Clone)]
pub enum List<'a> {
    Owned(Arc<Vec<Value<'a>>>),
    /// A JSON list with the schema of the list.
    Json(&'a [Json], Option<&'a Schema>),
}

#[derive(Debug, Clone)]
pub enum Map<'a> {
    Owned(Arc<Vec<(Value<'a>, Value<'a>)>>),
    Json(&'a JsonMap<String, Json>, Option<&'a Schema>),
}

impl<'a> Value<'a> {
    /// Wraps JSON; the schema decides between int and double, string and timestamp, and so on.
    pub fn from_json(json: &'a Json, schema: Option<&'a Schema>) -> Self {
        match json {
            Json::Null => Value::Null,
            Json::Bool(b) => Value::Bool(*b),
            Json::Number(n) => {
                let wants_double = schema.is_some_and(|s| s.ty == SchemaType::Number);
                match n.as_i64() {
                    Some(int) if !wants_double => Value::Int(int),
                    _ => {
                        let double = n.as_f64().unwrap_or_default();
                        let whole =
                            schema.is_some_and(|s| s.ty == SchemaType::Integer) && double.fract() == 0.0;
                        if whole { Value::Int(double as i64) } else { Value::Double(double) }
                    }
                }
            }
            Json::String(text) => from_text(text, schema),
            Json::Array(list) => Value::List(List::Json(list, schema)),
            Json::Object(map) => Value::Map(Map::Json(map, schema)),
        }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Value::Text(Cow::Owned(text.into()))
    }

    pub fn list(items: Vec<Value<'a>>) -> Self {
        Value::List(List::Owned(Arc::new(items)))
    }

    pub fn some(value: Value<'a>) -> Self {
        Value::Optional(Some(Box::new(value)))
    }

    /// The name used by `type()` and errors.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::Text(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Type(_) => "type",
            Value::Optional(_) => "optional_type",
            Value::Opaque(opaque) => match opaque {
                Opaque::Quantity(_) => "kubernetes.Quantity",
                Opaque::Ip(_) => "net.IP",
                Opaque::Cidr(..) => "net.CIDR",
                Opaque::Url(_) => "kubernetes.URL",
                Opaque::Semver(_) => "kubernetes.Semver",
                Opaque::Format(_) => "kubernetes.NamedFormat",
            },
        }
    }

    /// Converts to JSON.
    pub fn to_json(&self) -> Json {
        match self {
            Value::Null | Value::Optional(None) => Json::Null,
            Value::Bool(b) => Json::Bool(*b),
            Value::Int(n) => Json::from(*n),
            Value::Uint(n) => Json::from(*n),
            Value::Double(n) => serde_json::Number::from_f64(*n).map_or(Json::Null, Json::Number),
            Value::Text(text) => Json::from(text.as_ref()),
            Value::Bytes(bytes) => Json::from(String::from_utf8_lossy(bytes).as_ref()),
            Value::Timestamp(t) => Json::from(time::print_timestamp(*t)),
            Value::Duration(d) => Json::from(time::print_duration(*d)),
            Value::List(list) => Json::Array(list.iter().map(|v| v.to_json()).collect()),
            Value::Map(map) => Json::Object(map.iter().map(|(k, v)| (k.key_text(), v.to_json())).collect()),
            Value::Type(name) => Json::from(name.as_ref()),
            Value::Optional(Some(inner)) => inner.to_json(),
            Value::Opaque(_) => Json::from(self.key_text()),
        }
    }

    fn key_text(&self) -> String {
        match self {
            Value::Text(text) => text.to_string(),
            Value::Int(n) => n.to_string(),
            Value::Uint(n) => n.to_string(),
            Value::Bool(b) => b.to_string(),
            other => format!("{other:?}"),
        }
    }

    /// CEL equality; values of different types are unequal, numbers compare across their types.
    pub fn equals(&self, other: &Value<'a>) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (
                Value::Int(_) | Value::Uint(_) | Value::Double(_),
                Value::Int(_) | Value::Uint(_) | Value::Double(_),
            ) => compare_numbers(self, other) == Some(Ordering::Equal),
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
            (Value::Duration(a), Value::Duration(b)) => a == b,
            (Value::Type(a), Value::Type(b)) => a == b,
            (Value::Opaque(a), Value::Opaque(b)) => a == b,
            (Value::Optional(a), Value::Optional(b)) => match (a, b) {
                (None, None) => true,
                (Some(a), Some(b)) => a.equals(b),
                _ => false,
            },
            (Value::List(a), Value::List(b)) => a.equals(b),
            (Value::Map(a), Value::Map(b)) => {
                a.len() == b.len() && a.iter().all(|(k, v)| b.get(&k).is_some_and(|other| v.equals(&other)))
            }
            _ => false,
        }
    }

    /// Order of two values, if they have one.
    pub fn compare(&self, other: &Value<'a>) -> Option<Ordering> {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
            (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
            (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
            (Value::Opaque(Opaque::Quantity(a)), Value::Opaque(Opaque::Quantity(b))) => Some(a.cmp(b)),
            (Value::Opaque(Opaque::Semver(a)), Value::Opaque(Opaque::Semver(b))) => Some(a.cmp(b)),
            _ => compare_numbers(self, other),
        }
    }

    /// Whether the value is the zero value of its type, for `optional.ofNonZeroValue`.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Value::Null | Value::Optional(None) => true,
            Value::Bool(b) => !b,
            Value::Int(n) => *n == 0,
            Value::Uint(n) => *n == 0,
            Value::Double(n) => *n == 0.0,
            Value::Text(text) => text.is_empty(),
            Value::Bytes(bytes) => bytes.is_empty(),
            Value::Duration(d) => *d == 0,
            Value::List(list) => list.is_empty(),
            Value::Map(map) => map.is_empty(),
            _ => false,
        }
    }
}

fn from_text<'a>(text: &'a str, schema: Option<&'a Schema>) -> Value<'a> {
    let plain = || Value::Text(Cow::Borrowed(text));
    let Some(schema) = schema.filter(|s| s.ty == SchemaType::String) else { return plain() };
    match schema.format.as_deref() {
        Some("date-time") => time::parse_timestamp(text).map_or_else(plain, Value::Timestamp),
        Some("date") => {
            time::parse_timestamp(&format!("{text}T00:00:00Z")).map_or_else(plain, Value::Timestamp)
        }
        Some("duration") => time::parse_duration(text).map_or_else(plain, Value::Duration),
        Some("byte") => {
            crate::functions::bytes::decode_base64(text).map_or_else(plain, |b| Value::Bytes(b.into()))
        }
        _ => plain(),
    }
}

fn compare_numbers(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    let wide = |v: &Value<'_>| match v {
        Value::Int(n) => Some(i128::from(*n)),
        Value::Uint(n) => Some(i128::from(*n)),
        _ => None,
    };
    let float = |v: &Value<'_>| match v {
        Value::Int(n) => Some(*n as f64),
        Value::Uint(n) => Some(*n as f64),
        Value::Double(n) => Some(*n),
        _ => None,
    };
    match (wide(a), wide(b)) {
        (Some(x), Some(y)) => Some(x.cmp(&y)),
        _ => float(a)?.partial_cmp(&float(b)?),
    }
}

impl<'a> List<'a> {
    pub fn len(&self) -> usize {
        match self {
            List::Owned(items) => items.len(),
            List::Json(items, _) => items.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            List::Owned(items) => items.get(index).cloned(),
            List::Json(items, schema) => {
                items.get(index).map(|item| Value::from_json(item, item_schema(*schema)))
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    fn equals(&self, other: &List<'a>) -> bool {
        if self.len() != other.len() {
            return false;
        }
        let unordered = |list: &List<'_>| matches!(list, List::Json(_, Some(s)) if matches!(s.list, ListType::Set | ListType::Map));
        if unordered(self) || unordered(other) {
            let theirs: Vec<Value<'a>> = other.iter().collect();
            return self.iter().all(|mine| theirs.iter().any(|v| mine.equals(v)));
        }
        self.iter().zip(other.iter()).all(|(a, b)| a.equals(&b))
    }
}

fn item_schema(schema: Option<&Schema>) -> Option<&Schema> {
    schema.and_then(|s| s.items.as_ref()).map(|node| &**node)
}

impl<'a> Map<'a> {
    pub fn len(&self) -> usize {
        match self {
            Map::Owned(entries) => entries.len(),
            Map::Json(map, _) => map.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, key: &Value<'a>) -> Option<Value<'a>> {
        match self {
            Map::Owned(entries) => entries.iter().find(|(k, _)| k.equals(key)).map(|(_, v)| v.clone()),
            Map::Json(_, _) => match key {
                Value::Text(name) => self.field(name),
                _ => None,
            },
        }
    }

    /// A member by name; names of schema fields may be escaped (`a__dash__b`).
    pub fn field(&self, name: &str) -> Option<Value<'a>> {
        match self {
            Map::Owned(_) => self.get(&Value::Text(Cow::Owned(name.to_owned()))),
            Map::Json(map, schema) => {
                let unescaped;
                let mut name = name;
                if name.contains("__") && !map.contains_key(name) {
                    unescaped = crate::identifier_escaping::unescape(name);
                    name = &unescaped;
                }
                let json = map.get(name)?;
                Some(Value::from_json(json, schema.and_then(|s| s.member(name)).map(|node| &**node)))
            }
        }
    }

    pub fn iter(&self) -> Box<dyn Iterator<Item = (Value<'a>, Value<'a>)> + '_> {
        match self {
            Map::Owned(entries) => Box::new(entries.iter().cloned()),
            Map::Json(map, schema) => Box::new(map.iter().map(|(name, json)| {
                let below = schema.and_then(|s| s.member(name)).map(|node| &**node);
                (Value::Text(Cow::Borrowed(name.as_str())), Value::from_json(json, below))
            })),
        }
    }
}
