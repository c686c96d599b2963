//! Server-side apply, and the other merges.

use std::sync::Arc;

use serde_json::Value;

use super::change::{self, Proposal, Style};
use super::create::{Tracking, check_namespace};
use super::decode;
use super::options::WriteOptions;
use super::patch::Form;
use crate::answer::Answer;
use crate::object;
use crate::resource::ResourceType;
use crate::server::{Call, Inner, Target};
use crate::status::{ApiError, Outcome};

/// Applies a patch of any form but apply.
pub(crate) fn merge(_rt: &ResourceType, _form: Form, old: &Value, patch: &Value) -> Outcome<Value> {
    fn merge_patch(into: &mut Value, patch: &Value) {
        let Some(map) = patch.as_object() else {
            *into = patch.clone();
            return;
        };
        if !into.is_object() {
            *into = Value::Object(serde_json::Map::new());
        }
        let target = into.as_object_mut().expect("made above");
        for (k, v) in map {
            if v.is_null() {
                target.remove(k);
            } else {
                merge_patch(target.entry(k.clone()).or_insert(Value::Null), v);
            }
        }
    }
    let mut out = old.clone();
    merge_patch(&mut out, patch);
    Ok(out)
}

/// The patch as a refusal shows it.
pub(crate) fn shown_patch(form: Form, patch: &Value, merged: &Value) -> String {
    let text = if form == Form::Strategic { patch.to_string() } else { merged.to_string() };
    format!("{text:?}")
}

pub(crate) async fn run(
    inner: &Arc<Inner>,
    call: &Call,
    target: &Target,
    options: &WriteOptions,
) -> Outcome<Answer> {
    let rt = &target.rt;
    let text = decode::yaml_to_json(&call.body)?;
    let mut applied: Value = serde_json::from_slice(&text)
        .map_err(|e| ApiError::bad_request(format!("error decoding YAML: {e}")))?;
    if !applied.is_object() {
        return Err(ApiError::bad_request("error decoding YAML: the document is not an object"));
    }
    check_type(rt, &applied)?;
    let name = object::name(&applied);
    if name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            target.name
        )));
    }
    if name != target.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    check_namespace(&mut applied, target)?;
    change::run(inner, call, target, options, Style::Patch, |old| {
        let object = match old {
            Some(old) => merge(rt, Form::Merge, old, &applied)?,
            None => applied.clone(),
        };
        Ok(Proposal { object, tracking: Tracking::Done, expected: None })
    })
    .await
}

fn check_type(rt: &ResourceType, applied: &Value) -> Outcome<()> {
    if object::kind(applied) == rt.kind && object::api_version(applied) == rt.api_version() {
        return Ok(());
    }
    let (group, version) = object::split_api_version(object::api_version(applied));
    Err(ApiError::bad_request(format!(
        "invalid object type: {group}/{version}, Kind={}",
        object::kind(applied)
    )))
}
