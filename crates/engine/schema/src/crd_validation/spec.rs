//! Validation of a CRD's spec: versions, scope, subresources, columns, conversion.

use serde_json::{Value, json};

use super::{RuleCheck, defaults, list, names, openapi, structural, text, webhook_url_errors};
use crate::field_error::{FieldError, FieldErrorKind};
use crate::node::Node;
use crate::structural::Schema;

const COLUMN_TYPES: &str = "boolean,date,integer,number,string";
const COLUMN_FORMATS: &[&str] =
    &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

pub(super) fn check(
    definition: &Value,
    old: Option<&Value>,
    rules: &dyn RuleCheck,
    errors: &mut Vec<FieldError>,
) {
    let group = text(definition, "/spec/group");
    let wrong = names::dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !wrong.is_empty() {
        errors.push(FieldError::invalid("spec.group", &Value::from(group), wrong.join(",")));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(
            "spec.group",
            &Value::from(group),
            "should be a domain with at least one dot",
        ));
    }
    let scope = text(definition, "/spec/scope");
    match scope {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => errors.push(FieldError::not_supported(
            "spec.scope",
            &Value::from(other),
            &["Cluster", "Namespaced"],
        )),
    }
    check_versions(definition, rules, errors);
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(definition, &format!("/spec/names/{key}")).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{key}"), ""));
        }
    }
    names::check_names(&definition["spec"]["names"], "spec.names", errors);
    check_conversion(definition, errors);
    if let Some(old) = old {
        check_immutable(definition, old, errors);
    }
}

fn check_immutable(definition: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let established = list(old, "/status/conditions")
        .iter()
        .any(|c| text(c, "/type") == "Established" && text(c, "/status") == "True");
    let mut fixed = |field: &str| {
        let pointer = format!("/{}", field.replace('.', "/"));
        let (now, before) = (text(definition, &pointer), text(old, &pointer));
        if now != before {
            errors.push(FieldError::invalid(field, &Value::from(now), "field is immutable"));
        }
    };
    if established {
        fixed("spec.scope");
        fixed("spec.names.kind");
    }
    fixed("spec.group");
    fixed("spec.names.plural");
}

fn check_versions(definition: &Value, rules: &dyn RuleCheck, errors: &mut Vec<FieldError>) {
    let versions = list(definition, "/spec/versions");
    for (index, version) in versions.iter().enumerate() {
        if version.pointer("/schema/openAPIV3Schema").is_none_or(Value::is_null) {
            errors.push(FieldError::required(format!("spec.versions[{index}].schema.openAPIV3Schema"), ""));
        }
    }
    // Fields that are equal in all versions are validated once, at the top of the spec.
    let shared = |key: &str| {
        let first = versions.first().map(|v| &v[key]);
        first.filter(|f| !f.is_null() && versions.iter().all(|v| v[key] == **f)).cloned()
    };
    let (schema, subresources, columns) =
        (shared("schema"), shared("subresources"), shared("additionalPrinterColumns"));
    let selectable = shared("selectableFields");
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        let name = text(version, "/name");
        let wrong = names::dns1035(name);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(format!("{at}.name"), &Value::from(name), wrong.join(",")));
            // The first version is also in a legacy field, which is validated, too.
            if index == 0 {
                errors.push(FieldError::invalid("spec.version", &Value::from(name), wrong.join(",")));
            }
        }
        check_deprecation(version, &at, errors);
        if schema.is_none() {
            let status = version.pointer("/subresources/status").is_some_and(|s| !s.is_null());
            check_schema(&version["schema"], status, &format!("{at}.schema"), rules, errors);
        }
        if subresources.is_none() {
            check_subresources(&version["subresources"], &format!("{at}.subresources"), errors);
        }
        if columns.is_none() {
            check_columns(
                &version["additionalPrinterColumns"],
                &format!("{at}.additionalPrinterColumns"),
                errors,
            );
        }
        if selectable.is_none() {
            check_selectable(version, &version["schema"], &format!("{at}.selectableFields"), rules, errors);
        }
    }
    let hoisted = (schema.is_some(), subresources.is_some(), columns.is_some());
    let shown = || match &definition["spec"]["versions"] {
        Value::Null => "null".to_owned(),
        _ => internal_versions(versions, hoisted),
    };
    let unique =
        versions.iter().enumerate().all(|(i, v)| versions[..i].iter().all(|w| w["name"] != v["name"]));
    let invalid = |detail: &str| FieldError {
        kind: FieldErrorKind::Invalid,
        field: "spec.versions".to_owned(),
        value: Some(shown()),
        detail: detail.to_owned(),
    };
    if !unique {
        errors.push(invalid("must contain unique version names"));
    }
    if versions.iter().filter(|v| v["storage"] == json!(true)).count() != 1 {
        errors.push(invalid("must have exactly one version marked as storage version"));
    }
    if let Some(schema) = schema {
        let status = versions.iter().any(|v| v.pointer("/subresources/status").is_some_and(|s| !s.is_null()));
        check_schema(&schema, status, "spec.validation", rules, errors);
    }
    if let Some(subresources) = subresources {
        check_subresources(&subresources, "spec.subresources", errors);
    }
    if let Some(columns) = columns {
        check_columns(&columns, "spec.additionalPrinterColumns", errors);
    }
    if let (Some(_), Some(first)) = (selectable, versions.first()) {
        check_selectable(first, &first["schema"], "spec.selectableFields", rules, errors);
    }
}

