//! `NamespaceLifecycle`: a namespaced object needs a namespace that exists and is not terminating.

use serde_json::{Value, json};

use crate::object;
use crate::server::{Inner, Target};
use crate::status::{ApiError, ApiResult};

/// Namespaces that cannot be deleted.
pub(crate) const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Rejects a new object in a missing or terminating namespace.
pub(crate) fn check_create(inner: &Inner, target: &Target, name: &str) -> ApiResult<()> {
    if !target.rt.namespaced {
        return Ok(());
    }
    let namespaces = inner.registry().find("", "v1", "namespaces").cloned();
    let Some(namespaces) = namespaces else { return Ok(()) };
    let namespace = &target.namespace;
    let Some(entry) = inner.store.latest("/namespaces", &object::key("", namespace)) else {
        return Err(ApiError::not_found(&namespaces, namespace));
    };
    if !terminating(&entry.value()) {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut error = ApiError::forbidden(&target.rt, name, &why);
    if let Some(details) = &mut error.details {
        details["causes"] = json!([{
            "reason": "NamespaceTerminating", "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace"
        }]);
    }
    Err(error)
}

fn terminating(namespace: &Value) -> bool {
    object::is_deleting(namespace)
        || namespace.pointer("/status/phase").and_then(Value::as_str) == Some("Terminating")
}
