//! Validation of the keywords and CEL rules of a CRD's schema.

use serde_json::{Map, Value, json};

use super::RuleCheck;
use crate::field_error::FieldError;
use crate::node::Node;
use crate::structural::{Additional, CelRule};

const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];
const REASONS: &[&str] =
    &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// With a status subresource only some keywords are allowed at the root.
pub(super) fn check_root_with_status(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    const ALLOWED: &[&str] = &[
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
        "externalDocs",
        "example",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    ];
    let Some(map) = schema.as_object() else { return };
    for (key, value) in map {
        if value.is_null() || *value == json!(false) || *value == json!("") {
            continue;
        }
        if key == "type" && value != "object" {
            errors.push(FieldError::invalid(format!("{at}.type"), value, "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled"));
            return;
        }
        if !ALLOWED.contains(&key.as_str()) {
            let detail = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled";
            errors.push(FieldError::invalid(at, schema, detail));
            return;
        }
    }
}

/// Restrictions that depend on the position in the schema.
#[derive(Clone)]
struct Context<'a> {
    rules: &'a dyn RuleCheck,
    no_defaults: Option<String>,
    inside_meta: bool,
    /// The enclosing list whose items cannot be correlated with old ones.
    uncorrelatable: Option<String>,
    /// Maximum number of values at this position in one object; `None` when unbounded.
    cardinality: Option<u64>,
    /// Estimated cost of every rule, by its path.
    costs: &'a std::cell::RefCell<Vec<(String, u64)>>,
}

/// Limits on the estimated cost of one rule, and of all rules of a schema.
const RULE_COST_LIMIT: u64 = 10_000_000;
const SCHEMA_COST_LIMIT: u64 = 100_000_000;

/// The message for an estimate above its limit, with advice.
fn over_budget(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let shown = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// Errors about the total cost of all rules.
fn check_total(at: &str, mut costs: Vec<(String, u64)>, errors: &mut Vec<FieldError>) {
    let total = costs.iter().fold(0_u64, |sum, (_, cost)| sum.saturating_add(*cost));
    if total <= SCHEMA_COST_LIMIT {
        return;
    }
    costs.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
    for (place, _) in costs.iter().take(4) {
        let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(place.as_str(), why));
    }
    let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
    errors.push(FieldError::forbidden(at, over_budget(what, total, SCHEMA_COST_LIMIT)));
}

/// The cardinality of a position inside a list or map with at most `most` items.
fn times(outer: Option<u64>, most: Option<&Value>) -> Option<u64> {
    Some(outer?.saturating_mul(most?.as_u64()?))
}

pub(super) fn check(
    schema: &Value,
    at: &str,
    cel: Option<&Node>,
    rules: &dyn RuleCheck,
    errors: &mut Vec<FieldError>,
) {
    let mut cel_errors = Vec::new();
    let costs = std::cell::RefCell::default();
    let context = Context {
        rules,
        no_defaults: None,
        inside_meta: false,
        uncorrelatable: None,
        cardinality: Some(1),
        costs: &costs,
    };
    visit(schema, at, &context, true, cel, errors, &mut cel_errors);
    errors.extend(cel_errors);
    check_total(at, costs.take(), errors);
}

