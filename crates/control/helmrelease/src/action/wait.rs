//! Waits for the objects of an action to become ready, to end, or to be gone.

use std::collections::HashMap;
use std::time::Duration;

use fl_api::meta::health::CustomHealthCheck;
use fl_apply::{
    Action, ChangeSet, Cluster, HealthRuleError, HealthRules, LiveObject, ObjectRef, Waiter, jobs_with_ttl,
};
use fl_client::{Kind, Request};
use http::Method;
use serde_json::{Value, json};

use super::error::ActionError;
use super::interrupt::Interrupt;
use super::resources::Resource;
use crate::spec::Wait;

/// The rules of a HelmRelease, for objects and for hooks.
#[derive(Debug, Clone)]
pub(crate) struct Health {
    objects: HealthRules,
    /// The same if Jobs are not waited for: they only have to start.
    without_jobs: HealthRules,
    hooks: HealthRules,
}

impl Health {
    /// Compiles `healthCheckExprs`.
    pub(crate) fn compile(checks: &[CustomHealthCheck]) -> Result<Self, HealthRuleError> {
        // A Pod that is a hook is done when it has ended, not when it runs.
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "current": "status.phase == 'Succeeded'",
            "failed": "status.phase == 'Failed'",
        });
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "current": "has(status.startTime) || (has(status.conditions) && \
                        status.conditions.exists(c, c.type == 'Complete' && c.status == 'True'))",
            "failed": "has(status.conditions) && \
                       status.conditions.exists(c, c.type == 'Failed' && c.status == 'True')",
        });
        Ok(Self {
            objects: HealthRules::compile(checks)?,
            without_jobs: with_default(checks, job)?,
            hooks: with_default(checks, pod)?,
        })
    }
}

/// The rules with one more, unless they have one for its kind.
fn with_default(checks: &[CustomHealthCheck], more: Value) -> Result<HealthRules, HealthRuleError> {
    let mut all = checks.to_vec();
    let known = |check: &CustomHealthCheck| {
        more["apiVersion"] == check.api_version.as_str() && more["kind"].as_str() == check.kind.as_deref()
    };
    if !checks.iter().any(known) {
        all.extend(serde_json::from_value::<CustomHealthCheck>(more));
    }
    HealthRules::compile(&all)
}

/// How to wait for readiness, and how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitOptions {
    pub(crate) wait: Wait,
    pub(crate) timeout: Duration,
    pub(crate) jobs: bool,
}

/// Waits until objects are ready. `live` are the objects as the API server returned them from the write.
pub(crate) async fn ready(
    cluster: &Cluster,
    health: &Health,
    targets: &[Resource],
    live: &[Value],
    wait_options: WaitOptions,
    interrupt: &Interrupt,
) -> Result<(), ActionError> {
    if wait_options.wait == Wait::HooksOnly {
        return Ok(());
    }
    let is_job =
        |target: &Resource| target.reference.id.kind == "Job" && target.reference.id.group == "batch";
    let paused = |target: &Resource| {
        target.reference.id.kind == "Deployment"
            && target.object.pointer("/spec/paused") == Some(&Value::Bool(true))
    };
    // Helm 3 ignores Jobs unless it waits for them.
    let ignored =
        |target: &Resource| wait_options.wait == Wait::Legacy && !wait_options.jobs && is_job(target);
    let waited: Vec<&Resource> =
        targets.iter().filter(|target| !paused(target) && !ignored(target)).collect();
    let references: Vec<ObjectRef> = waited.iter().map(|target| target.reference.clone()).collect();
    let options = fl_apply::WaitOptions {
        timeout: wait_options.timeout,
        fail_fast: wait_options.wait == Wait::Poller,
        jobs_with_ttl: jobs_with_ttl(waited.iter().map(|target| &target.object)),
    };
    let rules = if wait_options.jobs { &health.objects } else { &health.without_jobs };
    let waiter = Waiter::new(cluster.clone(), rules.clone());
    // Helm's own waiter, the legacy one, cannot be cancelled.
    let cancels = wait_options.wait == Wait::Poller;
    let ready = fl_runtime::without_permit(async {
        tokio::select! {
            ready = waiter.wait(&references, live_objects(live), &options) => Ok(ready),
            () = interrupt.triggered(), if cancels => Err(ActionError::Canceled),
        }
    });
    ready.await?.map_err(|error| match wait_options.wait {
        Wait::Legacy if error.timed_out => ActionError::failed("context deadline exceeded"),
        _ => ActionError::failed(error.to_string()),
    })
}

