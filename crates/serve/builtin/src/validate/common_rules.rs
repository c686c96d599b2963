//! Validation rules that many kinds share, with Kubernetes' messages.

use fl_types::{LabelSelector, NameError, Selector};
use serde_json::Value;

pub(crate) use crate::diff::unified_diff;
use crate::field::{Errors, Path, list, text};

/// The messages of a failed name check, none if it passed.
pub(crate) fn messages(result: Result<(), NameError>) -> Vec<String> {
    result.err().map(|error| error.messages().to_vec()).unwrap_or_default()
}

pub(crate) fn label(errors: &mut Errors, path: &Path, value: &str) {
    errors.each_invalid(path, value, &messages(fl_types::check_dns1123_label(value)));
}

pub(crate) fn subdomain(errors: &mut Errors, path: &Path, value: &str) {
    errors.each_invalid(path, value, &messages(fl_types::check_dns1123_subdomain(value)));
}

/// A DNS search path: like [`subdomain`], with underscores.
pub(crate) fn search_path(errors: &mut Errors, path: &Path, value: &str) {
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let good = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part).as_bytes();
        part.first().is_some_and(|b| lower(*b))
            && part.last().is_some_and(|b| lower(*b))
            && part.iter().all(|b| lower(*b) || b"-_".contains(b))
    };
    if value.len() > 253 {
        errors.invalid(path, value, "must be no more than 253 characters");
    }
    if !value.split('.').all(good) {
        let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
        errors.invalid(path, value, why);
    }
}

pub(crate) fn qualified_name(errors: &mut Errors, path: &Path, value: &str) {
    errors.each_invalid(path, value, &messages(fl_types::check_qualified_name(value)));
}

/// A map of labels.
pub(crate) fn labels(errors: &mut Errors, path: &Path, map: &Value) {
    for (key, value) in map.as_object().into_iter().flatten() {
        qualified_name(errors, path, key);
        let value = value.as_str().unwrap_or_default();
        errors.each_invalid(path, value, &messages(fl_types::check_label_value(value)));
    }
}

/// Annotations of an embedded object.
pub(crate) fn annotations(errors: &mut Errors, path: &Path, map: &Value) {
    for key in map.as_object().into_iter().flatten().map(|(key, _)| key) {
        errors.each_invalid(path, key, &messages(fl_types::check_qualified_name(&key.to_lowercase())));
    }
}

/// A label selector, which may be absent.
pub(crate) fn label_selector(errors: &mut Errors, path: &Path, selector: &Value) {
    labels(errors, &path.child("matchLabels"), &selector["matchLabels"]);
    for (at, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions").index(at);
        let values = list(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                errors
                    .required(&path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&path.child("values"), why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.invalid(&path.child("operator"), other, "not a valid selector operator"),
        }
        qualified_name(errors, &path.child("key"), text(expression, "key"));
        for (i, value) in values.iter().filter_map(Value::as_str).enumerate() {
            let found = messages(fl_types::check_label_value(value));
            errors.each_invalid(&path.child("values").index(i), value, &found);
        }
    }
}

/// Parses a label selector: an absent one matches nothing, an invalid one is an error.
pub(crate) fn to_selector(value: &Value) -> Result<Selector, ()> {
    if value.is_null() {
        return Ok(Selector::nothing());
    }
    serde_json::from_value::<LabelSelector>(value.clone())
        .map_err(|_| ())
        .and_then(|selector| selector.to_selector().map_err(|_| ()))
}

pub(crate) fn selects(selector: &Selector, labels: &Value) -> bool {
    selector.matches(|key| labels[key].as_str())
}

/// A selector in Go's field order, as upstream prints it in messages.
pub(crate) fn print_selector(selector: &Value) -> String {
    if selector.is_null() {
        return "null".to_owned();
    }
    let mut parts = Vec::new();
    if selector["matchLabels"].is_object() {
        parts.push(format!("\"matchLabels\":{}", selector["matchLabels"]));
    }
    let expressions: Vec<String> = list(selector, "matchExpressions")
        .iter()
        .map(|e| {
            let values =
                if e["values"].is_null() { String::new() } else { format!(",\"values\":{}", e["values"]) };
            format!("{{\"key\":{},\"operator\":{}{values}}}", e["key"], e["operator"])
        })
        .collect();
    if !expressions.is_empty() {
        parts.push(format!("\"matchExpressions\":[{}]", expressions.join(",")));
    }
    format!("{{{}}}", parts.join(","))
}

pub(crate) const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

pub(crate) fn is_port(number: i64) -> bool {
    (1..=65535).contains(&number)
}

pub(crate) fn port(errors: &mut Errors, path: &Path, value: &Value) {
    let number = value.as_i64().unwrap_or(0);
    if !is_port(number) {
        errors.invalid(path, number, PORT_RANGE);
    }
}

/// Why `name` is not the name of a port; empty if it is one.
pub(crate) fn port_name(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if name.len() > 15 {
        found.push("must be no more than 15 characters".to_owned());
    }
    if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') || name.is_empty() {
        found.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        found.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        found.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        found.push("must not begin or end with a hyphen".to_owned());
    }
    found
}

