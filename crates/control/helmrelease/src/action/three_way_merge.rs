//! Client-side apply: a patch from the old manifest, the new manifest and the live object.

use fl_apply::Patch;
use fl_schema::Schema;
use serde_json::{Map, Value, json};

use super::resources::Resource;

/// A patch and its format.
#[derive(Debug)]
pub(crate) struct PatchOf {
    pub(crate) kind: Patch,
    pub(crate) patch: Value,
}

/// The patch that Helm sends: strategic for built-in kinds, otherwise a merge patch from old to new (three-way on request).
pub(crate) fn client_side_patch(
    original: &Value,
    target: &Resource,
    live: &Value,
    three_way: bool,
) -> PatchOf {
    let reference = &target.reference;
    match fl_kubeschema::schema(&reference.id.group, &reference.version, &reference.id.kind) {
        Some(schema) => {
            let patch =
                strategic_map(object(original), object(&target.object), object(live), Some(schema.as_ref()));
            PatchOf { kind: Patch::Strategic, patch: Value::Object(patch) }
        }
        None => {
            let base = if three_way { live } else { original };
            let mut patch = merge_patch(object(base), object(&target.object), !three_way);
            if three_way {
                remove_dropped(object(original), object(&target.object), object(live), &mut patch);
            }
            PatchOf { kind: Patch::Merge, patch: Value::Object(patch) }
        }
    }
}

fn object(value: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&EMPTY)
}

/// A merge patch from one object to another; with or without removals.
fn merge_patch(from: &Map<String, Value>, to: &Map<String, Value>, removing: bool) -> Map<String, Value> {
    let mut patch = Map::new();
    for (key, new) in to {
        match (from.get(key), new) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let below = merge_patch(old, new, removing);
                if !below.is_empty() {
                    patch.insert(key.clone(), Value::Object(below));
                }
            }
            (Some(old), new) if old == new => {}
            (_, new) => {
                patch.insert(key.clone(), new.clone());
            }
        }
    }
    if removing {
        for key in from.keys().filter(|key| !to.contains_key(*key)) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    patch
}

/// Adds removals of fields that the last release had and this one does not have.
fn remove_dropped(
    original: &Map<String, Value>,
    target: &Map<String, Value>,
    live: &Map<String, Value>,
    patch: &mut Map<String, Value>,
) {
    for (key, old) in original {
        match (target.get(key), live.get(key)) {
            (None, Some(_)) => {
                patch.insert(key.clone(), Value::Null);
            }
            (Some(Value::Object(new)), Some(Value::Object(there))) if old.is_object() => {
                let mut below = patch.get(key).map(|below| object(below).clone()).unwrap_or_default();
                remove_dropped(object(old), new, there, &mut below);
                if !below.is_empty() {
                    patch.insert(key.clone(), Value::Object(below));
                }
            }
            _ => {}
        }
    }
}

struct Field<'s> {
    below: Option<&'s Schema>,
    merge: bool,
    replace: bool,
    retain: bool,
    key: Option<&'s str>,
}

fn field<'s>(schema: Option<&'s Schema>, name: &str) -> Field<'s> {
    let Some(node) = schema.and_then(|schema| schema.member(name)) else {
        return Field { below: None, merge: false, replace: false, retain: false, key: None };
    };
    let strategy = &node.patch.strategy;
    let below: &Schema = match &node.items {
        Some(items) => items,
        None => node,
    };
    Field {
        below: Some(below),
        merge: strategy.merge,
        replace: strategy.replace,
        retain: strategy.retain_keys,
        key: node.patch.merge_key.as_deref(),
    }
}

