//! Validation of updates through `status`.

use serde_json::Value;

use crate::field::{Errors, Path, is_set, list, text};
use crate::validate::{common_rules, ip, resources};

fn count(status: &Value, key: &str) -> i64 {
    status[key].as_i64().unwrap_or(0)
}

/// Counts must not be negative, and those that are part of `replicas` not above it.
fn replicas(errors: &mut Errors, status: &Value, all: &[&str], parts: &[&str], ready: &str) {
    let path = Path::new("status");
    for key in all {
        errors.non_negative(&path.child(key), &status[*key]);
    }
    for key in parts {
        if count(status, key) > count(status, "replicas") {
            errors.invalid(&path.child(key), count(status, key), "cannot be greater than status.replicas");
        }
    }
    if count(status, "availableReplicas") > count(status, "readyReplicas") {
        let why = format!("cannot be greater than {ready}");
        errors.invalid(&path.child("availableReplicas"), count(status, "availableReplicas"), why);
    }
}

fn collisions(errors: &mut Errors, new: &Value, old: &Value) {
    let (now, before) = (&new["status"]["collisionCount"], &old["status"]["collisionCount"]);
    if before.as_i64().is_some_and(|before| now.as_i64().is_none_or(|now| now < before)) {
        let now = now.as_i64().unwrap_or(0);
        errors.invalid(&Path::new("status.collisionCount"), now, "cannot be decremented");
    }
}

