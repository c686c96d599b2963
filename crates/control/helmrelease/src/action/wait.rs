//! Waiting for what an action made.

use std::collections::HashMap;
use std::time::Duration;

use fl_api::meta::health::CustomHealthCheck;
use fl_apply::{
    Action, ChangeSet, Cluster, HealthRuleError, HealthRules, ObjectRef, WaitOptions, Waiter, jobs_with_ttl,
};
use serde_json::{Value, json};

use super::error::ActionError;
use super::objects::Target;
use crate::spec::Wait;

/// The rules of a HelmRelease, for objects and for hooks.
#[derive(Debug, Clone)]
pub(crate) struct Health {
    objects: HealthRules,
    hooks: HealthRules,
}

impl Health {
    /// Compiles `healthCheckExprs`.
    pub(crate) fn compile(checks: &[CustomHealthCheck]) -> Result<Self, HealthRuleError> {
        let objects = HealthRules::compile(checks)?;
        let mut with_pods = checks.to_vec();
        // A Pod that is a hook is done when it ended, not when it runs.
        let pod: Result<CustomHealthCheck, _> = serde_json::from_value(json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "current": "status.phase == 'Succeeded'",
            "failed": "status.phase == 'Failed'",
        }));
        if !checks.iter().any(|check| check.api_version == "v1" && check.kind.as_deref() == Some("Pod")) {
            with_pods.extend(pod);
        }
        Ok(Self { objects, hooks: HealthRules::compile(&with_pods)? })
    }
}

/// How long and for what to wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) wait: Wait,
    pub(crate) timeout: Duration,
    pub(crate) jobs: bool,
}

/// Waits until objects are ready. `live` is how the server answered when they were written.
pub(crate) async fn ready(
    cluster: &Cluster,
    health: &Health,
    targets: &[Target],
    live: &[Value],
    patience: Patience,
) -> Result<(), ActionError> {
    if patience.wait == Wait::HooksOnly {
        return Ok(());
    }
    let is_job = |target: &Target| target.reference.id.kind == "Job" && target.reference.id.group == "batch";
    let paused = |target: &Target| {
        target.reference.id.kind == "Deployment"
            && target.object.pointer("/spec/paused") == Some(&Value::Bool(true))
    };
    let waited: Vec<&Target> =
        targets.iter().filter(|target| !paused(target) && (patience.jobs || !is_job(target))).collect();
    let references: Vec<ObjectRef> = waited.iter().map(|target| target.reference.clone()).collect();
    let options = WaitOptions {
        timeout: patience.timeout,
        fail_fast: patience.wait == Wait::Poller,
        jobs_with_ttl: jobs_with_ttl(waited.iter().map(|target| &target.object)),
    };
    let waiter = Waiter::new(cluster.clone(), health.objects.clone());
    let ready = fl_runtime::idle(waiter.wait(&references, live, &options)).await;
    ready.map_err(|error| match patience.wait {
        Wait::Legacy if error.timed_out => ActionError::failed("context deadline exceeded"),
        _ => ActionError::failed(error.to_string()),
    })
}

/// Waits until the Jobs and Pods of a hook have ended; other objects are done when they are there.
pub(crate) async fn hook_done(
    cluster: &Cluster,
    health: &Health,
    targets: &[Target],
    live: &[Value],
    timeout: Duration,
) -> Result<(), ActionError> {
    let ends = |target: &&Target| {
        let id = &target.reference.id;
        (id.group.as_str(), id.kind.as_str()) == ("batch", "Job") || (id.group.is_empty() && id.kind == "Pod")
    };
    let waited: Vec<&Target> = targets.iter().filter(ends).collect();
    if waited.is_empty() {
        return Ok(());
    }
    let references: Vec<ObjectRef> = waited.iter().map(|target| target.reference.clone()).collect();
    let options = WaitOptions {
        timeout,
        fail_fast: false,
        jobs_with_ttl: jobs_with_ttl(waited.iter().map(|target| &target.object)),
    };
    let waiter = Waiter::new(cluster.clone(), health.hooks.clone());
    let done = fl_runtime::idle(waiter.wait(&references, live, &options)).await;
    done.map_err(|error| ActionError::failed(error.to_string()))
}

/// Waits until objects are gone.
pub(crate) async fn gone(
    cluster: &Cluster,
    health: &Health,
    targets: &[Target],
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
    let gone = fl_runtime::idle(waiter.wait_for_termination(&changes, timeout)).await;
    gone.map_err(ActionError::failed)
}

/// The last lines of what the containers of a hook's Pods printed.
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
const LOG_BYTES: usize = 2048;

async fn log_of(cluster: &Cluster, namespace: &str, pod: &str, container: &str) -> Result<String, String> {
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
    if ![namespace, pod, container].into_iter().all(plain) {
        return Err("not a name".into());
    }
    let uri = format!(
        "/api/v1/namespaces/{namespace}/pods/{pod}/log?container={container}&tailLines=10&limitBytes={LOG_BYTES}"
    );
    let mut request = http::Request::get(uri);
    if let Some(user) = cluster.user() {
        request = request.header("impersonate-user", user);
    }
    let request = request.body(Vec::new()).map_err(|error| error.to_string())?;
    cluster.client().request_text(request).await.map_err(|error| error.to_string())
}
