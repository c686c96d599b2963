//! Round trip of an object through its Go type: empty fields with `omitempty` are removed, fields that Go
//! always writes are added, quantities and times become canonical, unknown fields are dropped.
//!
//! Kubernetes does not store the JSON that a client sent but the encoding of its Go types.

use std::str::FromStr;

use serde_json::{Map, Value};

use crate::types::{Field, FieldType, TypeDef, type_of};

/// [`normalize_stored`] for an object of a built-in kind; false if the kind is unknown.
pub fn normalize_kind(group: &str, version: &str, kind: &str, object: &mut Value) -> bool {
    let Some(def) = type_of(group, version, kind) else { return false };
    normalize_stored(def, object);
    true
}

/// Normalizes `value` of type `def` to its Go encoding. Values of a wrong JSON type are not changed: decoding
/// rejects them.
pub fn normalize(def: &'static TypeDef, value: &mut Value) {
    round_trip(def, value, false);
}

/// [`normalize`] including storage as protobuf, which does not distinguish empty from absent lists.
pub fn normalize_stored(def: &'static TypeDef, value: &mut Value) {
    round_trip(def, value, true);
}

fn round_trip(def: &'static TypeDef, value: &mut Value, stored: bool) {
    if def.literal.is_some() {
        special(&def.name, value);
        return;
    }
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    let Some(map) = value.as_object_mut() else { return };
    // Most objects are normalized already: checking is cheap, removing is not.
    let mut left_out = Vec::new();
    for (name, value) in map.iter_mut() {
        if !def.field(name).is_some_and(|field| normalize_field(field, value, stored)) {
            left_out.push(name.clone());
        }
    }
    for name in left_out {
        map.remove(&name);
    }
    for field in always(def) {
        if !map.contains_key(field.name)
            && let Some(value) = zero_field(field)
        {
            map.insert(field.name.to_owned(), value);
        }
    }
}

/// Normalizes the value of a field; false if Go does not write it.
fn normalize_field(field: &'static Field, value: &mut Value, stored: bool) -> bool {
    if value.is_null() {
        return false;
    }
    normalize_type(&field.ty, value, stored);
    if field.pointer {
        return true;
    }
    if field.omit_empty {
        return !is_empty(&field.ty, value);
    }
    if stored && is_empty_collection(&field.ty, value) {
        *value = Value::Null;
    }
    true
}

/// The fields that Go writes whether they are set or not.
fn always(def: &'static TypeDef) -> &'static [&'static Field] {
    def.derived.always.get_or_init(|| def.fields.iter().filter(|field| zero_field(field).is_some()).collect())
}

/// The value that Go writes for an absent field.
fn zero_field(field: &'static Field) -> Option<Value> {
    if field.pointer {
        return (!field.omit_empty).then_some(Value::Null);
    }
    match &field.ty {
        // `omitempty` has no effect on a struct.
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
        // The Go type is a slice or map: `omitempty` applies.
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

fn normalize_type(ty: &'static FieldType, value: &mut Value, stored: bool) {
    match ty {
        FieldType::Ref(to) => {
            if let Some(def) = to.def() {
                round_trip(def, value, stored);
            }
        }
        FieldType::List(element) => {
            for item in value.as_array_mut().into_iter().flatten() {
                if item.is_null() && !matches!(element.ty, FieldType::Ref(_)) {
                    *item = crate::schemas::zero(&element.ty);
                }
                normalize_type(&element.ty, item, stored);
            }
        }
        FieldType::Map(element) => {
            for item in value.as_object_mut().into_iter().flat_map(|m| m.values_mut()) {
                if item.is_null() && !matches!(element.ty, FieldType::Ref(_)) {
                    *item = crate::schemas::zero(&element.ty);
                }
                normalize_type(&element.ty, item, stored);
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

/// Canonical time: UTC, whole seconds for `Time` and six decimals for `MicroTime`.
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
    fn empty_values_are_removed_and_structs_added() {
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
    fn fields_without_omitempty_are_written() {
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
    fn times_are_converted_to_utc() {
        let lease = normal(
            "coordination.k8s.io",
            "v1",
            json!({"kind": "Lease", "metadata": {}, "spec": {"renewTime": "2024-01-02T03:04:05+02:00"}}),
        );
        assert_eq!(lease["spec"]["renewTime"], "2024-01-02T01:04:05.000000Z");
    }
}