pub(crate) fn deployment_status(errors: &mut Errors, new: &Value, old: &Value) {
    const ALL: &[&str] = &[
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    const PARTS: &[&str] = &["updatedReplicas", "readyReplicas", "availableReplicas"];
    replicas(errors, &new["status"], ALL, PARTS, "readyReplicas");
    collisions(errors, new, old);
}

pub(crate) fn stateful_set_status(errors: &mut Errors, new: &Value, old: &Value) {
    const ALL: &[&str] = &[
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    const PARTS: &[&str] = &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    replicas(errors, &new["status"], ALL, PARTS, "status.readyReplicas");
    collisions(errors, new, old);
}

/// Replica sets and replication controllers.
pub(crate) fn replica_set_status(errors: &mut Errors, new: &Value, _old: &Value) {
    const ALL: &[&str] = &[
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    const PARTS: &[&str] = &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    replicas(errors, &new["status"], ALL, PARTS, "readyReplicas");
}

pub(crate) fn daemon_set_status(errors: &mut Errors, new: &Value, old: &Value) {
    const ALL: &[&str] = &[
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    replicas(errors, &new["status"], ALL, &[], "");
    collisions(errors, new, old);
}

pub(crate) fn disruption_budget_status(errors: &mut Errors, new: &Value, _old: &Value) {
    const ALL: &[&str] = &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    replicas(errors, &new["status"], ALL, &[], "");
}

pub(crate) fn autoscaler_status(errors: &mut Errors, new: &Value, _old: &Value) {
    replicas(errors, &new["status"], &["currentReplicas", "desiredReplicas"], &[], "");
}

fn is_true(status: &Value, kind: &str) -> bool {
    list(status, "conditions").iter().any(|c| text(c, "type") == kind && text(c, "status") == "True")
}

/// Rules for the conditions and times of a finished job.
pub(crate) fn job_status(errors: &mut Errors, new: &Value, old: &Value) {
    let (path, status, before) = (Path::new("status"), &new["status"], &old["status"]);
    for key in ["active", "succeeded", "failed", "ready", "terminating"] {
        errors.non_negative(&path.child(key), &status[key]);
    }
    let conditions = path.child("conditions");
    let refuse = |errors: &mut Errors, why: &str| errors.invalid_omitted(&conditions, why);
    let (complete, failed) = (is_true(status, "Complete"), is_true(status, "Failed"));
    let finished = complete || failed;
    let was_finished = is_true(before, "Complete") || is_true(before, "Failed");
    if complete && failed {
        refuse(errors, "cannot set Complete=True and Failed=true conditions");
    }
    if complete && is_true(status, "FailureTarget") {
        refuse(errors, "cannot set Complete=True and FailureTarget=true conditions");
    }
    let completion = path.child("completionTime");
    match status["completionTime"].as_str() {
        Some(time) if !complete => {
            let why = "cannot set completionTime when there is no Complete=True condition";
            errors.invalid(&completion, time, why);
        }
        None if complete => {
            errors.required(&completion, "completionTime is required for Complete jobs");
        }
        Some(time) if status["startTime"].as_str().is_some_and(|start| time < start) => {
            errors.invalid(&completion, time, "must be equal to or after `startTime`");
        }
        _ => {}
    }
    if failed && !is_true(before, "Failed") && !is_true(status, "FailureTarget") {
        refuse(errors, "cannot set Failed=True condition without the FailureTarget=true condition");
    }
    if complete && !is_true(before, "Complete") && !is_true(status, "SuccessCriteriaMet") {
        refuse(errors, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
    }
    if finished && !was_finished {
        if count(status, "active") > 0 {
            errors.invalid(
                &path.child("active"),
                count(status, "active"),
                "active>0 is invalid for finished job",
            );
        }
        if !is_set(status, "startTime") {
            errors.required(&path.child("startTime"), "startTime is required for finished job");
        }
    }
    if is_set(status, "ready") && count(status, "ready") > count(status, "active") {
        let why = "cannot set more ready pods than active";
        errors.invalid(&path.child("ready"), count(status, "ready"), why);
    }
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if is_true(before, kind) && !is_true(status, kind) {
            refuse(errors, &format!("cannot disable the terminal {kind}=True condition"));
        }
    }
    for key in ["failed", "succeeded"] {
        if count(status, key) < count(before, key) {
            let why = format!("cannot decrease the {key} counter");
            errors.invalid(&path.child(key), count(status, key), why);
        }
    }
    if let (Some(now), Some(then)) = (status["completionTime"].as_str(), before["completionTime"].as_str())
        && now != then
    {
        errors.invalid(&completion, now, "field is immutable");
    }
    if is_set(before, "startTime")
        && before["startTime"] != status["startTime"]
        && new["spec"]["suspend"] != true
    {
        let why = "startTime cannot be removed for unsuspended job";
        errors.required(&path.child("startTime"), why);
    }
    if is_true(before, "SuccessCriteriaMet") && !is_true(status, "SuccessCriteriaMet") {
        refuse(errors, "cannot disable the SuccessCriteriaMet=True condition");
    }
}

fn load_balancer(errors: &mut Errors, status: &Value, modes: bool) {
    let path = Path::new("status.loadBalancer.ingress");
    for (at, ingress) in list(&status["loadBalancer"], "ingress").iter().enumerate() {
        let (path, ip) = (path.index(at), text(ingress, "ip"));
        if !ip.is_empty() {
            ip::ip(errors, &path.child("ip"), ip);
        }
        if modes {
            match (ingress["ipMode"].as_str(), ip.is_empty()) {
                (None, false) => {
                    errors.required(&path.child("ipMode"), "must be specified when `ip` is set");
                }
                (Some(_), true) => {
                    errors.forbidden(&path.child("ipMode"), "may not be specified when `ip` is not set");
                }
                (Some(mode), false) => errors.one_of(&path.child("ipMode"), mode, &["Proxy", "VIP"]),
                (None, true) => {}
            }
        }
        let host = text(ingress, "hostname");
        if !host.is_empty() {
            common_rules::subdomain(errors, &path.child("hostname"), host);
            if ip::parse_ip(host).is_some() {
                errors.invalid(&path.child("hostname"), host, "must be a DNS name, not an IP address");
            }
        }
    }
}

pub(crate) fn service_status(errors: &mut Errors, new: &Value, _old: &Value) {
    load_balancer(errors, &new["status"], true);
}

pub(crate) fn ingress_status(errors: &mut Errors, new: &Value, _old: &Value) {
    load_balancer(errors, &new["status"], false);
}

pub(crate) fn claim_status(errors: &mut Errors, new: &Value, _old: &Value) {
    let path = Path::new("status.capacity");
    for (name, amount) in new["status"]["capacity"].as_object().into_iter().flatten() {
        if resources::quantity(amount).is_some_and(|q| q.sign() == std::cmp::Ordering::Less) {
            let shown = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
            errors.invalid_printed(&path.key(name), shown, "must be a valid resource quantity");
        }
    }
}

pub(crate) fn pod_status(errors: &mut Errors, new: &Value, old: &Value) {
    let (path, status) = (Path::new("status"), &new["status"]);
    for (at, condition) in list(status, "conditions").iter().enumerate() {
        let kind = text(condition, "type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            common_rules::qualified_name(errors, &path.child("conditions").index(at).child("Type"), kind);
        }
    }
    errors.immutable(&path.child("qosClass"), &status["qosClass"], &old["status"]["qosClass"]);
    terminated_containers(errors, status, old);
    for key in ["podIPs", "hostIPs"] {
        let addresses: Vec<&str> = list(status, key).iter().map(|a| text(a, "ip")).collect();
        for (at, address) in addresses.iter().enumerate() {
            ip::ip(errors, &path.child(key).index(at), address);
        }
        let six = addresses.iter().filter(|a| a.contains(':')).count();
        if addresses.len() > 2 || (addresses.len() == 2 && six != 1) {
            let shown: Vec<Value> = addresses.iter().map(|ip| serde_json::json!({"IP": ip})).collect();
            let why = "may specify no more than one IP for each IP family";
            errors.invalid(&path.child(key), Value::Array(shown), why);
        }
    }
}

/// A terminated container that is not restarted stays terminated.
fn terminated_containers(errors: &mut Errors, status: &Value, old: &Value) {
    let policy = text(&old["spec"], "restartPolicy");
    if policy == "Always" {
        return;
    }
    let path = Path::new("status.containerStatuses");
    for before in list(&old["status"], "containerStatuses") {
        let ended = &before["state"]["terminated"];
        if !ended.is_object() || (policy == "OnFailure" && count(ended, "exitCode") != 0) {
            continue;
        }
        let now =
            list(status, "containerStatuses").iter().position(|s| text(s, "name") == text(before, "name"));
        if let Some(at) = now
            && !list(status, "containerStatuses")[at]["state"]["terminated"].is_object()
        {
            let why = "may not be transitioned to non-terminated state";
            errors.forbidden(&path.index(at).child("state"), why);
        }
    }
}
