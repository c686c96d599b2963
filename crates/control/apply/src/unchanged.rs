//! Whether a live object still is what was applied, told by the object alone.
//!
//! The managed fields name every field that our last apply set. Nobody can change one of them without taking it away from us, and
//! what an apply would remove is what we own and no longer want. So an object whose fields of ours are exactly the wanted ones, with
//! the wanted values, is one that an apply would leave as it is: the dry-run that would say so can be saved.
//!
//! Whatever cannot be followed without a schema (a field under a defaulted name, a list in another order) is no proof, and the
//! server is asked.

use serde_json::{Map, Value};

/// What of `metadata` names the object and is owned by nobody.
const NAMES: [&str; 2] = ["name", "namespace"];

/// Whether the fields that `manager` applied to `live` are exactly those of `wanted`, and have its values.
pub(crate) fn managed_fields_match(live: &Value, wanted: &Value, manager: &str) -> bool {
    if live.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null()) {
        return false;
    }
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let ours = |e: &&Value| {
        e["manager"] == manager
            && e["operation"] == "Apply"
            && e["subresource"].as_str().unwrap_or_default().is_empty()
    };
    let mut ours = entries.into_iter().flatten().filter(ours);
    let (Some(entry), None) = (ours.next(), ours.next()) else { return false };
    let (Some(fields), Some(all)) = (entry["fieldsV1"].as_object(), wanted.as_object()) else { return false };
    if entry["apiVersion"] != wanted["apiVersion"] || live["apiVersion"] != wanted["apiVersion"] {
        return false;
    }
    let mut body: Map<String, Value> =
        all.iter().filter(|(k, _)| !matches!(k.as_str(), "apiVersion" | "kind")).map(own).collect();
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !NAMES.contains(&key.as_str()));
        if metadata.is_empty() {
            body.remove("metadata");
        }
    }
    same(fields, &Value::Object(body), live)
}

fn own((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

/// Whether what `fields` names in `live` is `wanted`.
fn same(fields: &Map<String, Value>, wanted: &Value, live: &Value) -> bool {
    let mut children = fields.iter().filter(|(key, _)| key.as_str() != ".").peekable();
    let Some((first, _)) = children.peek() else {
        // A leaf: a scalar, or a value that is replaced as a whole.
        return !wanted.is_null() && wanted == live;
    };
    match first.get(..2) {
        Some("f:") => same_fields(children, wanted, live),
        Some("k:") => same_items(children, wanted, live),
        Some("v:") => same_values(children, wanted, live),
        _ => false,
    }
}

type Children<'a, I> = std::iter::Peekable<I>;

fn same_fields<'a>(
    children: Children<'a, impl Iterator<Item = (&'a String, &'a Value)>>,
    wanted: &Value,
    live: &Value,
) -> bool {
    let (Some(wanted), Some(live)) = (wanted.as_object(), live.as_object()) else { return false };
    let mut found = 0;
    for (key, below) in children {
        let Some(name) = key.strip_prefix("f:") else { return false };
        let (Some(below), Some(wanted), Some(live)) = (below.as_object(), wanted.get(name), live.get(name))
        else {
            return false;
        };
        if !same(below, wanted, live) {
            return false;
        }
        found += 1;
    }
    found == wanted.len()
}

/// Items that are told apart by some of their fields. Those of ours come in the wanted order.
fn same_items<'a>(
    children: Children<'a, impl Iterator<Item = (&'a String, &'a Value)>>,
    wanted: &Value,
    live: &Value,
) -> bool {
    let (Some(wanted), Some(live)) = (wanted.as_array(), live.as_array()) else { return false };
    let mut items = Vec::with_capacity(wanted.len());
    for (key, below) in children {
        let id =
            key.strip_prefix("k:").and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
        let (Some(id), Some(below)) = (id, below.as_object()) else { return false };
        let is_it = |item: &Value| id.iter().all(|(field, value)| item.get(field) == Some(value));
        let mut places = live.iter().enumerate().filter(|(_, item)| is_it(item));
        let (Some((at, item)), None) = (places.next(), places.next()) else { return false };
        items.push((at, below, item));
    }
    items.sort_by_key(|(at, _, _)| *at);
    items.len() == wanted.len()
        && items.iter().zip(wanted).all(|((_, below, item), wanted)| same(below, wanted, item))
}

