//! Scheduling of pods: affinity, topology spread constraints, tolerations.

use serde_json::{Value, json};

use crate::field::{Errors, Path, is_set, list, text};
use crate::validate::common_rules::{self, label_selector, messages, qualified_name};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn affinity(errors: &mut Errors, path: &Path, affinity: &Value) {
    let node = &affinity["nodeAffinity"];
    if is_set(node, REQUIRED) {
        let path = path.child("nodeAffinity").child(REQUIRED);
        node_selector(errors, &path, &node[REQUIRED]);
    }
    for (at, term) in list(node, PREFERRED).iter().enumerate() {
        let path = path.child("nodeAffinity").child(PREFERRED).index(at);
        weight(errors, &path, term);
        node_term(errors, &path.child("preference"), &term["preference"], false);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let path = path.child(kind);
        for (at, term) in list(&affinity[kind], REQUIRED).iter().enumerate() {
            pod_term(errors, &path.child(REQUIRED).index(at), term);
        }
        for (at, weighted) in list(&affinity[kind], PREFERRED).iter().enumerate() {
            let path = path.child(PREFERRED).index(at);
            weight(errors, &path, weighted);
            pod_term(errors, &path.child("podAffinityTerm"), &weighted["podAffinityTerm"]);
        }
    }
}

fn weight(errors: &mut Errors, path: &Path, term: &Value) {
    let weight = term["weight"].as_i64().unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.invalid(&path.child("weight"), weight, "must be in the range 1-100");
    }
}

pub(super) fn node_selector(errors: &mut Errors, path: &Path, selector: &Value) {
    let path = path.child("nodeSelectorTerms");
    if list(selector, "nodeSelectorTerms").is_empty() {
        errors.required(&path, "must have at least one node selector term");
    }
    for (at, term) in list(selector, "nodeSelectorTerms").iter().enumerate() {
        node_term(errors, &path.index(at), term, true);
    }
}

