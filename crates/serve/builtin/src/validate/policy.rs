//! ValidatingAdmissionPolicies: match rules, and expressions of the right types.

use std::sync::LazyLock;

use fl_cel::{Declarations, Expression};
use fl_schema::Schema;
use serde_json::{Value, json};

use super::registration::{match_conditions, match_resources};
use crate::field::{Errors, Path, is_set, list, text};
use crate::validate::common_rules::messages;

/// Variables of expressions over an admission request.
pub(super) fn request_names() -> Declarations {
    Declarations::dynamic(&["object", "oldObject", "authorizer"]).with_object("request", request_schema())
}

/// The fields of `request`.
fn request_schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        let text = json!({"type": "string"});
        let texts = json!({"type": "array", "items": text});
        let object = |fields: &[(&str, Value)]| {
            let fields: serde_json::Map<String, Value> =
                fields.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone())).collect();
            json!({"type": "object", "properties": fields})
        };
        let named = |last: &str| {
            let [group, version, last] = ["group", "version", last].map(|field| (field, text.clone()));
            object(&[group, version, last])
        };
        let user = object(&[
            ("username", text.clone()),
            ("uid", text.clone()),
            ("groups", texts.clone()),
            ("extra", json!({"type": "object", "additionalProperties": texts})),
        ]);
        let mut fields = vec![
            ("kind", named("kind")),
            ("resource", named("resource")),
            ("requestKind", named("kind")),
            ("requestResource", named("resource")),
            ("userInfo", user),
            ("dryRun", json!({"type": "boolean"})),
            // Of any type.
            ("options", json!({"x-kubernetes-int-or-string": true})),
        ];
        for field in ["subResource", "requestSubResource", "name", "namespace", "operation"] {
            fields.push((field, text.clone()));
        }
        Schema::from_json(&object(&fields)).unwrap_or_default()
    });
    &SCHEMA
}

/// Compiles an expression over an admission request, whose result must have one of the given types; any type
/// if none is given.
pub(super) fn compiles(
    errors: &mut Errors,
    path: &Path,
    expression: &str,
    known: &Declarations,
    wanted: &[&str],
) -> Option<Expression> {
    match Expression::compile_with(expression, known) {
        Err(why) => {
            errors.invalid(path, expression, format!("compilation failed: {why}"));
            None
        }
        Ok(compiled) if wanted.is_empty() || wanted.contains(&compiled.output()) => Some(compiled),
        Ok(compiled) => {
            let wanted = match wanted {
                [one] => (*one).to_owned(),
                many => format!("one of [{}]", many.join(" ")),
            };
            errors.invalid(
                path,
                expression,
                format!("must evaluate to {wanted} but got {}", compiled.output()),
            );
            None
        }
    }
}

pub(crate) fn validating_policy(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    if let Some(policy) = spec["failurePolicy"].as_str() {
        errors.one_of(&path.child("failurePolicy"), policy, &["Fail", "Ignore"]);
    }
    let at = path.child("matchConstraints");
    if spec["matchConstraints"].is_null() {
        errors.required(&at, "");
    } else {
        match_resources(errors, &at, &spec["matchConstraints"]);
        if list(&spec["matchConstraints"], "resourceRules").is_empty() {
            errors.required(&at.child("resourceRules"), "");
        }
    }
    let mut names = vec!["object", "oldObject", "authorizer", "namespaceObject"];
    if is_set(spec, "paramKind") {
        parameter_kind(errors, &path.child("paramKind"), &spec["paramKind"]);
        names.push("params");
    }
    let mut known = Declarations::dynamic(&names).with_object("request", request_schema());
    match_conditions(errors, &path.child("matchConditions"), list(spec, "matchConditions"), &known);
    if !list(spec, "variables").is_empty() {
        known.add_group("variables");
    }
    for (at, variable) in list(spec, "variables").iter().enumerate() {
        let (path, name) = (path.child("variables").index(at), text(variable, "name"));
        if matches!(name, "" | "_") {
            errors.required(&path.child("name"), "name is not specified");
        } else if !fl_cel::is_identifier(name) {
            errors.invalid(&path.child("name"), name, "must be a valid CEL identifier");
        }
        let compiled = match text(variable, "expression") {
            blank if blank.trim().is_empty() => {
                errors.required(&path.child("expression"), "expression is not specified");
                None
            }
            expression => compiles(errors, &path.child("expression"), expression, &known, &[]),
        };
        // Later variables may refer to it.
        known.add_member("variables", name, compiled.as_ref());
    }
    let (checks, annotations) = (list(spec, "validations"), list(spec, "auditAnnotations"));
    if checks.is_empty() && annotations.is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.required(&path.child("validations"), why);
        errors.required(&path.child("auditAnnotations"), why);
    }
    for (at, check) in checks.iter().enumerate() {
        validation(errors, &path.child("validations").index(at), check, &known);
    }
    for (at, annotation) in annotations.iter().enumerate() {
        let (path, key) = (path.child("auditAnnotations").index(at), text(annotation, "key"));
        let full = format!("{}/{key}", text(&object["metadata"], "name"));
        let found = messages(fl_types::check_qualified_name(&full));
        errors.each_invalid(&path.child("key"), &full, &found);
        if annotations[..at].iter().any(|other| text(other, "key") == key) {
            errors.duplicate(&path.child("key"), key);
        }
        let path = path.child("valueExpression");
        match text(annotation, "valueExpression").trim() {
            "" => errors.required(&path, "valueExpression is not specified"),
            expression => {
                compiles(errors, &path, expression, &known, &["string", "null_type"]);
            }
        }
    }
}

