//! Claims grow only where their storage class says so.

use serde_json::Value;

use crate::object;
use crate::server::{Inner, Target};
use crate::status::{ApiError, Outcome};

pub(super) fn check_resize(inner: &Inner, target: &Target, object: &Value, old: &Value) -> Outcome<()> {
    let size = |claim: &Value| -> Option<fl_types::Quantity> {
        claim.pointer("/spec/resources/requests/storage")?.as_str()?.parse().ok()
    };
    let (Some(now), Some(before)) = (size(object), size(old)) else { return Ok(()) };
    let name = object::name(object);
    if now <= before {
        return Ok(());
    }
    if old.pointer("/status/phase").and_then(Value::as_str) != Some("Bound") {
        // The rules of the kind say that an unbound claim cannot change.
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
