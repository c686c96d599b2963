//! Value validation with the messages of the API server's OpenAPI validator, and with ratcheting: errors in
//! parts that an update does not change are ignored.

mod number;
mod result;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::field_error::{FieldError, FieldErrorKind};
use crate::formats;
use crate::list_correlation;
use crate::print::print_plain;

use crate::structural::{Additional, Rules, Schema, Type};
use result::{ValidationError, ValidationResult};

/// Validates `value`; with `old`, errors in unchanged parts are ignored. `prefix` starts the paths
/// (`status`).
pub fn validate(value: &Value, old: Option<&Value>, schema: &Schema, prefix: &str) -> Vec<FieldError> {
    let result = check(value, old, schema, "", true);
    let mut seen = HashSet::new();
    let mut errors: Vec<FieldError> = result
        .errors
        .into_iter()
        .filter(|found| seen.insert(found.text.clone()))
        .map(|found| found.into_field_error(prefix))
        .collect();
    // Go iterates over properties in random order; sorting makes the result deterministic.
    errors.sort_by(|a, b| a.field.cmp(&b.field));
    errors
}

fn check(value: &Value, old: Option<&Value>, schema: &Schema, path: &str, root: bool) -> ValidationResult {
    let result = check_here(value, old, schema, path);
    if !result.errors.is_empty() && !root && old == Some(value) {
        return ValidationResult { errors: Vec::new(), matched: result.matched };
    }
    if root && old == Some(value) {
        return ValidationResult::default();
    }
    result
}

fn check_here(value: &Value, old: Option<&Value>, schema: &Schema, path: &str) -> ValidationResult {
    let mut out = ValidationResult::default();
    let rules = schema.rules.as_deref();
    if value.is_null() {
        out.merge(check_type(value, schema, path));
        out.merge(check_enum(value, rules, path));
        return out;
    }
    let typed = schema.ty != Type::Any || schema.int_or_string || known_format(schema).is_some();
    if typed {
        out.merge_counted(check_type(value, schema, path));
    }
    out.merge_counted(check_alternatives(value, old, rules, path));
    match value {
        Value::String(text) => {
            out.merge_counted(check_string(text, rules, path));
            if let Some(format) = known_format(schema) {
                out.merge_counted(check_format(text, format, path));
            }
        }
        Value::Number(number) => out.merge_counted(number::check(number, rules, path)),
        Value::Array(list) => out.merge_counted(check_list(list, old, schema, path)),
        Value::Object(map) => {
            out.merge_counted(check_object(map, old, schema, path));
        }
        Value::Bool(_) | Value::Null => {}
    }
    out.merge_counted(check_enum(value, rules, path));
    out.matched += 1;
    out
}

fn known_format(schema: &Schema) -> Option<&str> {
    schema.format.as_deref().filter(|f| formats::check(f, "").is_some())
}

fn type_names(schema: &Schema) -> &'static str {
    if schema.int_or_string { "integer,string" } else { schema.ty.as_str() }
}

/// The type of a value in terms of JSON Schema.
fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        // Go decodes integers beyond 64 bits as floats.
        Value::Number(n) if n.as_i64().is_none() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_type(value: &Value, schema: &Schema, path: &str) -> ValidationResult {
    let words = type_names(schema);
    let found = json_type(value);
    if value.is_null() {
        if !words.is_empty() && !schema.nullable {
            return ValidationResult::of(type_error(path, words, found));
        }
        return ValidationResult { matched: 1, ..ValidationResult::default() };
    }
    let wants = |word: &str| words.split(',').any(|w| w == word);
    // Above 2^53 floats cannot represent every integer.
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_991.0;
    let is_whole = |f: f64| f.fract() == 0.0 && f.abs() <= MAX_EXACT_INTEGER;
    let whole_float = matches!(value, Value::Number(n) if n.is_f64() && n.as_f64().is_some_and(is_whole))
        && wants("integer");
    let fits = wants(found) || whole_float || (found == "integer" && wants("number"));
    if let Some(format) = known_format(schema) {
        if matches!(found, "string" | "array") && !wants("number") && !wants("integer") {
            return ValidationResult { matched: 1, ..ValidationResult::default() };
        }
        if !matches!(found, "string" | "array") && !fits {
            let given = match found {
                "integer" => "int64",
                "number" => "float64",
                _ => "",
            };
            return ValidationResult::of(type_error(path, format, given));
        }
    }
    if fits {
        ValidationResult { matched: 1, ..ValidationResult::default() }
    } else {
        ValidationResult::of(type_error(path, words, found))
    }
}

