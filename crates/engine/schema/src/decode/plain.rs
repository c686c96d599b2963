//! Telling without a copy that a value is what its type asks for.

use serde_json::Value;

use crate::model::{Schema, Type};

/// Whether the decoder would have nothing to say about a value. False only means that it has to be asked: nulls, unknown fields
/// and texts with a format of their own are left to it.
pub(super) fn fits(value: &Value, schema: &Schema) -> bool {
    if schema.preserve_unknown || schema.int_or_string || schema.format.as_deref().is_some_and(is_special) {
        return false;
    }
    match (schema.ty, value) {
        (Type::String, Value::String(_)) | (Type::Boolean, Value::Bool(_)) => true,
        (Type::Integer, Value::Number(number)) => number
            .as_i64()
            .is_some_and(|n| schema.format.as_deref() != Some("int32") || i32::try_from(n).is_ok()),
        (Type::Array, Value::Array(list)) => {
            schema.items.as_ref().is_some_and(|items| list.iter().all(|item| fits(item, items)))
        }
        (Type::Object, Value::Object(map)) => map.iter().all(|(key, value)| {
            let below = schema.property(key).or(schema.map_values());
            below.is_some_and(|below| fits(value, below))
        }),
        _ => false,
    }
}

/// Formats that not every value of the JSON type has.
fn is_special(format: &str) -> bool {
    !matches!(format, "" | "int32" | "int64")
}
