//! Jobs: pods are created until enough succeeded or too many failed.

use serde_json::{Value, json};

use super::client::{Client, controlled_by, number, pod};
use crate::object;
use crate::verbs::create::generate_name;

const TABLE: &str = "batch/jobs";

pub(super) async fn run(client: &mut Client<'_>) {
    for job in client.list(TABLE, "") {
        let finished = job
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .any(|c| matches!(c["type"].as_str(), Some("Complete" | "Failed")) && c["status"] == "True");
        let suspended = job.pointer("/spec/suspend") == Some(&json!(true));
        if !object::is_deleting(&job) && !finished && !suspended {
            reconcile(client, &job).await;
        }
    }
}

async fn reconcile(client: &mut Client<'_>, job: &Value) {
    let pods = client.owned("/pods", job);
    let in_phase = |phase: &str| {
        pods.iter().filter(|p| p.pointer("/status/phase") == Some(&json!(phase))).count() as i64
    };
    let (succeeded, failed) = (in_phase("Succeeded"), in_phase("Failed"));
    let active = pods.len() as i64 - succeeded - failed;
    let parallelism = number(job, "/spec/parallelism", 1);
    let desired = number(job, "/spec/completions", parallelism);
    let limit = number(job, "/spec/backoffLimit", 6);
    let now = client.timestamp();
    let started = job.pointer("/status/startTime").cloned().unwrap_or_else(|| json!(now));
    let mut status = json!({"startTime": started, "uncountedTerminatedPods": {}, "terminating": 0});
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now, "reason": reason, "message": message});
    if succeeded >= desired {
        let text = "Reached expected number of succeeded pods";
        status["completionTime"] = json!(now);
        status["conditions"] = json!([
            condition("SuccessCriteriaMet", "CompletionsReached", text),
            condition("Complete", "CompletionsReached", text)
        ]);
    } else if failed > limit {
        let text = "Job has reached the specified backoff limit";
        status["conditions"] = json!([
            condition("FailureTarget", "BackoffLimitExceeded", text),
            condition("Failed", "BackoffLimitExceeded", text)
        ]);
    } else {
        for _ in active..parallelism.min(desired - succeeded) {
            let name = generate_name(&format!("{}-", object::name(job)));
            let owner = controlled_by(job, "batch/v1", "Job");
            client.create("/pods", pod(&job["spec"]["template"], object::namespace(job), &name, owner)).await;
        }
        status["active"] = json!(active.max(parallelism.min(desired - succeeded)));
        status["ready"] = json!(0);
    }
    for (field, n) in [("succeeded", succeeded), ("failed", failed)] {
        if n > 0 {
            status[field] = json!(n);
        }
    }
    client.set_status(TABLE, job, status).await;
}
