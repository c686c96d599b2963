//! The resources of a manifest.

use std::collections::HashSet;

use fl_apply::{Cluster, Error as ClusterError, ObjectRef};
use fl_yaml::{Dialect, JsonStyle, Options, parse_all, to_json};
use serde_json::{Map, Value};

use super::error::ActionError;

/// An object of a release, of a kind that the cluster serves, in its namespace.
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    pub(crate) reference: ObjectRef,
    pub(crate) object: Value,
}

impl Resource {
    /// `group/version, Kind=kind`, as Go prints it.
    pub(crate) fn go_kind(&self) -> String {
        let id = &self.reference.id;
        format!("{}/{}, Kind={}", id.group, self.reference.version, id.kind)
    }

    /// `namespace/name group/version, Kind=kind`
    pub(crate) fn shown(&self) -> String {
        let id = &self.reference.id;
        format!("{}/{} {}", id.namespace, id.name, self.go_kind())
    }

    /// `Kind "name" in namespace "namespace"`
    pub(crate) fn described(&self) -> String {
        let id = &self.reference.id;
        format!("{} {:?} in namespace {:?}", id.kind, id.name, id.namespace)
    }

    /// Whether it is the same object, in any API version.
    pub(crate) fn is(&self, other: &Resource) -> bool {
        self.reference.id == other.reference.id
    }
}

/// The documents of a manifest as JSON objects; lists are expanded.
pub(crate) fn read_manifest(manifest: &str) -> Result<Vec<Value>, ActionError> {
    let documents = parse_all(manifest.as_bytes(), &Options::sigs()).map_err(|error| {
        ActionError::failed(format!("error parsing : error converting YAML to JSON: {error}"))
    })?;
    let mut objects = Vec::with_capacity(documents.len());
    for document in &documents {
        let text = to_json(document, Dialect::Sigs, JsonStyle::GO)
            .map_err(|error| ActionError::failed(format!("error parsing : {error}")))?;
        let value: Value = serde_json::from_str(&text)
            .map_err(|error| ActionError::failed(format!("error parsing : {error}")))?;
        flatten(value, &mut objects)?;
    }
    Ok(objects)
}

fn flatten(value: Value, objects: &mut Vec<Value>) -> Result<(), ActionError> {
    match value {
        Value::Null => Ok(()),
        Value::Object(map) if map.is_empty() => Ok(()),
        Value::Object(mut map) => {
            let list = map.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
            if list && let Some(Value::Array(items)) = map.remove("items") {
                return items.into_iter().try_for_each(|item| flatten(item, objects));
            }
            objects.push(Value::Object(map));
            Ok(())
        }
        other => Err(ActionError::failed(format!(
            "error parsing : json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            kind_of(&other)
        ))),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null | Value::Object(_) => "object",
    }
}

/// Looks up the kinds of all objects, and sets the namespace of those without one.
pub(crate) async fn build(
    cluster: &Cluster,
    manifest: &str,
    namespace: &str,
) -> Result<Vec<Resource>, ActionError> {
    let mut targets = Vec::new();
    let mut errors = Vec::new();
    for object in read_manifest(manifest)? {
        match place(cluster, object, namespace).await {
            Ok(target) => targets.push(target),
            Err(error) => errors.push(error.to_string()),
        }
    }
    match errors.as_slice() {
        [] => Ok(targets),
        [one] => Err(ActionError::failed(one.clone())),
        many => Err(ActionError::failed(format!("[{}]", many.join(", ")))),
    }
}

async fn place(cluster: &Cluster, mut object: Value, namespace: &str) -> Result<Resource, ActionError> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    if kind.is_empty() {
        return Err(ActionError::failed(format!(
            "unable to decode \"\": Object 'Kind' is missing in '{object}'"
        )));
    }
    let (name, given) = (text("/metadata/name"), text("/metadata/namespace"));
    let mut reference = ObjectRef::new(&api_version, &kind, &given, &name);
    let resource = match cluster.resource(&reference).await {
        Ok(resource) => resource,
        Err(ClusterError::Client(fl_client::Error::NoKind { .. })) => {
            return Err(ActionError::failed(format!(
                "resource mapping not found for name: {name:?} namespace: {given:?} from \"\": \
                 no matches for kind {kind:?} in version {api_version:?}\nensure CRDs are installed first"
            )));
        }
        Err(error) => return Err(error.into()),
    };
    if resource.namespaced() && given.is_empty() {
        reference.id.namespace = namespace.to_owned();
        metadata(&mut object).insert("namespace".into(), namespace.into());
    } else if !resource.namespaced() && !given.is_empty() {
        reference.id.namespace.clear();
        metadata(&mut object).remove("namespace");
    }
    Ok(Resource { reference, object })
}

/// The metadata of an object, created if missing.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(Map::new());
    }
    object["metadata"].as_object_mut().expect("made an object just now")
}

/// Sets a label or annotation.
pub(crate) fn set_text(object: &mut Value, group: &str, key: &str, value: &str) {
    let metadata = metadata(object);
    if !metadata.get(group).is_some_and(Value::is_object) {
        metadata.insert(group.to_owned(), Value::Object(Map::new()));
    }
    metadata[group][key] = value.into();
}

pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
pub(crate) const RELEASE_NAME: &str = "meta.helm.sh/release-name";
pub(crate) const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// Sets Helm's ownership label and annotations.
pub(crate) fn set_release_metadata(object: &mut Value, release: &str, namespace: &str) {
    set_text(object, "labels", MANAGED_BY, "Helm");
    set_text(object, "annotations", RELEASE_NAME, release);
    set_text(object, "annotations", RELEASE_NAMESPACE, namespace);
}

/// The objects of one release that another one does not have.
pub(crate) fn difference<'t>(from: &'t [Resource], other: &[Resource]) -> Vec<&'t Resource> {
    let there: HashSet<_> = other.iter().map(|target| &target.reference.id).collect();
    from.iter().filter(|target| !there.contains(&target.reference.id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_expanded() {
        let objects = read_manifest(
            "---\n# Source: a\napiVersion: v1\nkind: List\nitems:\n- kind: A\n- kind: B\n---\n---\nkind: C\nx: yes\n",
        )
        .expect("a manifest");
        let kinds: Vec<_> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
        assert_eq!(kinds, ["A", "B", "C"]);
        assert_eq!(objects[2]["x"], true);
        assert!(read_manifest("- a\n").is_err());
    }

    #[test]
    fn release_metadata_is_set() {
        let mut object = serde_json::json!({"metadata": {"labels": null, "name": "a"}});
        set_release_metadata(&mut object, "r", "n");
        assert_eq!(object["metadata"]["labels"][MANAGED_BY], "Helm");
        assert_eq!(object["metadata"]["annotations"][RELEASE_NAMESPACE], "n");
    }
}
