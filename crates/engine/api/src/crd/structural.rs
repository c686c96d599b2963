//! Converts the schema derived by `schemars` to a structural schema.
//!
//! In a structural schema every node has a type, there are no references, null is not a type, and combinators
//! only restrict what is declared next to them.

use schemars::Schema;
use serde_json::{Map, Value, json};

/// Marks a required field with a default, which `schemars` cannot express. The API server sets the default
/// before it checks required fields.
const REQUIRED: &str = "x-required";

/// Rewrites a derived schema in place.
#[must_use]
pub fn structural_schema(schema: Schema) -> Value {
    let mut value = match schema.to_value() {
        Value::Bool(_) => json!({}),
        other => other,
    };
    rewrite(&mut value);
    value
}

fn rewrite(value: &mut Value) {
    let Some(node) = value.as_object_mut() else {
        // `true` admits everything; the structural spelling of that is an empty node.
        *value = json!({});
        return;
    };
    for key in ["$schema", "title", "definitions", "$defs", "examples", "deprecated", "writeOnly", "readOnly"]
    {
        node.remove(key);
    }
    drop_null(node);
    merge_single(node);
    constants_to_enum(node);
    if node.get("default").is_some_and(Value::is_null) {
        node.remove("default");
    }
    drop_rust_formats(node);
    for key in ["default", "minimum", "maximum"] {
        if let Some(value) = node.get_mut(key) {
            shorten_number(value);
        }
    }
    if node.get("additionalProperties").is_some_and(Value::is_boolean) {
        node.remove("additionalProperties");
    }
    for child in ["items", "additionalProperties"] {
        if let Some(child) = node.get_mut(child) {
            rewrite(child);
        }
    }
    let mut required = Vec::new();
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        for (name, property) in properties.iter_mut() {
            rewrite(property);
            if property.as_object_mut().is_some_and(|p| p.remove(REQUIRED).is_some()) {
                required.push(json!(name));
            }
        }
        if properties.is_empty() {
            node.remove("properties");
        }
    }
    if !required.is_empty()
        && let Value::Array(all) = node.entry("required").or_insert_with(|| json!([]))
    {
        all.append(&mut required);
    }
    if let Some(Value::Array(required)) = node.get_mut("required") {
        required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }
}

fn is_null_type(value: &Value) -> bool {
    value.as_object().is_some_and(|o| o.len() == 1 && o.get("type").and_then(Value::as_str) == Some("null"))
}

/// An optional field may be absent; the API server drops an explicit null.
fn drop_null(node: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = node.get_mut("type") {
        types.retain(|t| t != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            node.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(values)) = node.get_mut("enum") {
        values.retain(|v| !v.is_null());
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = node.get_mut(key) {
            branches.retain(|b| !is_null_type(b));
        }
    }
}

/// Merges `anyOf` with a single branch. Keywords next to it (the field's own description) take precedence.
fn merge_single(node: &mut Map<String, Value>) {
    for key in ["anyOf", "oneOf", "allOf"] {
        let single = match node.get(key) {
            Some(Value::Array(branches)) if branches.len() == 1 => branches[0].clone(),
            _ => continue,
        };
        node.remove(key);
        if let Value::Object(branch) = single {
            for (name, value) in branch {
                node.entry(name).or_insert(value);
            }
        }
        drop_null(node);
    }
}

/// Converts constant variants to one `enum`.
fn constants_to_enum(node: &mut Map<String, Value>) {
    if let Some(constant) = node.remove("const") {
        node.insert("enum".to_owned(), json!([constant]));
    }
    let Some(Value::Array(branches)) = node.get("oneOf") else { return };
    let words = branches.iter().map(|b| match (b.get("const"), b.get("enum")) {
        (Some(word), _) => Some(vec![word.clone()]),
        (None, Some(Value::Array(words))) => Some(words.clone()),
        _ => None,
    });
    if let Some(words) = words.collect::<Option<Vec<_>>>() {
        node.remove("oneOf");
        node.insert("type".to_owned(), json!("string"));
        node.insert("enum".to_owned(), Value::Array(words.concat()));
    }
}

/// Converts `1.0` to `1`, as YAML writes it.
fn shorten_number(value: &mut Value) {
    // Beyond 2^53 a float is not exact.
    if let Some(float) = value.as_f64().filter(|f| value.is_f64() && f.fract() == 0.0 && f.abs() < 9e15) {
        *value = json!(float as i64);
    }
}

/// Removes formats specific to Rust. A Go `int` has no format, so the types use `isize` for it.
fn drop_rust_formats(node: &mut Map<String, Value>) {
    let rust_only =
        ["int", "uint", "double", "float", "uint8", "uint16", "uint32", "uint64", "int8", "int16"];
    if node.get("format").and_then(Value::as_str).is_some_and(|f| rust_only.contains(&f)) {
        node.remove("format");
    }
}
