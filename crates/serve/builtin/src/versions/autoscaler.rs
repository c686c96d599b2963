//! Autoscalers: v1 has one CPU percentage; the other fields of v2 are annotations in v1.

use serde_json::{Map, Value, json};

use crate::field::{list, text};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

fn is_cpu_percentage(metric: &Value) -> bool {
    text(metric, "type") == "Resource"
        && text(&metric["resource"], "name") == "cpu"
        && metric["resource"]["target"]["averageUtilization"].is_number()
}

fn is_cpu_status(metric: &Value) -> bool {
    text(metric, "type") == "Resource"
        && text(&metric["resource"], "name") == "cpu"
        && metric["resource"]["current"]["averageUtilization"].is_number()
}

fn annotate(object: &mut Value, key: &str, value: &str) {
    if let Some(annotations) = crate::field::map_mut(&mut object["metadata"], "annotations") {
        annotations.insert(key.to_owned(), json!(value));
    }
}

/// Converts to v1; an object in v1 is returned unchanged.
pub(crate) fn to_v1(mut object: Value) -> Value {
    if object["apiVersion"] != "autoscaling/v2" {
        return object;
    }
    object["apiVersion"] = json!("autoscaling/v1");
    drop_annotations(&mut object);
    let spec = object["spec"].take();
    let status = object["status"].take();
    let metrics = list(&spec, "metrics");
    let mut out = Map::new();
    for key in ["scaleTargetRef", "minReplicas", "maxReplicas"] {
        if !spec[key].is_null() {
            out.insert(key.to_owned(), spec[key].clone());
        }
    }
    if let Some(cpu) = metrics.iter().find(|m| is_cpu_percentage(m)) {
        let percent = cpu["resource"]["target"]["averageUtilization"].clone();
        out.insert("targetCPUUtilizationPercentage".to_owned(), percent);
    }
    let others: Vec<String> = metrics.iter().filter(|m| !is_cpu_percentage(m)).map(metric_to_v1).collect();
    if !others.is_empty() {
        annotate(&mut object, METRICS, &format!("[{}]", others.join(",")));
    }
    let current: Vec<String> = list(&status, "currentMetrics").iter().map(status_to_v1).collect();
    if !current.is_empty() {
        annotate(&mut object, CURRENT, &format!("[{}]", current.join(",")));
    }
    if !spec["behavior"].is_null() {
        annotate(&mut object, BEHAVIOR, &behavior_to_internal(&spec["behavior"]));
    }
    if !list(&status, "conditions").is_empty() {
        let conditions: Vec<String> = list(&status, "conditions")
            .iter()
            .map(|c| {
                let keys = ["type", "status", "lastTransitionTime", "reason", "message"];
                let pairs = keys.map(|key| (key, text_of(&c[key])));
                // An unset time is written as null, other unset fields are omitted.
                let kept = pairs.iter().filter(|(key, text)| text != "null" || *key == "lastTransitionTime");
                ordered_text(&kept.cloned().collect::<Vec<_>>())
            })
            .collect();
        annotate(&mut object, CONDITIONS, &format!("[{}]", conditions.join(",")));
    }
    object["spec"] = Value::Object(out);
    let mut out = Map::new();
    for key in ["observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"] {
        if !status[key].is_null() {
            out.insert(key.to_owned(), status[key].clone());
        }
    }
    if let Some(cpu) = list(&status, "currentMetrics").iter().find(|m| is_cpu_status(m)) {
        let percent = cpu["resource"]["current"]["averageUtilization"].clone();
        out.insert("currentCPUUtilizationPercentage".to_owned(), percent);
    }
    object["status"] = Value::Object(out);
    fl_kubeschema::normalize_kind("autoscaling", "v1", "HorizontalPodAutoscaler", &mut object);
    object
}

