use super::*;
use serde_json::json;

fn schema() -> Schema {
    let root = Schema::from_json(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "name": {"type": "string"},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": {"type": "object", "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "n": {"type": "string"}}}},
            "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
            "plain": {"type": "array", "items": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}}}})).expect("schema");
    root.served()
}

struct Fixture {
    schema: Schema,
    reset: Set,
    object: Value,
}

impl Fixture {
    fn new() -> Self {
        Self { schema: schema(), reset: Set::of_fields(&[&["status"]]), object: Value::Null }
    }

    fn request<'a>(&'a self, manager: &'a str) -> Request<'a> {
        Request {
            schema: &self.schema,
            api_version: "x/v1",
            kind: "X",
            subresource: "",
            manager,
            now: "2024-01-01T00:00:00Z",
            reset: &self.reset,
            versions: &OneVersion,
        }
    }

    fn apply(&mut self, manager: &str, spec: &Value, force: bool) -> Result<(), String> {
        let config = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a"}, "spec": spec});
        self.object =
            apply(self.request(manager), &self.object, &config, force).map_err(|e| e.to_string())?;
        Ok(())
    }

    fn fields(&self, manager: &str) -> Value {
        let list = self.object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        list.into_iter().find(|e| e["manager"] == manager).map_or(Value::Null, |e| e["fieldsV1"].clone())
    }
}

#[test]
fn apply_updates_ownership() {
    let mut fixture = Fixture::new();
    fixture
        .apply("one", &json!({"replicas": 1, "tags": ["a"], "ports": [{"port": 80, "n": "x"}]}), false)
        .expect("applies");
    assert_eq!(
        fixture.fields("one"),
        json!({"f:spec": {"f:replicas": {}, "f:tags": {"v:\"a\"": {}},
        "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:n": {}}}}})
    );
    let refused = fixture.apply("two", &json!({"replicas": 2, "tags": ["b"]}), false).expect_err("conflict");
    assert_eq!(refused, "Apply failed with 1 conflict: conflict with \"one\": .spec.replicas");
    fixture.apply("two", &json!({"replicas": 2, "tags": ["b"]}), true).expect("forced");
    assert_eq!(fixture.object["spec"]["tags"], json!(["a", "b"]));
    assert_eq!(
        fixture.fields("one"),
        json!({"f:spec": {"f:tags": {"v:\"a\"": {}},
        "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:n": {}}}}})
    );
    fixture.apply("one", &json!({"tags": []}), false).expect("applies");
    assert_eq!(fixture.object["spec"], json!({"replicas": 2, "tags": ["b"]}));
}

