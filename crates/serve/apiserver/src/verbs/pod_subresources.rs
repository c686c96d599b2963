//! Pod subresources that need no running container: binding, eviction, log.

use std::sync::Arc;

use fl_schema::FieldError;
use serde_json::{Value, json};

use super::guaranteed_update::{self, UpdateAttempt, UpdateKind};
use super::pipeline::Tracking;
use super::{decode, delete, options};
use crate::response::{ApiResponse, respond};
use crate::server::{Inner, RequestContext, Target};
use crate::status::{ApiError, ApiResult};

fn read_body(ctx: &RequestContext) -> ApiResult<Value> {
    let text = decode::json_text(ctx)?;
    serde_json::from_slice(&text).map_err(|e| ApiError::bad_request(e.to_string()))
}

fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

pub(crate) async fn bind(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    target: &Target,
) -> ApiResult<ApiResponse> {
    let body = read_body(ctx)?;
    let options = options::read(ctx, "CreateOptions", false)?;
    check_binding(&body["target"])?;
    let node = body.pointer("/target/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    guaranteed_update::run(inner, ctx, target, &options, UpdateKind::Patch, |old| {
        let Some(old) = old else { return Err(ApiError::not_found(&target.rt, &target.name)) };
        let bound = old.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        if !bound.is_empty() {
            let why = format!("pod {} is already assigned to node {bound:?}", target.name);
            let whole = crate::auth::impersonate::resource_named("", "pods/binding");
            return Err(ApiError::conflict(&whole, &target.name, &why));
        }
        let mut object = old.clone();
        object["spec"]["nodeName"] = json!(node);
        set_condition(&mut object, &json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": ctx.now_text()
        }));
        Ok(UpdateAttempt { object, tracking: Tracking::Untracked, expected: None })
    })
    .await?;
    Ok(ApiResponse::Document { code: 201, value: success() })
}

/// Binds the pod named in the body: the deprecated form of a binding.
pub(crate) async fn bind_named(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    target: &Target,
) -> ApiResult<ApiResponse> {
    let Some(rt) = inner.registry().find("", "v1", "pods").cloned() else {
        return Err(ApiError::no_such_resource());
    };
    let name = crate::object::name(&read_body(ctx)?).to_owned();
    let pod = Target { rt, namespace: target.namespace.clone(), name, subresource: "binding".to_owned() };
    bind(inner, ctx, &pod).await
}

/// Validates the target of a binding; upstream's error has no code.
fn check_binding(target: &Value) -> ApiResult<()> {
    let text = |key: &str| target[key].as_str().unwrap_or_default();
    let mut wrong = Vec::new();
    if !matches!(text("kind"), "" | "Node") {
        let supported = ["Node", "<empty>"];
        wrong.push(FieldError::not_supported("target.kind", &json!(text("kind")), &supported).to_string());
    }
    if text("name").is_empty() {
        wrong.push(FieldError::required("target.name", "").to_string());
    }
    match wrong.as_slice() {
        [] => Ok(()),
        [one] => Err(ApiError::new(500, "", one.as_str())),
        many => Err(ApiError::new(500, "", format!("[{}]", many.join(", ")))),
    }
}

/// Sets a condition in the status, replacing one of the same type.
fn set_condition(object: &mut Value, condition: &Value) {
    let Some(status) = object.as_object_mut().map(|o| o.entry("status").or_insert_with(|| json!({}))) else {
        return;
    };
    let Some(list) = status
        .as_object_mut()
        .and_then(|s| s.entry("conditions").or_insert_with(|| json!([])).as_array_mut())
    else {
        return;
    };
    match list.iter_mut().find(|c| c["type"] == condition["type"]) {
        Some(old) => *old = condition.clone(),
        None => list.push(condition.clone()),
    }
}