/// Converts to v2; an object in v2 is returned unchanged.
pub(crate) fn to_v2(mut object: Value) -> Value {
    if object["apiVersion"] != "autoscaling/v1" {
        return object;
    }
    object["apiVersion"] = json!("autoscaling/v2");
    let annotation = |key: &str| -> Value {
        object["metadata"]["annotations"][key]
            .as_str()
            .and_then(|t| serde_json::from_str(t).ok())
            .unwrap_or_default()
    };
    let (others, behavior) = (annotation(METRICS), annotation(BEHAVIOR));
    let (current, conditions) = (annotation(CURRENT), annotation(CONDITIONS));
    drop_annotations(&mut object);
    let mut metrics: Vec<Value> = others.as_array().into_iter().flatten().map(metric_to_v2).collect();
    let spec = object["spec"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let mut out = spec;
    if let Some(percent) = out.remove("targetCPUUtilizationPercentage") {
        let cpu = json!({"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": percent}}});
        metrics.push(cpu);
    }
    if metrics.is_empty() {
        // The default of v1 is 80 % of the CPU.
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 80}}}));
    }
    out.insert("metrics".to_owned(), json!(metrics));
    if behavior.is_object() {
        out.insert("behavior".to_owned(), behavior_to_v2(&behavior));
    }
    object["spec"] = Value::Object(out);
    let mut status = object["status"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let percent = status.remove("currentCPUUtilizationPercentage");
    let mut current: Vec<Value> = current.as_array().into_iter().flatten().map(status_to_v2).collect();
    if let (Some(percent), true) = (percent, current.is_empty()) {
        current.push(json!({"type": "Resource", "resource": {"name": "cpu",
            "current": {"averageUtilization": percent}}}));
    }
    if !current.is_empty() {
        status.insert("currentMetrics".to_owned(), json!(current));
    }
    if conditions.is_array() {
        status.insert("conditions".to_owned(), conditions);
    }
    object["status"] = Value::Object(status);
    fl_kubeschema::normalize_kind("autoscaling", "v2", "HorizontalPodAutoscaler", &mut object);
    object
}

fn drop_annotations(object: &mut Value) {
    let Some(annotations) = object["metadata"]["annotations"].as_object_mut() else { return };
    for key in [METRICS, CURRENT, CONDITIONS, BEHAVIOR] {
        annotations.remove(key);
    }
    if annotations.is_empty()
        && let Some(metadata) = object["metadata"].as_object_mut()
    {
        metadata.remove("annotations");
    }
}

/// JSON with the fields in the given order: annotations are compared as text.
fn ordered_text(pairs: &[(&str, String)]) -> String {
    let members: Vec<String> = pairs.iter().map(|(key, text)| format!("\"{key}\":{text}")).collect();
    format!("{{{}}}", members.join(","))
}

/// [`ordered_text`] without null fields.
fn present_text(pairs: &[(&str, String)]) -> String {
    let kept: Vec<(&str, String)> = pairs.iter().filter(|(_, text)| text != "null").cloned().collect();
    ordered_text(&kept)
}

fn text_of(value: &Value) -> String {
    value.to_string()
}

fn reference_text(value: &Value) -> String {
    present_text(&["kind", "name", "apiVersion"].map(|key| (key, text_of(&value[key]))))
}

/// The annotation is upstream's internal type as JSON, with Go's field names and with nulls.
fn behavior_to_internal(behavior: &Value) -> String {
    let rules = |rules: &Value| {
        if rules.is_null() {
            return "null".to_owned();
        }
        let policies: Vec<String> = list(rules, "policies")
            .iter()
            .map(|p| {
                let of = |key: &str| text_of(&p[key]);
                ordered_text(&[
                    ("Type", of("type")),
                    ("Value", of("value")),
                    ("PeriodSeconds", of("periodSeconds")),
                ])
            })
            .collect();
        let policies =
            if rules["policies"].is_null() { "null".to_owned() } else { format!("[{}]", policies.join(",")) };
        ordered_text(&[
            ("StabilizationWindowSeconds", text_of(&rules["stabilizationWindowSeconds"])),
            ("SelectPolicy", text_of(&rules["selectPolicy"])),
            ("Policies", policies),
            ("Tolerance", text_of(&rules["tolerance"])),
        ])
    };
    ordered_text(&[("ScaleUp", rules(&behavior["scaleUp"])), ("ScaleDown", rules(&behavior["scaleDown"]))])
}

