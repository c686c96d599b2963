//! Deployments, ReplicaSets, StatefulSets, DaemonSets and ControllerRevisions.

use serde_json::{Value, json};

use super::pod::template;
use crate::field::{Errors, Path, is_set, list, text};
use crate::validate::common_rules::{self, label_selector, print_selector, selects, to_selector};

/// A selector that is required and not empty.
fn selector(errors: &mut Errors, path: &Path, value: &Value, kind: &str) {
    if value.is_null() {
        errors.required(path, "");
        return;
    }
    label_selector(errors, path, value);
    let empty = value["matchLabels"].as_object().is_none_or(serde_json::Map::is_empty)
        && list(value, "matchExpressions").is_empty();
    if empty {
        errors.invalid_printed(path, print_selector(value), format!("empty selector is invalid for {kind}"));
    }
}

/// Validates a pod template with restart policy Always, whose labels must match the selector.
fn selected_template(errors: &mut Errors, path: &Path, spec: &Value, owner: &str, invalid: &str) {
    match to_selector(&spec["selector"]) {
        Err(()) => {
            errors.invalid_printed(&path.child("selector"), print_selector(&spec["selector"]), invalid);
        }
        Ok(selector) => {
            let labels = &spec["template"]["metadata"]["labels"];
            if (!selector.is_empty() || spec["selector"].is_null()) && !selects(&selector, labels) {
                errors.invalid(
                    &path.at("template.metadata.labels"),
                    labels.clone(),
                    "`selector` does not match template `labels`",
                );
            }
            template(errors, &path.child("template"), &spec["template"]);
            if owner == "StatefulSet" {
                // Upstream validates the labels twice.
                common_rules::labels(
                    errors,
                    &path.at("template.labels"),
                    &spec["template"]["metadata"]["labels"],
                );
            }
            if owner == "ReplicaSet" {
                restarts_always(errors, &path.child("template"), &spec["template"], owner);
            }
        }
    }
    // StatefulSets check this even if the rest of the template cannot be validated.
    if owner != "ReplicaSet" {
        restarts_always(errors, &path.child("template"), &spec["template"], owner);
    }
}

fn restarts_always(errors: &mut Errors, path: &Path, template: &Value, owner: &str) {
    let policy = text(&template["spec"], "restartPolicy");
    if !matches!(policy, "Always") {
        errors.not_supported(&path.at("spec.restartPolicy"), policy, &["Always"]);
    }
    if is_set(&template["spec"], "activeDeadlineSeconds") {
        let why = format!("activeDeadlineSeconds in {owner} is not Supported");
        errors.forbidden(&path.at("spec.activeDeadlineSeconds"), why);
    }
}

pub(crate) fn deployment(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    errors.non_negative(&path.child("replicas"), &spec["replicas"]);
    selector(errors, &path.child("selector"), &spec["selector"], "deployment");
    selected_template(errors, &path, spec, "ReplicaSet", "invalid label selector");
    strategy(errors, &path.child("strategy"), &spec["strategy"]);
    errors.non_negative(&path.child("minReadySeconds"), &spec["minReadySeconds"]);
    errors.non_negative(&path.child("revisionHistoryLimit"), &spec["revisionHistoryLimit"]);
    if let Some(deadline) = spec["progressDeadlineSeconds"].as_i64() {
        errors.non_negative(&path.child("progressDeadlineSeconds"), &spec["progressDeadlineSeconds"]);
        if deadline <= spec["minReadySeconds"].as_i64().unwrap_or(0) {
            let why = "must be greater than minReadySeconds";
            errors.invalid(&path.child("progressDeadlineSeconds"), deadline, why);
        }
    }
}

fn strategy(errors: &mut Errors, path: &Path, strategy: &Value) {
    let rolling = &strategy["rollingUpdate"];
    match text(strategy, "type") {
        "Recreate" => {
            if !rolling.is_null() {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                errors.forbidden(&path.child("rollingUpdate"), why);
            }
        }
        "RollingUpdate" => {
            let path = path.child("rollingUpdate");
            if rolling.is_null() {
                errors.required(&path, "this should be defaulted and never be nil");
                return;
            }
            let (down, up) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
            common_rules::positive_int_or_percent(errors, &path.child("maxUnavailable"), down);
            common_rules::positive_int_or_percent(errors, &path.child("maxSurge"), up);
            if common_rules::int_or_percent(down) == 0 && common_rules::int_or_percent(up) == 0 {
                let why = "may not be 0 when `maxSurge` is 0";
                errors.invalid(&path.child("maxUnavailable"), down.clone(), why);
            }
            common_rules::at_most_100_percent(errors, &path.child("maxUnavailable"), down);
        }
        other => {
            let shown = go_strategy(other, rolling, print_rolling_update);
            errors.not_supported_printed(path, shown, &["Recreate", "RollingUpdate"]);
        }
    }
}

