//! Autoscalers, disruption budgets, priority classes, leases.

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::field::{Errors, Path, is_set, list, text};
use crate::name_validation::path_segment;
use crate::validate::common_rules::{self, label_selector};
use crate::validate::resources::{self, quantity};

/// Validates an autoscaler of either version, converted to v2.
pub(crate) fn autoscaler(errors: &mut Errors, object: &Value) {
    let object = crate::versions::autoscaler_to_v2(object.clone());
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    let max = spec["maxReplicas"].as_i64().unwrap_or(0);
    if let Some(min) = spec["minReplicas"].as_i64() {
        if min < 1 {
            errors.invalid(&path.child("minReplicas"), min, "must be greater than or equal to 1");
        }
        if max < min {
            errors.invalid(&path.child("maxReplicas"), max, "must be greater than or equal to `minReplicas`");
        }
    }
    if max < 1 {
        errors.invalid(&path.child("maxReplicas"), max, "must be greater than 0");
    }
    reference(errors, &path.child("scaleTargetRef"), &spec["scaleTargetRef"], true);
    let outside = |m: &Value| matches!(text(m, "type"), "Object" | "External");
    if spec["minReplicas"] == 0 && !list(spec, "metrics").iter().any(outside) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.forbidden(&path.child("metrics"), why);
    }
    for (at, metric) in list(spec, "metrics").iter().enumerate() {
        metric_spec(errors, &path.child("metrics").index(at), metric);
    }
    for key in ["scaleUp", "scaleDown"] {
        if is_set(&spec["behavior"], key) {
            scaling_rules(errors, &path.child("behavior").child(key), &spec["behavior"][key]);
        }
    }
}

fn reference(errors: &mut Errors, path: &Path, reference: &Value, group_required: bool) {
    for key in ["kind", "name"] {
        match text(reference, key) {
            "" => errors.required(&path.child(key), ""),
            value => errors.each_invalid(&path.child(key), value, &path_segment(value, false)),
        }
    }
    let version = text(reference, "apiVersion");
    let at = path.child("apiVersion");
    match version.split('/').collect::<Vec<_>>().as_slice() {
        [_] if group_required && (text(reference, "kind") != "ReplicationController" || version != "v1") => {
            errors.invalid(&at, version, "apiVersion must specify API group");
        }
        [_] | [_, _] => {}
        _ => errors.invalid(&at, version, format!("unexpected GroupVersion string: {version}")),
    }
}

const SOURCES: &[(&str, &str)] = &[
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("External", "external"),
    ("ContainerResource", "containerResource"),
];

fn metric_spec(errors: &mut Errors, path: &Path, metric: &Value) {
    let kind = text(metric, "type");
    let mut kinds: Vec<&str> = SOURCES.iter().map(|(kind, _)| *kind).collect();
    kinds.sort_unstable();
    if kind.is_empty() {
        errors.required(&path.child("type"), "must specify a metric source type");
    }
    if !kinds.contains(&kind) {
        // Upstream reports this twice: for the unknown type and for the missing source.
        for _ in 0..2 {
            errors.not_supported(&path.child("type"), kind, &kinds);
        }
    }
    for (name, key) in SOURCES {
        let (path, source) = (path.child(key), &metric[*key]);
        if *name != kind {
            let own = SOURCES.iter().find(|(name, _)| *name == kind).map(|(_, key)| &metric[*key]);
            if !source.is_null() && own.is_some_and(|own| !own.is_null()) {
                errors.forbidden(&path, "must populate the given metric source only");
            }
            continue;
        }
        if source.is_null() {
            errors.required(&path, "must populate information for the given metric source");
            continue;
        }
        metric_source(errors, &path, key, source);
    }
}

fn metric_source(errors: &mut Errors, path: &Path, key: &str, source: &Value) {
    let target = &source["target"];
    let at = path.child("target");
    metric_target(errors, &at, target);
    let (value, average, percent) =
        (is_set(target, "value"), is_set(target, "averageValue"), is_set(target, "averageUtilization"));
    match key {
        "object" => {
            reference(errors, &path.child("describedObject"), &source["describedObject"], false);
            identifier(errors, &path.child("metric"), &source["metric"]);
            if !value && !average {
                errors.required(&at.child("averageValue"), "must set either a target value or averageValue");
            }
        }
        "external" => {
            identifier(errors, &path.child("metric"), &source["metric"]);
            if !value && !average {
                let why = "must set either a target value for metric or a per-pod target";
                errors.required(&at.child("averageValue"), why);
            }
            if value && average {
                let why = "may not set both a target value for metric and a per-pod target";
                errors.forbidden(&at.child("value"), why);
            }
        }
        "pods" => {
            identifier(errors, &path.child("metric"), &source["metric"]);
            if !average {
                errors.required(&at.child("averageValue"), "must specify a positive target averageValue");
            }
        }
        _ => {
            if text(source, "name").is_empty() {
                errors.required(&path.child("name"), "must specify a resource name");
            } else if key == "containerResource" {
                resources::container_resource_name(errors, &path.child("name"), text(source, "name"));
            }
            match text(source, "container") {
                _ if key != "containerResource" => {}
                "" => errors.required(&path.child("container"), "must specify a container"),
                container => common_rules::label(errors, &path.child("container"), container),
            }
            if !percent && !average {
                let why = "must set either a target raw value or a target utilization";
                errors.required(&at.child("averageUtilization"), why);
            }
            if percent && average {
                let why = "may not set both a target raw value and a target utilization";
                errors.forbidden(&at.child("averageValue"), why);
            }
        }
    }
}