/// Values of a set. Those of ours come in the wanted order.
fn same_values<'a>(
    children: Children<'a, impl Iterator<Item = (&'a String, &'a Value)>>,
    wanted: &Value,
    live: &Value,
) -> bool {
    let (Some(wanted), Some(live)) = (wanted.as_array(), live.as_array()) else { return false };
    let mut values = Vec::with_capacity(wanted.len());
    for (key, _) in children {
        let value = key.strip_prefix("v:").and_then(|text| serde_json::from_str::<Value>(text).ok());
        let Some(at) = value.as_ref().and_then(|v| live.iter().position(|l| l == v)) else { return false };
        values.push((at, value));
    }
    values.sort_by_key(|(at, _)| *at);
    values.len() == wanted.len()
        && values.iter().zip(wanted).all(|((_, v), wanted)| v.as_ref() == Some(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "namespace": "ns", "labels": {"app": "a"}, "finalizers": ["x/y"]},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": {"spec": {
                "containers": [
                    {"name": "one", "image": "i:1", "ports": [{"containerPort": 80}]},
                    {"name": "two", "image": "i:2"}],
                "volumes": [{"name": "data", "emptyDir": {}}]}}}})
    }

    /// As the server keeps it: defaulted, with a container and a label of somebody else.
    fn live() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "namespace": "ns", "uid": "u", "generation": 3, "labels": {"app": "a", "other": "b"},
                "finalizers": ["else/z", "x/y"],
                "managedFields": [
                    {"manager": "us", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {"v:\"x/y\"": {}}},
                        "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {
                            "f:containers": {
                                "k:{\"name\":\"one\"}": {".": {}, "f:name": {}, "f:image": {}, "f:ports": {
                                    "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}},
                                "k:{\"name\":\"two\"}": {".": {}, "f:name": {}, "f:image": {}}},
                            "f:volumes": {"k:{\"name\":\"data\"}": {".": {}, "f:name": {}, "f:emptyDir": {}}}}}}}},
                    {"manager": "us", "operation": "Apply", "apiVersion": "apps/v1", "subresource": "status", "fieldsV1": {}},
                    {"manager": "mesh", "operation": "Update", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {}}}]},
            "spec": {"replicas": 0, "paused": false, "selector": {"matchLabels": {"app": "a"}}, "template": {"spec": {
                "dnsPolicy": "ClusterFirst",
                "containers": [
                    {"name": "one", "image": "i:1", "imagePullPolicy": "Always", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
                    {"name": "mesh", "image": "m"},
                    {"name": "two", "image": "i:2"}],
                "volumes": [{"name": "data", "emptyDir": {}}]}}},
            "status": {"replicas": 0}})
    }

    #[test]
    fn what_others_added_does_not_matter() {
        assert!(managed_fields_match(&live(), &wanted(), "us"));
    }

    #[test]
    fn every_difference_counts() {
        let different: [(&str, Value); 7] = [
            ("/spec/replicas", json!(1)),
            ("/spec/selector/matchLabels", json!({"app": "b"})),
            ("/spec/template/spec/containers/0/image", json!("i:9")),
            ("/spec/template/spec/containers/0/ports/0", json!({"containerPort": 80, "name": "http"})),
            ("/spec/template/spec/volumes/0/emptyDir", json!({"medium": "Memory"})),
            ("/metadata/labels", json!({"app": "a", "more": "x"})),
            ("/metadata/finalizers", json!([])),
        ];
        for (place, value) in different {
            let mut wanted = wanted();
            *wanted.pointer_mut(place).expect("is there") = value;
            assert!(!managed_fields_match(&live(), &wanted, "us"), "{place}");
        }
        let mut less = wanted();
        less["spec"].as_object_mut().expect("an object").remove("replicas");
        assert!(!managed_fields_match(&live(), &less, "us"), "a field that is to go");
        let mut swapped = wanted();
        swapped["spec"]["template"]["spec"]["containers"].as_array_mut().expect("a list").reverse();
        assert!(!managed_fields_match(&live(), &swapped, "us"), "another order");
        let mut older = wanted();
        older["apiVersion"] = json!("apps/v1beta2");
        assert!(!managed_fields_match(&live(), &older, "us"), "another version");
    }

    #[test]
    fn what_was_taken_from_us_is_no_longer_ours() {
        let mut live = live();
        let ours = live.pointer_mut("/metadata/managedFields/0/fieldsV1/f:spec").expect("ours");
        ours.as_object_mut().expect("an object").remove("f:replicas");
        assert!(!managed_fields_match(&live, &wanted(), "us"));
    }

    #[test]
    fn nothing_follows_from_other_objects() {
        assert!(!managed_fields_match(&live(), &wanted(), "others"));
        let mut going = live();
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(!managed_fields_match(&going, &wanted(), "us"));
        assert!(!managed_fields_match(&json!({}), &wanted(), "us"));
    }
}
