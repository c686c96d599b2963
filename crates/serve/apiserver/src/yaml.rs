//! YAML in and out, as sigs.k8s.io/yaml reads and writes it.

use fl_yaml::{Dialect, JsonStyle, Options};
use serde_json::Value;

/// The first document as JSON text.
pub(crate) fn to_json(text: &[u8]) -> Result<Vec<u8>, String> {
    // JSON is the usual case and needs no conversion.
    let start = text.iter().find(|b| !b.is_ascii_whitespace());
    if start == Some(&b'{') && serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok() {
        return Ok(text.to_vec());
    }
    let node = fl_yaml::parse_first(text, &Options::sigs()).map_err(|e| e.to_string())?;
    let Some(node) = node else { return Ok(b"null".to_vec()) };
    fl_yaml::to_json(&node, Dialect::Sigs, JsonStyle::default())
        .map(String::into_bytes)
        .map_err(|e| e.to_string())
}

/// The YAML text of a value.
pub(crate) fn write(value: &Value) -> Vec<u8> {
    let text = value.to_string();
    let written = fl_yaml::from_json(&text).and_then(|node| fl_yaml::to_sigs_yaml(&node, Dialect::Sigs));
    // What serde_json wrote is JSON, and JSON is YAML.
    written.map_or_else(|_| text.into_bytes(), String::into_bytes)
}