/// An update strategy as Go prints its type; `rolling_as` prints the rolling update.
fn go_strategy(kind: &str, rolling: &Value, rolling_as: fn(&Value) -> String) -> String {
    let rolling = if rolling.is_null() { "null".to_owned() } else { rolling_as(rolling) };
    format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", json!(kind))
}

/// Prints `maxUnavailable` and `maxSurge` of a rolling update.
fn print_rolling_update(rolling: &Value) -> String {
    let or_zero = |key: &str| if rolling[key].is_null() { json!(0) } else { rolling[key].clone() };
    format!("{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}", or_zero("maxUnavailable"), or_zero("maxSurge"))
}

/// Prints the rolling update of a StatefulSet.
fn print_stateful_rolling_update(rolling: &Value) -> String {
    let first = rolling["partition"].as_i64().unwrap_or(0);
    format!("{{\"Partition\":{first},\"MaxUnavailable\":{}}}", rolling["maxUnavailable"])
}

pub(crate) fn deployment_update(errors: &mut Errors, new: &Value, old: &Value) {
    immutable_selector(errors, new, old);
}

fn immutable_selector(errors: &mut Errors, new: &Value, old: &Value) {
    let (now, before) = (&new["spec"]["selector"], &old["spec"]["selector"]);
    if now != before {
        errors.invalid_printed(&Path::new("spec.selector"), print_selector(now), "field is immutable");
    }
}

pub(crate) fn replica_set(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    errors.non_negative(&path.child("replicas"), &spec["replicas"]);
    errors.non_negative(&path.child("minReadySeconds"), &spec["minReadySeconds"]);
    selector(errors, &path.child("selector"), &spec["selector"], "deployment");
    selected_template(errors, &path, spec, "ReplicaSet", "invalid label selector");
}

pub(crate) fn replica_set_update(errors: &mut Errors, new: &Value, old: &Value) {
    immutable_selector(errors, new, old);
}

pub(crate) fn replication_controller(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    errors.non_negative(&path.child("minReadySeconds"), &spec["minReadySeconds"]);
    let selector = &spec["selector"];
    if selector.as_object().is_none_or(serde_json::Map::is_empty) {
        errors.required(&path.child("selector"), "");
    }
    errors.non_negative(&path.child("replicas"), &spec["replicas"]);
    let at = path.child("template");
    if spec["template"].is_null() {
        errors.required(&at, "");
        return;
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let matches = selector.as_object().into_iter().flatten().all(|(key, value)| labels[key] == *value);
    if !matches {
        let why = "`selector` does not match template `labels`";
        errors.invalid(&at.at("metadata.labels"), labels.clone(), why);
    }
    template(errors, &at, &spec["template"]);
    restarts_always(errors, &at, &spec["template"], "ReplicationController");
}

pub(crate) fn pod_template(errors: &mut Errors, object: &Value) {
    template(errors, &Path::new("template"), &object["template"]);
}

pub(crate) fn daemon_set(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    label_selector(errors, &path.child("selector"), &spec["selector"]);
    let labels = &spec["template"]["metadata"]["labels"];
    if let Ok(found) = to_selector(&spec["selector"])
        && !selects(&found, labels)
    {
        let why = "`selector` does not match template `labels`";
        errors.invalid(&path.at("template.metadata.labels"), labels.clone(), why);
    }
    let empty = spec["selector"].is_object()
        && spec["selector"]["matchLabels"].as_object().is_none_or(serde_json::Map::is_empty)
        && list(&spec["selector"], "matchExpressions").is_empty();
    if empty {
        let shown = print_selector(&spec["selector"]);
        errors.invalid_printed(&path.child("selector"), shown, "empty selector is invalid for daemonset");
    }
    template(errors, &path.child("template"), &spec["template"]);
    restarts_always(errors, &path.child("template"), &spec["template"], "DaemonSet");
    errors.non_negative(&path.child("minReadySeconds"), &spec["minReadySeconds"]);
    daemon_strategy(errors, &path.child("updateStrategy"), &spec["updateStrategy"]);
    errors.non_negative(&path.child("revisionHistoryLimit"), &spec["revisionHistoryLimit"]);
}

fn daemon_strategy(errors: &mut Errors, path: &Path, strategy: &Value) {
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let (path, rolling) = (path.child("rollingUpdate"), &strategy["rollingUpdate"]);
            if rolling.is_null() {
                errors.required(&path, "");
                return;
            }
            let (down, up) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
            common_rules::positive_int_or_percent(errors, &path.child("maxUnavailable"), down);
            common_rules::at_most_100_percent(errors, &path.child("maxUnavailable"), down);
            common_rules::positive_int_or_percent(errors, &path.child("maxSurge"), up);
            common_rules::at_most_100_percent(errors, &path.child("maxSurge"), up);
            let (has_down, has_up) =
                (common_rules::int_or_percent(down) != 0, common_rules::int_or_percent(up) != 0);
            if has_down && has_up {
                let why = "may not be set when maxUnavailable is non-zero";
                errors.invalid(&path.child("maxSurge"), up.clone(), why);
            } else if !has_down && !has_up {
                errors.required(&path.child("maxUnavailable"), "cannot be 0 when maxSurge is 0");
            }
        }
        other => {
            let shown = go_strategy(other, &strategy["rollingUpdate"], print_rolling_update);
            errors.not_supported_printed(path, shown, &["RollingUpdate", "OnDelete"]);
        }
    }
}

