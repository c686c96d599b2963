use super::*;
use serde_json::json;

fn errors(schema: &Json, object: &Json, old: Option<&Json>) -> Vec<String> {
    let schema = Node::new(Schema::from_json(schema).expect("schema"));
    let validator = Validator::new(&schema).expect("has rules");
    let (mut errors, _) = validator.validate(object, old);
    errors.sort_by(|a, b| a.field.cmp(&b.field));
    errors.iter().map(ToString::to_string).collect()
}

fn one(ty: &Json, rule: &str, value: &Json) -> Vec<String> {
    let mut schema = ty.clone();
    schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
    errors(&json!({"type": "object", "properties": {"v": schema}}), &json!({"v": value}), None)
}

#[test]
fn failed_rules_give_their_message() {
    let text = json!({"type": "string"});
    let holds =
        |rule: &str, value: Json| assert_eq!(one(&text, rule, &value), Vec::<String>::new(), "{rule}");
    holds("isIP(self) && ip(self).family() == 4", json!("10.0.0.1"));
    holds("quantity(self).isGreaterThan(quantity('1Gi'))", json!("2Gi"));
    holds("url(self).getScheme() == 'https' && url(self).getHostname() == 'x'", json!("https://x:1/y?a=b"));
    holds("self.find('[0-9]+') == '42'", json!("a42b"));
    holds("self.split(',').size() == 2 && self.lowerAscii() == self", json!("a,b"));
    holds("cidr('10.0.0.0/8').containsIP(self)", json!("10.2.3.4"));
    holds("semver(self).isLessThan(semver('2.0.0'))", json!("1.9.0-rc.1"));
    holds("'%s-%d'.format([self, 3]) == 'x-3'", json!("x"));
    holds("['a', self].isSorted() && sets.contains(['x', 'b'], [self])", json!("b"));
    holds("{'k': self}.transformMap(k, v, v + k)['k'] == 'bk'", json!("b"));
    holds("{'k': self}.?x.hasValue() == false && {'k': self}.?k.orValue('') == self", json!("b"));
    holds("optional.of(self).optMap(v, v + 'x').orValue('') == 'bx'", json!("b"));
    holds("[3, 1, 2].max() == 3 && [1, 2].map(i, i * 2).sum() == 6", json!("b"));
    holds("!format.dns1123Label().validate(self).hasValue()", json!("ok-name"));
    holds("timestamp('2024-05-06T07:08:09Z').getMonth() == 4 && duration('1h') > duration('59m')", json!(""));
    assert_eq!(
        one(&text, "self.startsWith('a')", &json!("b")),
        ["v: Invalid value: \"string\": failed rule: self.startsWith('a')"]
    );
    assert_eq!(
        one(&json!({"type": "array", "items": {"type": "integer"}}), "self[3] == 1", &json!([1])),
        ["v: Invalid value: \"array\": index out of bounds: 3 evaluating rule: self[3] == 1"]
    );
}

#[test]
fn transition_rules_messages_reasons_and_paths() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "x-kubernetes-validations": [
            {"rule": "self.a == oldSelf.a", "message": "a is fixed", "fieldPath": ".a", "reason": "FieldValueForbidden"},
            {"rule": "self.n < 5", "messageExpression": "'n is ' + string(self.n)"},
            {"rule": "oldSelf.hasValue() || self.n == 1", "optionalOldSelf": true}],
        "properties": {"a": {"type": "string"}, "n": {"type": "integer"},
            "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer",
                    "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}}}}}}}});
    let spec = |spec: Json| json!({"spec": spec});
    assert_eq!(
        errors(&schema, &spec(json!({"a": "1", "n": 9})), None),
        [
            "spec: Invalid value: \"object\": n is 9",
            "spec: Invalid value: \"object\": failed rule: oldSelf.hasValue() || self.n == 1",
        ]
    );
    let old = spec(json!({"a": "1", "n": 1, "l": [{"k": "x", "v": 5}]}));
    assert_eq!(
        errors(
            &schema,
            &spec(json!({"a": "2", "n": 1, "l": [{"k": "y", "v": 1}, {"k": "x", "v": 4}]})),
            Some(&old)
        ),
        [
            "spec.a: Forbidden: a is fixed",
            "spec.l[1].v: Invalid value: \"integer\": failed rule: self >= oldSelf",
        ]
    );
}