/// Checks whether the disruption budget of a running pod allows its eviction.
fn check_budget(inner: &Inner, target: &Target) -> ApiResult<()> {
    let Some(pod) = inner.store.latest(target.table(), &target.key()).map(|entry| entry.value()) else {
        return Ok(());
    };
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or("Pending");
    if matches!(phase, "Pending" | "Succeeded" | "Failed") || crate::object::is_deleting(&pod) {
        return Ok(());
    }
    let prefix = format!("{}/", target.namespace);
    let budgets = inner.store.list("policy/poddisruptionbudgets", &prefix, None, 0).1;
    let concerned: Vec<Value> = budgets
        .iter()
        .map(|(_, entry)| entry.value())
        .filter(|budget| {
            let selector = crate::selector::LabelSelector::from_object(&budget["spec"]["selector"]);
            selector.is_some_and(|selector| selector.matches(pod.pointer("/metadata/labels")))
        })
        .collect();
    let budget = match concerned.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(ApiError::internal(why));
        }
    };
    let (name, status) = (crate::object::name(budget), &budget["status"]);
    let number = |key: &str| status[key].as_i64().unwrap_or(0);
    let behind = number("observedGeneration") < crate::object::generation(budget);
    let (why, wait) = if behind {
        (format!("The disruption budget {name} is still being processed by the server."), true)
    } else if number("disruptionsAllowed") <= 0 {
        let (needs, has) = (number("desiredHealthy"), number("currentHealthy"));
        (format!("The disruption budget {name} needs {needs} healthy pods and has {has} currently"), false)
    } else {
        return Ok(());
    };
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": why}]});
    if wait {
        details["retryAfterSeconds"] = json!(10);
    }
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    Err(ApiError::new(429, "TooManyRequests", message).with_details(details))
}

pub(crate) async fn evict(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    target: &Target,
) -> ApiResult<ApiResponse> {
    let body = read_body(ctx)?;
    let options = delete::DeleteOptions::from_json(body.get("deleteOptions").unwrap_or(&Value::Null))?;
    if crate::object::name(&body) != target.name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    check_budget(inner, target)?;
    let alone = super::options::read(ctx, "CreateOptions", false)?;
    guaranteed_update::run(inner, ctx, target, &alone, UpdateKind::Patch, |old| {
        let Some(old) = old else { return Err(ApiError::not_found(&target.rt, &target.name)) };
        let mut object = old.clone();
        set_condition(&mut object, &json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": ctx.now_text()
        }));
        Ok(UpdateAttempt { object, tracking: Tracking::Untracked, expected: None })
    })
    .await?;
    delete::remove(inner, ctx, target, &options).await?;
    Ok(ApiResponse::Document { code: 201, value: success() })
}

/// The `log` subresource. No containers run here: a pod without a node reports that, one on a simulated node
/// gets an error.
pub(crate) fn log(inner: &Inner, ctx: &RequestContext, target: &Target) -> ApiResult<ApiResponse> {
    let entry = inner
        .store
        .get(target.table(), &target.key())
        .ok_or_else(|| ApiError::not_found(&target.rt, &target.name))?;
    let pod = entry.value();
    let node = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
    let names: Vec<&str> = pod
        .pointer("/spec/containers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|c| c["name"].as_str())
        .collect();
    let lines = super::read::integer(ctx, "tailLines")?;
    if lines < 0 {
        let error = FieldError::invalid("tailLines", &json!(lines), "must be greater than or equal to 0");
        return Err(ApiError::invalid_kind("", "PodLogOptions", &target.name, &[error]));
    }
    let wanted = ctx.query.get("container");
    if wanted.is_empty() && names.len() > 1 {
        let list = names.join(" ");
        return Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {}, choose one of: [{list}]",
            target.name
        )));
    }
    if !wanted.is_empty() && !names.contains(&wanted) {
        return Err(ApiError::bad_request(format!(
            "container {wanted} is not valid for pod {}",
            target.name
        )));
    }
    if node.is_empty() {
        return Ok(ApiResponse::Raw(respond(200, "text/plain", "")));
    }
    if inner.store.get("/nodes", &crate::object::key("", node)).is_none() {
        let pods = &target.rt;
        return Err(ApiError::not_found(pods, node));
    }
    let message = "this server simulates workloads and runs no containers: there are no logs";
    Err(ApiError::new(501, "NotImplemented", message))
}
