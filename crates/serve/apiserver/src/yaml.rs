//! YAML as sigs.k8s.io/yaml reads and writes it.

use fl_yaml::{Dialect, Duplicates, JsonStyle, Node, Options};
use serde_json::Value;

/// Reads the first document. JSON, the common case, is parsed as such.
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

/// The first document as JSON.
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

/// Duplicate keys in mappings.
#[derive(Debug)]
pub(crate) struct DuplicateKeys {
    /// Error message for strict decoding.
    pub(crate) strict_error: String,
    /// One warning per key otherwise.
    pub(crate) warnings: Vec<String>,
}

/// Duplicate keys in the first document; `None` if there are none.
pub(crate) fn duplicate_keys(text: &[u8]) -> Option<DuplicateKeys> {
    if starts_like_json(text) {
        return None;
    }
    let options = Options { duplicates: Duplicates::Keep, ..Options::sigs() };
    let document = fl_yaml::parse_first(text, &options).ok()??;
    let mut warnings = Vec::new();
    collect_repeated(&document, &mut warnings);
    (!warnings.is_empty()).then(|| DuplicateKeys {
        strict_error: format!("yaml: unmarshal errors:\n  {}", warnings.join("\n  ")),
        warnings,
    })
}

fn collect_repeated(node: &Node, warnings: &mut Vec<String>) {
    match &node.value {
        fl_yaml::Value::Seq(items) => items.iter().for_each(|item| collect_repeated(item, warnings)),
        fl_yaml::Value::Map(map) => {
            let mut seen = std::collections::HashSet::new();
            for entry in map.iter() {
                // A value is parsed before its key is checked.
                collect_repeated(&entry.value, warnings);
                let name = entry.name().unwrap_or_default();
                if !seen.insert(name) {
                    warnings.push(format!("line {}: key {name:?} already set in map", entry.value.line()));
                }
            }
        }
        _ => {}
    }
}

/// Writes a value as YAML.
pub(crate) fn write(value: &Value) -> Vec<u8> {
    let text = value.to_string();
    let written = fl_yaml::from_json(&text).and_then(|node| fl_yaml::to_sigs_yaml(&node, Dialect::Sigs));
    // Cannot fail in practice; JSON is valid YAML.
    written.map_or_else(|_| text.into_bytes(), String::into_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_keys_are_reported_with_their_line() {
        let text = b"kind: A\nmetadata:\n  name: y\n  name: z\nspec:\n- a: x\n  a: w\nspec: 1\n";
        let found = duplicate_keys(text).expect("three keys");
        assert_eq!(
            found.warnings,
            [
                "line 4: key \"name\" already set in map",
                "line 7: key \"a\" already set in map",
                "line 8: key \"spec\" already set in map"
            ]
        );
        assert!(found.strict_error.starts_with("yaml: unmarshal errors:\n  line 4: key \"name\""));
        assert!(duplicate_keys(b"a: 1\nb: {a: 1}\n").is_none());
    }
}
