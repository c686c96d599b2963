//! Strategic merge patch: lists merge by key, directives delete, replace, retain and order.

use fl_schema::{Patch, Schema};
use serde_json::{Map, Value};

use super::PatchError;

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_LIST: &str = "$deleteFromPrimitiveList";
const ORDER_LIST: &str = "$setElementOrder";

/// Applies a strategic merge patch to an object of a built-in type.
pub fn strategic_merge(target: &mut Value, patch: Value, schema: &Schema) -> Result<(), PatchError> {
    let Value::Object(patch) = patch else { return Err(bad("invalid JSON document")) };
    let Value::Object(original) = std::mem::take(target) else { return Err(bad("invalid JSON document")) };
    *target = Value::Object(merge_map(original, patch, Some(schema))?);
    Ok(())
}

fn bad(text: &str) -> PatchError {
    PatchError::BadRequest(text.to_owned())
}

fn failed(text: impl Into<String>) -> PatchError {
    PatchError::Failed(text.into())
}

fn no_merge_key(map: &Map<String, Value>, key: &str) -> PatchError {
    failed(format!(
        "map: {} does not contain declared merge key: {key}",
        fl_go::plain(&Value::Object(map.clone()))
    ))
}

/// How a member is patched, with the schema below it.
struct Field<'s> {
    below: Option<&'s Schema>,
    replace: bool,
    merge: bool,
    key: Option<&'s str>,
}

fn field<'s>(schema: Option<&'s Schema>, name: &str) -> Field<'s> {
    let Some(node) = schema.and_then(|s| s.member(name)) else {
        return Field { below: None, replace: false, merge: false, key: None };
    };
    let Patch { strategy, merge_key } = &node.patch;
    let below: &Schema = match &node.items {
        Some(items) => items,
        None => node,
    };
    Field { below: Some(below), replace: strategy.replace, merge: strategy.merge, key: merge_key.as_deref() }
}

fn merge_map(
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
    schema: Option<&Schema>,
) -> Result<Map<String, Value>, PatchError> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Map::new()),
            _ => {
                patch.insert(DIRECTIVE.to_owned(), directive.clone());
                Err(failed(format!(
                    "unknown patch type: {} in map: {}",
                    fl_go::string(&directive),
                    fl_go::plain(&Value::Object(patch))
                )))
            }
        };
    }
    retain_keys(&mut original, &mut patch)?;
    order_lists(&mut original, &mut patch, schema)?;
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix(DELETE_LIST) {
            let key = list.strip_prefix('/').ok_or_else(|| bad("invalid patch format of primitive list"))?;
            delete_from(&mut original, key, &value);
            continue;
        }
        if value.is_null() {
            original.remove(&name);
            continue;
        }
        let merged = match (original.remove(&name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let how = field(schema, &name);
                Some(Value::Object(if how.replace { new } else { merge_map(old, new, how.below)? }))
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                let how = field(schema, &name);
                Some(Value::Array(if how.merge { merge_list(old, new, &how)? } else { new }))
            }
            (Some(old), new) if std::mem::discriminant(&old) == std::mem::discriminant(&new) => {
                without_directives(new)
            }
            (_, mut new) => {
                drop_nulls(&mut new);
                without_directives(new)
            }
        };
        if let Some(merged) = merged {
            original.insert(name, merged);
        }
    }
    Ok(original)
}