fn node_term(errors: &mut Errors, path: &Path, term: &Value, check_values: bool) {
    for (at, requirement) in list(term, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions").index(at);
        let values = list(requirement, "values");
        match text(requirement, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                errors
                    .required(&path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&path.child("values"), why);
            }
            "Gt" | "Lt" if values.len() != 1 => {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.required(&path.child("values"), why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => errors.invalid(&path.child("operator"), other, "not a valid selector operator"),
        }
        qualified_name(errors, &path.child("key"), text(requirement, "key"));
        for (i, value) in values.iter().filter_map(Value::as_str).enumerate().filter(|_| check_values) {
            let found = messages(fl_types::check_label_value(value));
            errors.each_invalid(&path.child("values").index(i), value, &found);
        }
    }
    for (at, requirement) in list(term, "matchFields").iter().enumerate() {
        let path = path.child("matchFields").index(at);
        let values = list(requirement, "values");
        match text(requirement, "operator") {
            "In" | "NotIn" if values.len() != 1 => {
                let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.required(&path.child("values"), why);
            }
            "In" | "NotIn" => {}
            other => errors.invalid(&path.child("operator"), other, "not a valid selector operator"),
        }
        if text(requirement, "key") != "metadata.name" {
            errors.invalid(&path.child("key"), text(requirement, "key"), "not a valid field selector key");
        }
    }
}

fn pod_term(errors: &mut Errors, path: &Path, term: &Value) {
    label_selector(errors, &path.child("labelSelector"), &term["labelSelector"]);
    label_selector(errors, &path.child("namespaceSelector"), &term["namespaceSelector"]);
    for name in list(term, "namespaces").iter().filter_map(Value::as_str) {
        common_rules::label(errors, &path.child("namespace"), name);
    }
    if text(term, "topologyKey").is_empty() {
        errors.required(&path.child("topologyKey"), "can not be empty");
    }
    qualified_name(errors, &path.child("topologyKey"), text(term, "topologyKey"));
    let (same, other) = ("matchLabelKeys", "mismatchLabelKeys");
    for field in [same, other] {
        label_keys(errors, &path.child(field), term, list(term, field));
    }
    for (at, key) in list(term, same).iter().enumerate().filter(|(_, key)| list(term, other).contains(key)) {
        let why = "exists in both matchLabelKeys and mismatchLabelKeys";
        errors.invalid(&path.child(same).index(at), key.clone(), why);
    }
}

/// `matchLabelKeys` and `mismatchLabelKeys`.
fn label_keys(errors: &mut Errors, path: &Path, around: &Value, keys: &[Value]) {
    if keys.is_empty() {
        return;
    }
    if !is_set(around, "labelSelector") {
        errors.forbidden(path, "must not be specified when labelSelector is not set");
        return;
    }
    for (at, key) in keys.iter().enumerate() {
        qualified_name(errors, &path.index(at), key.as_str().unwrap_or_default());
    }
}

pub(super) fn spread(errors: &mut Errors, path: &Path, constraints: &[Value]) {
    for (at, constraint) in constraints.iter().enumerate() {
        let path = path.index(at);
        let skew = constraint["maxSkew"].as_i64().unwrap_or(0);
        if skew <= 0 {
            errors.invalid(&path.child("maxSkew"), skew, "must be greater than zero");
        }
        if text(constraint, "topologyKey").is_empty() {
            errors.required(&path.child("topologyKey"), "can not be empty");
        }
        let action = text(constraint, "whenUnsatisfiable");
        errors.one_of(&path.child("whenUnsatisfiable"), action, &["DoNotSchedule", "ScheduleAnyway"]);
        let key = |c: &Value| (text(c, "topologyKey").to_owned(), text(c, "whenUnsatisfiable").to_owned());
        if constraints[at + 1..].iter().any(|other| key(other) == key(constraint)) {
            let (topology, action) = key(constraint);
            let shown = format!("{{{topology}, {action}}}");
            errors.duplicate(&path.child("{topologyKey, whenUnsatisfiable}"), shown);
        }
        if let Some(domains) = constraint["minDomains"].as_i64() {
            if domains <= 0 {
                errors.invalid(&path.child("minDomains"), domains, "must be greater than zero");
            }
            if action != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.invalid(&path.child("minDomains"), domains, why);
            }
        }
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if let Some(policy) = constraint[key].as_str() {
                errors.one_of(&path.child(key), policy, &["Honor", "Ignore"]);
            }
        }
        let keys = list(constraint, "matchLabelKeys");
        label_keys(errors, &path.child("matchLabelKeys"), constraint, keys);
        label_selector(errors, &path.child("labelSelector"), &constraint["labelSelector"]);
    }
}

pub(super) fn tolerations(errors: &mut Errors, path: &Path, tolerations: &[Value]) {
    for (at, toleration) in tolerations.iter().enumerate() {
        let path = path.index(at);
        let (key, operator, value) =
            (text(toleration, "key"), text(toleration, "operator"), text(toleration, "value"));
        let effect = text(toleration, "effect");
        if key.is_empty() {
            if operator != "Exists" {
                let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
                errors.invalid(&path.child("operator"), operator, why);
            }
        } else {
            qualified_name(errors, &path.child("key"), key);
        }
        if is_set(toleration, "tolerationSeconds") && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid(&path.child("effect"), effect, why);
        }
        match operator {
            "Equal" | "" => {
                let found = messages(fl_types::check_label_value(value));
                if !found.is_empty() {
                    errors.invalid(&path.child("operator"), json!(value), found.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                errors.invalid(
                    &path.child("operator"),
                    value,
                    "value must be empty when `operator` is 'Exists'",
                );
            }
            "Exists" => {}
            other => errors.not_supported(&path.child("operator"), other, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            errors.one_of(&path.child("effect"), effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        }
    }
}