fn strategic_map(
    original: &Map<String, Value>,
    target: &Map<String, Value>,
    live: &Map<String, Value>,
    schema: Option<&Schema>,
) -> Map<String, Value> {
    let mut patch = Map::new();
    for (key, new) in target {
        let how = field(schema, key);
        let (old, there) = (original.get(key), live.get(key));
        match (new, there) {
            (Value::Object(new_map), Some(Value::Object(there))) if !how.replace => {
                let old = old.map_or_else(|| object(&Value::Null), object);
                let mut below = strategic_map(old, new_map, there, how.below);
                if how.retain && !below.is_empty() {
                    let keys: Vec<&String> = new_map.keys().collect();
                    below.insert("$retainKeys".into(), json!(keys));
                }
                if !below.is_empty() {
                    patch.insert(key.clone(), Value::Object(below));
                }
            }
            (Value::Array(new), Some(Value::Array(there))) if how.merge => {
                let old = old.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                match how.key {
                    Some(merge_key) => keyed_list(key, merge_key, old, new, there, how.below, &mut patch),
                    None => plain_list(key, old, new, there, &mut patch),
                }
            }
            (new, Some(there)) if new == there => {}
            (new, _) => {
                patch.insert(key.clone(), new.clone());
            }
        }
    }
    for key in original.keys().filter(|key| !target.contains_key(*key) && live.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    patch
}

fn keyed_list(
    name: &str,
    key: &str,
    old: &[Value],
    new: &[Value],
    there: &[Value],
    schema: Option<&Schema>,
    patch: &mut Map<String, Value>,
) {
    let find = |list: &[Value], item: &Value| list.iter().find(|other| other[key] == item[key]).cloned();
    let mut changes = Vec::new();
    for item in new {
        let Some(live) = find(there, item) else {
            changes.push(item.clone());
            continue;
        };
        let before = find(old, item).unwrap_or(Value::Null);
        let mut below = strategic_map(object(&before), object(item), object(&live), schema);
        if !below.is_empty() {
            below.insert(key.to_owned(), item[key].clone());
            changes.push(Value::Object(below));
        }
    }
    for item in old.iter().filter(|item| find(new, item).is_none() && find(there, item).is_some()) {
        changes.push(json!({"$patch": "delete", key: item[key]}));
    }
    if changes.is_empty() {
        return;
    }
    let order: Vec<Value> = new.iter().map(|item| json!({key: item[key]})).collect();
    patch.insert(name.to_owned(), Value::Array(changes));
    patch.insert(format!("$setElementOrder/{name}"), Value::Array(order));
}

fn plain_list(name: &str, old: &[Value], new: &[Value], there: &[Value], patch: &mut Map<String, Value>) {
    let added: Vec<Value> = new.iter().filter(|item| !there.contains(item)).cloned().collect();
    let dropped: Vec<Value> =
        old.iter().filter(|item| !new.contains(item) && there.contains(item)).cloned().collect();
    if !added.is_empty() {
        patch.insert(name.to_owned(), Value::Array(added));
    }
    if !dropped.is_empty() {
        patch.insert(format!("$deleteFromPrimitiveList/{name}"), Value::Array(dropped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fl_apply::ObjectRef;

    fn target(object: Value) -> Resource {
        Resource { reference: ObjectRef::of(&object).expect("an object"), object }
    }

    #[test]
    fn containers_merge_by_name() {
        let container = |name: &str, image: &str| json!({"name": name, "image": image});
        let deployment = |containers: Value| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
                   "spec": {"template": {"spec": {"containers": containers}}}})
        };
        let old = deployment(json!([container("a", "1"), container("b", "1")]));
        let new = target(deployment(json!([container("a", "2")])));
        let live = deployment(json!([container("a", "1"), container("b", "1"), container("sidecar", "1")]));
        let made = client_side_patch(&old, &new, &live, false);
        assert_eq!(made.kind, Patch::Strategic);
        assert_eq!(
            made.patch.pointer("/spec/template/spec/containers"),
            Some(&json!([{"image": "2", "name": "a"}, {"$patch": "delete", "name": "b"}]))
        );
        let mut patched = live.clone();
        let schema = fl_kubeschema::schema("apps", "v1", "Deployment").expect("built in");
        fl_ssa::patch::strategic_merge(&mut patched, made.patch, &schema).expect("a patch");
        assert_eq!(
            patched.pointer("/spec/template/spec/containers"),
            Some(&json!([{"name": "a", "image": "2"}, {"name": "sidecar", "image": "1"}]))
        );
    }

    #[test]
    fn custom_resources_go_from_old_to_new() {
        let thing = |spec: Value| json!({"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
        let made = client_side_patch(
            &thing(json!({"a": 1, "b": 1})),
            &target(thing(json!({"a": 2}))),
            &thing(json!({"a": 5, "b": 1, "c": 1})),
            false,
        );
        assert_eq!(made.patch, json!({"spec": {"a": 2, "b": null}}));
        let three = client_side_patch(
            &thing(json!({"b": 1})),
            &target(thing(json!({"a": 2}))),
            &thing(json!({"a": 2, "b": 1, "c": 1})),
            true,
        );
        assert_eq!(three.patch, json!({"spec": {"b": null}}));
    }
}
