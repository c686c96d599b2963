//! Values in error messages, as Go prints them.

use serde_json::{Number, Value};

/// A number as `%v` prints it.
pub(crate) fn print_number(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => fl_go::float(float),
        _ => number.to_string(),
    }
}

/// A value without quotes around strings; lists and maps as JSON.
pub(crate) fn print_plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => print_number(number),
        other => other.to_string(),
    }
}

/// A value as in Go's field errors: strings quoted, `null` for nil, maps and lists as JSON.
pub(crate) fn print_value(value: &Value) -> String {
    match value {
        Value::String(text) => fl_go::quote(text),
        Value::Number(number) => print_number(number),
        other => fl_go::escape_html(&other.to_string()),
    }
}
