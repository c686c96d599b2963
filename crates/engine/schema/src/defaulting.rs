//! Defaulting by structural schemas.

use serde_json::Value;

use crate::structural::Schema;

/// Sets absent fields, and nulls that are not nullable, to their default; then recurses.
pub fn default(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(map) => {
            for (name, property) in schema.properties.iter() {
                let Some(fallback) = &property.default else { continue };
                let wanted = match map.get(name) {
                    None => true,
                    Some(Value::Null) => !property.nullable,
                    Some(_) => false,
                };
                if wanted {
                    map.insert(name.to_owned(), Value::clone(fallback));
                }
            }
            if schema.properties.is_empty() && schema.map_values().is_none() {
                return;
            }
            for (name, below) in map.iter_mut() {
                if let Some(property) = schema.property(name) {
                    default(below, property);
                } else if let Some(values) = schema.map_values() {
                    default_member(below, values);
                }
            }
        }
        Value::Array(list) => {
            let Some(items) = &schema.items else { return };
            for item in list {
                default_member(item, items);
            }
        }
        _ => {}
    }
}

fn default_member(value: &mut Value, schema: &Schema) {
    if value.is_null() && !schema.nullable {
        *value = schema.default.as_deref().cloned().unwrap_or(Value::Null);
    }
    default(value, schema);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_apply_inside_of_defaults() {
        let s = Schema::from_json(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "default": {}, "properties": {
                "n": {"type": "integer", "default": 3},
                "null": {"type": "string", "nullable": true, "default": "x"},
                "list": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}}},
                "map": {"type": "object", "additionalProperties": {"type": "string", "default": "d"}}}}}})).expect("schema");
        let mut object = json!({});
        default(&mut object, &s);
        assert_eq!(object, json!({"spec": {"n": 3, "null": "x"}}));
        let mut object =
            json!({"spec": {"n": null, "null": null, "list": [{}, {"p": "UDP"}], "map": {"a": null}}});
        default(&mut object, &s);
        assert_eq!(
            object,
            json!({"spec": {"n": 3, "null": null, "list": [{"p": "TCP"}, {"p": "UDP"}], "map": {"a": "d"}}})
        );
    }
}
