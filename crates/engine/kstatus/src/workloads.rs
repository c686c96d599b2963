//! Rules for built-in kinds, which report progress in counters rather than in standard conditions.

use serde_json::Value;

use crate::fields::{conditions, int, text};
use crate::{Health, State};

type Rule = fn(&Value, i64) -> Health;

/// How long the scheduler may take before a Pod counts as unschedulable.
const SCHEDULE_WINDOW_SECONDS: i64 = 15;

pub(crate) fn rule(group: &str, kind: &str) -> Option<Rule> {
    Some(match (group, kind) {
        ("", "ConfigMap" | "Secret") | ("batch", "CronJob") => {
            |_, _| Health::current("Resource is always ready")
        }
        ("", "Service") => service,
        ("", "Pod") => pod,
        ("", "PersistentVolumeClaim") => claim,
        ("apps", "StatefulSet") => stateful_set,
        ("apps" | "extensions", "DaemonSet") => daemon_set,
        ("apps" | "extensions", "Deployment") => deployment,
        ("apps" | "extensions", "ReplicaSet") => replica_set,
        ("policy", "PodDisruptionBudget") => |_, _| Health::current("AllowedDisruptions has been computed."),
        ("batch", "Job") => job,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition,
        _ => return None,
    })
}

/// `Label: have/want` if `have` is below `want`.
fn below(label: &str, have: i64, want: i64) -> Option<Health> {
    (want > have).then(|| Health::in_progress(format!("{label}: {have}/{want}")))
}

fn above(have: i64, want: i64) -> Option<Health> {
    (have > want).then(|| Health::in_progress(format!("Pending termination: {}", have - want)))
}

fn deployment(object: &Value, _: i64) -> Health {
    let no_deadline = object
        .pointer("/spec/progressDeadlineSeconds")
        .and_then(Value::as_i64)
        .is_none_or(|s| s == i64::from(i32::MAX));
    let (mut progressing, mut available) = (no_deadline, false);
    for c in conditions(object) {
        match c.kind {
            "Progressing" if c.reason == "ProgressDeadlineExceeded" => {
                return Health::failed("Progress deadline exceeded");
            }
            "Progressing" => progressing |= c.status == "True" && c.reason == "NewReplicaSetAvailable",
            "Available" => available |= c.status == "True",
            _ => {}
        }
    }
    let want = int(object, "/spec/replicas", 1);
    let total = int(object, "/status/replicas", 0);
    let updated = int(object, "/status/updatedReplicas", 0);
    below("Replicas", total, want)
        .or_else(|| below("Updated", updated, want))
        .or_else(|| above(total, want))
        .or_else(|| below("Available", int(object, "/status/availableReplicas", 0), updated))
        .or_else(|| below("Ready", int(object, "/status/readyReplicas", 0), want))
        .or_else(|| (!progressing).then(|| Health::in_progress("ReplicaSet not Available")))
        .or_else(|| (!available).then(|| Health::in_progress("Deployment not Available")))
        .unwrap_or_else(|| Health::current(format!("Deployment is available. Replicas: {total}")))
}

fn replica_set(object: &Value, _: i64) -> Health {
    if conditions(object).any(|c| c.is("ReplicaFailure", "True")) {
        return Health::in_progress("Replica Failure condition. Check Pods");
    }
    let want = int(object, "/spec/replicas", 1);
    let total = int(object, "/status/replicas", 0);
    below("Labelled", int(object, "/status/fullyLabeledReplicas", 0), want)
        .or_else(|| below("Available", int(object, "/status/availableReplicas", 0), want))
        .or_else(|| below("Ready", int(object, "/status/readyReplicas", 0), want))
        .or_else(|| above(total, want))
        .unwrap_or_else(|| Health::current(format!("ReplicaSet is available. Replicas: {total}")))
}

fn stateful_set(object: &Value, _: i64) -> Health {
    if text(object, "/spec/updateStrategy/type") == "OnDelete" {
        return Health::current("StatefulSet is using the ondelete update strategy");
    }
    let want = int(object, "/spec/replicas", 1);
    let total = int(object, "/status/replicas", 0);
    let counted = below("Replicas", total, want)
        .or_else(|| below("Ready", int(object, "/status/readyReplicas", 0), want))
        .or_else(|| above(total, want));
    if let Some(unfinished) = counted {
        return unfinished;
    }
    let partition = int(object, "/spec/updateStrategy/rollingUpdate/partition", -1);
    if partition != -1 {
        let updated = int(object, "/status/updatedReplicas", 0);
        return below("updated", updated, want - partition)
            .unwrap_or_else(|| Health::current(format!("Partition rollout complete. updated: {updated}")));
    }
    if let Some(unfinished) = below("current", int(object, "/status/currentReplicas", 0), want) {
        return unfinished;
    }
    if text(object, "/status/currentRevision") != text(object, "/status/updateRevision") {
        return Health::in_progress("Waiting for updated revision to match current");
    }
    Health::current(format!("All replicas scheduled as expected. Replicas: {total}"))
}

