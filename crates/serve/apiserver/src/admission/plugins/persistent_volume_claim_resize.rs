//! `PersistentVolumeClaimResize` and the limit ranges of claims.

use serde_json::Value;

use crate::object;
use crate::server::{Inner, Target};
use crate::status::{ApiError, ApiResult};

pub(super) fn check_resize(inner: &Inner, target: &Target, object: &Value, old: &Value) -> ApiResult<()> {
    let size = |claim: &Value| -> Option<fl_types::Quantity> {
        claim.pointer("/spec/resources/requests/storage")?.as_str()?.parse().ok()
    };
    let (Some(now), Some(before)) = (size(object), size(old)) else { return Ok(()) };
    let name = object::name(object);
    if now <= before {
        return Ok(());
    }
    if old.pointer("/status/phase").and_then(Value::as_str) != Some("Bound") {
        // The validation of the kind rejects changes of an unbound claim.
        return Ok(());
    }
    let class = old.pointer("/spec/storageClassName").and_then(Value::as_str).unwrap_or_default();
    let entry = inner.store.latest("storage.k8s.io/storageclasses", &object::key("", class));
    if entry.is_some_and(|e| e.value()["allowVolumeExpansion"] == true) {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    Err(ApiError::forbidden(&target.rt, name, why))
}

/// Checks the requests of a claim against the limit ranges of its namespace.
pub(super) fn check_limits(inner: &Inner, target: &Target, object: &Value) -> ApiResult<()> {
    let amount = |value: &Value| -> Option<fl_types::Quantity> { value.as_str()?.parse().ok() };
    let mut wrong = Vec::new();
    for (_, entry) in inner.store.list("/limitranges", &format!("{}/", target.namespace), None, 0).1 {
        let range = entry.value();
        let limits = range.pointer("/spec/limits").and_then(Value::as_array).into_iter().flatten();
        for limit in limits.filter(|limit| limit["type"] == "PersistentVolumeClaim") {
            for (bound, word) in [("min", "minimum"), ("max", "maximum")] {
                for (name, value) in limit[bound].as_object().into_iter().flatten() {
                    let Some(edge) = amount(value) else { continue };
                    let usage = format!("{word} {name} usage per PersistentVolumeClaim is {edge}");
                    match amount(&object["spec"]["resources"]["requests"][name]) {
                        None => wrong.push(format!("{usage}.  No request is specified")),
                        Some(asked)
                            if (bound == "min" && asked < edge) || (bound == "max" && asked > edge) =>
                        {
                            wrong.push(format!("{usage}, but request is {asked}"));
                        }
                        Some(_) => {}
                    }
                }
            }
        }
    }
    let name = object::name(object);
    match wrong.as_slice() {
        [] => Ok(()),
        [one] => Err(ApiError::forbidden(&target.rt, name, one)),
        many => Err(ApiError::forbidden(&target.rt, name, &format!("[{}]", many.join(", ")))),
    }
}
