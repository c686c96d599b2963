//! What the server sets on pods: status, quality of service, grace.

use serde_json::{Value, json};

use super::field::{entries, list, text};
use crate::resource::{Hook, copy_field};

pub(super) fn prepare_create(_cx: Hook<'_>, object: &mut Value) {
    let class = qos_class(&object["spec"]);
    object["status"] = json!({"phase": "Pending", "qosClass": class});
    if !list(&object["spec"], "schedulingGates").is_empty() {
        object["status"]["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
}

pub(super) fn prepare_status(_cx: Hook<'_>, object: &mut Value, old: &Value) {
    copy_field(object, old, "spec");
    let owners = old["metadata"]["ownerReferences"].clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        if owners.is_null() {
            metadata.remove("ownerReferences");
        } else {
            metadata.insert("ownerReferences".to_owned(), owners);
        }
    }
    if text(&object["status"], "qosClass").is_empty() {
        let class = old["status"]["qosClass"].clone();
        if let Some(status) = object["status"].as_object_mut() {
            status.insert("qosClass".to_owned(), class);
        }
    }
}

/// Seconds a pod gets to end: none before it runs on a node or after it has ended.
pub(super) fn grace_seconds(object: &Value) -> Option<i64> {
    let phase = text(&object["status"], "phase");
    if text(&object["spec"], "nodeName").is_empty() || matches!(phase, "Failed" | "Succeeded") {
        return Some(0);
    }
    Some(object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30).max(1))
}

/// `Guaranteed` when every container limits CPU and memory to what it requests, `BestEffort` when none asks for
/// anything, else `Burstable`.
pub(super) fn qos_class(spec: &Value) -> &'static str {
    let amount = |value: &Value| -> Option<fl_types::Quantity> {
        let text = value.as_str()?;
        text.parse().ok().filter(|q: &fl_types::Quantity| q.sign() == std::cmp::Ordering::Greater)
    };
    let (mut any, mut guaranteed) = (false, true);
    for container in list(spec, "containers").iter().chain(list(spec, "initContainers")) {
        let resources = &container["resources"];
        for key in ["requests", "limits"] {
            any |= entries(resources, key)
                .iter()
                .any(|(name, value)| matches!(*name, "cpu" | "memory") && amount(value).is_some());
        }
        for name in ["cpu", "memory"] {
            let limit = amount(&resources["limits"][name]);
            let request = amount(&resources["requests"][name]).or_else(|| limit.clone());
            guaranteed &= limit.is_some() && request == limit;
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_service() {
        let spec = |resources: Value| json!({"containers": [{"name": "a", "resources": resources}]});
        let both = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(qos_class(&spec(json!({}))), "BestEffort");
        assert_eq!(qos_class(&spec(json!({"limits": both, "requests": both}))), "Guaranteed");
        assert_eq!(qos_class(&spec(json!({"limits": both}))), "Guaranteed");
        assert_eq!(qos_class(&spec(json!({"requests": {"cpu": "1"}}))), "Burstable");
    }
}
