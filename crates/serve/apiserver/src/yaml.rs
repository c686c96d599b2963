//! YAML in and out, as sigs.k8s.io/yaml reads and writes it.

use fl_yaml::{Dialect, Duplicates, JsonStyle, Node, Options};
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

/// Keys that are written twice.
#[derive(Debug)]
pub(crate) struct Repeated {
    /// What strict readers say about them.
    pub(crate) refused: String,
    /// What the others are told, one by one.
    pub(crate) told: Vec<String>,
}

/// The keys that stand twice in the mappings of the first document, `None` when there are none.
pub(crate) fn repeated_keys(text: &[u8]) -> Option<Repeated> {
    if starts_like_json(text) {
        return None;
    }
    let options = Options { duplicates: Duplicates::Keep, ..Options::sigs() };
    let document = fl_yaml::parse_first(text, &options).ok()??;
    let mut told = Vec::new();
    collect_repeated(&document, &mut told);
    (!told.is_empty())
        .then(|| Repeated { refused: format!("yaml: unmarshal errors:\n  {}", told.join("\n  ")), told })
}

fn collect_repeated(node: &Node, told: &mut Vec<String>) {
    match &node.value {
        fl_yaml::Value::Seq(items) => items.iter().for_each(|item| collect_repeated(item, told)),
        fl_yaml::Value::Map(map) => {
            let mut seen = std::collections::HashSet::new();
            for entry in map.iter() {
                // A value is read whole before its key is looked at.
                collect_repeated(&entry.value, told);
                let name = entry.name().unwrap_or_default();
                if !seen.insert(name) {
                    told.push(format!("line {}: key {name:?} already set in map", entry.value.line()));
                }
            }
        }
        _ => {}
    }
}

/// The YAML text of a value.
pub(crate) fn write(value: &Value) -> Vec<u8> {
    let text = value.to_string();
    let written = fl_yaml::from_json(&text).and_then(|node| fl_yaml::to_sigs_yaml(&node, Dialect::Sigs));
    // What serde_json wrote is JSON, and JSON is YAML.
    written.map_or_else(|_| text.into_bytes(), String::into_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_repeated_key_is_told_where_its_value_stands() {
        let text = b"kind: A\nmetadata:\n  name: y\n  name: z\nspec:\n- a: x\n  a: w\nspec: 1\n";
        let found = repeated_keys(text).expect("three keys");
        assert_eq!(
            found.told,
            [
                "line 4: key \"name\" already set in map",
                "line 7: key \"a\" already set in map",
                "line 8: key \"spec\" already set in map"
            ]
        );
        assert!(found.refused.starts_with("yaml: unmarshal errors:\n  line 4: key \"name\""));
        assert!(repeated_keys(b"a: 1\nb: {a: 1}\n").is_none());
    }
}
