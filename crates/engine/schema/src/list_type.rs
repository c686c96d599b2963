//! Uniqueness of the items of lists with `x-kubernetes-list-type: set` or `map`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::field_error::FieldError;
use crate::structural::{ListType, Schema};

/// Duplicate items of set and map lists, anywhere below `value`.
pub fn check_list_types(value: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    visit(value, schema, "", &mut errors);
    errors
}

fn visit(value: &Value, schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            for (name, below) in map {
                if let Some(property) = schema.property(name) {
                    let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    visit(below, property, &at, errors);
                } else if let Some(values) = schema.map_values() {
                    visit(below, values, &format!("{path}[{name}]"), errors);
                }
            }
        }
        Value::Array(list) => {
            match schema.list {
                ListType::Set => {
                    for index in repeated(list) {
                        errors.push(FieldError::duplicate(format!("{path}[{index}]"), &list[index]));
                    }
                }
                ListType::Map => keyed(list, schema, path, errors),
                ListType::Unset | ListType::Atomic => {}
            }
            if let Some(items) = &schema.items {
                for (index, item) in list.iter().enumerate() {
                    visit(item, items, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

/// Index of the second occurrence of every value that occurs more than once.
fn repeated(list: &[Value]) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(list.len());
    let mut found = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let times = seen.entry(value.to_string()).or_insert(0);
        *times += 1;
        if *times == 2 {
            found.push(index);
        }
    }
    found
}

fn keyed(list: &[Value], schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    if let Some((index, value)) = list.iter().enumerate().find(|(_, v)| !v.is_null() && !v.is_object()) {
        errors.push(FieldError::invalid(
            format!("{path}[{index}]"),
            value,
            "must be an object for an array of list-type map",
        ));
        return;
    }
    let keys: Vec<Value> = list
        .iter()
        .map(|item| {
            let key: Map<String, Value> = schema
                .list_keys
                .iter()
                .filter_map(|name| item.get(name.as_ref()).map(|v| (name.to_string(), v.clone())))
                .collect();
            Value::Object(key)
        })
        .collect();
    for index in repeated(&keys) {
        errors.push(FieldError::duplicate(format!("{path}[{index}]"), &keys[index]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn second_duplicate_is_reported() {
        let schema = Schema::from_json(&json!({"type": "object", "properties": {
            "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"],
                  "items": {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}}}})).expect("schema");
        let value = json!({"s": ["a", "b", "a", "a"], "m": [{"name": "x", "port": 1}, {"name": "x"}, {"name": "x", "port": 1}]});
        let texts: Vec<String> = check_list_types(&value, &schema).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            ["m[2]: Duplicate value: {\"name\":\"x\",\"port\":1}", "s[2]: Duplicate value: \"a\"",]
        );
    }
}
