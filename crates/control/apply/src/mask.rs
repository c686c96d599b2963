//! Secret values must not show in an error.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::apply_order::is_secret;

/// Shorter values are everywhere in a text; masking them would say more than it hides.
const SHORTEST: usize = 3;

/// A text for people, in which the values of a Secret are masked.
///
/// It cannot become a part of an object again, so no mask is ever applied in the place of a value (threat G03):
///
/// ```compile_fail
/// let text = fl_apply::mask_secret(&serde_json::json!({"kind": "Secret"}), "text");
/// let object = serde_json::json!({"kind": "Secret", "stringData": {"password": text}});
/// ```
///
/// ```compile_fail
/// let text = fl_apply::mask_secret(&serde_json::json!({"kind": "Secret"}), "text");
/// let value: serde_json::Value = text.into();
/// ```
///
/// ```
/// let text = fl_apply::mask_secret(&serde_json::json!({"kind": "Secret"}), "text");
/// assert_eq!(text.to_string(), "text");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masked(String);

impl std::fmt::Display for Masked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text without any value of the Secret: neither as it is written nor decoded. Other objects leave it as it is.
#[must_use]
pub fn mask_secret(object: &Value, text: &str) -> Masked {
    if !is_secret(object) {
        return Masked(text.to_owned());
    }
    let mut values: Vec<String> = Vec::new();
    for field in ["data", "stringData"] {
        collect(&object[field], &mut values);
    }
    let decoded: Vec<String> = values
        .iter()
        .filter_map(|v| STANDARD.decode(v.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok()))
        .collect();
    values.extend(decoded);
    values.retain(|v| v.len() >= SHORTEST);
    // Longest first: a value may contain another.
    values.sort_by_key(|v| std::cmp::Reverse(v.len()));
    let mut text = text.to_owned();
    for value in values {
        if text.contains(&value) {
            text = text.replace(&value, "***");
        }
    }
    Masked(text)
}

fn collect(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Number(number) => into.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|v| collect(v, into)),
        Value::Object(map) => map.values().for_each(|v| collect(v, into)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_hidden_in_both_forms() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "aHVudGVyMg=="}, "stringData": {"b": "open sesame"}});
        let text = mask_secret(&secret, "got hunter2 (aHVudGVyMg==) and open sesame");
        assert_eq!(text.to_string(), "got *** (***) and ***");
        let plain = mask_secret(&json!({"kind": "ConfigMap", "data": {"a": "plain"}}), "plain");
        assert_eq!(plain.to_string(), "plain");
    }
}
