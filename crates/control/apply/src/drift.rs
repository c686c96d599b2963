//! Whether a live object differs from what an apply would make of it.

use serde_json::Value;

use crate::IgnoreRules;

/// Compares the live object with the result of a dry-run: labels, annotations and everything outside metadata and status.
#[must_use]
pub fn has_drifted(live: &Value, dry_run: &Value, ignore: &IgnoreRules) -> bool {
    if ignore.is_empty() {
        return differs(live, dry_run);
    }
    let (mut there, mut wanted) = (live.clone(), dry_run.clone());
    ignore.strip(dry_run, &mut there);
    ignore.strip(dry_run, &mut wanted);
    differs(&there, &wanted)
}

fn differs(live: &Value, dry_run: &Value) -> bool {
    ["labels", "annotations"].iter().any(|field| !same_pairs(live, dry_run, field))
        || !same_body(live, dry_run)
}

fn same_pairs(a: &Value, b: &Value, field: &str) -> bool {
    let none = |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    let (a, b) = (&a["metadata"][field], &b["metadata"][field]);
    a == b || (none(a) && none(b))
}

fn same_body(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
    let compared = |key: &str| key != "metadata" && key != "status";
    let count = |map: &serde_json::Map<String, Value>| map.keys().filter(|k| compared(k)).count();
    let autoscaler = a.get("kind").is_some_and(|k| k == "HorizontalPodAutoscaler");
    count(a) == count(b)
        && a.iter().filter(|(k, _)| compared(k)).all(|(key, value)| match b.get(key) {
            Some(other) if autoscaler && key == "spec" => same_autoscaler(value, other),
            Some(other) => value == other,
            None => false,
        })
}

/// Old servers repeat the first metric of an autoscaler in a dry-run and add an empty one.
fn same_autoscaler(a: &Value, b: &Value) -> bool {
    let plain = |spec: &Value| {
        let mut spec = spec.clone();
        if let Some(metrics) = spec.get_mut("metrics").and_then(Value::as_array_mut) {
            let mut seen: Vec<Value> = Vec::new();
            metrics.retain(|m| {
                let keep = m["type"].as_str().is_some_and(|t| !t.is_empty()) && !seen.contains(m);
                seen.push(m.clone());
                keep
            });
        }
        spec
    };
    plain(a) == plain(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn drifted(live: &Value, dry_run: &Value) -> bool {
        has_drifted(live, dry_run, &IgnoreRules::default())
    }

    #[test]
    fn what_counts() {
        let live = json!({"kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "1", "managedFields": []}, "data": {"a": "1"}, "status": {"x": 1}});
        let mut wanted = live.clone();
        wanted["metadata"]["resourceVersion"] = json!("2");
        wanted["metadata"]["labels"] = json!({});
        wanted["status"] = json!({});
        assert!(!drifted(&live, &wanted));
        wanted["metadata"]["labels"] = json!({"a": "b"});
        assert!(drifted(&live, &wanted));
        let mut more = live.clone();
        more["binaryData"] = json!({});
        assert!(drifted(&live, &more) && drifted(&more, &live));
    }

    #[test]
    fn doubled_metrics_are_no_drift() {
        let scaler =
            |metrics: Value| json!({"kind": "HorizontalPodAutoscaler", "spec": {"metrics": metrics}});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu"}});
        assert!(!drifted(&scaler(json!([metric])), &scaler(json!([metric, metric, {"type": ""}]))));
        assert!(drifted(&scaler(json!([metric])), &scaler(json!([]))));
    }
}
