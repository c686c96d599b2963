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
            return Err(ApiError::conflict(&target.rt, &target.name, &why));
        }
        let mut object = old.clone();
        object["spec"]["nodeName"] = json!(node);
        Ok(Proposal { object, tracking: Tracking::Update, expected: None })
    })
    .await?;
    Ok(Answer::Document { code: 201, value: success() })
}

pub(crate) async fn evict(inner: &Arc<Inner>, call: &Call, target: &Target) -> Outcome<Answer> {
    let body = read_body(call)?;
    let options = delete::DeleteOptions::from_json(body.get("deleteOptions").unwrap_or(&Value::Null))?;
    delete::remove(inner, call, target, &options).await?;
    Ok(Answer::Document { code: 201, value: success() })
}

/// Simulated pods have nothing to say, but they exist.
pub(crate) fn log(inner: &Inner, target: &Target) -> Outcome<Answer> {
    inner
        .store
        .get(target.table(), &target.key())
        .ok_or_else(|| ApiError::not_found(&target.rt, &target.name))?;
    Ok(Answer::Raw(respond(200, "text/plain", "")))
}
