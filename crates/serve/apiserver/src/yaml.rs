//! YAML in and out, as sigs.k8s.io/yaml reads and writes it.

use fl_yaml::{Dialect, JsonStyle, Options};
use serde_json::Value;

/// The first document; JSON, the usual case, is read as such.
pub(crate) fn read(text: &[u8]) -> Result<Value, String> {
    if starts_like_json(text)
        && let Ok(value) = serde_json::from_slice(text)
    {
        return Ok(value);
    }
    serde_json::from_slice(&to_json(text)?).map_err(|e| e.to_string())
}

fn starts_like_json(text: &[u8]) -> bool {
    text.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{')
}

/// The first document as JSON text.
pub(crate) fn to_json(text: &[u8]) -> Result<Vec<u8>, String> {
    if starts_like_json(text) && serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok() {
        return Ok(text.to_vec());
    }
    let node = fl_yaml::parse_first(text, &Options::sigs()).map_err(|e| e.go_text(Dialect::Sigs))?;
    let Some(node) = node else { return Ok(b"null".to_vec()) };
    fl_yaml::to_json(&node, Dialect::Sigs, JsonStyle::default())
        .map(String::into_bytes)
        .map_err(|e| e.to_string())
}

/// A key that is written twice: what strict readers say about it, and what the others are told.
pub(crate) fn repeated_key(text: &[u8]) -> Option<(String, String)> {
    if starts_like_json(text) {
        return None;
    }
    let error = fl_yaml::parse_first(text, &Options::sigs_strict()).err()?;
    let told = format!("line {}: {}", error.line, error.message);
    (error.stage == fl_yaml::Stage::Duplicate).then(|| (error.go_text(Dialect::Sigs), told))
}

/// The YAML text of a value.
pub(crate) fn write(value: &Value) -> Vec<u8> {
    let text = value.to_string();
    let written = fl_yaml::from_json(&text).and_then(|node| fl_yaml::to_sigs_yaml(&node, Dialect::Sigs));
    // What serde_json wrote is JSON, and JSON is YAML.
    written.map_or_else(|_| text.into_bytes(), String::into_bytes)
}
