//! CronJobs: a Job for each time of the schedule.

use std::time::Duration;

use fl_builtin::cron::Schedule;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::client::{Client, controlled_by, number};
use crate::object;
use crate::server::rfc3339;

const TABLE: &str = "batch/cronjobs";
const JOBS: &str = "batch/jobs";

/// Missed times considered per CronJob. After a longer downtime, the last of these is started.
const MAX_MISSED_TIMES: usize = 100_000;

pub(super) async fn run(client: &mut Client<'_>) {
    for cron in client.list(TABLE, "") {
        if !object::is_deleting(&cron) {
            reconcile(client, &cron).await;
        }
    }
}

/// The condition that ended a job: `Complete` or `Failed`.
fn finished_condition(job: &Value) -> Option<&str> {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().filter(|c| c["status"] == "True").find_map(|c| {
        let kind = c["type"].as_str()?;
        matches!(kind, "Complete" | "Failed").then_some(kind)
    })
}

async fn reconcile(client: &mut Client<'_>, cron: &Value) {
    let jobs = client.owned(JOBS, cron);
    let mut status = cron.get("status").cloned().filter(Value::is_object).unwrap_or_else(|| json!({}));
    let latest = jobs.iter().filter(|j| finished_condition(j) == Some("Complete"));
    let latest = latest.filter_map(|j| j.pointer("/status/completionTime").and_then(Value::as_str)).max();
    if let Some(time) = latest
        && status["lastSuccessfulTime"].as_str().is_none_or(|before| before < time)
    {
        status["lastSuccessfulTime"] = json!(time);
    }
    delete_old_jobs(client, cron, &jobs).await;
    let mut active: Vec<Value> = jobs.iter().filter(|j| finished_condition(j).is_none()).cloned().collect();
    if let Some(time) = last_missed_time(client, cron) {
        let policy = cron.pointer("/spec/concurrencyPolicy").and_then(Value::as_str).unwrap_or("Allow");
        if policy == "Replace" {
            for job in active.drain(..) {
                client.delete(JOBS, &job).await;
            }
        }
        // A time that comes while a job runs is started when the job is done, as upstream does.
        if policy != "Forbid" || active.is_empty() {
            if let Some(job) = create_job(client, cron, time).await {
                active.push(job);
            }
            status["lastScheduleTime"] = json!(rfc3339(time));
        }
    }
    let references: Vec<Value> = active
        .iter()
        .map(|job| {
            json!({"kind": "Job", "namespace": object::namespace(job), "name": object::name(job),
                "uid": object::uid(job), "apiVersion": "batch/v1", "resourceVersion": object::meta_str(job, "resourceVersion")})
        })
        .collect();
    match (references.is_empty(), status.as_object_mut()) {
        (true, Some(map)) => {
            map.remove("active");
        }
        _ => status["active"] = json!(references),
    }
    client.set_status(TABLE, cron, status).await;
}

/// The last time of the schedule that has passed without a job, unless its starting deadline is over.
/// Requeues for the next time.
fn last_missed_time(client: &mut Client<'_>, cron: &Value) -> Option<Timestamp> {
    let spec = &cron["spec"];
    let schedule = Schedule::parse(spec["schedule"].as_str()?).ok()?;
    let zone = match spec.get("timeZone").and_then(Value::as_str) {
        Some(name) => TimeZone::get(name).ok()?,
        None => TimeZone::UTC,
    };
    if spec["suspend"] == true {
        return None;
    }
    let text = |pointer: &str| cron.pointer(pointer).and_then(Value::as_str).and_then(|t| t.parse().ok());
    let since: Timestamp = text("/status/lastScheduleTime").or(text("/metadata/creationTimestamp"))?;
    let deadline = spec.get("startingDeadlineSeconds").and_then(Value::as_i64).map(SignedDuration::from_secs);
    let oldest = deadline.and_then(|d| client.now.checked_sub(d).ok());
    let mut from = oldest.map_or(since, |oldest| since.max(oldest));
    let mut passed = None;
    for _ in 0..MAX_MISSED_TIMES {
        let next = schedule.next(from, &zone)?;
        if next > client.now {
            let wait = Duration::try_from(next.duration_since(client.now)).unwrap_or(Duration::from_secs(60));
            client.requeue_after(wait);
            break;
        }
        passed = Some(next);
        from = next;
    }
    passed
}

async fn create_job(client: &Client<'_>, cron: &Value, time: Timestamp) -> Option<Value> {
    let template = &cron["spec"]["jobTemplate"];
    let name = format!("{}-{}", object::name(cron), time.as_second() / 60);
    let mut metadata = json!({
        "name": name, "namespace": object::namespace(cron),
        "ownerReferences": controlled_by(cron, "batch/v1", "CronJob")
    });
    for field in ["labels", "annotations"] {
        if let Some(map) = template.pointer(&format!("/metadata/{field}")) {
            metadata[field] = map.clone();
        }
    }
    metadata["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"] = json!(rfc3339(time));
    let job =
        json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata, "spec": template["spec"]});
    client.create_as_client("batch", "v1", "jobs", job).await
}

/// Deletes finished jobs above the history limits, oldest first.
async fn delete_old_jobs(client: &Client<'_>, cron: &Value, jobs: &[Value]) {
    for (kind, field, default) in
        [("Complete", "/spec/successfulJobsHistoryLimit", 3), ("Failed", "/spec/failedJobsHistoryLimit", 1)]
    {
        let mut finished: Vec<&Value> = jobs.iter().filter(|j| finished_condition(j) == Some(kind)).collect();
        finished.sort_by_key(|j| j.pointer("/status/startTime").and_then(Value::as_str).unwrap_or_default());
        let kept = usize::try_from(number(cron, field, default)).unwrap_or(0);
        for job in finished.iter().rev().skip(kept) {
            client.delete(JOBS, job).await;
        }
    }
}
