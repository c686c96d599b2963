//! Access to the metadata of an object held as JSON.

use serde_json::{Map, Value};

fn meta(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata").and_then(Value::as_object)
}

/// The metadata, created if missing or null.
///
/// # Panics
/// Never for objects: the server only handles bodies that are JSON objects.
pub(crate) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let map = object.as_object_mut().expect("made an object above");
    let slot = map.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut().expect("made an object above")
}

/// A field of the metadata; null if missing.
pub(crate) fn meta_field<'a>(object: &'a Value, field: &str) -> &'a Value {
    meta(object).and_then(|m| m.get(field)).unwrap_or(&Value::Null)
}

/// A string of the metadata; empty if missing.
pub(crate) fn meta_str<'a>(object: &'a Value, field: &str) -> &'a str {
    meta(object).and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    meta_str(object, "name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    meta_str(object, "namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    meta_str(object, "uid")
}

pub(crate) fn kind(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn api_version(object: &Value) -> &str {
    object.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn set_meta(object: &mut Value, field: &str, value: impl Into<Value>) {
    meta_mut(object).insert(field.to_owned(), value.into());
}

pub(crate) fn remove_meta(object: &mut Value, field: &str) -> Option<Value> {
    object.get_mut("metadata").and_then(Value::as_object_mut).and_then(|m| m.remove(field))
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    meta(object).and_then(|m| m.get("deletionTimestamp")).is_some_and(|v| !v.is_null())
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = meta(object).and_then(|m| m.get("finalizers")).and_then(Value::as_array);
    list.map(|l| l.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

pub(crate) fn set_finalizers(object: &mut Value, list: &[String]) {
    if list.is_empty() {
        remove_meta(object, "finalizers");
    } else {
        set_meta(object, "finalizers", list.to_vec());
    }
}

pub(crate) fn owner_references(object: &Value) -> &[Value] {
    meta(object).and_then(|m| m.get("ownerReferences")).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn generation(object: &Value) -> i64 {
    meta(object).and_then(|m| m.get("generation")).and_then(Value::as_i64).unwrap_or_default()
}

/// The value of an annotation.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    meta(object)?.get("annotations")?.get(key)?.as_str()
}

/// Group and version of an apiVersion.
pub(crate) fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The key of an object inside its table.
pub(crate) fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// The strings of a JSON list; empty if it is missing or not a list.
pub(crate) fn strings(list: Option<&Value>) -> Vec<String> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}
