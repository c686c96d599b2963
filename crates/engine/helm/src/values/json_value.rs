//! JSON values that threads can share: the default values of a loaded chart.

use fl_gotemplate::{Entries, List, Map, Str, Value};
use fl_yaml::{Dialect, Node, Scalar};

use crate::decode::DecodeError;

/// A JSON value; numbers are floats, as Helm reads values files.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum JsonValue {
    /// Null.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string.
    Str(Str),
    /// A list.
    List(Vec<JsonValue>),
    /// A table, sorted by key.
    Map(Vec<(Str, JsonValue)>),
}

impl JsonValue {
    /// Converts a YAML document to JSON, as `sigs.k8s.io/yaml` does.
    pub fn from_yaml(node: &Node) -> Result<Self, DecodeError> {
        if let Some(map) = node.as_map() {
            let mut entries = Vec::with_capacity(map.len());
            for entry in map.iter() {
                // The YAML reader has converted all keys to strings.
                entries.push((entry.name().unwrap_or_default().into(), Self::from_yaml(&entry.value)?));
            }
            // The last of equal keys is kept, as in a Go map.
            entries.sort_by(|a: &(Str, JsonValue), b| a.0.cmp(&b.0));
            entries.dedup_by(|later, kept| {
                later.0 == kept.0 && {
                    std::mem::swap(later, kept);
                    true
                }
            });
            return Ok(Self::Map(entries));
        }
        if let Some(items) = node.as_seq() {
            return Ok(Self::List(items.iter().map(Self::from_yaml).collect::<Result<_, _>>()?));
        }
        Ok(match node.scalar(Dialect::Sigs) {
            None | Some(Scalar::Null) => Self::Null,
            Some(Scalar::Bool(value)) => Self::Bool(value),
            Some(Scalar::Int(value)) => Self::Number(value as f64),
            Some(Scalar::Uint(value)) => Self::Number(value as f64),
            Some(Scalar::Float(value)) if value.is_finite() => Self::Number(value),
            Some(Scalar::Float(value)) => {
                let shown = if value.is_nan() {
                    "NaN"
                } else if value > 0.0 {
                    "+Inf"
                } else {
                    "-Inf"
                };
                return Err(DecodeError::UnsupportedValue(shown));
            }
            Some(Scalar::Str(text)) => Self::Str(text.into()),
            Some(Scalar::Timestamp(text)) => Self::Str(text.into()),
            Some(Scalar::Binary(bytes)) => Self::Str(String::from_utf8_lossy(&bytes).into()),
        })
    }

    /// Converts a document that must be a table or empty.
    pub fn table_from_yaml(node: &Node) -> Result<Self, DecodeError> {
        let tree = Self::from_yaml(node)?;
        let kind = match &tree {
            Self::Map(_) | Self::Null => return Ok(tree),
            Self::List(_) => "array",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::Str(_) => "string",
        };
        Err(DecodeError::Type {
            found: kind,
            target: "value".to_owned(),
            go_type: "map[string]interface {}".to_owned(),
        })
    }

    /// Converts a value; objects with behaviour become null.
    pub fn from_value(value: &Value) -> Self {
        match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(kind, bits) if kind.signed() => Self::Number(*bits as f64),
            Value::Int(_, bits) => Self::Number(bits.cast_unsigned() as f64),
            Value::Float(value) => Self::Number(*value),
            Value::Str(text) | Value::Bytes(text) => Self::Str(text.clone()),
            Value::List(list) => Self::List(list.items().iter().map(Self::from_value).collect()),
            Value::Map(map) => {
                let mut entries: Vec<(Str, Self)> =
                    map.borrow().iter().map(|(key, value)| (key.clone(), Self::from_value(value))).collect();
                entries.sort_by(|a, b| a.0.cmp(&b.0));
                Self::Map(entries)
            }
            Value::Nil | Value::Complex(..) | Value::Object(_) => Self::Null,
        }
    }

    /// Converts a JSON value; all numbers become floats.
    pub fn from_json(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(number) => Self::Number(number.as_f64().unwrap_or_default()),
            serde_json::Value::String(text) => Self::Str(text.as_str().into()),
            serde_json::Value::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            serde_json::Value::Object(entries) => {
                let mut entries: Vec<(Str, Self)> = entries
                    .iter()
                    .map(|(key, value)| (key.as_str().into(), Self::from_json(value)))
                    .collect();
                entries.sort_by(|a, b| a.0.cmp(&b.0));
                Self::Map(entries)
            }
        }
    }

    /// Converts to JSON.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Number(value) => {
                serde_json::Number::from_f64(*value).map_or(serde_json::Value::Null, Into::into)
            }
            Self::Str(text) => text.to_text().into_owned().into(),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(entries) => {
                let entries =
                    entries.iter().map(|(key, value)| (key.to_text().into_owned(), value.to_json()));
                entries.collect::<serde_json::Map<_, _>>().into()
            }
        }
    }

    /// Converts to a new template value; only strings are shared.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Nil,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(value) => Value::Float(*value),
            Self::Str(text) => Value::Str(text.clone()),
            Self::List(items) => Value::List(List::new(items.iter().map(Self::to_value).collect())),
            Self::Map(_) => Value::Map(self.to_map()),
        }
    }

    /// Converts to a new map; empty if this is not a table.
    pub fn to_map(&self) -> Map {
        let entries: Entries = match self {
            Self::Map(entries) => entries.iter().map(|(k, v)| (k.clone(), v.to_value())).collect(),
            _ => Entries::new(),
        };
        Map::new(entries)
    }
}
