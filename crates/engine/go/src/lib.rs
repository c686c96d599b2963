//! Go's formats. The tools whose output and error messages are matched are written in Go: its quoting (`%q`),
//! printed values (`%v`, `%T`), JSON, times and regular expressions occur throughout.

pub mod float;
mod json;
mod json_syntax;
pub mod regexp;
mod syntax;
mod time;

use std::fmt::Write as _;

use serde_json::Value;

pub use float::float;
pub use json::to_go_json;
pub use json_syntax::{escape_html, json_kind, json_syntax_error};
pub use syntax::syntax;
pub use time::GoTime;

/// Go's `%q` of a text.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            ' '..='~' => out.push(c),
            '\0'..='\x7f' => drop(write!(out, "\\x{:02x}", c as u32)),
            // `escape_debug` of a non-first character leaves exactly the printable characters unchanged.
            _ if ['a', c].iter().collect::<String>().escape_debug().count() == 2 => out.push(c),
            '\u{80}'..='\u{ffff}' => drop(write!(out, "\\u{:04x}", c as u32)),
            _ => drop(write!(out, "\\U{:08x}", c as u32)),
        }
    }
    out.push('"');
    out
}

/// Go's `%v` of decoded JSON.
#[must_use]
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let pairs: Vec<String> = map.iter().map(|(k, v)| format!("{k}:{}", plain(v))).collect();
            format!("map[{}]", pairs.join(" "))
        }
        other => other.to_string(),
    }
}

/// Go's `%s` of decoded JSON: numbers and booleans are printed as errors with their type.
#[must_use]
pub fn string(value: &Value) -> String {
    match value {
        Value::Number(_) | Value::Bool(_) => format!("%!s({}={})", type_name(value), plain(value)),
        other => plain(other),
    }
}

/// Go's `%T` of decoded JSON.
#[must_use]
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unprintable_characters_are_escaped() {
        assert_eq!(quote("a\"b\\\n\x01é\u{200b}"), r#""a\"b\\\n\x01é\u200b""#);
        assert_eq!(quote("\u{7f}\u{85}\u{10ffff}"), r#""\x7f\u0085\U0010ffff""#);
    }

    #[test]
    fn nested_values_are_printed_without_quotes() {
        let value = serde_json::json!({"tag": "v1", "list": [1, true, null], "empty": {}});
        assert_eq!(plain(&value), "map[empty:map[] list:[1 true <nil>] tag:v1]");
    }
}
