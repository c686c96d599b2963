//! Specs as Go's types print them.
//!
//! flux reads objects into Go structs and prints those: fields with their zero value vanish unless the struct keeps them,
//! durations get Go's spelling. The rules come from the fields of the API types; only exceptions are listed.

use fl_types::Duration;
use serde_json::{Map, Value, json};

/// Fields that keep a zero value: pointers, and fields the types always print.
const KEPT: &[(&str, &str)] = &[
    ("", "/ignore"),
    ("HelmRelease", "/maxHistory"),
    ("HelmRelease", "/persistentClient"),
    ("HelmRelease", "/install/remediation/ignoreTestFailures"),
    ("HelmRelease", "/install/remediation/remediateLastFailure"),
    ("HelmRelease", "/install/serverSideApply"),
    ("HelmRelease", "/upgrade/remediation/ignoreTestFailures"),
    ("HelmRelease", "/upgrade/remediation/remediateLastFailure"),
    ("HelmRelease", "/upgrade/remediation/strategy"),
    ("HelmRelease", "/uninstall/deletionPropagation"),
    ("Kustomization", "/prune"),
    ("ImagePolicy", "/filterTags/extract"),
    ("ImagePolicy", "/policy"),
];

/// Maps of free keys: empty ones vanish, what is inside stays as it is.
const MAPS: &[&str] = &[
    "matchLabels",
    "labels",
    "annotations",
    "substitute",
    "eventMetadata",
    "messageTemplateValues",
    "options",
];

/// Fields that are printed although the object has none.
const ADDED: &[(&str, &str, &str, &str)] = &[
    ("Kustomization", "", "prune", "false"),
    ("ImagePolicy", "/filterTags", "extract", "\"\""),
    ("HelmRepository", "", "interval", "\"0s\""),
    ("ImageRepository", "", "interval", "\"0s\""),
];

const DURATIONS: &[&str] = &["interval", "timeout", "retryInterval"];

/// The object reduced to what `export` shows.
pub(crate) fn export(object: &Value) -> Value {
    let kind = object["kind"].as_str().unwrap_or_default();
    let mut metadata = Map::new();
    for key in ["name", "namespace", "labels", "annotations"] {
        if let Some(value) = object["metadata"].get(key).filter(|v| !is_empty(v)) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    let mut spec = object.get("spec").cloned().unwrap_or_else(|| json!({}));
    shape(kind, "", &mut spec);
    json!({"apiVersion": object["apiVersion"], "kind": kind, "metadata": metadata, "spec": spec})
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
    }
}

fn shape(kind: &str, path: &str, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| shape(kind, path, item)),
        Value::Object(map) => {
            for (of, at, key, text) in ADDED {
                if *of == kind && *at == path && !map.contains_key(*key) {
                    map.insert((*key).to_owned(), serde_json::from_str(text).expect("a fixed value"));
                }
            }
            let mut gone = Vec::new();
            for (key, value) in map.iter_mut() {
                let at = format!("{path}/{key}");
                // Helm values are raw JSON, and free maps hold what people wrote.
                let free = at == "/values" || MAPS.contains(&key.as_str());
                if !free {
                    shape(kind, &at, value);
                }
                if DURATIONS.contains(&key.as_str())
                    && let Some(duration) = value.as_str().and_then(|t| t.parse::<Duration>().ok())
                {
                    *value = json!(duration.to_string());
                }
                let kept = KEPT.iter().any(|(of, p)| (of.is_empty() || *of == kind) && *p == at);
                // An empty struct is printed, an empty map is not.
                let structure = value.is_object() && !MAPS.contains(&key.as_str());
                if value.is_null() || is_empty(value) && !kept && !structure {
                    gone.push(key.clone());
                }
            }
            gone.iter().for_each(|key| {
                map.remove(key);
            });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_values_are_omitted_and_pointers_are_kept() {
        let release = json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "a", "uid": "x", "labels": {}},
            "spec": {"interval": "60s", "suspend": false, "maxHistory": 0, "test": {"enable": false},
                "values": {"off": false, "timeout": "60s"}, "install": {"remediation": {"retries": 0, "remediateLastFailure": false}}},
            "status": {}});
        assert_eq!(
            export(&release)["spec"],
            json!({"interval": "1m0s", "maxHistory": 0, "test": {}, "values": {"off": false, "timeout": "60s"},
                "install": {"remediation": {"remediateLastFailure": false}}})
        );
    }

    #[test]
    fn required_fields_are_always_present() {
        let ks = json!({"kind": "Kustomization", "metadata": {"name": "a"}, "spec": {"force": false, "postBuild": {"substitute": {}}}});
        assert_eq!(export(&ks)["spec"], json!({"prune": false, "postBuild": {}}));
    }
}
