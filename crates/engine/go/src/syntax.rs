//! Values in Go syntax, as `%#v` prints them.

use serde_json::Value;

/// Go's `%#v` of decoded JSON.
#[must_use]
pub fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => crate::quote(text),
        Value::Array(list) => {
            format!("[]interface {{}}{{{}}}", list.iter().map(syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{}:{}", crate::quote(key), syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_in_go_syntax() {
        let value = serde_json::json!({"a": [1, "x", null], "b": true});
        let expected = r#"map[string]interface {}{"a":[]interface {}{1, "x", interface {}(nil)}, "b":true}"#;
        assert_eq!(syntax(&value), expected);
    }
}
