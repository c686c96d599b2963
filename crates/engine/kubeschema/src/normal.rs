//! The form an object has after Go decoded and encoded it again: empty fields that Go leaves out are gone, those it
//! always writes are there, quantities and times are canonical, unknown fields are dropped.
//!
//! Kubernetes never stores what a client sent but what its Go types made of it; this is the difference.

use std::str::FromStr;

use serde_json::{Map, Value};

use crate::types::{Field, FieldType, TypeDef, type_of};

/// [`seal`] for an object of a built-in kind; false when the kind is not known.
pub fn normalize_kind(group: &str, version: &str, kind: &str, object: &mut Value) -> bool {
    let Some(def) = type_of(group, version, kind) else { return false };
    seal(def, object);
    true
}

/// Brings `value` of type `def` into its Go form. Values of a wrong JSON type are left alone: decoding refused them.
pub fn normalize(def: &'static TypeDef, value: &mut Value) {
    bring(def, value, false);
}

/// [`normalize`] as it is after storage: protobuf does not tell an empty list from none.
pub fn seal(def: &'static TypeDef, value: &mut Value) {
    bring(def, value, true);
}

fn bring(def: &'static TypeDef, value: &mut Value, sealed: bool) {
    if def.literal.is_some() {
        special(&def.name, value);
        return;
    }
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    let Some(map) = value.as_object_mut() else { return };
    // Most objects are in their form already: looking is cheap, taking out is not.
    let mut left_out = Vec::new();
    for (name, value) in map.iter_mut() {
        if !def.field(name).is_some_and(|field| keep(field, value, sealed)) {
            left_out.push(name.clone());
        }
    }
    for name in left_out {
        map.remove(&name);
    }
    for field in always(def) {
        if !map.contains_key(field.name)
            && let Some(value) = absent(field)
        {
            map.insert(field.name.to_owned(), value);
        }
    }
}

/// Brings the value of a field into its form; false where Go would not write it, or not as it is.
fn keep(field: &'static Field, value: &mut Value, sealed: bool) -> bool {
    if value.is_null() {
        return false;
    }
    normalize_type(&field.ty, value, sealed);
    if field.pointer {
        return true;
    }
    if field.omit_empty {
        return !is_empty(&field.ty, value);
    }
    if sealed && is_empty_collection(&field.ty, value) {
        *value = Value::Null;
    }
    true
}

