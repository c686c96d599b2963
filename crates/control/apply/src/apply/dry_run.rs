//! The dry-run of a new object as a creation, which costs the API server two thirds of the dry-run of an apply.

use serde_json::{Map, Value};

use super::{Applier, Item};
use crate::Write;

/// Fields that are list keys only together with others.
const PARTIAL_KEYS: &[&str] = &["protocol", "whenUnsatisfiable"];

impl Applier {
    /// Whether the server would create the object, with the same result as an apply. False means unknown.
    pub(super) async fn dry_run_as_create(&self, item: &Item) -> bool {
        if !self.before.is_empty() || !create_equals_apply(&item.object) {
            return false;
        }
        // Strict: creation would drop what apply rejects.
        let manager = &self.owner.field_manager;
        let write = Write { manager, dry_run: true, field_validation: "Strict", ..Write::default() };
        self.cluster.try_create(&item.target, item.text().clone(), &write).await.is_ok()
    }
}

/// Whether an object that can be created can be applied. Apply rejects duplicate list items and fields that only the server
/// writes. Which fields are the keys of a list depends on the kind: here items must differ in every scalar field.
fn create_equals_apply(object: &Value) -> bool {
    let server_written = |metadata: &Map<String, Value>| {
        ["managedFields", "resourceVersion", "uid", "generateName"].iter().any(|f| metadata.contains_key(*f))
    };
    !object["metadata"].as_object().is_some_and(server_written) && list_items_are_distinct(object)
}

fn list_items_are_distinct(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().all(list_items_are_distinct),
        Value::Array(list) => {
            let distinct =
                |(at, item): (usize, &Value)| !list[..at].iter().any(|other| same_keys(other, item));
            list.iter().enumerate().all(distinct) && list.iter().all(list_items_are_distinct)
        }
        _ => true,
    }
}

fn same_keys(a: &Value, b: &Value) -> bool {
    let (Value::Object(a), Value::Object(b)) = (a, b) else { return a == b };
    let counts = |(name, value): &(&String, &Value)| {
        !value.is_object() && !value.is_array() && !PARTIAL_KEYS.contains(&name.as_str())
    };
    a == b || a.iter().filter(counts).any(|(name, value)| b.get(name) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_that_apply_might_reject_are_not_validated_as_creations() {
        let pod = |ports: Value| json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "ports": ports}]}});
        for fine in [
            json!([]),
            json!([{"containerPort": 80}]),
            json!([{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "protocol": "TCP"}]),
            json!(["a", "b"]),
        ] {
            assert!(create_equals_apply(&pod(fine.clone())), "{fine}");
        }
        for doubtful in [
            json!([{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]),
            json!([{"containerPort": 80, "name": "a"}, {"containerPort": 80, "name": "b"}]),
            json!([{"name": "x", "value": "1"}, {"name": "y", "value": "1"}]),
            json!([{}, {}]),
            json!([{"protocol": "TCP"}, {"protocol": "TCP"}]),
            json!(["a", "b", "a"]),
            json!([{"deep": [1, 1]}]),
        ] {
            assert!(!create_equals_apply(&pod(doubtful.clone())), "{doubtful}");
        }
        assert!(!create_equals_apply(&json!({"metadata": {"managedFields": []}})));
        assert!(!create_equals_apply(&json!({"metadata": {"resourceVersion": "1"}})));
    }
}