/// The versions as the reference prints its internal type.
fn internal_versions(versions: &[Value], hoisted: (bool, bool, bool)) -> String {
    let flag = |v: &Value, key: &str| v[key] == json!(true);
    let entries: Vec<String> = versions
        .iter()
        .map(|v| {
            let kept = |hidden: bool, key: &str| if hidden || v[key].is_null() { Value::Null } else { v[key].clone() };
            format!(
                "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{},\"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":null}}",
                Value::from(text(v, "/name")),
                flag(v, "served"),
                flag(v, "storage"),
                flag(v, "deprecated"),
                v["deprecationWarning"],
                kept(hoisted.0, "schema"),
                kept(hoisted.1, "subresources"),
                kept(hoisted.2, "additionalPrinterColumns"),
            )
        })
        .collect();
    format!("[{}]", entries.join(","))
}

fn check_deprecation(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let mut wrong = Vec::new();
    if version["deprecated"] != json!(true) {
        wrong.push("can only be set for deprecated versions".to_owned());
    } else {
        if warning.len() > 256 {
            wrong.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            wrong.push("must not be an empty string".to_owned());
        }
        if let Some((index, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
            wrong.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {index}"
            ));
        }
    }
    for detail in wrong {
        errors.push(FieldError::invalid(format!("{at}.deprecationWarning"), &Value::from(warning), detail));
    }
}

fn check_schema(
    validation: &Value,
    status: bool,
    at: &str,
    rules: &dyn RuleCheck,
    errors: &mut Vec<FieldError>,
) {
    let Some(schema) = validation.get("openAPIV3Schema").filter(|s| !s.is_null()) else { return };
    let at = format!("{at}.openAPIV3Schema");
    if status {
        openapi::check_root_with_status(schema, &at, errors);
    }
    if schema["nullable"] == json!(true) {
        errors.push(FieldError::forbidden(format!("{at}.nullable"), "nullable cannot be true at the root"));
    }
    let mark = errors.len();
    let mut cel = None;
    let mut unreadable = unsupported(schema);
    if unreadable.is_none() {
        structural::check(schema, &at, errors);
    }
    if unreadable.is_none() && errors.len() == mark {
        match Schema::from_json(schema) {
            Ok(parsed) => {
                let root = Node::new(parsed);
                defaults::check(schema, &root, &at, rules, errors);
                cel = (errors.len() == mark).then_some(root);
            }
            Err(error) => unreadable = Some(error.to_string()),
        }
    }
    openapi::check(schema, &at, cel.as_ref(), rules, errors);
    if errors.len() == mark
        && let Some(reason) = unreadable
    {
        errors.push(FieldError::invalid(at, &Value::from(""), reason));
    }
}

/// A keyword that structural schemas do not support.
fn unsupported(schema: &Value) -> Option<String> {
    const KEYS: &[(&str, &str)] = &[
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("additionalItems", "additionalItems"),
        ("definitions", "definitions"),
    ];
    let Value::Object(map) = schema else { return None };
    for (key, name) in KEYS {
        if map.get(*key).is_some_and(|v| !v.is_null() && v != "") {
            return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
        }
    }
    if map.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
        return Some(
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned(),
        );
    }
    if map.get("items").is_some_and(Value::is_array) {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    let below = |v: Option<&Value>| v.and_then(unsupported);
    let many = |key: &str| map.get(key).and_then(Value::as_array).into_iter().flatten().find_map(unsupported);
    let properties = map
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .find_map(|(_, v)| unsupported(v));
    properties
        .or_else(|| below(map.get("items")))
        .or_else(|| below(map.get("additionalProperties")))
        .or_else(|| below(map.get("not")))
        .or_else(|| many("allOf"))
        .or_else(|| many("anyOf"))
        .or_else(|| many("oneOf"))
}

