//! Pruning: removes fields that a structural schema does not specify.

use serde_json::{Map, Value};

use crate::structural::{Additional, Schema};

/// Fields that embedded resources have without specifying them.
fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// Prunes a custom resource and returns the sorted paths of the removed fields. Its type and metadata are
/// kept.
pub fn prune(object: &mut Value, schema: &Schema) -> Vec<String> {
    let mut walk = Walk { path: String::new(), found: Vec::new() };
    walk.visit(object, Some(schema), true);
    walk.found.sort();
    walk.found
}

/// Prunes a value that is not a whole resource.
pub(crate) fn prune_below(value: &mut Value, schema: &Schema) {
    Walk { path: String::new(), found: Vec::new() }.visit(value, Some(schema), schema.embedded_resource);
}

struct Walk {
    path: String,
    found: Vec<String>,
}

impl Walk {
    fn visit(&mut self, value: &mut Value, schema: Option<&Schema>, root: bool) {
        match value {
            Value::Object(map) => match schema {
                Some(schema) => self.object(map, schema, root),
                None => {
                    for name in map.keys() {
                        self.record(name);
                    }
                    map.clear();
                }
            },
            Value::Array(list) => {
                let keep = schema.is_some_and(|s| s.preserve_unknown);
                let items = schema.and_then(|s| s.items.as_ref());
                if keep && items.is_none() {
                    return;
                }
                for (index, item) in list.iter_mut().enumerate() {
                    let mark = self.path.len();
                    self.path.push_str(&format!("[{index}]"));
                    self.visit(item, items.map(|n| &**n), false);
                    self.path.truncate(mark);
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>, schema: &Schema, root: bool) {
        let embedded = root || schema.embedded_resource;
        map.retain(|name, value| {
            if embedded && is_meta(name) {
                return true;
            }
            let below = match (schema.property(name), &schema.additional) {
                (Some(property), _) => Some(&**property),
                (None, Additional::Schema(node)) => Some(&**node),
                (None, Additional::Allowed(_)) => None,
                (None, Additional::Unset) => {
                    if schema.preserve_unknown {
                        return true;
                    }
                    if !is_meta(name) || !self.path.is_empty() {
                        self.record(name);
                    }
                    return false;
                }
            };
            let mark = self.path.len();
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(name);
            self.visit(value, below, false);
            self.path.truncate(mark);
            true
        });
    }

    fn record(&mut self, name: &str) {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        self.found.push(path);
    }
}

/// Removes nulls that are neither allowed nor replaced by a default.
pub fn prune_nulls(value: &mut Value, schema: Option<&Schema>) {
    match value {
        Value::Object(map) => map.retain(|name, below| {
            let node = schema.and_then(|s| s.member(name));
            if below.is_null() && node.is_some_and(|n| !n.nullable && n.default.is_none()) {
                return false;
            }
            prune_nulls(below, node.map(|n| &**n));
            true
        }),
        Value::Array(list) => {
            let items = schema.and_then(|s| s.items.as_ref()).map(|n| &**n);
            for item in list {
                prune_nulls(item, items);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(json: &Value) -> Schema {
        Schema::from_json(json).expect("schema")
    }

    #[test]
    fn unknown_fields_are_removed_and_reported() {
        let s = schema(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                     "properties": {"known": {"type": "object"}}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}}}}}}));
        let mut object = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "n"}, "other": 1,
            "spec": {"list": [{"a": "1", "b": 2}], "free": {"x": {"y": 1}, "known": {"z": 1}}, "map": {"k": "v"}, "no": {}}});
        let gone = prune(&mut object, &s);
        assert_eq!(gone, ["other", "spec.free.known.z", "spec.list[0].b", "spec.no"]);
        assert_eq!(
            object["spec"],
            json!({"list": [{"a": "1"}], "free": {"x": {"y": 1}, "known": {}}, "map": {"k": "v"}})
        );
    }

    #[test]
    fn embedded_resources_keep_their_metadata() {
        let s = schema(&json!({"type": "object", "properties": {
            "in": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}}}));
        let mut object = json!({"in": {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"x": 1}, "status": {}}});
        assert_eq!(prune(&mut object, &s), ["in.spec.x", "in.status"]);
        assert_eq!(object, json!({"in": {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}}}));
    }

    #[test]
    fn nulls_without_default_are_removed() {
        let s = schema(&json!({"type": "object", "properties": {
            "a": {"type": "string"}, "b": {"type": "string", "nullable": true}, "c": {"type": "string", "default": "x"}}}));
        let mut object = json!({"a": null, "b": null, "c": null});
        prune_nulls(&mut object, Some(&s));
        assert_eq!(object, json!({"b": null, "c": null}));
    }
}
