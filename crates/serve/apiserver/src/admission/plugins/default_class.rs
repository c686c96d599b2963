//! Default classes: `DefaultStorageClass`, `DefaultIngressClass`, and the global default of priority classes.

use serde_json::{Value, json};

use crate::object;
use crate::server::{Inner, Target};
use crate::status::{ApiError, ApiResult};

/// The default class of a table: the newest with a default annotation, then the first by name.
fn default_of(inner: &Inner, table: &str, marks: &[&str]) -> Option<String> {
    let marked = |class: &Value| {
        marks.iter().any(|mark| class["metadata"]["annotations"][*mark].as_str() == Some("true"))
    };
    let mut found: Vec<(String, String)> = inner
        .store
        .list(table, "", None, 0)
        .1
        .iter()
        .map(|(_, entry)| entry.value())
        .filter(marked)
        .map(|class| {
            (object::meta_str(&class, "creationTimestamp").to_owned(), object::name(&class).to_owned())
        })
        .collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.into_iter().next().map(|(_, name)| name)
}

/// Sets the default storage class of a claim.
pub(super) fn of_claim(inner: &Inner, claim: &mut Value) {
    let old_way = &claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
    if old_way.is_string() || !claim["spec"]["storageClassName"].is_null() {
        return;
    }
    const MARKS: &[&str] =
        &["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    set(claim, "storageClassName", default_of(inner, "storage.k8s.io/storageclasses", MARKS));
}

/// Sets the default class of an ingress.
pub(super) fn of_ingress(inner: &Inner, ingress: &mut Value) {
    let old_way = &ingress["metadata"]["annotations"]["kubernetes.io/ingress.class"];
    if old_way.is_string() || !ingress["spec"]["ingressClassName"].is_null() {
        return;
    }
    const MARKS: &[&str] = &["ingressclass.kubernetes.io/is-default-class"];
    set(ingress, "ingressClassName", default_of(inner, "networking.k8s.io/ingressclasses", MARKS));
}

fn set(object: &mut Value, key: &str, name: Option<String>) {
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    if let (Some(spec), Some(name)) = (spec, name) {
        spec.insert(key.to_owned(), json!(name));
    }
}

/// Rejects a second priority class with `globalDefault`.
pub(super) fn check_priority(inner: &Inner, target: &Target, object: &Value) -> ApiResult<()> {
    if object["globalDefault"] != true {
        return Ok(());
    }
    let name = object::name(object);
    for (_, entry) in inner.store.list(target.table(), "", None, 0).1 {
        let other = entry.value();
        if other["globalDefault"] == true && object::name(&other) != name {
            let why = format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                object::name(&other)
            );
            return Err(ApiError::forbidden(&target.rt, name, &why));
        }
    }
    Ok(())
}
