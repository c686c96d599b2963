//! Path elements, ordered as in FieldsV1.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use thiserror::Error;

/// One element of a path.
#[derive(Debug, Clone)]
pub enum PathElement {
    /// A field of a struct or a key of a map.
    Field(Arc<str>),
    /// An item of a keyed list: its key fields, sorted by name.
    Key(Arc<[(Arc<str>, Value)]>),
    /// An item of a set list.
    Value(Arc<Value>),
    /// A position in a list.
    Index(i64),
}

impl PathElement {
    pub fn field(name: &str) -> Self {
        PathElement::Field(Arc::from(name))
    }

    /// An item of a keyed list; sorts the key fields.
    pub fn key(mut fields: Vec<(Arc<str>, Value)>) -> Self {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        PathElement::Key(Arc::from(fields))
    }

    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }

    /// The serialized form: `f:name`, `k:{"name":"x"}`, `v:"x"`, `i:0`.
    pub fn encode(&self) -> String {
        match self {
            PathElement::Field(name) => ["f:", name].concat(),
            PathElement::Key(fields) => {
                let map: Map<String, Value> =
                    fields.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
                format!("k:{}", Value::Object(map))
            }
            PathElement::Value(value) => format!("v:{value}"),
            PathElement::Index(index) => format!("i:{index}"),
        }
    }

    /// Parses the serialized form. `Ok(None)` for kinds of later versions, which are ignored.
    pub fn decode(text: &str) -> Result<Option<Self>, PathElementError> {
        let Some((kind, rest)) = text.split_at_checked(2) else {
            return Err(PathElementError::TooShort);
        };
        if !kind.ends_with(':') {
            return Err(PathElementError::MissingColon(text.to_owned()));
        }
        Ok(Some(match &kind[..1] {
            "f" => PathElement::field(rest),
            "v" => PathElement::Value(Arc::new(serde_json::from_str(rest)?)),
            "k" => {
                let map: Map<String, Value> = serde_json::from_str(rest)?;
                PathElement::key(map.into_iter().map(|(k, v)| (Arc::from(k), v)).collect())
            }
            "i" => PathElement::Index(rest.parse().map_err(|_| PathElementError::Index(rest.to_owned()))?),
            _ => return Ok(None),
        }))
    }
}

/// Why a text is not the serialized form of a path element.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PathElementError {
    #[error("key must be 2 characters long:")]
    TooShort,
    #[error("missing colon: {0}")]
    MissingColon(String),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("invalid index: {0}")]
    Index(String),
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (PathElement::Field(a), PathElement::Field(b)) => a.cmp(b),
            (PathElement::Key(a), PathElement::Key(b)) => compare_keys(a, b),
            (PathElement::Value(a), PathElement::Value(b)) => compare_values(a, b),
            (PathElement::Index(a), PathElement::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                let parts: Vec<String> = fields.iter().map(|(k, v)| format!("{k}={}", print(v))).collect();
                write!(f, "[{}]", parts.join(","))
            }
            PathElement::Value(value) => write!(f, "[={}]", print(value)),
            PathElement::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A path as in conflict messages: `.spec.containers[name="app"].image`.
pub fn print_path(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

fn print(value: &Value) -> String {
    match value {
        Value::String(text) => fl_go::quote(text),
        Value::Array(list) => format!("[{}]", list.iter().map(print).collect::<Vec<_>>().join(",")),
        Value::Object(map) => map.iter().map(|(k, v)| format!("{k}={}", print(v))).collect(),
        other => other.to_string(),
    }
}

fn compare_keys(a: &[(Arc<str>, Value)], b: &[(Arc<str>, Value)]) -> Ordering {
    for ((an, av), (bn, bv)) in a.iter().zip(b) {
        let order = an.cmp(bn).then_with(|| compare_values(av, bv));
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// Orders numbers, strings, booleans, lists, maps, null; numbers compare by value.
pub(crate) fn compare_values(a: &Value, b: &Value) -> Ordering {
    fn rank(value: &Value) -> u8 {
        match value {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => match (x.as_i64(), y.as_i64()) {
            (Some(x), Some(y)) => x.cmp(&y),
            _ => x.as_f64().unwrap_or_default().total_cmp(&y.as_f64().unwrap_or_default()),
        },
        (Value::String(x), Value::String(y)) => x.cmp(y),
        (Value::Bool(x), Value::Bool(y)) => x.cmp(y),
        (Value::Array(x), Value::Array(y)) => {
            for (left, right) in x.iter().zip(y) {
                let order = compare_values(left, right);
                if order != Ordering::Equal {
                    return order;
                }
            }
            x.len().cmp(&y.len())
        }
        (Value::Object(x), Value::Object(y)) => {
            for ((ln, left), (rn, right)) in x.iter().zip(y) {
                let order = ln.cmp(rn).then_with(|| compare_values(left, right));
                if order != Ordering::Equal {
                    return order;
                }
            }
            x.len().cmp(&y.len())
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Equality in apply: 1 equals 1.0.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => compare_values(a, b) == Ordering::Equal,
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(l, r)| same(l, r)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(k, l)| y.get(k).is_some_and(|r| same(l, r)))
        }
        _ => a == b,
    }
}
