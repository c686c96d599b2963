//! Tables of objects with their expected status.

use fl_kstatus::State::{self, Current, Failed, InProgress, Terminating, Unknown};
use fl_kstatus::health;
use serde_json::{Value, json};

const NOW: i64 = 1_731_715_200; // 2024-11-16T00:00:00Z

fn object(api_version: &str, kind: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "spec": spec, "status": status,
        "metadata": {"name": "x", "generation": 2, "creationTimestamp": "2024-11-15T23:59:50Z"},
    })
}

fn check(object: &Value, state: State, message: &str) {
    let got = health(object, NOW);
    assert_eq!((got.state, got.message.as_str()), (state, message), "{object}");
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": format!("{kind} says {reason}")})
}

#[test]
fn generic_rules_apply_to_every_kind() {
    let mut gone = object("v1", "ConfigMap", &json!({}), &json!({}));
    gone["metadata"]["deletionTimestamp"] = json!("2024-11-16T00:00:00Z");
    check(&gone, Terminating, "Resource scheduled for deletion");
    let behind = object("example.com/v1", "Thing", &json!({}), &json!({"observedGeneration": 1}));
    check(&behind, InProgress, "Thing generation is 2, but latest observed generation is 1");
    for (c, state, message) in [
        (condition("Reconciling", "True", "Progressing"), InProgress, "Reconciling says Progressing"),
        (condition("Stalled", "True", "Broken"), Failed, "Stalled says Broken"),
        (condition("Ready", "True", "Ok"), Current, "Resource is Ready"),
        (condition("Ready", "False", "Down"), InProgress, "Ready says Down"),
        (condition("Other", "False", "Down"), Current, "Resource is current"),
    ] {
        check(&object("example.com/v1", "Thing", &json!({}), &json!({"conditions": [c]})), state, message);
    }
}

#[test]
fn deployment_rollout_stages() {
    let available = json!([
        condition("Available", "True", "x"),
        condition("Progressing", "True", "NewReplicaSetAvailable")
    ]);
    let spec = json!({"replicas": 3, "progressDeadlineSeconds": 600});
    let at = |total: i64, updated: i64, free: i64, ready: i64, conditions: &Value| {
        object(
            "apps/v1",
            "Deployment",
            &spec,
            &json!({
                "observedGeneration": 2, "replicas": total, "updatedReplicas": updated,
                "availableReplicas": free, "readyReplicas": ready, "conditions": conditions,
            }),
        )
    };
    check(&at(1, 1, 0, 0, &json!([])), InProgress, "Replicas: 1/3");
    check(&at(3, 2, 0, 0, &json!([])), InProgress, "Updated: 2/3");
    check(&at(4, 3, 3, 3, &json!([])), InProgress, "Pending termination: 1");
    check(&at(3, 3, 2, 2, &json!([])), InProgress, "Available: 2/3");
    check(&at(3, 3, 3, 2, &json!([])), InProgress, "Ready: 2/3");
    check(&at(3, 3, 3, 3, &json!([])), InProgress, "ReplicaSet not Available");
    check(&at(3, 3, 3, 3, &json!([available[1]])), InProgress, "Deployment not Available");
    check(&at(3, 3, 3, 3, &available), Current, "Deployment is available. Replicas: 3");
    let late = json!([condition("Progressing", "False", "ProgressDeadlineExceeded")]);
    check(&at(3, 3, 3, 3, &late), Failed, "Progress deadline exceeded");
}

#[test]
fn status_of_other_workloads() {
    let sts = |spec: Value, status: Value| object("apps/v1", "StatefulSet", &spec, &status);
    check(
        &sts(json!({"updateStrategy": {"type": "OnDelete"}}), json!({})),
        Current,
        "StatefulSet is using the ondelete update strategy",
    );
    let rolled = json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 1});
    let partition = json!({"replicas": 2, "updateStrategy": {"rollingUpdate": {"partition": 1}}});
    check(&sts(partition, rolled.clone()), Current, "Partition rollout complete. updated: 1");
    check(&sts(json!({"replicas": 2}), rolled), InProgress, "current: 0/2");
    let split = json!({"replicas": 1, "readyReplicas": 1, "currentReplicas": 1, "currentRevision": "a", "updateRevision": "b"});
    check(&sts(json!({}), split), InProgress, "Waiting for updated revision to match current");
    check(
        &object("apps/v1", "DaemonSet", &json!({}), &json!({})),
        InProgress,
        "DaemonSet status.observedGeneration not found",
    );
    let daemons = json!({"observedGeneration": 2, "desiredNumberScheduled": 0});
    check(
        &object("apps/v1", "DaemonSet", &json!({}), &daemons),
        Current,
        "All replicas scheduled as expected. Replicas: 0",
    );
    let labelled =
        json!({"fullyLabeledReplicas": 1, "availableReplicas": 1, "readyReplicas": 1, "replicas": 1});
    check(
        &object("apps/v1", "ReplicaSet", &json!({}), &labelled),
        Current,
        "ReplicaSet is available. Replicas: 1",
    );
}

#[test]
fn status_of_pods_jobs_and_other_kinds() {
    let pod = |status: Value| object("v1", "Pod", &json!({}), &status);
    check(&pod(json!({})), InProgress, "Pod phase not available");
    check(&pod(json!({"phase": "Odd"})), Unknown, "unknown phase Odd");
    check(
        &pod(json!({"phase": "Running", "conditions": [condition("Ready", "True", "x")]})),
        Current,
        "Pod is Ready",
    );
    let looping = json!({"phase": "Running", "containerStatuses": [
        {"name": "a", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}, {"name": "b", "state": {}}]});
    check(&pod(looping), Failed, "Containers in CrashLoop state: a");
    let mut pending =
        pod(json!({"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable")]}));
    check(&pending, InProgress, "Pod has not been scheduled");
    pending["metadata"]["creationTimestamp"] = json!("2024-11-15T23:59:40Z");
    check(&pending, Failed, "Pod could not be scheduled");

    let job = |status: Value| object("batch/v1", "Job", &json!({"completions": 2}), &status);
    check(&job(json!({})), InProgress, "Job not started");
    check(
        &job(json!({"startTime": "t", "active": 1})),
        InProgress,
        "Job in progress. success:0, active: 1, failed: 0",
    );
    check(
        &job(json!({"succeeded": 2, "conditions": [condition("Complete", "True", "x")]})),
        Current,
        "Job Completed. succeeded: 2/2",
    );
    check(
        &job(json!({"failed": 1, "conditions": [condition("Failed", "True", "x")]})),
        Failed,
        "Job Failed. failed: 1/2",
    );

    let balanced = object("v1", "Service", &json!({"type": "LoadBalancer"}), &json!({}));
    check(&balanced, InProgress, "ClusterIP not set. Service type: LoadBalancer");
    let crd = |c: Value| {
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", &json!({}), &json!({"conditions": [c]}))
    };
    check(&crd(condition("NamesAccepted", "False", "Taken")), Failed, "NamesAccepted says Taken");
    check(&crd(condition("Established", "True", "x")), Current, "CRD is established");
    check(&crd(condition("Established", "False", "Installing")), InProgress, "Install in progress");
}