/// Waits until the Jobs and Pods of a hook have ended. Other objects are ready when they exist, unless `healthCheckExprs` has a
/// rule for them.
pub(crate) async fn hook_done(
    cluster: &Cluster,
    health: &Health,
    targets: &[Resource],
    live: &[Value],
    wait: Wait,
    timeout: Duration,
) -> Result<(), ActionError> {
    let ends = |target: &&Resource| {
        let id = &target.reference.id;
        (id.group.as_str(), id.kind.as_str()) == ("batch", "Job")
            || health.hooks.is_custom(&id.group, &id.kind)
    };
    let waited: Vec<&Resource> = targets.iter().filter(ends).collect();
    if waited.is_empty() {
        return Ok(());
    }
    let references: Vec<ObjectRef> = waited.iter().map(|target| target.reference.clone()).collect();
    let options = fl_apply::WaitOptions {
        timeout,
        fail_fast: false,
        jobs_with_ttl: jobs_with_ttl(waited.iter().map(|target| &target.object)),
    };
    let waiter = Waiter::new(cluster.clone(), health.hooks.clone());
    let done = fl_runtime::without_permit(waiter.wait(&references, live_objects(live), &options)).await;
    done.map_err(|error| match wait {
        Wait::Legacy if error.timed_out => ActionError::failed("timed out waiting for the condition"),
        _ => ActionError::failed(error.to_string()),
    })
}

fn live_objects(live: &[Value]) -> Vec<LiveObject> {
    live.iter().cloned().map(LiveObject::from).collect()
}

/// Waits until objects are gone.
pub(crate) async fn gone(
    cluster: &Cluster,
    health: &Health,
    targets: &[Resource],
    wait: Wait,
    timeout: Duration,
) -> Result<(), ActionError> {
    if wait == Wait::HooksOnly {
        return Ok(());
    }
    let mut changes = ChangeSet::default();
    for target in targets {
        changes.add(target.reference.clone(), Action::Deleted);
    }
    let waiter = Waiter::new(cluster.clone(), health.objects.clone());
    let gone = fl_runtime::without_permit(waiter.wait_for_termination(&changes, timeout)).await;
    gone.map_err(ActionError::failed)
}

/// The last log lines of the containers of a hook's Pods.
pub(crate) async fn pod_logs(
    cluster: &Cluster,
    kind: &str,
    namespace: &str,
    name: &str,
) -> HashMap<String, String> {
    let query = match kind {
        "Job" => [("labelSelector", format!("job-name={name}"))],
        "Pod" => [("fieldSelector", format!("metadata.name={name}"))],
        _ => return HashMap::new(),
    };
    let Ok(pods) = cluster.list("v1", "Pod", namespace, &query).await else { return HashMap::new() };
    let mut logs = HashMap::new();
    for pod in pods["items"].as_array().into_iter().flatten() {
        let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
        for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
            let container = container["name"].as_str().unwrap_or_default();
            if let Ok(text) = log_of(cluster, namespace, pod_name, container).await {
                logs.insert(format!("{pod_name}/{container}"), text);
            }
        }
    }
    logs
}

/// Bytes of a container's log that are shown.
const MAX_LOG_BYTES: usize = 2048;

async fn log_of(cluster: &Cluster, namespace: &str, pod: &str, container: &str) -> Result<String, String> {
    let mut path = Kind::pod().object_path(Some(namespace), pod);
    path.push_str("/log");
    let limit = MAX_LOG_BYTES.to_string();
    let query = fl_client::query(&[("container", container), ("tailLines", "10"), ("limitBytes", &limit)]);
    let answer = cluster.client().execute(&Request::new(Method::GET, &path, &query)).await;
    answer.map(|raw| String::from_utf8_lossy(&raw.body).into_owned()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_are_not_waited_for_must_start() {
        let health = Health::compile(&[]).expect("rules");
        let job = |status: Value| json!({"apiVersion": "batch/v1", "kind": "Job", "status": status});
        let word = |status| health.without_jobs.judge(&job(status), 0).word();
        assert_eq!(word(json!({})), "InProgress");
        assert_eq!(word(json!({"startTime": "2026-01-01T00:00:00Z"})), "Current");
        // Recorded from Flux: one that is suspended from the start never starts.
        assert_eq!(word(json!({"conditions": [{"type": "Suspended", "status": "True"}]})), "InProgress");
        let failed = json!({"startTime": "x", "conditions": [{"type": "Failed", "status": "True"}]});
        assert_eq!(word(failed), "Failed");
        let started = job(json!({"startTime": "2026-01-01T00:00:00Z"}));
        assert_eq!(health.objects.judge(&started, 0).word(), "InProgress");
    }

    #[test]
    fn expressions_count_for_hooks_too() {
        let checks = json!([{"apiVersion": "v1", "kind": "ConfigMap", "current": "data.done == 'yes'"}]);
        let checks: Vec<CustomHealthCheck> = serde_json::from_value(checks).expect("checks");
        let health = Health::compile(&checks).expect("rules");
        assert!(health.hooks.is_custom("", "ConfigMap") && health.hooks.is_custom("", "Pod"));
        assert!(!health.hooks.is_custom("", "Secret"));
    }
}
