use super::*;
use serde_json::json;

struct FakeRules;

impl RuleCheck for FakeRules {
    fn compile(&self, rule: &CelRule, _schema: &Node, _resource: bool) -> CompiledRule {
        CompiledRule {
            error: (rule.rule == "bad").then(|| "compilation failed".to_owned()),
            uses_old_self: rule.rule.contains("oldSelf"),
            ..CompiledRule::default()
        }
    }

    fn field_path(&self, path: &str, _schema: &Node) -> Option<String> {
        path.strip_prefix('.').map(str::to_owned)
    }

    fn run(&self, _schema: &Node, _resource: bool, _value: &Value) -> Vec<FieldError> {
        Vec::new()
    }
}

fn definition(schema: &Value) -> Value {
    json!({"metadata": {"name": "widgets.x.example"}, "spec": {"group": "x.example", "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
        "status": {"storedVersions": ["v1"]}})
}

fn errors(definition: &Value) -> Vec<String> {
    validate_crd(definition, None, &FakeRules).iter().map(ToString::to_string).collect()
}

#[test]
fn valid_definition_passes() {
    let good = definition(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "n": {"type": "integer", "default": 3}, "p": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true},
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
              "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}}}}}}),
    );
    assert_eq!(errors(&good), Vec::<String>::new());
}

#[test]
fn nonstructural_schema_is_rejected() {
    assert_eq!(
        errors(&definition(
            &json!({"type": "object", "properties": {"spec": {"properties": {"a": {"type": "array"}}}}})
        )),
        [
            "spec.validation.openAPIV3Schema.properties[spec].properties[a].items: Required value: must be specified",
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields",
        ]
    );
    assert_eq!(errors(&definition(&json!({"type": "object", "properties": {"s": {"type": "string", "default": 3, "pattern": "("}}})))[0..1], [
        "spec.validation.openAPIV3Schema.properties[s].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`".to_owned(),
    ]);
    assert_eq!(
        errors(&definition(
            &json!({"type": "object", "properties": {"s": {"type": "string", "default": 3}}})
        )),
        [
            "spec.validation.openAPIV3Schema.properties[s].default: Invalid value: \"integer\":  in body must be of type string: \"integer\"",
        ]
    );
    assert_eq!(
        errors(&definition(
            &json!({"type": "object", "properties": {"s": {"type": "object", "additionalProperties": {"type": "string"}, "uniqueItems": true,
        "properties": {"a": {"type": "strin"}}}}})
        )),
        [
            "spec.validation.openAPIV3Schema.properties[s].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            "spec.validation.openAPIV3Schema.properties[s].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
            "spec.validation.openAPIV3Schema.properties[s].properties[a].type: Unsupported value: \"strin\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
        ]
    );
}

#[test]
fn names_and_versions_are_validated() {
    let mut bad = definition(&json!({"type": "object"}));
    bad["metadata"]["name"] = json!("other");
    bad["spec"]["scope"] = json!("World");
    bad["spec"]["names"]["plural"] = json!("Widgets");
    bad["spec"]["versions"][0]["storage"] = json!(false);
    let found = errors(&bad);
    assert_eq!(
        found[0],
        "metadata.name: Invalid value: \"other\": must be spec.names.plural+\".\"+spec.group"
    );
    assert_eq!(
        found[1],
        "spec.scope: Unsupported value: \"World\": supported values: \"Cluster\", \"Namespaced\""
    );
    assert!(
        found[2].starts_with(
            "spec.versions: Invalid value: [{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,"
        ),
        "{}",
        found[2]
    );
    assert!(found[3].starts_with("spec.names.plural: Invalid value: \"Widgets\": a DNS-1035 label"));
}

#[test]
fn rules_are_compiled_and_transition_rules_need_keys() {
    let found = errors(&definition(
        &json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string",
        "x-kubernetes-validations": [{"rule": "self == oldSelf"}, {"rule": "bad"}]}}}}),
    ));
    assert_eq!(
        found,
        [
            "spec.validation.openAPIV3Schema.properties[l].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[l]",
            "spec.validation.openAPIV3Schema.properties[l].items.x-kubernetes-validations[1].rule: Invalid value: {\"Rule\":\"bad\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed",
        ]
    );
}

/// Recorded from kube-apiserver.
#[test]
fn conversion_webhook_urls_are_validated() {
    let with = |client: Value| {
        let mut definition = definition(&json!({"type": "object"}));
        definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"], "clientConfig": client,
        }});
        errors(&definition)
    };
    assert_eq!(with(json!({"url": "https://x/y"})), [""; 0]);
    assert_eq!(
        with(json!({"url": "http://x"})),
        [
            "spec.conversion.webhookClientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]"
        ]
    );
    assert_eq!(
        with(json!({"service": {"name": "a"}})),
        ["spec.conversion.webhookClientConfig.service.name: Required value"]
    );
}
