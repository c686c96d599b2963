//! The fields of a Kustomization's spec that change its kustomization.yaml.

use serde_json::{Map, Value, json};

use crate::error::GenerateError;

/// Adds the overrides of the spec to a kustomization.yaml; `exists` tests a path relative to the file. Returns whether it
/// changed. `patchesStrategicMerge` and `patchesJson6902` of earlier API versions have no effect in `v1`.
pub(crate) fn add_overrides(
    kustomization: &mut Map<String, Value>,
    spec: &Value,
    exists: &dyn Fn(&str) -> bool,
) -> Result<bool, GenerateError> {
    let mut changed = false;
    for (field, ours) in
        [("namespace", "targetNamespace"), ("namePrefix", "namePrefix"), ("nameSuffix", "nameSuffix")]
    {
        if let Some(value) = spec[ours].as_str().filter(|v| !v.is_empty()) {
            kustomization.insert(field.to_owned(), json!(value));
            changed = true;
        }
    }
    let list = |field: &str| spec[field].as_array().cloned().unwrap_or_default();
    for patch in list("patches") {
        push(kustomization, "patches", json!({"patch": patch["patch"], "target": patch["target"]}));
        changed = true;
    }
    let skip_missing = spec["ignoreMissingComponents"].as_bool().unwrap_or_default();
    for component in list("components") {
        let path = component.as_str().unwrap_or_default();
        if !is_local(path) {
            return Err(GenerateError::RemoteComponent(path.to_owned()));
        }
        if !skip_missing || exists(path) {
            push(kustomization, "components", component);
            changed = true;
        }
    }
    for image in list("images") {
        merge_image(kustomization, image);
        changed = true;
    }
    let metadata = list("buildMetadata");
    if !metadata.is_empty() {
        kustomization.insert("buildMetadata".to_owned(), json!(metadata));
        changed = true;
    }
    Ok(changed)
}

fn push(kustomization: &mut Map<String, Value>, field: &str, mut value: Value) {
    if let Value::Object(map) = &mut value {
        map.retain(|_, v| !v.is_null());
    }
    let list = kustomization.entry(field).or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    if let Value::Array(items) = list {
        items.push(value);
    }
}

/// A tag and a digest name the version together: setting one clears the other.
fn merge_image(kustomization: &mut Map<String, Value>, image: Value) {
    let text = |field: &str| image[field].as_str().filter(|t| !t.is_empty());
    let known = kustomization
        .get_mut("images")
        .and_then(Value::as_array_mut)
        .and_then(|images| images.iter_mut().find(|i| i["name"] == image["name"]))
        .and_then(Value::as_object_mut);
    let Some(known) = known else {
        push(kustomization, "images", image);
        return;
    };
    if let Some(name) = text("newName") {
        known.insert("newName".to_owned(), json!(name));
    }
    if text("newTag").is_some() || text("digest").is_some() {
        for field in ["newTag", "digest"] {
            known.remove(field);
            if let Some(value) = text(field) {
                known.insert(field.to_owned(), json!(value));
            }
        }
    }
}

fn is_local(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let remote = ["git::", "gh:", "ssh://", "https://", "http://", "git@", "github.com:", "github.com/"];
    !remote.iter().any(|prefix| lower.len() > prefix.len() && lower.starts_with(prefix))
        && !path.starts_with('/')
        && !lower.trim_start_matches("file://").starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_fields_override_the_kustomization_file() {
        let mut value =
            json!({"resources": ["a.yaml"], "images": [{"name": "app", "newTag": "1", "digest": "old"}]});
        let map = value.as_object_mut().expect("a map");
        let spec = json!({
            "targetNamespace": "prod",
            "images": [{"name": "app", "newTag": "2"}, {"name": "b", "digest": "d"}],
            "patches": [{"patch": "p"}],
            "patchesStrategicMerge": [{"kind": "Deployment"}],
            "components": ["here", "gone"],
            "ignoreMissingComponents": true,
        });
        assert!(add_overrides(map, &spec, &|path| path == "here").expect("valid"));
        assert_eq!(
            value,
            json!({
                "resources": ["a.yaml"],
                "namespace": "prod",
                "images": [{"name": "app", "newTag": "2"}, {"name": "b", "digest": "d"}],
                "patches": [{"patch": "p"}],
                "components": ["here"],
            })
        );
        let map = value.as_object_mut().expect("a map");
        assert!(!add_overrides(map, &json!({}), &|_| true).expect("valid"));
        for remote in ["https://x/y", "/etc", "file:///x", "git@host:x"] {
            assert!(add_overrides(map, &json!({"components": [remote]}), &|_| true).is_err(), "{remote}");
        }
    }
}
