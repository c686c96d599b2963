//! Conversion between JSON and values, as `encoding/json` decodes into `interface {}`.

use fl_gotemplate::{List, Map, Value};

/// Converts parsed JSON; all numbers become floats.
pub(crate) fn to_value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(value) => Value::Bool(value),
        serde_json::Value::Number(number) => Value::Float(number.as_f64().unwrap_or_default()),
        serde_json::Value::String(text) => Value::str(text),
        serde_json::Value::Array(items) => Value::List(List::new(items.into_iter().map(to_value).collect())),
        serde_json::Value::Object(entries) => {
            Value::Map(entries.into_iter().map(|(key, value)| (key, to_value(value))).collect::<Map>())
        }
    }
}

/// Converts a value to JSON for schema validation. Integers stay integers, so that only the schema rules
/// distinguish `1.0` and `1`.
pub(crate) fn from_value(value: &Value) -> serde_json::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Int(kind, bits) if kind.signed() => (*bits).into(),
        Value::Int(_, bits) => bits.cast_unsigned().into(),
        Value::Float(value) => from_float(*value),
        Value::Str(text) | Value::Bytes(text) => text.to_text().into_owned().into(),
        Value::List(list) => list.items().iter().map(from_value).collect(),
        Value::Map(map) => {
            map.borrow().iter().map(|(key, value)| (key.to_text().into_owned(), from_value(value))).collect()
        }
        Value::Nil | Value::Complex(..) | Value::Object(_) => serde_json::Value::Null,
    }
}

fn from_float(value: f64) -> serde_json::Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        return (value as i64).into();
    }
    serde_json::Number::from_f64(value).map_or(serde_json::Value::Null, Into::into)
}
