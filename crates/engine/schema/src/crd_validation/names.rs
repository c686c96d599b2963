//! Validation of names: of the CRD, of its kind, and of API groups that need approval.

use serde_json::Value;

use super::{list, text};
use crate::field_error::FieldError;

const APPROVED: &str = "api-approved.kubernetes.io";

/// The errors of a DNS-1035 label.
pub(super) fn dns1035(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 63 {
        wrong.push("must be no more than 63 characters".to_owned());
    }
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    let fine = bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.last().is_some_and(|b| inner(*b))
        && bytes.iter().all(|b| inner(*b) || *b == b'-');
    if !fine {
        wrong.push("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')".to_owned());
    }
    wrong
}

/// The errors of a DNS-1123 subdomain.
pub(super) fn dns1123_subdomain(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 253 {
        wrong.push("must be no more than 253 characters".to_owned());
    }
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let part_fine = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(|b| inner(*b))
            && bytes.last().is_some_and(|b| inner(*b))
            && bytes.iter().all(|b| inner(*b) || *b == b'-')
    };
    if !name.split('.').all(part_fine) {
        wrong.push(r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')".to_owned());
    }
    wrong
}

pub(super) fn check_name(definition: &Value, errors: &mut Vec<FieldError>) {
    let name = text(definition, "/metadata/name");
    let wanted = format!("{}.{}", text(definition, "/spec/names/plural"), text(definition, "/spec/group"));
    if !name.is_empty() && name != wanted {
        errors.push(FieldError::invalid(
            "metadata.name",
            &Value::from(name),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
}

/// The names below `at` (`spec.names`, `status.acceptedNames`).
pub(super) fn check_names(names: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let mut label = |field: String, value: &str, checked: &str, intro: &str| {
        let wrong = dns1035(checked);
        if !value.is_empty() && !wrong.is_empty() {
            errors.push(FieldError::invalid(
                field,
                &Value::from(value),
                format!("{intro}{}", wrong.join(",")),
            ));
        }
    };
    const MIXED: &str = "may have mixed case, but should otherwise match: ";
    for key in ["plural", "singular"] {
        let value = text(names, &format!("/{key}"));
        label(format!("{at}.{key}"), value, value, "");
    }
    for key in ["kind", "listKind"] {
        let value = text(names, &format!("/{key}"));
        label(format!("{at}.{key}"), value, &value.to_lowercase(), MIXED);
    }
    for (index, short) in list(names, "/shortNames").iter().filter_map(Value::as_str).enumerate() {
        label(format!("{at}.shortNames[{index}]"), short, short, "");
    }
    for (index, category) in list(names, "/categories").iter().filter_map(Value::as_str).enumerate() {
        label(format!("{at}.categories[{index}]"), category, category, "");
    }
    let (kind, list_kind) = (text(names, "/kind"), text(names, "/listKind"));
    if !kind.is_empty() && kind == list_kind {
        errors.push(FieldError::invalid(
            format!("{at}.listKind"),
            &Value::from(list_kind),
            "kind and listKind may not be the same",
        ));
    }
}

/// Groups of the Kubernetes community need an approval annotation.
pub(super) fn check_approval(definition: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let group = text(definition, "/spec/group");
    let protected = group == "k8s.io"
        || group.ends_with(".k8s.io")
        || group == "kubernetes.io"
        || group.ends_with(".kubernetes.io");
    if !protected {
        return;
    }
    let note = |object: &Value| {
        object
            .pointer("/metadata/annotations")
            .and_then(|a| a.get(APPROVED))
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let now = note(definition);
    if old.is_some_and(|o| state(note(o).as_deref()) == state(now.as_deref())) {
        return;
    }
    let field = format!("metadata.annotations[{APPROVED}]");
    match state(now.as_deref()) {
        0 => errors.push(FieldError::required(field, "protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111")),
        1 => {
            let value = now.unwrap_or_default();
            let detail = "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111";
            errors.push(FieldError::invalid(field, &Value::from(value), detail));
        }
        _ => {}
    }
}

/// State of the approval: 0 missing, 1 invalid, 2 approved by link, 3 bypassed.
fn state(note: Option<&str>) -> u8 {
    match note {
        None | Some("") => 0,
        Some(text) if text.starts_with("unapproved") => 3,
        Some(text) => {
            let link = text.split_once("://").is_some_and(|(scheme, rest)| {
                !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/')
            });
            if link { 2 } else { 1 }
        }
    }
}