fn visit(
    schema: &Value,
    at: &str,
    cx: &Context<'_>,
    root: bool,
    cel: Option<&Node>,
    errors: &mut Vec<FieldError>,
    cel_errors: &mut Vec<FieldError>,
) {
    let Some(map) = schema.as_object() else { return };
    let mark = errors.len();
    check_keywords(map, at, cx, errors);
    if map.get("uniqueItems") == Some(&json!(true)) {
        errors.push(FieldError::forbidden(
            format!("{at}.uniqueItems"),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ));
    }
    let properties = map.get("properties").and_then(Value::as_object).filter(|p| !p.is_empty());
    if let Some(additional) = map.get("additionalProperties").filter(|a| !a.is_null()) {
        if properties.is_some() && *additional != json!(true) {
            errors.push(FieldError::forbidden(
                format!("{at}.additionalProperties"),
                "additionalProperties and properties are mutual exclusive",
            ));
        }
        let mut below = cx.clone();
        below.cardinality = times(cx.cardinality, map.get("maxProperties"));
        if cx.inside_meta {
            below.no_defaults = Some("inside additionalProperties applying to object metadata".to_owned());
        }
        let node = cel.and_then(|n| match &n.additional {
            Additional::Schema(node) => Some(node),
            _ => None,
        });
        visit(additional, &format!("{at}.additionalProperties"), &below, false, node, errors, cel_errors);
    }
    let embedded = map.get("x-kubernetes-embedded-resource") == Some(&json!(true));
    for (name, property) in properties.into_iter().flatten() {
        let mut below = cx.clone();
        if (root || embedded) && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
            below.inside_meta = true;
            if root {
                below.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        let node = cel.and_then(|n| n.property(name));
        visit(property, &format!("{at}.properties[{name}]"), &below, false, node, errors, cel_errors);
    }
    if let Some(not) = map.get("not").filter(|n| !n.is_null()) {
        visit(not, &format!("{at}.not"), cx, false, None, errors, cel_errors);
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        for (index, nested) in map.get(key).and_then(Value::as_array).into_iter().flatten().enumerate() {
            visit(nested, &format!("{at}.{key}[{index}]"), cx, false, None, errors, cel_errors);
        }
    }
    if let Some(items) = map.get("items").filter(|i| i.is_object()) {
        let mut below = cx.clone();
        below.cardinality = times(cx.cardinality, map.get("maxItems"));
        if map.get("x-kubernetes-list-type").and_then(Value::as_str) != Some("map") {
            below.uncorrelatable.get_or_insert_with(|| at.to_owned());
        }
        visit(
            items,
            &format!("{at}.items"),
            &below,
            false,
            cel.and_then(|n| n.items.as_ref()),
            errors,
            cel_errors,
        );
    }
    check_extensions(map, at, errors);
    check_rules(map, at, cx, root || embedded, cel.filter(|_| errors.len() == mark), errors, cel_errors);
}

fn check_keywords(map: &Map<String, Value>, at: &str, cx: &Context<'_>, errors: &mut Vec<FieldError>) {
    let ty = map.get("type").and_then(Value::as_str).unwrap_or_default();
    if !ty.is_empty() && !TYPES.contains(&ty) {
        errors.push(FieldError::not_supported(format!("{at}.type"), &json!(ty), TYPES));
    }
    if map.contains_key("default")
        && let Some(reason) = &cx.no_defaults
    {
        errors.push(FieldError::forbidden(format!("{at}.default"), format!("must not be set {reason}")));
    }
    for key in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        if map.get(key).is_some_and(|v| !v.is_null() && *v != json!("")) {
            errors.push(FieldError::forbidden(format!("{at}.{key}"), format!("{key} is not supported")));
        }
    }
    if ty == "null" {
        errors.push(FieldError::forbidden(
            format!("{at}.type"),
            "type cannot be set to null, use nullable as an alternative",
        ));
    }
    if map.get("items").is_some_and(Value::is_array) {
        errors.push(FieldError::forbidden(
            format!("{at}.items"),
            "items must be a schema object and not an array",
        ));
    }
    if cx.inside_meta && map.get("x-kubernetes-embedded-resource") == Some(&json!(true)) {
        errors.push(FieldError::forbidden(
            format!("{at}.x-kubernetes-embedded-resource"),
            "must not be used inside of resource meta",
        ));
    }
}

fn check_extensions(map: &Map<String, Value>, at: &str, errors: &mut Vec<FieldError>) {
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    let ty = text("type").unwrap_or_default();
    let typed = |key: &str, want: &str, errors: &mut Vec<FieldError>| {
        if ty != want {
            let detail = format!(
                "must be {want} if {key} is {}",
                if key == "x-kubernetes-list-type" || key == "x-kubernetes-map-type" {
                    "specified"
                } else {
                    "true"
                }
            );
            if ty.is_empty() {
                errors.push(FieldError::required(format!("{at}.type"), detail));
            } else {
                errors.push(FieldError::invalid(format!("{at}.type"), &json!(ty), detail));
            }
        }
    };
    if map.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
        errors.push(FieldError::invalid(
            format!("{at}.x-kubernetes-preserve-unknown-fields"),
            &json!(false),
            "must be true or undefined",
        ));
    }
    if let Some(kind) = text("x-kubernetes-map-type") {
        typed("x-kubernetes-map-type", "object", errors);
        if !matches!(kind, "granular" | "atomic") {
            errors.push(FieldError::not_supported(
                format!("{at}.x-kubernetes-map-type"),
                &json!(kind),
                &["atomic", "granular"],
            ));
        }
    }
    let list_type = text("x-kubernetes-list-type");
    let items = map.get("items").filter(|i| !i.is_null());
    let keys: Vec<&str> = map
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if let Some(kind) = list_type {
        typed("x-kubernetes-list-type", "array", errors);
        if !matches!(kind, "atomic" | "set" | "map") {
            errors.push(FieldError::not_supported(
                format!("{at}.x-kubernetes-list-type"),
                &json!(kind),
                &["atomic", "set", "map"],
            ));
        }
    }
    if list_type == Some("set")
        && let Some(items) = items
    {
        check_set_items(items, at, errors);
    }
    if !keys.is_empty() && list_type != Some("map") {
        let field = format!("{at}.x-kubernetes-list-type");
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(field, detail),
            Some(kind) => FieldError::invalid(field, &json!(kind), detail),
        });
    }
    if list_type == Some("map") {
        check_keyed(items, &keys, at, errors);
    }
    if let (Some("set" | "map"), Some(items)) = (list_type, items)
        && items.get("nullable") == Some(&json!(true))
    {
        let kind = list_type.unwrap_or_default();
        errors.push(FieldError::forbidden(
            format!("{at}.items.nullable"),
            format!("cannot be nullable when x-kubernetes-list-type is {kind}"),
        ));
    }
}

