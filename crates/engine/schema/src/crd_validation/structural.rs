//! Validation of structural schemas: the type of every value is specified in exactly one place.

use serde_json::{Map, Value, json};

use crate::field_error::FieldError;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Errors, sorted by message as in the reference.
pub(super) fn check(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let mut found = Vec::new();
    visit(schema, Level::Root, at, &mut found);
    found.sort_by_key(ToString::to_string);
    errors.extend(found);
}

fn truthy(schema: &Map<String, Value>, key: &str) -> bool {
    schema.get(key) == Some(&json!(true))
}

fn ty(schema: &Map<String, Value>) -> &str {
    schema.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn ty_of(schema: &Value) -> &str {
    schema.as_object().map(ty).unwrap_or_default()
}

fn visit(schema: &Value, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let Some(map) = schema.as_object() else { return };
    let items = map.get("items").filter(|i| !i.is_null());
    if ty(map) == "array" && items.is_none() {
        errors.push(FieldError::required(format!("{at}.items"), "must be specified"));
    }
    if let Some(items) = items {
        visit(items, Level::Item, &format!("{at}.items"), errors);
    }
    let properties = map.get("properties").and_then(Value::as_object);
    for (name, below) in properties.into_iter().flatten() {
        visit(below, Level::Field, &format!("{at}.properties[{name}]"), errors);
    }
    let additional = map.get("additionalProperties").filter(|a| !a.is_null());
    if let Some(additional) = additional {
        if level == Level::Root {
            errors.push(FieldError::forbidden(
                format!("{at}.additionalProperties"),
                "must not be used at the root",
            ));
        }
        visit(additional, Level::Field, &format!("{at}.additionalProperties"), errors);
    }
    let (int_or_string, embedded, preserve) = (
        truthy(map, "x-kubernetes-int-or-string"),
        truthy(map, "x-kubernetes-embedded-resource"),
        truthy(map, "x-kubernetes-preserve-unknown-fields"),
    );
    if int_or_string && preserve {
        errors.push(FieldError::invalid(
            format!("{at}.x-kubernetes-preserve-unknown-fields"),
            &json!(true),
            "must be false if x-kubernetes-int-or-string is true",
        ));
    }
    if int_or_string && embedded {
        errors.push(FieldError::invalid(
            format!("{at}.x-kubernetes-embedded-resource"),
            &json!(true),
            "must be false if x-kubernetes-int-or-string is true",
        ));
    }
    check_values(map, is_int_or_string(map.get("anyOf")), first_all_of_is_int_or_string(map), at, errors);
    let name = ty(map);
    if embedded && name != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        if name.is_empty() {
            errors.push(FieldError::required(format!("{at}.type"), detail));
        } else {
            errors.push(FieldError::invalid(format!("{at}.type"), &json!(name), detail));
        }
    } else if name.is_empty() && !int_or_string && !preserve {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(format!("{at}.type"), detail));
    }
    if embedded && additional.is_some() {
        errors.push(FieldError::forbidden(
            format!("{at}.additionalProperties"),
            "must not be used if x-kubernetes-embedded-resource is set",
        ));
    }
    if level == Level::Root && !name.is_empty() && name != "object" {
        errors.push(FieldError::invalid(format!("{at}.type"), &json!(name), "must be object at the root"));
    }
    check_meta(properties, level == Level::Root || embedded, level, at, errors);
    if embedded && !preserve && properties.is_none_or(Map::is_empty) {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{at}.properties"), detail));
    }
}

fn check_meta(
    properties: Option<&Map<String, Value>>,
    checked: bool,
    level: Level,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(properties) = properties else { return };
    for name in ["kind", "apiVersion"] {
        if let Some(found) = properties.get(name).filter(|_| checked)
            && ty_of(found) != "string"
        {
            errors.push(FieldError::invalid(
                format!("{at}.properties[{name}].type"),
                &json!(ty_of(found)),
                "must be string",
            ));
        }
    }
    let Some(metadata) = properties.get("metadata") else { return };
    let at = format!("{at}.properties[metadata]");
    if checked && ty_of(metadata) != "object" {
        errors.push(FieldError::invalid(format!("{at}.type"), &json!(ty_of(metadata)), "must be object"));
    }
    if level == Level::Root {
        let plain = metadata.as_object().is_some_and(|map| {
            map.iter().all(|(key, value)| match key.as_str() {
                "type" | "default" => true,
                "properties" => {
                    value.as_object().is_some_and(|p| p.keys().all(|k| k == "name" || k == "generateName"))
                }
                _ => value.is_null() || *value == json!(false) || *value == json!(""),
            })
        });
        if !plain {
            errors.push(FieldError::forbidden(at, "must not specify anything other than name and generateName, but metadata is implicitly specified"));
        }
    }
}

fn is_int_or_string(any_of: Option<&Value>) -> bool {
    any_of == Some(&json!([{"type": "integer"}, {"type": "string"}]))
}

fn first_all_of_is_int_or_string(map: &Map<String, Value>) -> bool {
    map.get("allOf").and_then(|a| a.get(0)).is_some_and(|first| is_int_or_string(first.get("anyOf")))
}

/// Value validations, below which no structure may be specified.
fn check_values(
    map: &Map<String, Value>,
    skip_any_of: bool,
    skip_first: bool,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    for key in ["anyOf", "allOf", "oneOf"] {
        if key == "anyOf" && skip_any_of {
            continue;
        }
        for (index, nested) in map.get(key).and_then(Value::as_array).into_iter().flatten().enumerate() {
            let skip = key == "allOf" && skip_first && index == 0;
            check_nested(nested, skip, &format!("{at}.{key}[{index}]"), errors);
        }
    }
    if let Some(not) = map.get("not").filter(|n| !n.is_null()) {
        check_nested(not, false, &format!("{at}.not"), errors);
    }
    if let Some(pattern) = map.get("pattern").and_then(Value::as_str).filter(|p| !p.is_empty())
        && let Err(why) = fl_go::regexp::compile(pattern)
    {
        errors.push(FieldError::invalid(
            format!("{at}.pattern"),
            &json!(pattern),
            format!("must be a valid regular expression, but isn't: {why}"),
        ));
    }
}

fn check_nested(schema: &Value, skip_any_of: bool, at: &str, errors: &mut Vec<FieldError>) {
    let Some(map) = schema.as_object() else { return };
    check_values(map, skip_any_of, false, at, errors);
    if let Some(items) = map.get("items").filter(|i| !i.is_null()) {
        check_nested(items, false, &format!("{at}.items"), errors);
    }
    for (name, below) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        check_nested(below, false, &format!("{at}.properties[{name}]"), errors);
    }
    const FORBIDDEN: &[(&str, &str)] = &[
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    for (key, detail) in FORBIDDEN {
        let set = map.get(*key).is_some_and(|v| match v {
            Value::Null | Value::Bool(false) => false,
            Value::String(s) => !s.is_empty(),
            Value::Array(list) => !list.is_empty(),
            _ => true,
        });
        if set {
            errors.push(FieldError::forbidden(format!("{at}.{key}"), *detail));
        }
    }
    if map.get("properties").is_some_and(|p| p.get("metadata").is_some()) {
        errors.push(FieldError::forbidden(
            format!("{at}.properties[metadata]"),
            "must not be specified in a nested context",
        ));
    }
}
