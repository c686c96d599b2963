//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

use super::PatchError;

/// Applies a merge patch to an object.
pub fn merge_patch(target: &mut Value, patch: Value) -> Result<(), PatchError> {
    match patch {
        Value::Object(map) => {
            match target.as_object_mut() {
                Some(object) => merge_objects(object, map),
                None => *target = pruned(Value::Object(map)),
            }
            Ok(())
        }
        Value::Array(list) => {
            *target = pruned(Value::Array(list));
            Ok(())
        }
        _ => Err(PatchError::BadRequest("Invalid JSON Patch".to_owned())),
    }
}

fn merge_objects(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, value) in patch {
        match (target.get_mut(&name), value) {
            (_, Value::Null) => {
                target.remove(&name);
            }
            (Some(Value::Object(object)), Value::Object(below)) => merge_objects(object, below),
            (Some(Value::Object(_)), other) => {
                target.insert(name, other);
            }
            (_, other) => {
                target.insert(name, pruned(other));
            }
        }
    }
}

/// A value without nulls in its maps; nulls in lists are kept.
fn pruned(mut value: Value) -> Value {
    prune(&mut value);
    value
}

fn prune(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, below| !below.is_null());
            map.values_mut().for_each(prune);
        }
        Value::Array(list) => list.iter_mut().for_each(prune),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nulls_delete_and_are_not_stored() {
        let mut object = json!({"a": {"b": 1, "c": 2}, "l": [1], "s": "x"});
        merge_patch(&mut object, json!({"a": {"b": null, "d": {"e": null, "f": [null, {"g": null}]}}, "l": [2], "s": {"t": null}, "no": null})).expect("applies");
        assert_eq!(object, json!({"a": {"c": 2, "d": {"f": [null, {}]}}, "l": [2], "s": {}}));
        assert!(merge_patch(&mut object, json!(1)).is_err());
    }

    #[test]
    fn nested_nulls_are_removed() {
        let mut patch = Value::Null;
        for _ in 0..100 {
            patch = json!({"a": patch});
        }
        let mut object = json!({});
        merge_patch(&mut object, patch).expect("applies");
        assert!(object["a"]["a"].is_object());
    }
}