fn type_error(path: &str, want: &str, found: &str) -> ValidationError {
    let text = format!("{path} in body must be of type {want}: {}", fl_go::quote(found));
    ValidationError::new(FieldErrorKind::TypeInvalid, path, Some(fl_go::quote(found)), text.clone(), text)
}

fn check_enum(value: &Value, rules: Option<&Rules>, path: &str) -> ValidationResult {
    let Some(rules) = rules.filter(|r| !r.enumeration.is_empty()) else { return ValidationResult::default() };
    if rules.enumeration.iter().any(|allowed| !allowed.is_null() && same(allowed, value)) {
        return ValidationResult::default();
    }
    let names: Vec<String> = rules
        .enumeration
        .iter()
        .map(|v| fl_go::quote(&v.as_str().map_or_else(|| v.to_string(), str::to_owned)))
        .collect();
    let detail = format!("supported values: {}", names.join(", "));
    let shown: Vec<String> = rules.enumeration.iter().map(print_plain).collect();
    let text = format!("{path} in body should be one of [{}]", shown.join(" "));
    ValidationResult::of(ValidationError::about(FieldErrorKind::NotSupported, path, value, detail, text))
}

/// Whether a value equals one of an enumeration. The server converts it to the type of the allowed one first,
/// which truncates fractions.
fn same(allowed: &Value, value: &Value) -> bool {
    match (allowed, value) {
        (Value::Number(x), Value::Number(y)) => match (x.as_i64(), y.as_i64(), y.as_f64()) {
            (Some(x), None, Some(y)) => x == y as i64,
            _ => x == y || x.as_f64() == y.as_f64(),
        },
        _ => allowed == value,
    }
}

fn check_string(text: &str, rules: Option<&Rules>, path: &str) -> ValidationResult {
    let Some(rules) = rules else { return ValidationResult::default() };
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let value = Value::String(text.to_owned());
    if let Some(max) = rules.max_length.filter(|max| length > *max) {
        let unit = if max == 1 { "byte" } else { "bytes" };
        let detail = if max >= 0 {
            format!("may not be more than {max} {unit}")
        } else {
            "value is too long".to_owned()
        };
        let full = format!("{path} in body should be at most {max} chars long");
        return ValidationResult::of(ValidationError::new(FieldErrorKind::TooLong, path, None, detail, full));
    }
    if let Some(min) = rules.min_length.filter(|min| length < *min) {
        return ValidationResult::of(ValidationError::invalid(
            path,
            &value,
            format!("{path} in body should be at least {min} chars long"),
        ));
    }
    if let Some(pattern) = &rules.pattern {
        let matched = rules.regex().is_some_and(|regex| regex.is_match(text));
        if !matched {
            return ValidationResult::of(ValidationError::invalid(
                path,
                &value,
                format!("{path} in body should match '{pattern}'"),
            ));
        }
    }
    ValidationResult::default()
}

fn check_format(text: &str, format: &str, path: &str) -> ValidationResult {
    if formats::check(format, text) == Some(false) {
        return ValidationResult::of(type_error(path, format, text));
    }
    ValidationResult::default()
}

fn check_list(list: &[Value], old: Option<&Value>, schema: &Schema, path: &str) -> ValidationResult {
    let mut out = ValidationResult::default();
    if let Some(items) = &schema.items {
        for (index, item) in list.iter().enumerate() {
            let before = old.and_then(|o| list_correlation::item(o, item, schema));
            out.merge(check(item, before, items, &format!("{path}[{index}]"), false));
        }
    }
    let size = i64::try_from(list.len()).unwrap_or(i64::MAX);
    if let Some(rules) = schema.rules.as_deref() {
        if let Some(min) = rules.min_items.filter(|min| size < *min) {
            out.push(ValidationError::invalid(
                path,
                &Value::from(size),
                format!("{path} in body should have at least {min} items"),
            ));
        }
        if let Some(max) = rules.max_items.filter(|max| size > *max) {
            out.push(too_many(path, size, max, format!("{path} in body should have at most {max} items")));
        }
        if rules.unique_items && has_duplicates(list) {
            out.push(ValidationError::invalid(
                path,
                &Value::String(String::new()),
                format!("{path} in body shouldn't contain duplicates"),
            ));
        }
    }
    out.matched += 1;
    out
}

fn has_duplicates(list: &[Value]) -> bool {
    let mut seen = HashSet::new();
    list.iter().any(|item| !seen.insert(item.to_string()))
}

