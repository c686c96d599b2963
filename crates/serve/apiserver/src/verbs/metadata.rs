//! Validation of metadata, the same for every type.

use fl_builtin::name_validation;
use fl_schema::FieldError;
use serde_json::{Value, json};

use crate::object;
use crate::resource_type::ResourceType;

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

fn is_qualified_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Errors of a qualified name, `prefix/name`.
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    fl_types::check_qualified_name(text).err().map(|e| e.messages().to_vec()).unwrap_or_default()
}

/// Errors of a map of labels.
pub(crate) fn labels(map: &Value, path: &str) -> Vec<FieldError> {
    let mut out = Vec::new();
    for (key, value) in map.as_object().into_iter().flatten() {
        out.extend(qualified_name(key).into_iter().map(|e| FieldError::invalid(path, &json!(key), e)));
        let text = value.as_str().unwrap_or_default();
        let mut wrong = Vec::new();
        if text.len() > 63 {
            wrong.push("must be no more than 63 characters".to_owned());
        }
        if !text.is_empty() && !is_qualified_part(text) {
            wrong.push(LABEL_VALUE.to_owned());
        }
        out.extend(wrong.into_iter().map(|e| FieldError::invalid(path, &json!(text), e)));
    }
    out
}

fn annotations(map: &Value) -> Vec<FieldError> {
    let mut out = Vec::new();
    let mut total = 0;
    for (key, value) in map.as_object().into_iter().flatten() {
        let wrong = qualified_name(&key.to_lowercase());
        out.extend(wrong.into_iter().map(|e| FieldError::invalid("metadata.annotations", &json!(key), e)));
        total += key.len() + value.as_str().map_or(0, str::len);
    }
    if total > MAX_ANNOTATION_BYTES {
        out.push(FieldError::too_long("metadata.annotations", MAX_ANNOTATION_BYTES));
    }
    out
}

/// A reference as Go prints its JSON: fields in declaration order.
fn show_reference(reference: &Value) -> String {
    let mut parts = Vec::new();
    for field in ["apiVersion", "kind", "name", "uid"] {
        let value = reference.get(field).cloned().unwrap_or_else(|| json!(""));
        parts.push(format!("{}:{value}", json!(field)));
    }
    for field in ["controller", "blockOwnerDeletion"] {
        if let Some(value) = reference.get(field).filter(|v| !v.is_null()) {
            parts.push(format!("{}:{value}", json!(field)));
        }
    }
    format!("{{{}}}", parts.join(","))
}

fn owners(list: &[Value]) -> Vec<FieldError> {
    let path = "metadata.ownerReferences";
    let mut out = Vec::new();
    let mut controller: Option<(String, String)> = None;
    for reference in list {
        let field = |name: &str| reference.get(name).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = object::split_api_version(field("apiVersion"));
        if version.is_empty() || version.contains('/') {
            out.push(FieldError::invalid(
                format!("{path}.apiVersion"),
                &json!(field("apiVersion")),
                "version must not be empty",
            ));
        }
        for name in ["kind", "name", "uid"] {
            if field(name).is_empty() {
                out.push(FieldError::invalid(format!("{path}.{name}"), &json!(""), "must not be empty"));
            }
        }
        if field("kind") == "Event" && (group.is_empty() && version == "v1" || group == "events.k8s.io") {
            let mut error = FieldError::forbidden(path, "");
            error.kind = fl_schema::FieldErrorKind::Invalid;
            error.value = Some(show_reference(reference));
            error.detail = format!("{group}/{version}, Kind=Event is disallowed from being an owner");
            out.push(error);
        }
        if reference.get("controller").and_then(Value::as_bool) == Some(true) {
            let this = (field("kind").to_owned(), field("name").to_owned());
            match &controller {
                None => controller = Some(this),
                Some(first) => {
                    let all: Vec<String> = list.iter().map(show_reference).collect();
                    let mut error = FieldError::forbidden(path, "");
                    error.kind = fl_schema::FieldErrorKind::Invalid;
                    error.value = Some(format!("[{}]", all.join(",")));
                    error.detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {}/{} and {}/{}",
                        first.0, first.1, this.0, this.1
                    );
                    out.push(error);
                }
            }
        }
    }
    out
}

/// Whether an object belongs to a group of Kubernetes itself.
fn is_kubernetes_own(object: &Value) -> bool {
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    !group.contains('.') || group.ends_with(".k8s.io")
}