fn check_path(path: &str, field: &str, errors: &mut Vec<FieldError>) -> bool {
    if path.starts_with('.') {
        return true;
    }
    let detail =
        if path.is_empty() { "must not be empty" } else { "must be a simple json path starting with ." };
    errors.push(FieldError::invalid(field, &Value::from(path), detail));
    false
}

fn check_subresources(subresources: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(scale) = subresources.get("scale").filter(|s| !s.is_null()) else { return };
    for (key, under) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let field = format!("{at}.scale.{key}");
        let path = text(scale, &format!("/{key}"));
        if path.is_empty() {
            errors.push(FieldError::required(field, ""));
        } else if check_path(path, &field, errors) && !path.starts_with(under) {
            let detail = format!("should be a json path under {}", under.trim_end_matches('.'));
            errors.push(FieldError::invalid(field, &Value::from(path), detail));
        }
    }
    let selector = text(scale, "/labelSelectorPath");
    let field = format!("{at}.scale.labelSelectorPath");
    if !selector.is_empty()
        && check_path(selector, &field, errors)
        && !selector.starts_with(".spec.")
        && !selector.starts_with(".status.")
    {
        errors.push(FieldError::invalid(
            field,
            &Value::from(selector),
            "should be a json path under either .spec or .status",
        ));
    }
}

fn check_columns(columns: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let at = format!("{at}[{index}]");
        if text(column, "/name").is_empty() {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        }
        let ty = text(column, "/type");
        if ty.is_empty() {
            errors.push(FieldError::required(format!("{at}.type"), format!("must be one of {COLUMN_TYPES}")));
        } else if !COLUMN_TYPES.split(',').any(|t| t == ty) {
            errors.push(FieldError::invalid(
                format!("{at}.type"),
                &Value::from(ty),
                format!("must be one of {COLUMN_TYPES}"),
            ));
        }
        let format = text(column, "/format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            errors.push(FieldError::invalid(
                format!("{at}.format"),
                &Value::from(format),
                format!("must be one of {}", COLUMN_FORMATS.join(",")),
            ));
        }
        let path = text(column, "/jsonPath");
        if path.is_empty() {
            errors.push(FieldError::required(format!("{at}.JSONPath"), ""));
        } else {
            check_path(path, &format!("{at}.JSONPath"), errors);
        }
    }
}

fn check_selectable(
    version: &Value,
    validation: &Value,
    at: &str,
    rules: &dyn RuleCheck,
    errors: &mut Vec<FieldError>,
) {
    let fields = list(version, "/selectableFields");
    let Some(Ok(schema)) = validation.get("openAPIV3Schema").map(Schema::from_json) else { return };
    let schema = Node::new(schema);
    let mut seen: Vec<String> = Vec::new();
    for (index, entry) in fields.iter().enumerate() {
        let field = format!("{at}[{index}].jsonPath");
        let path = text(entry, "/jsonPath");
        let value = Value::from(path);
        if path.is_empty() {
            errors.push(FieldError::required(field, ""));
            continue;
        }
        let found = if path.contains('[') { None } else { rules.field_path(path, &schema) };
        let Some(found) = found else {
            let why = if path.contains('[') {
                "array notation is not allowed"
            } else if path.starts_with('.') {
                "does not refer to a valid field"
            } else {
                "expected [ or . but got"
            };
            let why = if path.starts_with('.') || path.contains('[') {
                why.to_owned()
            } else {
                format!("{why}: {}", path.split('.').next().unwrap_or(path))
            };
            errors.push(FieldError::invalid(field, &value, format!("is an invalid path: {why}")));
            continue;
        };
        if found == "metadata" || found.starts_with("metadata.") {
            errors.push(FieldError::invalid(field.clone(), &value, "must not point to fields in metadata"));
        }
        let target = found.split('.').try_fold(&*schema, |s, name| s.member(name).map(|n| &**n));
        let scalar = target.is_some_and(|s| {
            matches!(s.ty, crate::Type::String | crate::Type::Boolean | crate::Type::Integer)
        });
        if !scalar {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(field.clone(), &value, detail));
        }
        if seen.contains(&found) {
            errors.push(FieldError::duplicate(field, &value));
        } else {
            seen.push(found);
        }
    }
    if seen.len() > 8 {
        errors.push(FieldError::new(
            FieldErrorKind::TooMany,
            at,
            Some(&Value::from(seen.len())),
            "must have at most 8 items",
        ));
    }
}

