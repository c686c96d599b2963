//! Environment variables of containers, and references to fields, resources and keys.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::field::{Errors, Path, is_set, list, text};
use crate::validate::common_rules::{self, config_key, subdomain};

/// An environment variable name: printable ASCII without `=`.
fn environment_name(name: &str) -> Vec<String> {
    let ok = name.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'=');
    if ok {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .to_owned(),
    ]
}

pub(super) fn environment(errors: &mut Errors, path: &Path, variables: &[Value]) {
    for (at, variable) in variables.iter().enumerate() {
        let path = path.index(at);
        let name = text(variable, "name");
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        } else {
            errors.each_invalid(&path.child("name"), name, &environment_name(name));
        }
        if is_set(variable, "valueFrom") {
            value_from(errors, &path.child("valueFrom"), variable);
        }
    }
}

fn value_from(errors: &mut Errors, path: &Path, variable: &Value) {
    let from = &variable["valueFrom"];
    let mut sources = 0;
    if is_set(from, "fieldRef") {
        sources += 1;
        field_reference(errors, &path.child("fieldRef"), &from["fieldRef"], ENV_FIELDS);
    }
    if is_set(from, "resourceFieldRef") {
        sources += 1;
        resource_reference(errors, &path.child("resourceFieldRef"), &from["resourceFieldRef"], false);
    }
    for key in ["configMapKeyRef", "secretKeyRef"] {
        if is_set(from, key) {
            sources += 1;
            key_reference(errors, &path.child(key), &from[key]);
        }
    }
    if is_set(from, "fileKeyRef") {
        sources += 1;
    }
    if sources == 0 {
        let why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
        errors.invalid(path, "", why);
    } else if !text(variable, "value").is_empty() {
        errors.invalid(path, "", "may not be specified when `value` is not empty");
    } else if sources > 1 {
        errors.invalid(path, "", "may not have more than one field specified at a time");
    }
}

const ENV_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Field paths that the pod type knows but that neither environment nor volumes may use.
const KNOWN_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "spec.host",
];

pub(super) fn field_reference(errors: &mut Errors, path: &Path, reference: &Value, supported: &[&str]) {
    if text(reference, "apiVersion").is_empty() {
        errors.required(&path.child("apiVersion"), "");
        return;
    }
    let field = text(reference, "fieldPath");
    let at = path.child("fieldPath");
    if field.is_empty() {
        errors.required(&at, "");
        return;
    }
    let subscript =
        field.strip_suffix(']').and_then(|f| f.strip_suffix('\'')).and_then(|f| f.split_once("['"));
    match subscript {
        Some(("metadata.annotations", key)) => {
            let found = common_rules::messages(fl_types::check_qualified_name(&key.to_lowercase()));
            errors.each_invalid(path, key, &found);
        }
        Some(("metadata.labels", key)) => common_rules::qualified_name(errors, path, key),
        Some(_) => {
            let why = format!("error converting fieldPath: field label does not support subscript: {field}");
            errors.invalid(&at, field, why);
        }
        None if !KNOWN_FIELDS.contains(&field) => {
            errors.invalid(
                &at,
                field,
                format!("error converting fieldPath: field label not supported: {field}"),
            );
        }
        None => errors.one_of(&at, field, supported),
    }
}

pub(super) fn resource_reference(errors: &mut Errors, path: &Path, reference: &Value, in_volume: bool) {
    if in_volume && text(reference, "containerName").is_empty() {
        errors.required(&path.child("containerName"), "");
        return;
    }
    let name = text(reference, "resource");
    if name.is_empty() {
        errors.required(&path.child("resource"), "");
        return;
    }
    const SUPPORTED: &[&str] = &[
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    if !SUPPORTED.contains(&name) && !name.contains("hugepages-") {
        errors.not_supported(&path.child("resource"), name, SUPPORTED);
        return;
    }
    let divisor = text(reference, "divisor");
    if divisor == "0" || divisor.is_empty() {
        return;
    }
    const SIZES: &[&str] =
        &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let sizes = |what: &str| {
        format!(
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the {what} resource"
        )
    };
    let why = match name.split_once('.').map_or(name, |(_, rest)| rest) {
        "cpu" if !matches!(divisor, "1m" | "1") => {
            "only divisor's values 1m and 1 are supported with the cpu resource".to_owned()
        }
        "memory" if !SIZES.contains(&divisor) => sizes("memory"),
        "ephemeral-storage" if !SIZES.contains(&divisor) => sizes("local ephemeral storage"),
        other if other.starts_with("hugepages-") && !SIZES.contains(&divisor) => sizes("hugepages"),
        _ => return,
    };
    errors.invalid(&path.child("divisor"), name, why);
}

/// A reference to a key of a ConfigMap or Secret.
fn key_reference(errors: &mut Errors, path: &Path, reference: &Value) {
    subdomain(errors, &path.child("name"), text(reference, "name"));
    let key = text(reference, "key");
    if key.is_empty() {
        errors.required(&path.child("key"), "");
    } else {
        errors.each_invalid(&path.child("key"), key, &config_key(key));
    }
}

pub(super) fn environment_from(errors: &mut Errors, path: &Path, sources: &[Value]) {
    for (at, source) in sources.iter().enumerate() {
        let here = path.index(at);
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            errors.each_invalid(&here.child("prefix"), prefix, &environment_name(prefix));
        }
        let mut found = 0;
        for key in ["configMapRef", "secretRef"] {
            if !is_set(source, key) {
                continue;
            }
            found += 1;
            let name = text(&source[key], "name");
            let at = here.child(key).child("name");
            if name.is_empty() {
                errors.required(&at, "");
            } else {
                subdomain(errors, &at, name);
            }
        }
        if found == 0 {
            errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`");
        } else if found > 1 {
            errors.invalid(path, "", "may not have more than one field specified at a time");
        }
    }
}

/// Warnings about environment variables that are set twice.
pub(crate) fn duplicate_environment(path: &Path, containers: &Value, list_name: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (at, container) in list(containers, list_name).iter().enumerate() {
        let mut seen = HashSet::new();
        for (i, variable) in list(container, "env").iter().enumerate() {
            let name = text(variable, "name");
            let (value, reference) = (text(variable, "value"), format!("$({name})"));
            // A value that refers to the earlier one is intended.
            let builds = !is_set(variable, "valueFrom") && value != reference && value.contains(&reference);
            if !seen.insert(name) && !builds {
                let here = path.child(list_name).index(at).child("env").index(i);
                let quoted = json!(name);
                warnings.push(format!(
                    "{}: hides previous definition of {quoted}, which may be dropped when using apply",
                    here.as_str()
                ));
            }
        }
    }
    warnings
}
