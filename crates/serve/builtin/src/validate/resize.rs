//! The `resize` subresource: changes of the resources of a running pod.

use serde_json::Value;

use super::pod;
use crate::field::{Errors, Path, entries, list, text};
use crate::qos_class;

pub(crate) fn pod_resize(errors: &mut Errors, new: &Value, old: &Value) {
    pod(errors, new);
    let path = Path::new("spec");
    let (now, before) = (&new["spec"], &old["spec"]);
    let class = text(&old["status"], "qosClass");
    let class = if class.is_empty() { qos_class(before) } else { class };
    if class != qos_class(now) {
        errors.invalid(&path, class, "Pod QOS Class may not change as a result of resizing");
    }
    if list(now, "containers").len() != list(before, "containers").len() {
        errors.forbidden(&path.child("containers"), "containers may not be added or removed on resize");
        return;
    }
    if list(now, "initContainers").len() != list(before, "initContainers").len() {
        let why = "initContainers may not be added or removed on resize";
        errors.forbidden(&path.child("initContainers"), why);
        return;
    }
    let mark = errors.0.len();
    for kind in ["containers", "initContainers"] {
        for (at, (now, before)) in list(now, kind).iter().zip(list(before, kind)).enumerate() {
            resources_are_not_removed(errors, &path.child(kind).index(at).child("resources"), now, before);
        }
    }
    if errors.0.len() > mark {
        return;
    }
    let pairs = |kind: &'static str| list(now, kind).iter().zip(list(before, kind));
    let started_once =
        pairs("initContainers").filter(|(_, before)| text(before, "restartPolicy") != "Always");
    if started_once.into_iter().any(|(now, before)| now["resources"] != before["resources"]) {
        errors.forbidden(&path, "resources for non-sidecar init containers are immutable");
        return;
    }
    let others = |container: &Value| {
        let mut rest = container.clone();
        for key in ["requests", "limits"] {
            if let Some(amounts) =
                rest.pointer_mut(&format!("/resources/{key}")).and_then(Value::as_object_mut)
            {
                amounts.retain(|name, _| !matches!(name.as_str(), "cpu" | "memory"));
            }
            if let Some(resources) = rest.get_mut("resources").and_then(Value::as_object_mut)
                && resources.get(key).and_then(Value::as_object).is_none_or(serde_json::Map::is_empty)
            {
                resources.remove(key);
            }
        }
        rest
    };
    if pairs("containers").chain(pairs("initContainers")).any(|(now, before)| others(now) != others(before)) {
        errors.forbidden(&path, "only cpu and memory resources are mutable");
    }
}

/// Requests and limits of a container may change, but not be removed.
fn resources_are_not_removed(errors: &mut Errors, path: &Path, now: &Value, before: &Value) {
    for key in ["limits", "requests"] {
        let has = |name: &str| !now["resources"][key][name].is_null();
        let gone = entries(&before["resources"], key)
            .iter()
            .any(|(name, _)| matches!(*name, "cpu" | "memory") && !has(name));
        if gone {
            errors.forbidden(&path.child(key), format!("resource {key} cannot be removed"));
        }
    }
}
