//! Defaults of the built-in types, by Go type as in upstream: a `Probe` gets the defaults of a `Probe`
//! wherever it is. Objects come before the objects inside them.

mod apps;
mod core;
mod extensions;

use fl_kubeschema::TypeDef;
use serde_json::{Map, Value};

pub(super) type Object = Map<String, Value>;

/// Sets the defaults of `object` and of the objects inside it. The object is normalized first; the caller
/// normalizes the result.
pub(super) fn apply(def: &'static TypeDef, object: &mut Value) {
    fl_kubeschema::normalize(def, object);
    fl_kubeschema::visit_objects(def, object, &mut |def, map| {
        schema_defaults(def, map);
        let name = def.name.as_str();
        if let Some(name) = name.strip_prefix("io.k8s.api.") {
            match name.split_once('.') {
                Some(("core", ty)) => core::apply(ty, map),
                Some(("apps" | "batch" | "autoscaling", _)) => apps::apply(name, map),
                _ => extensions::apply(name, map),
            }
        } else {
            extensions::apply(name, map);
        }
    });
}

/// Defaults that the type itself declares (`+default`), such as the protocol of a port.
fn schema_defaults(def: &TypeDef, map: &mut Object) {
    for (field, value) in def.defaults() {
        if field.pointer {
            put_pointer(map, field.name, value.clone());
        } else {
            put(map, field.name, value.clone());
        }
    }
}

/// Sets a field that is absent, null or the zero value of its Go type.
pub(super) fn put(map: &mut Object, key: &str, value: impl Into<Value>) {
    if is_unset(map, key) {
        map.insert(key.to_owned(), value.into());
    }
}

/// [`put`] for pointers: only an absent or null field is set.
pub(super) fn put_pointer(map: &mut Object, key: &str, value: impl Into<Value>) {
    if map.get(key).is_none_or(Value::is_null) {
        map.insert(key.to_owned(), value.into());
    }
}

fn is_unset(map: &Object, key: &str) -> bool {
    match map.get(key) {
        None | Some(Value::Null) => true,
        Some(Value::String(s)) => s.is_empty(),
        Some(Value::Number(n)) => n.as_f64() == Some(0.0),
        Some(Value::Array(a)) => a.is_empty(),
        _ => false,
    }
}

pub(super) fn text<'a>(map: &'a Object, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The object of a field, created when absent.
pub(super) fn child<'a>(map: &'a mut Object, key: &str) -> &'a mut Object {
    let value = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object just above")
}