/// Items of a set must be atomic.
fn check_set_items(items: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let text = |key: &str| items.get(key).and_then(Value::as_str);
    let refuse = |key: &str, value: Option<&str>, detail: &str| {
        FieldError::invalid(format!("{at}.items.{key}"), &json!(value), detail)
    };
    match text("type") {
        Some("object") if text("x-kubernetes-map-type") != Some("atomic") => {
            errors.push(refuse(
                "x-kubernetes-map-type",
                text("x-kubernetes-map-type"),
                "must be atomic as item of a list with x-kubernetes-list-type=set",
            ));
        }
        Some("array") if !matches!(text("x-kubernetes-list-type"), None | Some("atomic")) => {
            errors.push(refuse(
                "x-kubernetes-list-type",
                text("x-kubernetes-list-type"),
                "must be atomic as item of a list with x-kubernetes-list-type=set",
            ));
        }
        _ => {}
    }
}

fn check_keyed(items: Option<&Value>, keys: &[&str], at: &str, errors: &mut Vec<FieldError>) {
    if keys.is_empty() {
        errors.push(FieldError::required(
            format!("{at}.x-kubernetes-list-map-keys"),
            "must not be empty if x-kubernetes-list-type is map",
        ));
    }
    let Some(items) = items else {
        errors.push(FieldError::required(
            format!("{at}.items"),
            "must have a schema if x-kubernetes-list-type is map",
        ));
        return;
    };
    let ty = items.get("type").and_then(Value::as_str).unwrap_or_default();
    if ty != "object" {
        errors.push(FieldError::invalid(
            format!("{at}.items.type"),
            &json!(ty),
            "must be object if parent array's x-kubernetes-list-type is map",
        ));
        return;
    }
    let field = format!("{at}.x-kubernetes-list-map-keys");
    for (index, key) in keys.iter().enumerate() {
        match items.get("properties").and_then(|p| p.get(*key)) {
            None => errors.push(FieldError::invalid(
                field.clone(),
                &json!(keys),
                "entries must all be names of item properties",
            )),
            Some(property) => {
                if matches!(property.get("type").and_then(Value::as_str), Some("array" | "object")) {
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    errors.push(FieldError::invalid(
                        format!("{at}.items.properties[{key}].type"),
                        &json!(ty),
                        detail,
                    ));
                }
                let required =
                    items.get("required").and_then(Value::as_array).into_iter().flatten().any(|r| r == key);
                if !required && property.get("default").is_none() {
                    let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                    errors
                        .push(FieldError::required(format!("{at}.items.properties[{key}].default"), detail));
                }
                if property.get("nullable") == Some(&json!(true)) {
                    let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                    errors.push(FieldError::forbidden(
                        format!("{at}.items.properties[{key}].nullable"),
                        detail,
                    ));
                }
            }
        }
        if keys[..index].contains(key) {
            errors.push(FieldError::invalid(
                field.clone(),
                &json!(keys),
                "must not contain duplicate entries",
            ));
        }
    }
}

