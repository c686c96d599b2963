use super::*;
use serde_json::json;

fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let schema = Schema::from_json(schema).expect("schema");
    validate(value, None, &schema, "").iter().map(ToString::to_string).collect()
}

#[test]
fn error_messages_match_kube_apiserver() {
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
        "n": {"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 2},
        "f": {"type": "number", "exclusiveMinimum": true, "minimum": 0.5},
        "e": {"type": "string", "enum": ["A", "B"]},
        "l": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1},
        "t": {"type": "string", "format": "date-time"},
        "p": {"x-kubernetes-int-or-string": true}}}}});
    let spec = |spec: Value| errors(&schema, &json!({"spec": spec}));
    assert_eq!(errors(&schema, &json!({})), ["spec: Required value"]);
    assert_eq!(spec(json!({})), ["spec.name: Required value"]);
    assert_eq!(
        spec(json!({"name": "x"})),
        ["spec.name: Invalid value: \"x\": spec.name in body should be at least 2 chars long"]
    );
    assert_eq!(spec(json!({"name": "xxxxxx"})), ["spec.name: Too long: may not be more than 5 bytes"]);
    assert_eq!(
        spec(json!({"name": "X1"})),
        ["spec.name: Invalid value: \"X1\": spec.name in body should match '^[a-z]+$'"]
    );
    assert_eq!(
        spec(json!({"name": "ok", "n": 12})),
        ["spec.n: Invalid value: 12: spec.n in body should be less than or equal to 10"]
    );
    assert_eq!(
        spec(json!({"name": "ok", "n": 3})),
        ["spec.n: Invalid value: 3: spec.n in body should be a multiple of 2"]
    );
    assert_eq!(
        spec(json!({"name": "ok", "f": 0.5})),
        ["spec.f: Invalid value: 0.5: spec.f in body should be greater than 0.5"]
    );
    assert_eq!(
        spec(json!({"name": "ok", "e": "C"})),
        ["spec.e: Unsupported value: \"C\": supported values: \"A\", \"B\""]
    );
    assert_eq!(
        spec(json!({"name": "ok", "l": []})),
        ["spec.l: Invalid value: 0: spec.l in body should have at least 1 items"]
    );
    assert_eq!(
        spec(json!({"name": "ok", "l": [1, 2, 3]})),
        ["spec.l: Too many: 3: must have at most 2 items"]
    );
    assert_eq!(
        spec(json!({"name": "ok", "m": {"a": 1, "b": 2}})),
        ["spec.m: Too many: 2: must have at most 1 item"]
    );
    assert_eq!(
        spec(json!({"name": "ok", "m": {"a": "x"}})),
        ["spec.m.a: Invalid value: \"string\": spec.m.a in body must be of type integer: \"string\""]
    );
    // A float that is too large to represent every integer does not count as an integer.
    assert_eq!(
        spec(json!({"name": "ok", "m": {"a": 1e30}})),
        ["spec.m.a: Invalid value: \"number\": spec.m.a in body must be of type integer: \"number\""]
    );
    assert_eq!(
        spec(json!({"name": "ok", "t": "x"})),
        ["spec.t: Invalid value: \"x\": spec.t in body must be of type date-time: \"x\""]
    );
    assert_eq!(
        spec(json!({"name": "ok", "p": true})),
        ["spec.p: Invalid value: \"boolean\": spec.p in body must be of type integer,string: \"boolean\""]
    );
    assert_eq!(
        spec(json!({"name": null})),
        ["spec.name: Invalid value: \"null\": spec.name in body must be of type string: \"null\""]
    );
}

#[test]
fn closest_alternative_is_reported() {
    let schema = json!({"type": "object", "properties": {"one": {"type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}}});
    assert_eq!(
        errors(&schema, &json!({"one": {}})),
        [
            "<nil>: Invalid value: \"\": \"one\" must validate one and only one schema (oneOf). Found none valid",
            "one.a: Required value",
        ]
    );
    assert_eq!(
        errors(&schema, &json!({"one": {"a": "1", "b": "2"}})),
        [
            "<nil>: Invalid value: \"\": \"one\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
        ]
    );
}

#[test]
fn errors_in_unchanged_values_are_ignored_on_update() {
    let schema = Schema::from_json(&json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1}, "b": {"type": "integer", "maximum": 5},
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
              "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer", "maximum": 1}}}}}})).expect("schema");
    let old = json!({"a": "long", "b": 9, "l": [{"k": "x", "v": 7}]});
    let new = json!({"a": "long", "b": 8, "l": [{"k": "y", "v": 1}, {"k": "x", "v": 7}]});
    let texts: Vec<String> =
        validate(&new, Some(&old), &schema, "").iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["b: Invalid value: 8: b in body should be less than or equal to 5"]);
}

/// Recorded from kube-apiserver.
#[test]
fn numbers_are_validated_like_kube_apiserver() {
    let of = |rules: Value, n: Value| {
        errors(&json!({"type": "object", "properties": {"f": rules}}), &json!({"f": n}))
    };
    let half = json!({"type": "number", "multipleOf": 0.5});
    let blamed = "f: Invalid value: 0: factor MultipleOf declared for f must be positive: 0";
    assert_eq!(of(half.clone(), json!(1)), [blamed]);
    assert_eq!(of(half.clone(), json!(1.5)), [""; 0]);
    let far = "f: Invalid value: 1e+30: f in body should be a multiple of 0.5";
    assert_eq!(of(half, json!(1e30)), [far]);
    let listed = json!({"type": "integer", "enum": [1, 2]});
    assert_eq!(of(listed.clone(), json!(3)), ["f: Unsupported value: 3: supported values: \"1\", \"2\""]);
    let fraction = "f: Invalid value: \"number\": f in body must be of type integer: \"number\"";
    assert_eq!(of(listed, json!(1.5)), [fraction]);
}
