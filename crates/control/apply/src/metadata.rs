//! Labels and annotations of untyped objects.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

fn pairs<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    object["metadata"][field]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| value.as_str().map(|v| (key.as_str(), v)))
}

/// The labels of an object.
pub fn labels(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    pairs(object, "labels")
}

/// The annotations of an object.
pub fn annotations(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    pairs(object, "annotations")
}

/// One label.
#[must_use]
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"].get(key).and_then(Value::as_str)
}

/// One annotation.
#[must_use]
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"].get(key).and_then(Value::as_str)
}

/// Whether a label or annotation of the object has one of the given values. Case of values does not matter.
#[must_use]
pub fn any_in_metadata(object: &Value, wanted: &[(String, String)]) -> bool {
    wanted.iter().any(|(key, value)| {
        [label(object, key), annotation(object, key)]
            .into_iter()
            .flatten()
            .any(|found| !found.is_empty() && found.eq_ignore_ascii_case(value))
    })
}

/// Removes `metadata.labels` and `metadata.annotations` where they are not maps of strings, and returns the names of the removed
/// fields. Flux reads such a map as if it were absent, so all of its entries are lost, the valid ones too.
pub fn drop_invalid_metadata(object: &mut Value) -> Vec<&'static str> {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return Vec::new() };
    let mut dropped = Vec::new();
    for field in ["labels", "annotations"] {
        let valid = match metadata.get(field) {
            None | Some(Value::Null) => true,
            Some(Value::Object(map)) => map.values().all(Value::is_string),
            Some(_) => false,
        };
        if !valid {
            metadata.remove(field);
            dropped.push(field);
        }
    }
    dropped
}

/// Sets labels and annotations; what is given wins.
pub fn merge_metadata(
    object: &mut Value,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) {
    for (field, pairs) in [("labels", labels), ("annotations", annotations)] {
        if pairs.is_empty() {
            continue;
        }
        let target = child(child_of_root(object, "metadata"), field);
        for (key, value) in pairs {
            target.insert(key.clone(), Value::String(value.clone()));
        }
    }
}

fn child_of_root<'a>(object: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    child(object.as_object_mut().expect("made an object above"), field)
}

fn child<'a>(map: &'a mut Map<String, Value>, field: &str) -> &'a mut Map<String, Value> {
    let value = map.entry(field).or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object above")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_values_in_labels_and_annotations() {
        let wanted = [("x/ssa".to_owned(), "Ignore".to_owned())];
        assert!(any_in_metadata(&json!({"metadata": {"labels": {"x/ssa": "ignore"}}}), &wanted));
        assert!(any_in_metadata(&json!({"metadata": {"annotations": {"x/ssa": "IGNORE"}}}), &wanted));
        assert!(!any_in_metadata(&json!({"metadata": {"annotations": {"x/ssa": "merge"}}}), &wanted));
        assert!(!any_in_metadata(&json!(null), &wanted));
    }

    #[test]
    fn maps_with_values_that_are_no_strings_are_dropped_whole() {
        let mut object =
            json!({"metadata": {"name": "a", "labels": {"l": 1, "m": "x"}, "annotations": {"a": "b"}}});
        assert_eq!(drop_invalid_metadata(&mut object), ["labels"]);
        assert_eq!(object, json!({"metadata": {"name": "a", "annotations": {"a": "b"}}}));
        for invalid in [json!({"a": null}), json!({"a": true}), json!({"a": {}}), json!([]), json!("x")] {
            let mut object = json!({"metadata": {"annotations": invalid}});
            assert_eq!(drop_invalid_metadata(&mut object), ["annotations"], "{invalid}");
        }
        for valid in [json!(null), json!({}), json!({"a": ""})] {
            let mut object = json!({"metadata": {"labels": valid}});
            assert!(drop_invalid_metadata(&mut object).is_empty(), "{valid}");
        }
        assert!(drop_invalid_metadata(&mut json!("x")).is_empty());
    }

    #[test]
    fn merges() {
        let mut object = json!({"metadata": {"name": "a", "labels": {"a": "1", "b": "1"}}});
        let labels = BTreeMap::from([("b".to_owned(), "2".to_owned())]);
        merge_metadata(&mut object, &labels, &BTreeMap::new());
        assert_eq!(object, json!({"metadata": {"name": "a", "labels": {"a": "1", "b": "2"}}}));
    }
}