fn daemon_set(object: &Value, _: i64) -> Health {
    for (pointer, name) in [
        ("/metadata/generation", "metadata.generation"),
        ("/status/observedGeneration", "status.observedGeneration"),
    ] {
        if object.pointer(pointer).is_none() {
            return Health::in_progress(format!("{} {name} not found", text(object, "/kind")));
        }
    }
    let Some(want) = object.pointer("/status/desiredNumberScheduled").and_then(Value::as_i64) else {
        return Health::in_progress("Missing .status.desiredNumberScheduled");
    };
    below("Current", int(object, "/status/currentNumberScheduled", 0), want)
        .or_else(|| below("Updated", int(object, "/status/updatedNumberScheduled", 0), want))
        .or_else(|| below("Available", int(object, "/status/numberAvailable", 0), want))
        .or_else(|| below("Ready", int(object, "/status/numberReady", 0), want))
        .unwrap_or_else(|| Health::current(format!("All replicas scheduled as expected. Replicas: {want}")))
}

fn claim(object: &Value, _: i64) -> Health {
    match object.pointer("/status/phase").and_then(Value::as_str).unwrap_or("unknown") {
        "Bound" => Health::current("PVC is Bound"),
        phase => Health::in_progress(format!("PVC is not Bound. phase: {phase}")),
    }
}

fn pod(object: &Value, now: i64) -> Health {
    match text(object, "/status/phase") {
        "Succeeded" => Health::current("Pod has completed successfully"),
        "Failed" => Health::current("Pod has completed, but not successfully"),
        "Running" if conditions(object).any(|c| c.is("Ready", "True")) => Health::current("Pod is Ready"),
        "Running" => match crash_looping(object) {
            names if names.is_empty() => Health::in_progress("Pod is running but is not Ready"),
            names => Health::failed(format!("Containers in CrashLoop state: {}", names.join(","))),
        },
        "Pending"
            if conditions(object).any(|c| c.is("PodScheduled", "False") && c.reason == "Unschedulable") =>
        {
            if created(object).is_some_and(|at| now - at < SCHEDULE_WINDOW_SECONDS) {
                Health::in_progress("Pod has not been scheduled")
            } else {
                Health::failed("Pod could not be scheduled")
            }
        }
        "Pending" => Health::in_progress("Pod is in the Pending phase"),
        "" => Health::in_progress("Pod phase not available"),
        other => Health { state: State::Unknown, message: format!("unknown phase {other}") },
    }
}

fn crash_looping(object: &Value) -> Vec<&str> {
    let statuses =
        object.pointer("/status/containerStatuses").and_then(Value::as_array).into_iter().flatten();
    statuses
        .filter(|s| text(s, "/state/waiting/reason") == "CrashLoopBackOff")
        .map(|s| text(s, "/name"))
        .collect()
}

/// `metadata.creationTimestamp` (always `YYYY-MM-DDTHH:MM:SSZ`) in seconds since 1970.
fn created(object: &Value) -> Option<i64> {
    let stamp = text(object, "/metadata/creationTimestamp");
    let number = |range: std::ops::Range<usize>| stamp.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let days = fl_types::days_of_date(year, month, day);
    Some(days * 86_400 + number(11..13)? * 3_600 + number(14..16)? * 60 + number(17..19)?)
}

/// A Job is current when it is complete or suspended; unlike in kstatus, not while it runs. This is Flux's
/// change.
fn job(object: &Value, _: i64) -> Health {
    let parallelism = int(object, "/spec/parallelism", 1);
    let want = int(object, "/spec/completions", parallelism);
    let succeeded = int(object, "/status/succeeded", 0);
    let failed = int(object, "/status/failed", 0);
    for c in conditions(object) {
        if c.is("Complete", "True") {
            return Health::current(format!("Job Completed. succeeded: {succeeded}/{want}"));
        }
        if c.is("Failed", "True") {
            return Health::failed(format!("Job Failed. failed: {failed}/{want}"));
        }
        if c.is("Suspended", "True") {
            return Health::current("Job is suspended");
        }
    }
    if text(object, "/status/startTime").is_empty() {
        return Health::in_progress("Job not started");
    }
    let active = int(object, "/status/active", 0);
    Health::in_progress(format!("Job in progress. success:{succeeded}, active: {active}, failed: {failed}"))
}

fn service(object: &Value, _: i64) -> Health {
    if text(object, "/spec/type") == "LoadBalancer" && text(object, "/spec/clusterIP").is_empty() {
        return Health::in_progress("ClusterIP not set. Service type: LoadBalancer");
    }
    Health::current("Service is ready")
}

fn definition(object: &Value, _: i64) -> Health {
    for c in conditions(object) {
        if c.is("NamesAccepted", "False") || (c.is("Established", "False") && c.reason != "Installing") {
            return Health::failed(c.message);
        }
        if c.is("Established", "True") {
            return Health::current("CRD is established");
        }
    }
    Health::in_progress("Install in progress")
}