fn check_conversion(definition: &Value, errors: &mut Vec<FieldError>) {
    let Some(conversion) = definition.pointer("/spec/conversion").filter(|c| !c.is_null()) else { return };
    let at = "spec.conversion";
    let strategy = text(conversion, "/strategy");
    match strategy {
        "" => errors.push(FieldError::required(format!("{at}.strategy"), "")),
        "None" | "Webhook" => {}
        other => errors.push(FieldError::not_supported(
            format!("{at}.strategy"),
            &Value::from(other),
            &["None", "Webhook"],
        )),
    }
    let webhook = conversion.get("webhook").filter(|w| !w.is_null());
    let client = webhook.and_then(|w| w.get("clientConfig")).filter(|c| !c.is_null());
    let reviews = webhook.map(|w| list(w, "/conversionReviewVersions")).unwrap_or_default();
    if strategy != "Webhook" {
        if client.is_some() {
            errors.push(FieldError::forbidden(
                format!("{at}.webhookClientConfig"),
                "should not be set when strategy is not set to Webhook",
            ));
        }
        if !reviews.is_empty() {
            errors.push(FieldError::forbidden(
                format!("{at}.conversionReviewVersions"),
                "should not be set when strategy is not set to Webhook",
            ));
        }
        return;
    }
    match client {
        None => errors.push(FieldError::required(
            format!("{at}.webhookClientConfig"),
            "required when strategy is set to Webhook",
        )),
        Some(client)
            if client.get("url").is_some_and(|u| !u.is_null())
                == client.get("service").is_some_and(|s| !s.is_null()) =>
        {
            errors.push(FieldError::required(
                format!("{at}.webhookClientConfig"),
                "exactly one of url or service is required",
            ));
        }
        Some(client) => {
            let at = format!("{at}.webhookClientConfig");
            if let Some(url) = client.get("url").and_then(Value::as_str) {
                for (part, why) in webhook_url_errors(url) {
                    errors.push(FieldError::invalid(format!("{at}.url"), &Value::from(part), why));
                }
            } else {
                // Upstream swaps name and namespace here, and so do its error messages.
                for (given, blamed) in [("/service/namespace", "name"), ("/service/name", "namespace")] {
                    if text(client, given).is_empty() {
                        errors.push(FieldError::required(format!("{at}.service.{blamed}"), ""));
                    }
                }
            }
        }
    }
    if reviews.is_empty() {
        errors.push(FieldError::required(format!("{at}.conversionReviewVersions"), ""));
        return;
    }
    for (index, review) in reviews.iter().filter_map(Value::as_str).enumerate() {
        if reviews[..index].iter().any(|r| r == review) {
            errors.push(FieldError::invalid(
                format!("{at}.conversionReviewVersions[{index}]"),
                &Value::from(review),
                "duplicate version",
            ));
            continue;
        }
        for detail in names::dns1035(review) {
            errors.push(FieldError::invalid(
                format!("{at}.conversionReviewVersions[{index}]"),
                &Value::from(review),
                detail,
            ));
        }
    }
    if !reviews.iter().any(|r| r == "v1" || r == "v1beta1") {
        errors.push(FieldError::invalid(
            format!("{at}.conversionReviewVersions"),
            &Value::from(reviews.to_vec()),
            "must include at least one of v1, v1beta1",
        ));
    }
}

pub(super) fn check_stored_versions(definition: &Value, errors: &mut Vec<FieldError>) {
    let stored = list(definition, "/status/storedVersions");
    let at = "status.storedVersions";
    let shown = if stored.is_empty() { Value::Null } else { Value::from(stored.to_vec()) };
    if stored.is_empty() {
        errors.push(FieldError::new(
            FieldErrorKind::Invalid,
            at,
            Some(&shown),
            "must have at least one stored version",
        ));
        return;
    }
    // A name matches one version only: the reference removes it once it is found.
    let mut open: Vec<(usize, &str)> = stored.iter().filter_map(Value::as_str).enumerate().collect();
    for version in list(definition, "/spec/versions") {
        let name = text(version, "/name");
        let place = open.iter().position(|(_, s)| *s == name);
        if version["storage"] == json!(true) && place.is_none() {
            errors.push(FieldError::invalid(at, &shown, format!("must have the storage version {name}")));
        }
        if let Some(place) = place {
            open.remove(place);
        }
    }
    for (index, name) in open {
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        errors.push(FieldError::invalid(format!("{at}[{index}]"), &Value::from(name), detail));
    }
}

pub(super) fn check_preserve_unknown(definition: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let set = |d: &Value| d.pointer("/spec/preserveUnknownFields").and_then(Value::as_bool) == Some(true);
    if set(definition) && !old.is_some_and(set) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &Value::from(true), detail));
    }
}
