//! The fields of a kustomization file. Flux reads the file into its types and writes it back, so unknown fields are dropped
//! instead of rejected.

use serde_json::{Map, Value};

/// The type of a field.
enum FieldType {
    /// Anything.
    Any,
    /// A map with these fields.
    Fields(&'static [(&'static str, FieldType)]),
    /// A list of maps with these fields.
    ListOf(&'static [(&'static str, FieldType)]),
}

use FieldType::{Any, Fields, ListOf};

const SELECTOR: &[(&str, FieldType)] = &[
    ("group", Any),
    ("version", Any),
    ("kind", Any),
    ("name", Any),
    ("namespace", Any),
    ("annotationSelector", Any),
    ("labelSelector", Any),
];

const PATCH: &[(&str, FieldType)] =
    &[("path", Any), ("patch", Any), ("target", Fields(SELECTOR)), ("options", Any)];

const GENERATOR_OPTIONS: &[(&str, FieldType)] =
    &[("labels", Any), ("annotations", Any), ("disableNameSuffixHash", Any), ("immutable", Any)];

const GENERATOR: &[(&str, FieldType)] = &[
    ("namespace", Any),
    ("name", Any),
    ("behavior", Any),
    ("literals", Any),
    ("files", Any),
    ("envs", Any),
    ("env", Any),
    ("type", Any),
    ("options", Fields(GENERATOR_OPTIONS)),
];

const FIELD_SPEC: &[(&str, FieldType)] =
    &[("group", Any), ("version", Any), ("kind", Any), ("path", Any), ("create", Any)];

const KUSTOMIZATION: &[(&str, FieldType)] = &[
    ("apiVersion", Any),
    ("kind", Any),
    ("metadata", Any),
    ("openapi", Any),
    ("namePrefix", Any),
    ("nameSuffix", Any),
    ("namespace", Any),
    ("commonLabels", Any),
    (
        "labels",
        ListOf(&[
            ("pairs", Any),
            ("includeSelectors", Any),
            ("includeTemplates", Any),
            ("fields", ListOf(FIELD_SPEC)),
        ]),
    ),
    ("commonAnnotations", Any),
    ("patchesStrategicMerge", Any),
    ("patchesJson6902", ListOf(PATCH)),
    ("patches", ListOf(PATCH)),
    (
        "images",
        ListOf(&[("name", Any), ("newName", Any), ("tagSuffix", Any), ("newTag", Any), ("digest", Any)]),
    ),
    ("imageTags", Any),
    ("replacements", Any),
    ("replicas", ListOf(&[("name", Any), ("count", Any)])),
    ("vars", Any),
    ("sortOptions", Any),
    ("resources", Any),
    ("components", Any),
    ("crds", Any),
    ("bases", Any),
    ("configMapGenerator", ListOf(GENERATOR)),
    ("secretGenerator", ListOf(GENERATOR)),
    ("helmGlobals", Any),
    ("helmCharts", Any),
    ("helmChartInflationGenerator", Any),
    ("generatorOptions", Fields(GENERATOR_OPTIONS)),
    ("configurations", Any),
    ("generators", Any),
    ("transformers", Any),
    ("validators", Any),
    ("buildMetadata", Any),
];

/// Drops unknown fields, and makes strings of labels and annotations. Returns whether something changed.
pub(crate) fn drop_unknown(kustomization: &mut Map<String, Value>) -> bool {
    prune(kustomization, KUSTOMIZATION) | stringify(kustomization)
}

/// Flux's types hold labels and annotations as strings, and its reader makes strings of what YAML takes for another type
/// (`y`).
fn stringify(kustomization: &mut Map<String, Value>) -> bool {
    let mut changed = false;
    let mut fix = |map: &mut Value| {
        for value in map.as_object_mut().into_iter().flat_map(|m| m.values_mut()) {
            if value.is_boolean() || value.is_number() {
                *value = Value::String(value.to_string());
                changed = true;
            }
        }
    };
    for field in ["commonLabels", "commonAnnotations"] {
        if let Some(map) = kustomization.get_mut(field) {
            fix(map);
        }
    }
    for entry in kustomization.get_mut("labels").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(pairs) = entry.get_mut("pairs") {
            fix(pairs);
        }
    }
    changed
}

fn prune(map: &mut Map<String, Value>, known: &'static [(&'static str, FieldType)]) -> bool {
    let before = map.len();
    map.retain(|key, _| known.iter().any(|(name, _)| name == key));
    let mut dropped = map.len() != before;
    for (name, what) in known {
        let Some(value) = map.get_mut(*name) else { continue };
        match (what, value) {
            (Fields(fields), Value::Object(map)) => dropped |= prune(map, fields),
            (ListOf(fields), Value::Array(items)) => {
                for item in items.iter_mut().filter_map(Value::as_object_mut) {
                    dropped |= prune(item, fields);
                }
            }
            _ => {}
        }
    }
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_fields_are_dropped() {
        let mut value = json!({"resources": ["a"], "nonsense": 1, "patches": [{"patch": "x", "extra": 1, "target": {"kind": "A", "b": 1}}]});
        let map = value.as_object_mut().expect("a map");
        assert!(drop_unknown(map));
        assert!(!drop_unknown(map));
        map.insert("commonLabels".to_owned(), json!({"a": true, "b": 1, "c": "d"}));
        assert!(drop_unknown(map));
        assert_eq!(map.remove("commonLabels"), Some(json!({"a": "true", "b": "1", "c": "d"})));
        assert_eq!(value, json!({"resources": ["a"], "patches": [{"patch": "x", "target": {"kind": "A"}}]}));
    }
}