/// A port by number or name.
pub(crate) fn port_or_name(errors: &mut Errors, path: &Path, value: &Value) {
    match value {
        Value::String(name) => errors.each_invalid(path, name, &port_name(name)),
        other => port(errors, path, other),
    }
}

/// The percentage of an int-or-string, if it is one.
pub(crate) fn percent(value: &Value) -> Option<i64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// The number of an int-or-string; of a percentage, the number before `%`.
pub(crate) fn int_or_percent(value: &Value) -> i64 {
    percent(value).or_else(|| value.as_i64()).unwrap_or(0)
}

pub(crate) fn positive_int_or_percent(errors: &mut Errors, path: &Path, value: &Value) {
    match value {
        Value::String(text) if percent(value).is_none() => {
            let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            errors.invalid(path, text.as_str(), why);
        }
        Value::Number(_) => errors.non_negative(path, value),
        _ => {}
    }
}

pub(crate) fn at_most_100_percent(errors: &mut Errors, path: &Path, value: &Value) {
    if percent(value).is_some_and(|p| p > 100) {
        errors.invalid(path, value.clone(), "must not be greater than 100%");
    }
}

/// The key of a ConfigMap or Secret.
pub(crate) fn config_key(key: &str) -> Vec<String> {
    let mut found = Vec::new();
    if key.len() > 253 {
        found.push("must be no more than 253 characters".to_owned());
    }
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
        found.push("a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')".to_owned());
    }
    match key {
        "." => found.push("must not be '.'".to_owned()),
        ".." => found.push("must not be '..'".to_owned()),
        other if other.starts_with("..") => found.push("must not start with '..'".to_owned()),
        _ => {}
    }
    found
}

pub(crate) fn relative_path(errors: &mut Errors, path: &Path, value: &str) {
    if value.starts_with('/') {
        errors.invalid(path, value, "must be a relative path");
    }
    no_backsteps(errors, path, value);
}

pub(crate) fn no_backsteps(errors: &mut Errors, path: &Path, value: &str) {
    if value.split('/').any(|part| part == "..") {
        errors.invalid(path, value, "must not contain '..'");
    }
}

/// A relative path inside a volume whose name does not start with `..`, which is reserved.
pub(crate) fn local_path(errors: &mut Errors, path: &Path, value: &str) {
    relative_path(errors, path, value);
    if value.starts_with("..") && !value.starts_with("../") {
        errors.invalid(path, value, "must not start with '..'");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_names() {
        assert!(port_name("http").is_empty());
        assert_eq!(port_name("80"), ["must contain at least one letter (a-z)"]);
        assert_eq!(port_name("a--b").len(), 1);
        assert_eq!(port_name("a-very-long-port-name").len(), 1);
    }
}
