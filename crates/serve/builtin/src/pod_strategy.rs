//! Fields of pods that the server sets: status, QoS class, grace period.

use serde_json::{Value, json};

use crate::field::{entries, list, text};
use crate::strategy::{StrategyContext, copy_field};

pub(crate) fn prepare_create(_cx: StrategyContext<'_>, object: &mut Value) {
    admit(object, None);
    let class = qos_class(&object["spec"]);
    object["status"] = json!({"phase": "Pending", "qosClass": class});
    if !list(&object["spec"], "schedulingGates").is_empty() {
        object["status"]["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
}

pub(crate) fn prepare_update(_cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
    copy_field(object, old, "status");
    admit(object, Some(old));
}

/// Sets what the default admission plugins set on every pod: tolerations for unreachable nodes. A priority
/// once computed is kept.
fn admit(object: &mut Value, old: Option<&Value>) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if let Some(tolerations) = tolerations.as_array_mut() {
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            let covered = tolerations.iter().any(|t| {
                matches!(text(t, "key"), "")
                    && text(t, "operator") == "Exists"
                    && matches!(text(t, "effect"), "" | "NoExecute")
                    || text(t, "key") == key && matches!(text(t, "effect"), "" | "NoExecute")
            });
            if !covered {
                let seconds = json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
                tolerations.push(seconds);
            }
        }
    }
    if let Some(old) = old {
        for key in ["priority", "preemptionPolicy"] {
            if !spec.contains_key(key) && !old["spec"][key].is_null() {
                spec.insert(key.to_owned(), old["spec"][key].clone());
            }
        }
    }
}

pub(crate) fn prepare_status(_cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
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

/// Keeps `podIP` and `podIPs`, `hostIP` and `hostIPs` consistent.
pub(crate) fn pod_addresses(status: &mut serde_json::Map<String, Value>) {
    for (one, all) in [("podIP", "podIPs"), ("hostIP", "hostIPs")] {
        let first = status.get(one).and_then(Value::as_str).unwrap_or_default().to_owned();
        let listed =
            status.get(all).and_then(|l| l.pointer("/0/ip")).and_then(Value::as_str).unwrap_or_default();
        if !first.is_empty() && first != listed {
            status.insert(all.to_owned(), json!([{"ip": first}]));
        } else if first.is_empty() && !listed.is_empty() {
            let listed = json!(listed);
            status.insert(one.to_owned(), listed);
        }
    }
}

/// The grace period of a pod in seconds: none before it is scheduled or after it has ended.
pub(crate) fn grace_seconds(object: &Value) -> Option<i64> {
    let phase = text(&object["status"], "phase");
    if text(&object["spec"], "nodeName").is_empty() || matches!(phase, "Failed" | "Succeeded") {
        return Some(0);
    }
    Some(object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30).max(1))
}

/// The QoS class of a pod: `Guaranteed` if the limits of CPU and memory of every container equal its
/// requests, `BestEffort` without requests and limits, else `Burstable`.
#[must_use]
pub fn qos_class(spec: &Value) -> &'static str {
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
    fn qos_classes() {
        let spec = |resources: Value| json!({"containers": [{"name": "a", "resources": resources}]});
        let both = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(qos_class(&spec(json!({}))), "BestEffort");
        assert_eq!(qos_class(&spec(json!({"limits": both, "requests": both}))), "Guaranteed");
        assert_eq!(qos_class(&spec(json!({"limits": both}))), "Guaranteed");
        assert_eq!(qos_class(&spec(json!({"requests": {"cpu": "1"}}))), "Burstable");
    }
}