pub(crate) fn daemon_set_update(errors: &mut Errors, new: &Value, old: &Value) {
    immutable_selector(errors, new, old);
}

pub(crate) fn stateful_set(errors: &mut Errors, object: &Value) {
    stateful_spec(errors, object, true);
}

fn stateful_spec(errors: &mut Errors, object: &Value, create: bool) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    match text(spec, "podManagementPolicy") {
        "" => errors.required(&path.child("podManagementPolicy"), ""),
        "OrderedReady" | "Parallel" => {}
        other => {
            errors.invalid(&path.child("podManagementPolicy"), other, "must be 'OrderedReady' or 'Parallel'");
        }
    }
    let (at, strategy) = (path.child("updateStrategy"), &spec["updateStrategy"]);
    match text(strategy, "type") {
        "" => errors.required(&at, ""),
        "OnDelete" => {
            let rolling = &strategy["rollingUpdate"];
            if !rolling.is_null() {
                let why = "only allowed for updateStrategy 'RollingUpdate'";
                errors.invalid_printed(
                    &at.child("rollingUpdate"),
                    print_stateful_rolling_update(rolling),
                    why,
                );
            }
        }
        "RollingUpdate" => {
            errors.non_negative(&at.at("rollingUpdate.partition"), &strategy["rollingUpdate"]["partition"]);
        }
        other => {
            let shown = go_strategy(other, &strategy["rollingUpdate"], print_stateful_rolling_update);
            errors.invalid_printed(&at, shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
    let retention = &spec["persistentVolumeClaimRetentionPolicy"];
    for key in ["whenDeleted", "whenScaled"] {
        let path = path.child("persistentVolumeClaimRetentionPolicy").child(key);
        errors.one_of(&path, text(retention, key), &["Retain", "Delete"]);
    }
    if create {
        for (i, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
            super::storage::claim_spec(
                errors,
                &path.child("volumeClaimTemplates").index(i).child("spec"),
                &claim["spec"],
            );
        }
    }
    errors.non_negative(&path.child("replicas"), &spec["replicas"]);
    errors.non_negative(&path.child("minReadySeconds"), &spec["minReadySeconds"]);
    errors.non_negative(&path.child("ordinals.start"), &spec["ordinals"]["start"]);
    if create && !text(spec, "serviceName").is_empty() {
        common_rules::label(errors, &path.child("serviceName"), text(spec, "serviceName"));
    }
    selector(errors, &path.child("selector"), &spec["selector"], "statefulset");
    selected_template(errors, &path, &with_claim_volumes(spec), "StatefulSet", "");
}

/// The spec with the claim templates as volumes of the pod template, so that containers may mount them.
fn with_claim_volumes(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let mut claims: Vec<String> = Vec::new();
    for claim in list(&spec, "volumeClaimTemplates") {
        let name = text(&claim["metadata"], "name");
        if !claims.iter().any(|known| known == name) {
            claims.push(name.to_owned());
        }
    }
    let pod = &mut spec["template"]["spec"];
    if let Some(pod) = pod.as_object_mut() {
        pod.remove("subdomain");
        pod.remove("hostname");
        if !claims.is_empty() {
            let others = pod.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
            let kept = others.into_iter().filter(|v| !claims.iter().any(|c| c == text(v, "name")));
            let made = claims.iter().map(|c| json!({"name": c, "persistentVolumeClaim": {"claimName": c}}));
            pod.insert("volumes".to_owned(), made.chain(kept).collect());
        }
    }
    spec
}

pub(crate) fn stateful_set_update(errors: &mut Errors, new: &Value, old: &Value) {
    stateful_spec(errors, new, false);
    let mut munged = new["spec"].clone();
    const MUTABLE: &[&str] = &[
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    ];
    for key in MUTABLE {
        crate::strategy::copy_field(&mut munged, &old["spec"], key);
    }
    if munged != old["spec"] {
        errors.forbidden(&Path::new("spec"), "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
    }
}

pub(crate) fn controller_revision(errors: &mut Errors, object: &Value) {
    if object["data"].is_null() {
        errors.required(&Path::new("data"), "data is mandatory");
    }
    errors.non_negative(&Path::new("revision"), &object["revision"]);
}

/// Upstream compares the raw bytes of the data with those of the stored form, so that only `revision` can
/// change.
pub(crate) fn controller_revision_update(errors: &mut Errors, new: &Value, old: &Value) {
    if new["data"] != old["data"] {
        errors.invalid(&Path::new("data"), new["data"].clone(), "field is immutable");
    }
}
