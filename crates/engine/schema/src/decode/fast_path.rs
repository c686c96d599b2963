//! A check without copies whether a value matches its type.

use serde_json::Value;

use crate::structural::{Schema, Type};

/// Whether the decoder would accept a value unchanged. False means only that the decoder has to run: it
/// handles nulls, unknown fields and strings with a format.
pub(super) fn matches_type(value: &Value, schema: &Schema) -> bool {
    if schema.preserve_unknown || schema.int_or_string || schema.format.as_deref().is_some_and(is_restrictive)
    {
        return false;
    }
    match (schema.ty, value) {
        (Type::String, Value::String(_)) | (Type::Boolean, Value::Bool(_)) => true,
        (Type::Integer, Value::Number(number)) => number
            .as_i64()
            .is_some_and(|n| schema.format.as_deref() != Some("int32") || i32::try_from(n).is_ok()),
        (Type::Array, Value::Array(list)) => {
            schema.items.as_ref().is_some_and(|items| list.iter().all(|item| matches_type(item, items)))
        }
        (Type::Object, Value::Object(map)) => map.iter().all(|(key, value)| {
            let below = schema.property(key).or(schema.map_values());
            below.is_some_and(|below| matches_type(value, below))
        }),
        _ => false,
    }
}

/// Formats that restrict the values of their JSON type.
fn is_restrictive(format: &str) -> bool {
    !matches!(format, "" | "int32" | "int64")
}