#[test]
fn updates_own_fields_and_are_limited() {
    let mut fixture = Fixture::new();
    fixture.apply("one", &json!({"replicas": 1}), false).expect("applies");
    fixture.object["metadata"]["uid"] = json!("u");
    for writer in 0..12 {
        let mut new = fixture.object.clone();
        new["spec"]["replicas"] = json!(10 + writer);
        new["spec"]["free"][format!("k{writer}")] = json!(1);
        let name = format!("w{writer:02}");
        update(fixture.request(&name), &fixture.object.clone(), &mut new);
        fixture.object = new;
    }
    let managers: Vec<String> = fixture.object["metadata"]["managedFields"]
        .as_array()
        .expect("list")
        .iter()
        .map(|e| e["manager"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(managers.len(), 10, "{managers:?}");
    assert_eq!(managers[0], "ancient-changes");
    assert_eq!(fixture.fields("w11"), json!({"f:spec": {"f:replicas": {}, "f:free": {"f:k11": {}}}}));
}

#[test]
fn managed_fields_can_be_reset_and_first_apply_is_marked() {
    let fixture = Fixture::new();
    let live = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a", "uid": "u"}, "spec": {"name": "n"}});
    let config =
        json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a"}, "spec": {"replicas": 1}});
    let out = apply(fixture.request("one"), &live, &config, false).expect("applies");
    let managers: Vec<&Value> =
        out["metadata"]["managedFields"].as_array().expect("list").iter().map(|e| &e["manager"]).collect();
    assert_eq!(managers, ["one", "before-first-apply"]);
    let mut new = out.clone();
    new["metadata"]["managedFields"] = json!([{}]);
    update(fixture.request("x"), &out, &mut new);
    assert_eq!(new["metadata"].get("managedFields"), None);
}

#[test]
fn i02_malicious_managed_fields_are_bounded() {
    let mut deep = json!({});
    for _ in 0..120 {
        deep = json!({"f:a": deep});
    }
    let fixture = Fixture::new();
    let wide: serde_json::Map<String, Value> = (0..20_000).map(|i| (format!("f:k{i}"), json!({}))).collect();
    for bomb in [deep, Value::Object(wide), json!({"k:{": {}}), json!([1])] {
        let live =
            json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a", "uid": "u"}, "spec": {}});
        let mut new = live.clone();
        new["metadata"]["managedFields"] = json!([{"manager": "m", "operation": "Update", "apiVersion": "x/v1", "fieldsType": "FieldsV1", "fieldsV1": bomb}]);
        update(fixture.request("w"), &live, &mut new);
    }
}

#[test]
fn reapplied_fields_are_encoded_canonically() {
    let mut fixture = Fixture::new();
    let spec = json!({"replicas": 1, "name": "a"});
    fixture.apply("one", &spec, false).expect("applies");
    let wanted = json!({"f:spec": {"f:name": {}, "f:replicas": {}}});
    assert_eq!(fixture.fields("one"), wanted);
    fixture.apply("one", &json!({"replicas": 2, "name": "b"}), false).expect("applies");
    assert_eq!(fixture.fields("one"), wanted);
    // Managed fields in another notation are normalized.
    let odd = json!({"f:spec": {"f:name": {".": {}}, "f:replicas": null, "q:later": {}}});
    fixture.object["metadata"]["managedFields"][0]["fieldsV1"] = odd;
    fixture.apply("one", &spec, false).expect("applies");
    assert_eq!(fixture.fields("one"), wanted);
}

/// Whether the fast path applies; its result must equal that of the full algorithm.
fn fast_path_applies(fixture: &Fixture, spec: &Value) -> bool {
    let metadata = json!({"name": "a", "namespace": "n", "labels": {"a": "1"}});
    let config = json!({"apiVersion": "x/v1", "kind": "X", "metadata": metadata, "spec": spec});
    let request = Request { now: "2025-01-01T00:00:00Z", ..fixture.request("one") };
    let Some(fast) = reapply::apply(request, &fixture.object, &config) else { return false };
    let full = apply_in_full(request, &fixture.object, &config, false).expect("applies");
    assert_eq!(fast, full, "{spec}");
    true
}

#[test]
fn fast_path_has_the_same_result() {
    let specs = [
        json!({"replicas": 1, "name": "x"}),
        json!({"replicas": 2, "name": "y"}),
        json!({"replicas": 2}),
        json!({"tags": ["a", "b"]}),
        json!({"tags": ["b", "a"]}),
        json!({"tags": ["a", "a"]}),
        json!({"tags": []}),
        json!({"ports": [{"port": 80, "n": "x"}, {"port": 81, "protocol": "UDP"}]}),
        json!({"ports": [{"port": 81, "protocol": "UDP"}, {"port": 80, "protocol": "TCP", "n": "y"}]}),
        json!({"ports": [{"port": 80}]}),
        json!({"atom": {"a": "1"}}),
        json!({"atom": {"a": "2", "b": "3"}}),
        json!({"atom": {"a": 1}}),
        json!({"plain": ["x"]}),
        json!({"plain": ["y", "z"]}),
        json!({"plain": [1]}),
        json!({"free": {"a": {"b": 1}, "c": [1]}}),
        json!({"free": {"a": {"b": 2}, "c": [2, 3]}}),
        json!({"free": {"a": {}}}),
        json!({"free": {}}),
        json!({"replicas": null}),
        json!({"replicas": "x"}),
        json!({"other": 1}),
        json!({}),
        json!(null),
        json!([]),
    ];
    let mut taken = 0;
    for before in &specs {
        let mut fixture = Fixture::new();
        let config = json!({"apiVersion": "x/v1", "kind": "X", "spec": before,
            "metadata": {"name": "a", "labels": {"a": "0"}}});
        let Ok(object) = apply_in_full(fixture.request("one"), &Value::Null, &config, false) else {
            continue;
        };
        fixture.object = object;
        taken += specs.iter().filter(|after| fast_path_applies(&fixture, after)).count();
        // With a second manager the fast path does not apply.
        fixture.apply("two", &json!({"name": "z"}), true).expect("applies");
        assert!(specs.iter().all(|after| !fast_path_applies(&fixture, after)));
    }
    // Every valid spec with itself, and six pairs (in both directions) that differ only in values.
    assert!(taken > 20, "{taken}");
}