fn metric_target(errors: &mut Errors, path: &Path, target: &Value) {
    if text(target, "type").is_empty() {
        errors.required(&path.child("type"), "must specify a metric target type");
    }
    match text(target, "type") {
        "Utilization" | "Value" | "AverageValue" => {}
        other => {
            errors.invalid(&path.child("type"), other, "must be either Utilization, Value, or AverageValue");
        }
    }
    for key in ["value", "averageValue"] {
        if quantity(&target[key]).is_some_and(|q| q.sign() != Ordering::Greater) {
            errors.invalid(&path.child(key), target[key].clone(), "must be positive");
        }
    }
    if let Some(percent) = target["averageUtilization"].as_i64().filter(|p| *p < 1) {
        errors.invalid(&path.child("averageUtilization"), percent, "must be greater than 0");
    }
}

fn identifier(errors: &mut Errors, path: &Path, metric: &Value) {
    match text(metric, "name") {
        "" => errors.required(&path.child("name"), "must specify a metric name"),
        name => errors.each_invalid(&path.child("name"), name, &path_segment(name, false)),
    }
}

fn scaling_rules(errors: &mut Errors, path: &Path, rules: &Value) {
    let at = path.child("stabilizationWindowSeconds");
    match rules["stabilizationWindowSeconds"].as_i64() {
        Some(seconds) if seconds < 0 => errors.invalid(&at, seconds, "must be greater than or equal to zero"),
        Some(seconds) if seconds > 3600 => errors.invalid(&at, seconds, "must be less than or equal to 3600"),
        _ => {}
    }
    if let Some(policy) = rules["selectPolicy"].as_str() {
        errors.one_of(&path.child("selectPolicy"), policy, &["Disabled", "Max", "Min"]);
    }
    let policies = list(rules, "policies");
    if policies.is_empty() {
        errors.required(&path.child("policies"), "must specify at least one Policy");
    }
    for (i, policy) in policies.iter().enumerate() {
        let path = path.child("policies").index(i);
        errors.one_of(&path.child("type"), text(policy, "type"), &["Percent", "Pods"]);
        let (value, period) =
            (policy["value"].as_i64().unwrap_or(0), policy["periodSeconds"].as_i64().unwrap_or(0));
        if value <= 0 {
            errors.invalid(&path.child("value"), value, "must be greater than zero");
        }
        if period <= 0 {
            errors.invalid(&path.child("periodSeconds"), period, "must be greater than zero");
        }
        if period > 1800 {
            errors.invalid(&path.child("periodSeconds"), period, "must be less than or equal to 1800");
        }
    }
}

pub(crate) fn disruption_budget(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    if is_set(spec, "minAvailable") && is_set(spec, "maxUnavailable") {
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            spec["minAvailable"],
            common_rules::print_selector(&spec["selector"]),
            spec["maxUnavailable"],
            spec["unhealthyPodEvictionPolicy"],
        );
        errors.invalid_printed(&path, shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for key in ["minAvailable", "maxUnavailable"] {
        if is_set(spec, key) {
            common_rules::positive_int_or_percent(errors, &path.child(key), &spec[key]);
            common_rules::at_most_100_percent(errors, &path.child(key), &spec[key]);
        }
    }
    label_selector(errors, &path.child("selector"), &spec["selector"]);
    if let Some(policy) = spec["unhealthyPodEvictionPolicy"].as_str() {
        let at = path.child("unhealthyPodEvictionPolicy");
        errors.one_of(&at, policy, &["AlwaysAllow", "IfHealthyBudget"]);
    }
}

const SYSTEM_CLASSES: &[(&str, i64)] =
    &[("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

pub(crate) fn priority_class(errors: &mut Errors, object: &Value) {
    let name = text(&object["metadata"], "name");
    let value = object["value"].as_i64().unwrap_or(0);
    if name.starts_with("system-") {
        let known = SYSTEM_CLASSES.iter().find(|(class, _)| *class == name);
        let why = match known {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, wanted)) if *wanted != value => {
                Some(format!("value of {name} PriorityClass must be {wanted}"))
            }
            Some(_) => None,
        };
        if let Some(why) = why {
            let why = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            );
            errors.forbidden(&Path::new("metadata.name"), why);
        }
    } else if value > 1_000_000_000 {
        let why = "maximum allowed value of a user defined priority is 1000000000";
        errors.forbidden(&Path::new("value"), why);
    }
    match object["preemptionPolicy"].as_str() {
        Some("") => errors.required(&Path::new("preemptionPolicy"), ""),
        Some(policy) => {
            errors.one_of(&Path::new("preemptionPolicy"), policy, &["PreemptLowerPriority", "Never"]);
        }
        None => {}
    }
}

pub(crate) fn priority_class_update(errors: &mut Errors, new: &Value, old: &Value) {
    if new["value"] != old["value"] {
        errors.forbidden(&Path::new("value"), "may not be changed in an update.");
    }
    let (now, before) = (&new["preemptionPolicy"], &old["preemptionPolicy"]);
    errors.immutable(&Path::new("preemptionPolicy"), now, before);
}

pub(crate) fn lease(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    if let Some(seconds) = spec["leaseDurationSeconds"].as_i64().filter(|s| *s <= 0) {
        errors.invalid(&path.child("leaseDurationSeconds"), seconds, "must be greater than 0");
    }
    if let Some(count) = spec["leaseTransitions"].as_i64().filter(|n| *n < 0) {
        errors.invalid(&path.child("leaseTransitions"), json!(count), "must be greater than or equal to 0");
    }
    if is_set(spec, "preferredHolder") && !is_set(spec, "strategy") {
        errors.forbidden(&path.child("preferredHolder"), "may only be specified if `strategy` is defined");
    }
}
