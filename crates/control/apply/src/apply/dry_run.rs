//! The dry-run of a new object as a creation, which costs the API server two thirds of the dry-run of an apply.

use serde_json::{Map, Value};

use super::{Applier, Item};
use crate::Write;

/// Fields that tell items apart only together with others.
const NEVER_ALONE: &[&str] = &["protocol", "whenUnsatisfiable"];

impl Applier {
    /// Whether the server would create an object, and apply it just so. False only says that nothing is known yet.
    pub(super) async fn would_create(&self, item: &Item) -> bool {
        if !self.before.is_empty() || !is_equal_as_apply(&item.object) {
            return false;
        }
        // Strict: creation would drop what apply refuses.
        let manager = &self.owner.field_manager;
        let write = Write { manager, dry_run: true, field_validation: "Strict", ..Write::default() };
        self.cluster.try_create(&item.target, item.text().clone(), &write).await.is_ok()
    }
}

/// Whether an object that can be created can be applied. Apply refuses items that it cannot tell apart, and what only a server
/// writes. By which fields the items of a list are told apart depends on the kind: here they must differ in all they have.
fn is_equal_as_apply(object: &Value) -> bool {
    let server_written = |metadata: &Map<String, Value>| {
        ["managedFields", "resourceVersion", "uid", "generateName"].iter().any(|f| metadata.contains_key(*f))
    };
    !object["metadata"].as_object().is_some_and(server_written) && told_apart(object)
}

fn told_apart(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().all(told_apart),
        Value::Array(list) => {
            let alone = |(at, item): (usize, &Value)| !list[..at].iter().any(|other| alike(other, item));
            list.iter().enumerate().all(alone) && list.iter().all(told_apart)
        }
        _ => true,
    }
}

fn alike(a: &Value, b: &Value) -> bool {
    let (Value::Object(a), Value::Object(b)) = (a, b) else { return a == b };
    let counts = |(name, value): &(&String, &Value)| {
        !value.is_object() && !value.is_array() && !NEVER_ALONE.contains(&name.as_str())
    };
    a == b || a.iter().filter(counts).any(|(name, value)| b.get(name) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_that_apply_might_refuse_are_not_validated_as_creations() {
        let pod = |ports: Value| json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "ports": ports}]}});
        for fine in [
            json!([]),
            json!([{"containerPort": 80}]),
            json!([{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "protocol": "TCP"}]),
            json!(["a", "b"]),
        ] {
            assert!(is_equal_as_apply(&pod(fine.clone())), "{fine}");
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
            assert!(!is_equal_as_apply(&pod(doubtful.clone())), "{doubtful}");
        }
        assert!(!is_equal_as_apply(&json!({"metadata": {"managedFields": []}})));
        assert!(!is_equal_as_apply(&json!({"metadata": {"resourceVersion": "1"}})));
    }
}
