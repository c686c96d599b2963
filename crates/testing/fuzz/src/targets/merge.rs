//! Schemas, merges, patches and CEL rules that clients send to an API server.

use fl_schema::{Node, Schema, Shape};
use fl_ssa::{OneVersion, Request, Set};
use serde_json::{Value, json};

use super::Target;

pub(super) const TARGETS: &[Target] = &[
    ("json-patch", json_patch),
    ("strategic-merge", strategic),
    ("apply", apply),
    ("cel", cel),
    ("schema", schema),
];

/// Reads up to `N` JSON documents, one a line; missing ones are null.
fn documents<const N: usize>(bytes: &[u8]) -> [Value; N] {
    let mut lines = bytes.split(|b| *b == b'\n');
    std::array::from_fn(|_| lines.next().and_then(|l| serde_json::from_slice(l).ok()).unwrap_or(Value::Null))
}

/// Every kind of list and map there is.
fn sample() -> Schema {
    Schema::from_json(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "n": {"type": "integer", "default": 1}, "s": {"type": "string", "maxLength": 5},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"},
                "x-kubernetes-patch-strategy": "merge"},
            "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "k",
                "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}},
            "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}))
    .expect("the sample is a schema")
}

fn json_patch(bytes: &[u8]) {
    let [mut document, patch] = documents(bytes);
    let _ = fl_ssa::patch::json_patch(&mut document, &patch);
    let _ = fl_ssa::patch::merge_patch(&mut document, patch);
}

fn strategic(bytes: &[u8]) {
    let [mut document, patch] = documents(bytes);
    let _ = fl_ssa::patch::strategic_merge(&mut document, patch, &sample());
}

fn apply(bytes: &[u8]) {
    let [live, config, mut new] = documents(bytes);
    let (schema, reset) = (sample().served(), Set::of_fields(&[&["status"]]));
    let request = Request {
        schema: &schema,
        api_version: "x/v1",
        kind: "X",
        subresource: "",
        manager: "fuzz",
        now: "2024-01-01T00:00:00Z",
        reset: &reset,
        versions: &OneVersion,
    };
    if let Ok(applied) = fl_ssa::apply(request, &live, &config, true) {
        // Applying the same again must change nothing.
        let again = fl_ssa::apply(request, &applied, &config, false).expect("nothing left to conflict with");
        assert_eq!(applied, again, "a second apply changed the object");
    }
    fl_ssa::update(request, &live, &mut new);
}

fn cel(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (source, value) = text.split_once('\n').unwrap_or((&text, "{}"));
    let value: Value = serde_json::from_str(value).unwrap_or(Value::Null);
    if let Ok(expression) = fl_cel::Expression::compile(source, &["self"]) {
        let _ = expression.eval(&[("self", &value)]);
    }
}

fn schema(bytes: &[u8]) {
    let [json, mut value] = documents(bytes);
    let _ = fl_schema::decode(bytes, Shape::Typed(&sample()));
    let Ok(schema) = Schema::from_json(&json) else { return };
    let node = Node::new(schema);
    let _ = fl_schema::coerce(&mut value, &node);
    fl_schema::default(&mut value, &node);
    let _ = fl_schema::validate(&value, None, &node, "");
    let _ = fl_schema::check_list_types(&value, &node);
    if let Some(rules) = fl_cel::Validator::new(&node) {
        let _ = rules.validate(&value, None);
    }
}