fn retain_keys(original: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<(), PatchError> {
    let Some(retain) = patch.remove(RETAIN) else { return Ok(()) };
    let wrong = || bad("invalid patch format of retainKeys");
    let keep = retain.as_array().ok_or_else(wrong)?;
    let kept = |name: &str| keep.iter().any(|k| k.as_str() == Some(name));
    let stray = patch.iter().any(|(name, value)| {
        !value.is_null() && !name.starts_with(DELETE_LIST) && !name.starts_with(ORDER_LIST) && !kept(name)
    });
    if stray {
        return Err(wrong());
    }
    original.retain(|name, _| kept(name));
    Ok(())
}

/// Merges the lists whose order the patch sets.
fn order_lists(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    let wrong = || bad("invalid patch format of setElementOrder list");
    let names: Vec<String> = patch.keys().filter(|k| k.starts_with(ORDER_LIST)).cloned().collect();
    for name in names {
        let Some(order) = patch.remove(&name) else { continue };
        let Value::Array(order) = order else {
            return Err(failed(format!(
                "expected a []interface {{}}, but received a {}",
                fl_go::type_name(&order)
            )));
        };
        let key = name.strip_prefix(ORDER_LIST).and_then(|n| n.strip_prefix('/')).ok_or_else(wrong)?;
        if let Some(schema) = schema.filter(|s| s.property(key).is_none() && s.map_values().is_none()) {
            let owner = schema.name.as_deref().and_then(|n| n.rsplit('.').next()).unwrap_or_default();
            return Err(failed(format!(
                "unable to find api field in struct {owner} for the json field {key:?}"
            )));
        }
        let how = field(schema, key);
        let list_of = |value: Option<Value>| match value {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(other) => Err(failed(format!(
                "expected a []interface {{}}, but received a {}",
                fl_go::type_name(&other)
            ))),
        };
        let old = list_of(original.remove(key))?;
        let new = list_of(patch.remove(key))?;
        check_order(new.as_deref().unwrap_or_default(), &order, how.key)?;
        let server = old.clone().unwrap_or_default();
        let merged = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => match without_directives(Value::Array(new)) {
                Some(Value::Array(list)) => list,
                _ => continue,
            },
            (Some(old), Some(new)) if how.merge => merge_list(old, new, &how)?,
            (Some(_), Some(new)) => new,
        };
        let ordered = arrange(merged, &order, &server, how.key)?;
        original.insert(key.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

/// The items of the patch must be in the order of the directive.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut wanted = order.iter();
    for item in patch.iter().filter(|i| i.get(DIRECTIVE).is_none()) {
        let identity = identity(item, key)?;
        let mut found = false;
        for candidate in wanted.by_ref() {
            if self::identity(candidate, key)? == identity {
                found = true;
                break;
            }
        }
        if !found {
            return Err(failed(format!(
                "The order in patch list:\n{}\n doesn't match {ORDER_LIST} list:\n{}\n",
                fl_go::plain(&Value::Array(patch.to_vec())),
                fl_go::plain(&Value::Array(order.to_vec()))
            )));
        }
    }
    Ok(())
}

/// The identity of an item: the value of its merge key, or the item itself.
fn identity<'v>(item: &'v Value, key: Option<&str>) -> Result<&'v Value, PatchError> {
    match (key, item) {
        (None, item) => Ok(item),
        (Some(key), Value::Object(map)) => map.get(key).ok_or_else(|| no_merge_key(map, key)),
        (Some(_), other) => Err(failed(format!(
            "expected a map[string]interface {{}}, but received a {}",
            fl_go::type_name(other)
        ))),
    }
}

fn merge_list(mut old: Vec<Value>, new: Vec<Value>, how: &Field<'_>) -> Result<Vec<Value>, PatchError> {
    if old.is_empty() && new.is_empty() {
        return Ok(old);
    }
    let maps = same_kind(&old, &new)?;
    if !maps {
        let server = old.clone();
        let order = new.clone();
        for item in new {
            if !old.contains(&item) {
                old.push(item);
            }
        }
        return arrange(old, &order, &server, None);
    }
    let key = how.key.ok_or_else(|| failed("cannot merge lists without merge key for list"))?;
    let mut replace = false;
    let mut items = Vec::with_capacity(new.len());
    for item in new {
        let Some(directive) = item.get(DIRECTIVE) else {
            items.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let gone = identity(&item, Some(key))?;
                old.retain(|o| o.get(key) != Some(gone));
            }
            Some("replace") => replace = true,
            Some("merge") => return Err(failed("merging lists cannot yet be specified in the patch")),
            _ => {
                return Err(failed(format!(
                    "unknown patch type: {} in map: {}",
                    fl_go::string(directive),
                    fl_go::plain(&item)
                )));
            }
        }
    }
    if replace {
        return Ok(items);
    }
    let server = old.clone();
    let order = items.clone();
    for item in items {
        let wanted = identity(&item, Some(key))?;
        let position = old.iter().position(|o| o.get(key) == Some(wanted));
        match (position, item) {
            (Some(at), Value::Object(map)) => {
                if let Value::Object(before) = std::mem::take(&mut old[at]) {
                    old[at] = Value::Object(merge_map(before, map, how.below)?);
                }
            }
            (_, item) => old.push(item),
        }
    }
    arrange(old, &order, &server, Some(key))
}

/// Whether the items are maps; mixed lists and lists of lists cannot be merged.
fn same_kind(old: &[Value], new: &[Value]) -> Result<bool, PatchError> {
    let mut all = old.iter().chain(new);
    let Some(first) = all.next() else { return Ok(false) };
    if first.is_array() {
        return Err(PatchError::ListOfLists);
    }
    if all.any(|v| fl_go::type_name(v) != fl_go::type_name(first)) {
        let shown = format!(
            "[{} {}]",
            fl_go::plain(&Value::Array(old.to_vec())),
            fl_go::plain(&Value::Array(new.to_vec()))
        );
        return Err(failed(format!("list element types are not identical: {shown}")));
    }
    Ok(first.is_object())
}