fn finalizers(object: &Value, kubernetes_own: bool) -> Vec<FieldError> {
    let mut out = Vec::new();
    for (i, name) in object::finalizers(object).into_iter().enumerate() {
        let wrong = qualified_name(name);
        let bad = !wrong.is_empty();
        out.extend(wrong.into_iter().map(|e| FieldError::invalid("metadata.finalizers", &json!(name), e)));
        let standard = ["orphan", "foregroundDeletion", "kubernetes"].contains(&name);
        // Only Kubernetes' own types have this rule; Flux's finalizer has no slash.
        if !bad && !standard && !name.contains('/') && kubernetes_own {
            out.push(FieldError::invalid(
                format!("metadata.finalizers[{i}]"),
                &json!(name),
                "name is neither a standard finalizer name nor is it fully qualified",
            ));
        }
    }
    let has = |name: &str| object::finalizers(object).contains(&name);
    if has("orphan") && has("foregroundDeletion") {
        let list = json!(object::finalizers(object));
        out.push(FieldError::invalid(
            "metadata.finalizers",
            &list,
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
    out
}

/// Validates the metadata of a new object.
pub(crate) fn check_create(rt: &ResourceType, object: &Value) -> Vec<FieldError> {
    let mut out = Vec::new();
    let (name, prefix) = (object::name(object), object::meta_str(object, "generateName"));
    if !prefix.is_empty() {
        let wrong = rt.strategy.validate_name(prefix, true);
        out.extend(
            wrong.into_iter().map(|e| FieldError::invalid("metadata.generateName", &json!(prefix), e)),
        );
    }
    if name.is_empty() {
        out.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        let wrong = rt.strategy.validate_name(name, false);
        out.extend(wrong.into_iter().map(|e| FieldError::invalid("metadata.name", &json!(name), e)));
    }
    if rt.namespaced {
        let namespace = object::namespace(object);
        if namespace.is_empty() {
            out.push(FieldError::required("metadata.namespace", ""));
        } else {
            let wrong = name_validation::dns1123_label(namespace, false);
            out.extend(
                wrong.into_iter().map(|e| FieldError::invalid("metadata.namespace", &json!(namespace), e)),
            );
        }
    }
    out.extend(check_common(object));
    out
}

/// Validates the metadata of an embedded resource. Its name may be that of any kind.
pub(crate) fn check_embedded(object: &Value) -> Vec<FieldError> {
    let mut out = Vec::new();
    let (name, namespace) = (object::name(object), object::namespace(object));
    for wrong in name_validation::path_segment(name, false) {
        out.push(FieldError::invalid("metadata.name", &json!(name), wrong));
    }
    if !namespace.is_empty() {
        let wrong = name_validation::dns1123_label(namespace, false);
        out.extend(
            wrong.into_iter().map(|e| FieldError::invalid("metadata.namespace", &json!(namespace), e)),
        );
    }
    out.extend(check_rest(object, check_entries(object), false));
    out
}

fn check_common(object: &Value) -> Vec<FieldError> {
    check_rest(object, check_entries(object), is_kubernetes_own(object))
}

/// Rules that are the same for embedded resources.
fn check_rest(object: &Value, entries: Vec<FieldError>, kubernetes_own: bool) -> Vec<FieldError> {
    let mut out = Vec::new();
    if object::generation(object) < 0 {
        out.push(FieldError::invalid(
            "metadata.generation",
            &json!(object::generation(object)),
            "must be greater than or equal to 0",
        ));
    }
    out.extend(entries);
    out.extend(finalizers(object, kubernetes_own));
    out
}

/// Labels, annotations and owners.
fn check_entries(object: &Value) -> Vec<FieldError> {
    let Some(meta) = object.get("metadata") else { return Vec::new() };
    let mut out = labels(meta.get("labels").unwrap_or(&Value::Null), "metadata.labels");
    out.extend(annotations(meta.get("annotations").unwrap_or(&Value::Null)));
    out.extend(owners(object::owner_references(object)));
    out
}

/// Removes duplicate owner references, with a warning.
pub(crate) fn merge_owners(ctx: &crate::server::RequestContext, object: &mut Value) {
    let list = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    let Some(list) = list.filter(|list| list.len() > 1) else { return };
    let mut kept: Vec<Value> = Vec::new();
    let mut repeated: Vec<String> = Vec::new();
    for owner in list.drain(..) {
        if kept.contains(&owner) {
            let uid = owner["uid"].as_str().unwrap_or_default().to_owned();
            if !repeated.contains(&uid) {
                repeated.push(uid);
            }
        } else {
            kept.push(owner);
        }
    }
    *list = kept;
    if !repeated.is_empty() {
        ctx.warn(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        ));
    }
}

/// Validates the metadata of a changed object. Upstream runs the immutability checks twice, and reports them
/// twice.
pub(crate) fn check_update(rt: &ResourceType, object: &Value, old: &Value) -> Vec<FieldError> {
    let twice = rt.strategy.checks_metadata_twice();
    let entries = check_entries(object);
    let common = check_rest(object, entries.clone(), is_kubernetes_own(object));
    let mut changes = check_added_finalizers(object, old);
    changes.extend(check_immutable(object, old));
    // Upstream validates all metadata in the storage layer, then the immutable fields once more, and most
    // types do both again.
    let mut out = common.clone();
    out.extend_from_slice(&entries);
    if twice {
        out.extend(entries);
    }
    if rt.strategy.repeats_metadata() {
        out.extend(common);
    }
    out.extend_from_slice(&changes);
    if twice {
        out.extend(changes);
    }
    out
}

fn check_added_finalizers(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut out = Vec::new();
    if object::is_deleting(old) {
        let before = object::finalizers(old);
        let added: Vec<&str> =
            object::finalizers(object).into_iter().filter(|f| !before.contains(f)).collect();
        if !added.is_empty() {
            let list: Vec<String> = added.iter().map(|f| format!("{f:?}")).collect();
            out.push(FieldError::forbidden(
                "metadata.finalizers",
                format!("no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}", list.join(", ")),
            ));
        }
    }
    out
}

fn check_immutable(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut out = Vec::new();
    let [new, before] = [object, old].map(|o| o.get("metadata").and_then(Value::as_object));
    for field in
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        let [new, before] = [new, before].map(|m| m.and_then(|m| m.get(field)).unwrap_or(&Value::Null));
        if new != before {
            out.push(FieldError::invalid(format!("metadata.{field}"), new, "field is immutable"));
        }
    }
    if object::generation(object) < object::generation(old) {
        out.push(FieldError::invalid(
            "metadata.generation",
            &json!(object::generation(object)),
            "must not be decremented",
        ));
    }
    out
}