fn too_many(path: &str, size: i64, max: i64, text: String) -> ValidationError {
    let unit = if max == 1 { "item" } else { "items" };
    let detail =
        if max >= 0 { format!("must have at most {max} {unit}") } else { "has too many items".to_owned() };
    ValidationError::new(FieldErrorKind::TooMany, path, Some(size.to_string()), detail, text)
}

fn check_object(
    map: &Map<String, Value>,
    old: Option<&Value>,
    schema: &Schema,
    path: &str,
) -> ValidationResult {
    let mut out = ValidationResult::default();
    let size = i64::try_from(map.len()).unwrap_or(i64::MAX);
    let rules = schema.rules.as_deref();
    if let Some(min) = rules.and_then(|r| r.min_properties).filter(|min| size < *min) {
        out.push(ValidationError::invalid(
            path,
            &Value::from(size),
            format!("{path} in body should have at least {min} properties"),
        ));
    }
    if let Some(max) = rules.and_then(|r| r.max_properties).filter(|max| size > *max) {
        out.push(too_many(path, size, max, format!("{path} in body should have at most {max} properties")));
    }
    for (name, value) in map {
        let before = || {
            old.and_then(|o| o.get(name))
                .filter(|_| !(path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind")))
        };
        if let Some(property) = schema.property(name) {
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            out.merge(check(value, before(), property, &below, false));
            continue;
        }
        match &schema.additional {
            Additional::Schema(node) => {
                out.merge(check(value, before(), node, &format!("{path}.{name}"), false));
            }
            Additional::Allowed(false) => {
                let text = format!("{path}.{name} in body is a forbidden property");
                out.push(ValidationError::invalid(path, &Value::String(name.clone()), text));
            }
            Additional::Unset | Additional::Allowed(true) => {}
        }
    }
    for name in rules.map(|r| r.required.as_slice()).unwrap_or_default() {
        if !map.contains_key(name.as_ref()) {
            let full = format!("{path}.{name}");
            let text = format!("{full} in body is required");
            out.push(ValidationError::new(FieldErrorKind::Required, &full, None, String::new(), text));
        }
    }
    out
}

fn check_alternatives(
    value: &Value,
    old: Option<&Value>,
    rules: Option<&Rules>,
    path: &str,
) -> ValidationResult {
    let mut out = ValidationResult { matched: 1, ..ValidationResult::default() };
    let Some(rules) = rules else { return out };
    let quoted = || fl_go::quote(path);
    if !rules.any_of.is_empty() {
        let mut best: Option<ValidationResult> = None;
        let mut fits = false;
        for schema in &rules.any_of {
            let result = check(value, old, schema, path, true);
            if result.errors.is_empty() {
                fits = true;
                best = Some(result);
                break;
            }
            if best.as_ref().is_none_or(|b| result.matched > b.matched) {
                best = Some(result);
            }
        }
        if !fits {
            out.push(ValidationError::composite(format!(
                "{} must validate at least one schema (anyOf)",
                quoted()
            )));
        }
        out.merge(best.unwrap_or_default());
    }
    if !rules.one_of.is_empty() {
        let mut best: Option<ValidationResult> = None;
        let mut first = None;
        let mut valid = 0;
        for schema in &rules.one_of {
            let result = check(value, old, schema, path, true);
            if result.errors.is_empty() {
                valid += 1;
                best = None;
                first = first.or(Some(result));
            } else if valid == 0 && best.as_ref().is_none_or(|b| result.matched > b.matched) {
                best = Some(result);
            }
        }
        if valid == 1 {
            out.merge(first.unwrap_or_default());
        } else {
            let found = if valid == 0 {
                "Found none valid".to_owned()
            } else {
                format!("Found {valid} valid alternatives")
            };
            out.push(ValidationError::composite(format!(
                "{} must validate one and only one schema (oneOf). {found}",
                quoted()
            )));
            out.merge(best.unwrap_or_default());
        }
    }
    if !rules.all_of.is_empty() {
        let mut valid = 0;
        for schema in &rules.all_of {
            let result = check(value, old, schema, path, true);
            valid += usize::from(result.errors.is_empty());
            out.merge(result);
        }
        if valid != rules.all_of.len() {
            let tail = if valid == 0 { ". None validated" } else { "" };
            out.push(ValidationError::composite(format!(
                "{} must validate all the schemas (allOf){tail}",
                quoted()
            )));
        }
    }
    if let Some(not) = &rules.not
        && check(value, old, not, path, true).errors.is_empty()
    {
        out.push(ValidationError::composite(format!("{} must not validate the schema (not)", quoted())));
    }
    out
}

#[cfg(test)]
mod tests;