fn behavior_to_v2(internal: &Value) -> Value {
    let rules = |rules: &Value| {
        if rules.is_null() {
            return Value::Null;
        }
        let policies: Vec<Value> = list(rules, "Policies")
            .iter()
            .map(|p| json!({"type": p["Type"], "value": p["Value"], "periodSeconds": p["PeriodSeconds"]}))
            .collect();
        json!({"stabilizationWindowSeconds": rules["StabilizationWindowSeconds"], "selectPolicy": rules["SelectPolicy"],
            "policies": policies, "tolerance": rules["Tolerance"]})
    };
    json!({"scaleUp": rules(&internal["ScaleUp"]), "scaleDown": rules(&internal["ScaleDown"])})
}

/// An object of the fields that are not null.
fn present(pairs: &[(&str, &Value)]) -> Value {
    Value::Object(
        pairs.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| ((*k).to_owned(), (*v).clone())).collect(),
    )
}

fn source_key(kind: &str) -> &'static str {
    match kind {
        "Object" => "object",
        "Pods" => "pods",
        "External" => "external",
        "ContainerResource" => "containerResource",
        _ => "resource",
    }
}

fn metric_to_v1(metric: &Value) -> String {
    let kind = text(metric, "type");
    let key = source_key(kind);
    let source = &metric[key];
    let (target, identifier) = (&source["target"], &source["metric"]);
    let zero = json!("0");
    let body = match key {
        "object" => present_text(&[
            ("target", reference_text(&source["describedObject"])),
            ("metricName", text_of(&identifier["name"])),
            ("targetValue", text_of(if target["value"].is_null() { &zero } else { &target["value"] })),
            ("selector", text_of(&identifier["selector"])),
            ("averageValue", text_of(&target["averageValue"])),
        ]),
        "pods" => present_text(&[
            ("metricName", text_of(&identifier["name"])),
            ("targetAverageValue", text_of(&target["averageValue"])),
            ("selector", text_of(&identifier["selector"])),
        ]),
        "external" => present_text(&[
            ("metricName", text_of(&identifier["name"])),
            ("metricSelector", text_of(&identifier["selector"])),
            ("targetValue", text_of(&target["value"])),
            ("targetAverageValue", text_of(&target["averageValue"])),
        ]),
        _ => present_text(&[
            ("name", text_of(&source["name"])),
            ("targetAverageUtilization", text_of(&target["averageUtilization"])),
            ("targetAverageValue", text_of(&target["averageValue"])),
            ("container", text_of(&source["container"])),
        ]),
    };
    present_text(&[("type", text_of(&metric["type"])), (key, body)])
}

fn metric_to_v2(metric: &Value) -> Value {
    let key = source_key(text(metric, "type"));
    let source = &metric[key];
    let identifier =
        |selector: &str| present(&[("name", &source["metricName"]), ("selector", &source[selector])]);
    let target = |value: &Value, average: &Value| {
        let kind = if average.is_null() { "Value" } else { "AverageValue" };
        present(&[("type", &json!(kind)), ("value", value), ("averageValue", average)])
    };
    let body = match key {
        "object" => present(&[
            ("describedObject", &source["target"]),
            ("metric", &identifier("selector")),
            ("target", &target(&source["targetValue"], &source["averageValue"])),
        ]),
        "pods" => present(&[
            ("metric", &identifier("selector")),
            ("target", &target(&Value::Null, &source["targetAverageValue"])),
        ]),
        "external" => present(&[
            ("metric", &identifier("metricSelector")),
            ("target", &target(&source["targetValue"], &source["targetAverageValue"])),
        ]),
        _ => {
            let percent = &source["targetAverageUtilization"];
            let kind = if percent.is_null() { "AverageValue" } else { "Utilization" };
            let target = present(&[
                ("type", &json!(kind)),
                ("averageUtilization", percent),
                ("averageValue", &source["targetAverageValue"]),
            ]);
            present(&[("name", &source["name"]), ("container", &source["container"]), ("target", &target)])
        }
    };
    present(&[("type", &metric["type"]), (key, &body)])
}