fn check_rules(
    map: &Map<String, Value>,
    at: &str,
    cx: &Context<'_>,
    resource: bool,
    cel: Option<&Node>,
    errors: &mut Vec<FieldError>,
    cel_errors: &mut Vec<FieldError>,
) {
    let Some(rules) = map.get("x-kubernetes-validations").and_then(Value::as_array) else { return };
    let mark = errors.len();
    for (index, rule) in rules.iter().enumerate() {
        check_texts(rule, &format!("{at}.x-kubernetes-validations[{index}]"), cel, cx, errors);
    }
    let Some(node) = cel.filter(|_| errors.len() == mark) else { return };
    let parsed: Vec<CelRule> = node.rules.as_deref().map(|r| r.cel.clone()).unwrap_or_default();
    for (index, rule) in parsed.iter().enumerate() {
        let at = format!("{at}.x-kubernetes-validations[{index}]");
        let verdict = cx.rules.compile(rule, node, resource);
        let shown = internal_rule(rule);
        let invalid = |field: String, detail: String| FieldError {
            kind: crate::FieldErrorKind::Invalid,
            field,
            value: Some(shown.clone()),
            detail,
        };
        if verdict.error.is_none() && verdict.message_error.is_none() {
            let values = cx.cardinality.unwrap_or(verdict.values);
            let spent = [
                ("rule", "estimated rule cost", Some(verdict.cost)),
                ("messageExpression", "estimated messageExpression cost", verdict.message_cost),
            ];
            for (field, what, cost) in spent {
                let Some(cost) = cost.map(|c| c.saturating_mul(values)) else { continue };
                let at = format!("{at}.{field}");
                if cost > RULE_COST_LIMIT {
                    cel_errors
                        .push(FieldError::forbidden(at.as_str(), over_budget(what, cost, RULE_COST_LIMIT)));
                }
                cx.costs.borrow_mut().push((at, cost));
            }
        }
        if let Some(error) = verdict.error {
            cel_errors.push(invalid(format!("{at}.rule"), error));
        }
        if let Some(error) = verdict.message_error {
            cel_errors.push(invalid(format!("{at}.messageExpression"), error));
        }
        if verdict.uses_old_self {
            if let Some(list) = &cx.uncorrelatable {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                );
                cel_errors.push(FieldError::invalid(format!("{at}.rule"), &json!(rule.rule), detail));
            }
        } else if let Some(optional) = rule.optional_old_self {
            cel_errors.push(FieldError::invalid(
                format!("{at}.optionalOldSelf"),
                &json!(optional),
                "may not be set if oldSelf is not used in rule",
            ));
        }
    }
}

/// A rule as the reference prints its internal type.
fn internal_rule(rule: &CelRule) -> String {
    let text = format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        json!(rule.rule),
        json!(rule.message),
        json!(rule.message_expression),
        json!(rule.reason),
        json!(rule.field_path),
        json!(rule.optional_old_self)
    );
    fl_go::escape_html(&text)
}

fn check_texts(rule: &Value, at: &str, cel: Option<&Node>, cx: &Context<'_>, errors: &mut Vec<FieldError>) {
    let text = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default();
    let broken = |s: &str| s.contains(['\n', '\r']);
    let (source, message, expression, path) =
        (text("rule"), text("message"), text("messageExpression"), text("fieldPath"));
    if source.trim().is_empty() {
        errors.push(FieldError::required(format!("{at}.rule"), "rule is not specified"));
    } else if !message.is_empty() && message.trim().is_empty() {
        errors.push(FieldError::invalid(
            format!("{at}.message"),
            &json!(message),
            "must be non-empty if specified",
        ));
    } else if broken(message.trim()) {
        errors.push(FieldError::invalid(
            format!("{at}.message"),
            &json!(message),
            "must not contain line breaks",
        ));
    } else if broken(source.trim()) && message.trim().is_empty() {
        errors.push(FieldError::required(
            format!("{at}.message"),
            "message must be specified if rule contains line breaks",
        ));
    }
    if !expression.is_empty() && expression.trim().is_empty() {
        errors.push(FieldError::required(
            format!("{at}.messageExpression"),
            "messageExpression must be non-empty if specified",
        ));
    }
    if let Some(reason) = rule.get("reason").and_then(Value::as_str).filter(|r| !REASONS.contains(r)) {
        errors.push(FieldError::not_supported(format!("{at}.reason"), &json!(reason), REASONS));
    }
    if !path.is_empty() {
        let field = format!("{at}.fieldPath");
        if path.trim().is_empty() {
            errors.push(FieldError::invalid(field.clone(), &json!(path), "must be non-empty if specified"));
        }
        if broken(path) {
            errors.push(FieldError::invalid(field.clone(), &json!(path), "must not contain line breaks"));
        }
        if cel.is_some_and(|node| cx.rules.field_path(path, node).is_none()) {
            errors.push(FieldError::invalid(field, &json!(path), "must be a valid path"));
        }
    }
}
