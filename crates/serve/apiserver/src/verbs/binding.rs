//! Pod subresources that need no running container: binding, eviction, log.

use std::sync::Arc;

use serde_json::{Value, json};

use super::change::{self, Proposal, Style};
use super::create::Tracking;
use super::{decode, delete, options};
use crate::answer::{Answer, respond};
use crate::server::{Call, Inner, Target};
use crate::status::{ApiError, Outcome};

fn read_body(call: &Call) -> Outcome<Value> {
    let text = decode::json_text(call)?;
    serde_json::from_slice(&text).map_err(|e| ApiError::bad_request(e.to_string()))
}

fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

pub(crate) async fn bind(inner: &Arc<Inner>, call: &Call, target: &Target) -> Outcome<Answer> {
    let body = read_body(call)?;
    let options = options::read(call, "CreateOptions", false)?;
    let node = body.pointer("/target/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    change::run(inner, call, target, &options, Style::Patch, |old| {
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
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": call.now_text()
        }));
        Ok(Proposal { object, tracking: Tracking::Untracked, expected: None })
    })
    .await?;
    Ok(Answer::Document { code: 201, value: success() })
}

/// Puts a condition into the status, in place of one of the same type.
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

pub(crate) async fn evict(inner: &Arc<Inner>, call: &Call, target: &Target) -> Outcome<Answer> {
    let body = read_body(call)?;
    let options = delete::DeleteOptions::from_json(body.get("deleteOptions").unwrap_or(&Value::Null))?;
    let alone = super::options::read(call, "CreateOptions", false)?;
    change::run(inner, call, target, &alone, Style::Patch, |old| {
        let Some(old) = old else { return Err(ApiError::not_found(&target.rt, &target.name)) };
        let mut object = old.clone();
        set_condition(&mut object, &json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": call.now_text()
        }));
        Ok(Proposal { object, tracking: Tracking::Untracked, expected: None })
    })
    .await?;
    delete::remove(inner, call, target, &options).await?;
    Ok(Answer::Document { code: 201, value: success() })
}

/// Nothing runs here, so there is nothing to read: a pod without a node says so, one on a simulated node is refused.
pub(crate) fn log(inner: &Inner, call: &Call, target: &Target) -> Outcome<Answer> {
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
    let wanted = call.query.get("container");
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
        return Ok(Answer::Raw(respond(200, "text/plain", "")));
    }
    if inner.store.get("/nodes", &crate::object::key("", node)).is_none() {
        let pods = &target.rt;
        return Err(ApiError::not_found(pods, node));
    }
    let message = "this server simulates workloads and runs no containers: there are no logs";
    Err(ApiError::new(501, "NotImplemented", message))
}