#[test]
fn unchanged_failures_only_warn() {
    let schema = Node::new(Schema::from_json(&json!({"type": "object", "properties": {
        "a": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'"}]}, "b": {"type": "integer"}}})).expect("schema"));
    let validator = Validator::new(&schema).expect("has rules");
    let (errors, warnings) =
        validator.validate(&json!({"a": "bad", "b": 2}), Some(&json!({"a": "bad", "b": 1})));
    assert!(errors.is_empty());
    assert_eq!(warnings, ["a: Invalid value: \"string\": failed rule: self != 'bad'"]);
}

#[test]
fn invalid_rules_do_not_compile() {
    let schema = Node::new(
        Schema::from_json(
            &json!({"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}),
        )
        .expect("schema"),
    );
    let refused = |rule: &str| {
        compile(&CelRule { rule: rule.to_owned(), ..CelRule::default() }, &schema, false)
            .expect_err("refused")
            .to_string()
    };
    assert_eq!(
        refused("self.nope == 1"),
        "compilation failed: ERROR: <input>:1:5: undefined field 'nope'\n | self.nope == 1\n | ....^"
    );
    assert_eq!(
        refused("self.name == 1"),
        "compilation failed: ERROR: <input>:1:11: found no matching overload for '_==_' applied to '(string, int)'\n | self.name == 1\n | ..........^"
    );
    assert_eq!(refused("self.name"), "cel expression must evaluate to a bool");
    assert_eq!(
        refused("other"),
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'other' (in container '')\n | other\n | ^"
    );
    assert_eq!(
        refused("self.name.startsWith(1)"),
        "compilation failed: ERROR: <input>:1:21: found no matching overload for 'startsWith' applied to 'string.(int)'\n | self.name.startsWith(1)\n | ....................^"
    );
    assert!(refused("self.name ==").starts_with("compilation failed: ERROR: <input>:1:13: Syntax error"));
}

#[test]
fn evaluation_cost_is_limited() {
    let list: Vec<Json> = (0..2_000).map(Json::from).collect();
    let found = one(
        &json!({"type": "array", "items": {"type": "integer"}}),
        "self.all(a, self.all(b, a + b >= 0))",
        &Json::from(list),
    );
    assert_eq!(
        found,
        [
            "v: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: self.all(a, self.all(b, a + b >= 0))"
        ]
    );
}

/// Recorded from kube-apiserver 1.34 for CRDs with these rules, one by one in the same schema; null if
/// accepted.
#[test]
fn rule_errors_match_kube_apiserver() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/rules.json");
    let golden: Json =
        serde_json::from_str(&std::fs::read_to_string(path).expect("a golden file")).expect("JSON");
    let mut wrong = Vec::new();
    for pair in golden["rules"].as_array().expect("rules") {
        let mut schema = golden["schema"].clone();
        schema["x-kubernetes-validations"] = json!([{"rule": pair[0]}]);
        let node = Node::new(Schema::from_json(&schema).expect("schema"));
        let rule = node.rules.as_deref().expect("has rules").cel[0].clone();
        let said = compile(&rule, &node, false).err().map(|why| why.to_string());
        if said.as_deref() != pair[1].as_str() {
            wrong.push(format!("{}\n  wanted {}\n  got    {said:?}", pair[0], pair[1]));
        }
    }
    assert!(wrong.is_empty(), "{} rules differ:\n{}", wrong.len(), wrong.join("\n"));
}