/// Orders a merged list: items of the patch in its order, the others in the order of the live list.
fn arrange(
    merged: Vec<Value>,
    order: &[Value],
    server: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let position = |list: &[Value], item: &Value| -> Result<Option<usize>, PatchError> {
        let wanted = identity(item, key)?;
        Ok(list.iter().position(|candidate| identity(candidate, key).is_ok_and(|found| found == wanted)))
    };
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for item in merged {
        match position(order, &item)? {
            Some(at) => ours.push((at, item)),
            None => theirs.push((position(server, &item)?.unwrap_or(usize::MAX), item)),
        }
    }
    ours.sort_by_key(|(at, _)| *at);
    theirs.sort_by_key(|(at, _)| *at);
    let mut out = Vec::with_capacity(ours.len() + theirs.len());
    let mut left = theirs.into_iter().peekable();
    for (_, item) in ours {
        let mine = position(server, &item)?;
        while let Some((at, _)) = left.peek() {
            if *at == usize::MAX || mine.is_none_or(|m| *at >= m) {
                break;
            }
            out.extend(left.next().map(|(_, v)| v));
        }
        out.push(item);
    }
    out.extend(left.map(|(_, v)| v));
    Ok(out)
}

fn delete_from(original: &mut Map<String, Value>, key: &str, gone: &Value) {
    if let (Some(Value::Array(list)), Some(gone)) = (original.get_mut(key), gone.as_array()) {
        list.retain(|item| !gone.contains(item));
    }
}

/// Removes directives from a new value; `None` if the value itself is a directive.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) => {
            if map.contains_key(DIRECTIVE) {
                return None;
            }
            Some(Value::Object(
                map.into_iter().filter_map(|(k, v)| without_directives(v).map(|v| (k, v))).collect(),
            ))
        }
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, below| !below.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        Schema::from_json(&json!({"type": "object", "properties": {
            "containers": {"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
                "items": {"type": "object", "properties": {"name": {"type": "string"}, "image": {"type": "string"}}}},
            "finalizers": {"type": "array", "x-kubernetes-patch-strategy": "merge", "items": {"type": "string"}},
            "args": {"type": "array", "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}}}})).expect("schema")
    }

    fn patched(object: Value, patch: Value) -> Result<Value, String> {
        let mut object = object;
        strategic_merge(&mut object, patch, &schema()).map_err(|e| e.to_string())?;
        Ok(object)
    }

    #[test]
    fn keyed_lists_merge_and_directives_apply() {
        let base = || json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}], "finalizers": ["x", "y"], "args": ["1"], "labels": {"k": "v"}});
        let ok = |patch: Value| patched(base(), patch).expect("applies");
        assert_eq!(
            ok(json!({"containers": [{"name": "c"}, {"name": "a", "image": "9"}]}))["containers"],
            json!([{"name": "c"}, {"name": "a", "image": "9"}, {"name": "b", "image": "2"}])
        );
        assert_eq!(
            ok(json!({"containers": [{"name": "a", "$patch": "delete"}]}))["containers"],
            json!([{"name": "b", "image": "2"}])
        );
        assert_eq!(
            ok(json!({"containers": [{"$patch": "replace"}, {"name": "z"}]}))["containers"],
            json!([{"name": "z"}])
        );
        assert_eq!(
            ok(json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}))["containers"],
            json!([{"name": "b", "image": "2"}, {"name": "a", "image": "1"}])
        );
        assert_eq!(ok(json!({"$deleteFromPrimitiveList/finalizers": ["x"]}))["finalizers"], json!(["y"]));
        assert_eq!(ok(json!({"finalizers": ["z", "x"]}))["finalizers"], json!(["z", "x", "y"]));
        assert_eq!(ok(json!({"args": ["2"], "labels": {"k": null, "n": "1"}})), {
            let mut want = base();
            want["args"] = json!(["2"]);
            want["labels"] = json!({"n": "1"});
            want
        });
        assert_eq!(ok(json!({"labels": {"$patch": "replace", "only": "1"}}))["labels"], json!({"only": "1"}));
        assert_eq!(ok(json!({"labels": {"$retainKeys": ["n"], "n": "1"}}))["labels"], json!({"n": "1"}));
    }

    #[test]
    fn error_messages_match_kubernetes() {
        let base = json!({"containers": [{"name": "a"}]});
        assert_eq!(
            patched(base.clone(), json!({"containers": [{"image": "x"}]})).expect_err("refused"),
            "map: map[image:x] does not contain declared merge key: name"
        );
        assert_eq!(
            patched(base.clone(), json!({"labels": {}, "containers": [{"name": "a", "$patch": "what"}]}))
                .expect_err("refused"),
            "unknown patch type: what in map: map[$patch:what name:a]"
        );
        assert_eq!(patched(base, json!([])).expect_err("refused"), "invalid JSON document");
    }
}