fn status_to_v1(metric: &Value) -> String {
    let key = source_key(text(metric, "type"));
    let source = &metric[key];
    let (current, identifier) = (&source["current"], &source["metric"]);
    let body = match key {
        "object" => present_text(&[
            ("target", reference_text(&source["describedObject"])),
            ("metricName", text_of(&identifier["name"])),
            ("currentValue", text_of(&current["value"])),
            ("selector", text_of(&identifier["selector"])),
            ("averageValue", text_of(&current["averageValue"])),
        ]),
        "pods" => present_text(&[
            ("metricName", text_of(&identifier["name"])),
            ("currentAverageValue", text_of(&current["averageValue"])),
            ("selector", text_of(&identifier["selector"])),
        ]),
        "external" => present_text(&[
            ("metricName", text_of(&identifier["name"])),
            ("metricSelector", text_of(&identifier["selector"])),
            ("currentValue", text_of(&current["value"])),
            ("currentAverageValue", text_of(&current["averageValue"])),
        ]),
        _ => present_text(&[
            ("name", text_of(&source["name"])),
            ("currentAverageUtilization", text_of(&current["averageUtilization"])),
            // Not a pointer in v1: an unset value is zero.
            ("currentAverageValue", text_of(current.get("averageValue").unwrap_or(&json!("0")))),
            ("container", text_of(&source["container"])),
        ]),
    };
    present_text(&[("type", text_of(&metric["type"])), (key, body)])
}

fn status_to_v2(metric: &Value) -> Value {
    let key = source_key(text(metric, "type"));
    let source = &metric[key];
    let identifier =
        |selector: &str| present(&[("name", &source["metricName"]), ("selector", &source[selector])]);
    let current = |value: &str, average: &str| {
        present(&[("value", &source[value]), ("averageValue", &source[average])])
    };
    let body = match key {
        "object" => present(&[
            ("describedObject", &source["target"]),
            ("metric", &identifier("selector")),
            ("current", &current("currentValue", "averageValue")),
        ]),
        "pods" => {
            present(&[("metric", &identifier("selector")), ("current", &current("", "currentAverageValue"))])
        }
        "external" => present(&[
            ("metric", &identifier("metricSelector")),
            ("current", &current("currentValue", "currentAverageValue")),
        ]),
        _ => {
            let current = present(&[
                ("averageUtilization", &source["currentAverageUtilization"]),
                ("averageValue", &source["currentAverageValue"]),
            ]);
            present(&[("name", &source["name"]), ("container", &source["container"]), ("current", &current)])
        }
    };
    present(&[("type", &metric["type"]), (key, &body)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_unknown_to_v1_survive_in_annotations() {
        let v2 = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
            "spec": {"maxReplicas": 5, "minReplicas": 1, "scaleTargetRef": {"kind": "Deployment", "name": "a"},
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60, "selectPolicy": "Max",
                    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}},
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
                    {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}}}]},
            "status": {"currentMetrics": null, "desiredReplicas": 0}});
        let v1 = to_v1(v2.clone());
        assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 70);
        assert!(v1["metadata"]["annotations"][METRICS].as_str().is_some_and(|m| m.contains("rps")));
        let mut back = to_v2(v1);
        back["spec"]["metrics"].as_array_mut().expect("metrics").reverse();
        assert_eq!(back, v2);
    }
}
