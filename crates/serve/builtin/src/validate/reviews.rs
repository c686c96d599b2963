//! SubjectAccessReviews and their relatives.

use fl_schema::FieldError;
use serde_json::{Value, json};

use crate::field::{Errors, Path, is_set, list, text};
use crate::validate::common_rules::{messages, qualified_name};

/// Validates the spec of an access review. `named` is set for kinds whose spec has a user or groups; `local`
/// is the namespace of a LocalSubjectAccessReview.
#[must_use]
pub fn access_review(spec: &Value, named: bool, local: Option<&str>) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let path = Path::new("spec");
    let (resource, other) = (path.child("resourceAttributes"), path.child("nonResourceAttributes"));
    let (has_resource, has_other) =
        (is_set(spec, "resourceAttributes"), is_set(spec, "nonResourceAttributes"));
    let asked = &spec["nonResourceAttributes"];
    let shown = || {
        let part = |key: &str| json!(text(asked, key));
        format!("{{\"Path\":{},\"Verb\":{}}}", part("path"), part("verb"))
    };
    match (has_resource, has_other) {
        (true, true) => {
            errors.invalid_printed(
                &other,
                shown(),
                "cannot be specified in combination with resourceAttributes",
            );
        }
        (false, false) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.invalid_printed(&resource, "null", why);
        }
        _ => {}
    }
    if named && text(spec, "user").is_empty() && list(spec, "groups").is_empty() {
        errors.invalid(&path.child("user"), "", "at least one of user or group must be specified");
    }
    let attributes = &spec["resourceAttributes"];
    if has_resource {
        selector(&mut errors, &resource, attributes, "fieldSelector", |errors, path, key| {
            if key.is_empty() {
                errors.required(path, "must be specified");
            }
        });
        selector(&mut errors, &resource, attributes, "labelSelector", qualified_name);
    }
    if let Some(namespace) = local {
        let asked = text(attributes, "namespace");
        if has_resource && asked != namespace {
            errors.invalid(&resource.child("namespace"), asked, "must match metadata.namespace");
        }
        if has_other {
            errors.invalid_printed(&other, shown(), "disallowed on this kind of request");
        }
    }
    errors.0
}

/// A field or label selector of a review. Unknown operators are allowed, for newer clients.
fn selector(
    errors: &mut Errors,
    path: &Path,
    attributes: &Value,
    field: &str,
    check_key: impl Fn(&mut Errors, &Path, &str),
) {
    if !is_set(attributes, field) {
        return;
    }
    let (path, selector) = (path.child(field), &attributes[field]);
    let (raw, requirements) = (text(selector, "rawSelector"), list(selector, "requirements"));
    if !raw.is_empty() && !requirements.is_empty() {
        errors.invalid(&path.child("rawSelector"), raw, "may not specified at the same time as requirements");
    }
    if raw.is_empty() && requirements.is_empty() {
        let why = format!("when {} is specified, requirements or rawSelector is required", path.as_str());
        errors.required(&path.child("requirements"), why);
    }
    for (at, requirement) in requirements.iter().enumerate() {
        let path = path.child("requirements").index(at);
        let values = list(requirement, "values");
        if field == "fieldSelector" {
            check_key(errors, &path.child("key"), text(requirement, "key"));
        }
        match text(requirement, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.required(&path.child("values"), why);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&path.child("values"), why);
            }
            _ => {}
        }
        if field == "labelSelector" {
            check_key(errors, &path.child("key"), text(requirement, "key"));
            for (i, value) in values.iter().filter_map(Value::as_str).enumerate() {
                let found = messages(fl_types::check_label_value(value));
                errors.each_invalid(&path.child("values").index(i), value, &found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(spec: &Value, named: bool, local: Option<&str>) -> Vec<String> {
        access_review(spec, named, local).iter().map(|e| format!("{}: {}", e.field, e.body())).collect()
    }

    #[test]
    fn review_needs_one_kind_of_attributes_and_a_subject() {
        assert_eq!(
            fields(&json!({}), true, None),
            [
                "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
                "spec.user: Invalid value: \"\": at least one of user or group must be specified",
            ]
        );
        assert!(fields(&json!({"resourceAttributes": {}}), false, None).is_empty());
    }

    #[test]
    fn selectors_have_a_raw_form_or_requirements() {
        let spec = json!({"user": "x", "resourceAttributes": {
            "fieldSelector": {},
            "labelSelector": {"rawSelector": "x", "requirements": [{"key": "a b", "operator": "Later"}]},
        }});
        let found = fields(&spec, true, None);
        assert_eq!(found.len(), 3);
        assert_eq!(
            found[0],
            "spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required"
        );
        assert!(found[1].ends_with("may not specified at the same time as requirements"));
        assert!(found[2].starts_with("spec.resourceAttributes.labelSelector.requirements[0].key"));
    }

    #[test]
    fn local_review_must_name_its_own_namespace() {
        let spec = json!({"user": "x", "resourceAttributes": {"verb": "get"}});
        assert_eq!(
            fields(&spec, true, Some("here")),
            ["spec.resourceAttributes.namespace: Invalid value: \"\": must match metadata.namespace"]
        );
    }
}
