//! Defaults of workloads: apps, batch, autoscaling.

use serde_json::{Value, json};

use super::{Object, child, put, put_pointer, text};

pub(super) fn apply(ty: &str, map: &mut Object) {
    match ty {
        "apps.v1.Deployment" => {
            let spec = child(map, "spec");
            put_pointer(spec, "replicas", 1);
            let strategy = child(spec, "strategy");
            put(strategy, "type", "RollingUpdate");
            if text(strategy, "type") == "RollingUpdate" {
                let rolling = child(strategy, "rollingUpdate");
                put_pointer(rolling, "maxUnavailable", "25%");
                put_pointer(rolling, "maxSurge", "25%");
            }
            put_pointer(spec, "revisionHistoryLimit", 10);
            put_pointer(spec, "progressDeadlineSeconds", 600);
        }
        "apps.v1.DaemonSet" => {
            // Upstream's internal type has a field for the template generation; apps/v1 writes it as an
            // annotation.
            let annotations = child(child(map, "metadata"), "annotations");
            put(annotations, "deprecated.daemonset.template.generation", "0");
            let spec = child(map, "spec");
            let strategy = child(spec, "updateStrategy");
            put(strategy, "type", "RollingUpdate");
            if text(strategy, "type") == "RollingUpdate" {
                let rolling = child(strategy, "rollingUpdate");
                put_pointer(rolling, "maxUnavailable", 1);
                put_pointer(rolling, "maxSurge", 0);
            }
            put_pointer(spec, "revisionHistoryLimit", 10);
        }
        "apps.v1.StatefulSet" => stateful_set(child(map, "spec")),
        // Upstream sets the kind of embedded claims while decoding.
        "apps.v1.StatefulSetSpec" => {
            for claim in
                map.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten()
            {
                if let Some(claim) = claim.as_object_mut() {
                    put(claim, "apiVersion", "v1");
                    put(claim, "kind", "PersistentVolumeClaim");
                }
            }
        }
        "apps.v1.ReplicaSet" => put_pointer(child(map, "spec"), "replicas", 1),
        "batch.v1.Job" => job(map),
        "batch.v1.CronJob" => {
            let spec = child(map, "spec");
            put(spec, "concurrencyPolicy", "Allow");
            put_pointer(spec, "suspend", false);
            put_pointer(spec, "successfulJobsHistoryLimit", 3);
            put_pointer(spec, "failedJobsHistoryLimit", 1);
        }
        "batch.v1.PodFailurePolicyOnPodConditionsPattern" => put(map, "status", "True"),
        "autoscaling.v1.HorizontalPodAutoscaler" => put_pointer(child(map, "spec"), "minReplicas", 1),
        "autoscaling.v2.HorizontalPodAutoscaler" => autoscaler(child(map, "spec")),
        _ => {}
    }
}

fn stateful_set(spec: &mut Object) {
    put(spec, "podManagementPolicy", "OrderedReady");
    let strategy = child(spec, "updateStrategy");
    if text(strategy, "type").is_empty() {
        strategy.insert("type".to_owned(), json!("RollingUpdate"));
        put_pointer(strategy, "rollingUpdate", json!({}));
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut)
    {
        put_pointer(rolling, "partition", 0);
    }
    let retention = child(spec, "persistentVolumeClaimRetentionPolicy");
    put(retention, "whenDeleted", "Retain");
    put(retention, "whenScaled", "Retain");
    put_pointer(spec, "replicas", 1);
    put_pointer(spec, "revisionHistoryLimit", 10);
}

fn job(map: &mut Object) {
    let spec = child(map, "spec");
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".to_owned(), json!(1));
    }
    put_pointer(spec, "parallelism", 1);
    let limit = if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 };
    put_pointer(spec, "backoffLimit", limit);
    put_pointer(spec, "completionMode", "NonIndexed");
    put_pointer(spec, "suspend", false);
    let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    put_pointer(spec, "podReplacementPolicy", replacement);
    put_pointer(spec, "manualSelector", false);
    let labels = spec.get("template").map(|t| t["metadata"]["labels"].clone()).unwrap_or_default();
    let metadata = child(map, "metadata");
    if labels.is_object() && !metadata.contains_key("labels") {
        metadata.insert("labels".to_owned(), labels);
    }
}

fn autoscaler(spec: &mut Object) {
    put_pointer(spec, "minReplicas", 1);
    put(
        spec,
        "metrics",
        json!([{"type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]),
    );
    let Some(behavior) = spec.get_mut("behavior").and_then(Value::as_object_mut) else { return };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let up = child(behavior, "scaleUp");
    put_pointer(up, "stabilizationWindowSeconds", 0);
    put_pointer(up, "selectPolicy", "Max");
    put_pointer(up, "policies", json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, percent]));
    let down = child(behavior, "scaleDown");
    put_pointer(down, "selectPolicy", "Max");
    put_pointer(down, "policies", json!([percent]));
}