/// The fields Go writes whether they are set or not.
fn always(def: &'static TypeDef) -> &'static [&'static Field] {
    def.derived.always.get_or_init(|| def.fields.iter().filter(|field| absent(field).is_some()).collect())
}

/// What Go writes for a field that is not set.
fn absent(field: &'static Field) -> Option<Value> {
    if field.pointer {
        return (!field.omit_empty).then_some(Value::Null);
    }
    match &field.ty {
        // `omitempty` means nothing to Go for a struct.
        FieldType::Ref(to) => {
            if field.omit_zero {
                return None;
            }
            let def = to.def()?;
            if def.literal.is_some() {
                return zero_special(&def.name, field.omit_empty);
            }
            let mut value = Value::Object(Map::new());
            normalize(def, &mut value);
            Some(value)
        }
        _ if field.omit_empty => None,
        FieldType::List(_) | FieldType::Map(_) | FieldType::Bytes => Some(Value::Null),
        ty => Some(crate::schemas::zero(ty)),
    }
}

fn zero_special(name: &str, omit_empty: bool) -> Option<Value> {
    match name.rsplit('.').next().unwrap_or_default() {
        "Quantity" => Some(Value::from("0")),
        "IntOrString" => Some(Value::from(0)),
        // A slice or map behind the type: `omitempty` holds.
        "JSON" | "FieldsV1" if omit_empty => None,
        "CustomResourceSubresourceStatus" | "Patch" => Some(Value::Object(Map::new())),
        _ => Some(Value::Null),
    }
}

fn is_empty_collection(ty: &FieldType, value: &Value) -> bool {
    match (ty, value) {
        (FieldType::List(_), Value::Array(list)) => list.is_empty(),
        (FieldType::Map(_), Value::Object(map)) => map.is_empty(),
        _ => false,
    }
}

fn is_empty(ty: &FieldType, value: &Value) -> bool {
    match (ty, value) {
        (FieldType::String | FieldType::Bytes, Value::String(s)) => s.is_empty(),
        (FieldType::Bool, Value::Bool(b)) => !b,
        (FieldType::Int32 | FieldType::Int64 | FieldType::Double, Value::Number(n)) => {
            n.as_f64() == Some(0.0)
        }
        _ => is_empty_collection(ty, value),
    }
}

fn normalize_type(ty: &'static FieldType, value: &mut Value, sealed: bool) {
    match ty {
        FieldType::Ref(to) => {
            if let Some(def) = to.def() {
                bring(def, value, sealed);
            }
        }
        FieldType::List(element) => {
            for item in value.as_array_mut().into_iter().flatten() {
                if item.is_null() && !matches!(element.ty, FieldType::Ref(_)) {
                    *item = crate::schemas::zero(&element.ty);
                }
                normalize_type(&element.ty, item, sealed);
            }
        }
        FieldType::Map(element) => {
            for item in value.as_object_mut().into_iter().flat_map(|m| m.values_mut()) {
                if item.is_null() && !matches!(element.ty, FieldType::Ref(_)) {
                    *item = crate::schemas::zero(&element.ty);
                }
                normalize_type(&element.ty, item, sealed);
            }
        }
        _ => {}
    }
}

fn special(name: &str, value: &mut Value) {
    let canonical = match (name.rsplit('.').next().unwrap_or_default(), &*value) {
        ("Quantity", Value::String(text)) => quantity(text),
        ("Quantity", Value::Number(number)) => quantity(&number.to_string()),
        ("Quantity", Value::Null) => Some("0".to_owned()),
        ("Time", Value::String(text)) => time(text, false),
        ("MicroTime", Value::String(text)) => time(text, true),
        _ => None,
    };
    if let Some(text) = canonical {
        *value = Value::from(text);
    }
}

fn quantity(text: &str) -> Option<String> {
    fl_types::Quantity::from_str(text).ok().map(|q| q.to_string())
}

/// UTC, whole seconds for `Time` and six decimals for `MicroTime`.
fn time(text: &str, micro: bool) -> Option<String> {
    let canonical = text.ends_with('Z') && text.len() == if micro { 27 } else { 20 };
    if canonical {
        return None;
    }
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(
        if micro { at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ") } else { at.strftime("%Y-%m-%dT%H:%M:%SZ") }
            .to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn normal(group: &str, version: &str, mut object: Value) -> Value {
        let kind = object["kind"].as_str().expect("kind").to_owned();
        assert!(normalize_kind(group, version, &kind, &mut object));
        object
    }

    #[test]
    fn empty_values_go_and_structs_come() {
        let got = normal(
            "",
            "v1",
            json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "labels": {}, "creationTimestamp": null},
                "spec": {"hostNetwork": false, "automountServiceAccountToken": false, "nodeSelector": {}, "bogus": 1,
                    "containers": [{"name": "c", "image": "", "tty": false,
                        "resources": {"limits": {"cpu": "1000m", "memory": 1024}}}]}}),
        );
        assert_eq!(
            got,
            json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"},
                "spec": {"automountServiceAccountToken": false,
                    "containers": [{"name": "c", "resources": {"limits": {"cpu": "1", "memory": "1024"}}}]},
                "status": {}})
        );
    }

    #[test]
    fn what_go_always_writes_is_written() {
        let role =
            normal("rbac.authorization.k8s.io", "v1", json!({"kind": "Role", "metadata": {}, "rules": []}));
        assert_eq!(role, json!({"kind": "Role", "metadata": {}, "rules": null}));
        let event =
            normal("", "v1", json!({"kind": "Event", "metadata": {"name": "e"}, "involvedObject": {}}));
        assert_eq!(event["firstTimestamp"], Value::Null);
        assert!(
            event.as_object().is_some_and(|e| e.contains_key("eventTime") && e["reportingComponent"] == "")
        );
    }

    #[test]
    fn times_are_utc() {
        let lease = normal(
            "coordination.k8s.io",
            "v1",
            json!({"kind": "Lease", "metadata": {}, "spec": {"renewTime": "2024-01-02T03:04:05+02:00"}}),
        );
        assert_eq!(lease["spec"]["renewTime"], "2024-01-02T01:04:05.000000Z");
    }
}