fn validation(errors: &mut Errors, path: &Path, check: &Value, known: &Declarations) {
    match text(check, "expression") {
        blank if blank.trim().is_empty() => {
            errors.required(&path.child("expression"), "expression is not specified");
        }
        expression => {
            compiles(errors, &path.child("expression"), expression, known, &["bool"]);
        }
    }
    let (message, words) = (text(check, "message"), text(check, "messageExpression"));
    if !message.is_empty() && message.trim().is_empty() {
        errors.invalid(&path.child("message"), message, "must be non-empty if specified");
    } else if message.trim().contains(['\n', '\r']) {
        errors.invalid(&path.child("message"), message, "must not contain line breaks");
    }
    let at = path.child("messageExpression");
    if !words.is_empty() && words.trim().is_empty() {
        errors.invalid(&at, words, "must be non-empty if specified");
    } else if !words.is_empty() {
        compiles(errors, &at, words, known, &["string"]);
    }
    if let Some(reason) = check["reason"].as_str() {
        errors.one_of(&path.child("reason"), reason, &["Forbidden", "Invalid", "RequestEntityTooLarge"]);
    }
}

fn parameter_kind(errors: &mut Errors, path: &Path, kind: &Value) {
    let (at, api_version) = (path.child("apiVersion"), text(kind, "apiVersion"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if api_version.is_empty() {
        errors.required(&at, "");
    } else if version.contains('/') {
        errors.invalid(&at, api_version, format!("unexpected GroupVersion string: {api_version}"));
    } else {
        if !group.is_empty() {
            errors.each_invalid(&at, group, &messages(fl_types::check_dns1123_subdomain(group)));
        }
        errors.each_invalid(&at, version, &messages(fl_types::check_dns1035_label(version)));
    }
    let (at, name) = (path.child("kind"), text(kind, "kind"));
    if name.is_empty() {
        errors.required(&at, "");
    } else {
        for why in messages(fl_types::check_dns1035_label(&name.to_lowercase())) {
            errors.invalid(&at, name, format!("may have mixed case, but should otherwise match: {why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_must_have_the_expected_type() {
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]);
        let policy = |rest: Value| {
            let mut object = json!({"metadata": {"name": "p"}, "spec": {
                "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": rules.clone()}}});
            for (key, value) in rest.as_object().into_iter().flatten() {
                object["spec"][key] = value.clone();
            }
            let mut errors = Errors::default();
            validating_policy(&mut errors, &object);
            errors.0.iter().map(|e| format!("{}: {}", e.field, e.body())).collect::<Vec<_>>()
        };
        assert!(policy(json!({"validations": [{"expression": "object.x == 1"}]})).is_empty());
        assert_eq!(
            policy(json!({"validations": [{"expression": "1", "messageExpression": "2"}]})),
            [
                "spec.validations[0].expression: Invalid value: \"1\": must evaluate to bool but got int",
                "spec.validations[0].messageExpression: Invalid value: \"2\": must evaluate to string but got int",
            ]
        );
        assert_eq!(policy(json!({"validations": [{"expression": "params.x == 1"}]})).len(), 1);
        let with = |variable: &str, check: &str| {
            policy(json!({"variables": [{"name": "v", "expression": variable}],
                "validations": [{"expression": check}]}))
        };
        assert!(with("object.x", "variables.v == 1").is_empty());
        assert!(with("1", "variables.v == 1 && request.name != ''").is_empty());
        let said = |message: &str| format!("spec.validations[0].expression: Invalid value: {message}");
        assert_eq!(
            with("1", "variables.w == 1"),
            [said(
                r#""variables.w == 1": compilation failed: ERROR: <input>:1:10: undefined field 'w'
 | variables.w == 1
 | .........^"#
            )]
        );
        assert_eq!(with("1", "variables.v"), [said(r#""variables.v": must evaluate to bool but got int"#)]);
        assert_eq!(with("'a'", "variables.v == 1").len(), 1);
        assert_eq!(with("1", "request.foo == 1").len(), 1);
        assert_eq!(with("1", "request.userInfo.username == 1").len(), 1);
        assert_eq!(
            policy(json!({"variables": [{"name": "in", "expression": "1"}],
            "validations": [{"expression": "true"}]}))
            .len(),
            1
        );
        assert_eq!(
            policy(json!({"auditAnnotations": [{"key": "k", "valueExpression": "1"}]})),
            [
                "spec.auditAnnotations[0].valueExpression: Invalid value: \"1\": must evaluate to one of [string null_type] but got int"
            ]
        );
    }
}
