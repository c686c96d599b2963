//! How Go prints decoded JSON inside a sentence.

use serde_json::Value;

/// Go's `%v` of decoded JSON.
#[must_use]
pub fn go_plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(go_plain).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let pairs: Vec<String> = map.iter().map(|(k, v)| format!("{k}:{}", go_plain(v))).collect();
            format!("map[{}]", pairs.join(" "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_nested_values_without_quotes() {
        let value = serde_json::json!({"tag": "v1", "list": [1, true, null], "empty": {}});
        assert_eq!(go_plain(&value), "map[empty:map[] list:[1 true <nil>] tag:v1]");
    }
}
