//! Server-side apply, and the other merges.

use std::sync::Arc;

use fl_schema::{DecodeError, Misfit};
use fl_ssa::patch::PatchError;
use serde_json::Value;

use super::change::{self, Proposal, Style};
use super::create::{Tracking, check_namespace, refuse_other_namespace};
use super::decode;
use super::fields::Tracker;
use super::options::{FieldValidation, WriteOptions};
use super::patch::Form;
use crate::answer::Answer;
use crate::object;
use crate::resource::ResourceType;
use crate::server::{Call, Inner, Target};
use crate::status::{ApiError, Outcome};

/// Applies a patch of any form but apply.
pub(crate) fn merge(rt: &ResourceType, form: Form, old: &Value, patch: &Value) -> Outcome<Value> {
    let mut object = old.clone();
    let done = match (form, rt.behaviour.schema()) {
        (Form::Json, _) => fl_ssa::patch::json_patch(&mut object, patch),
        (Form::Strategic, Some(schema)) => {
            fl_ssa::patch::strategic_merge(&mut object, patch.clone(), &schema)
        }
        _ => fl_ssa::patch::merge_patch(&mut object, patch.clone()),
    };
    done.map_err(|e| match e {
        PatchError::BadRequest(message) => ApiError::bad_request(message),
        PatchError::TooLarge(message) => ApiError::too_large(&message),
        // Upstream keeps the reason to itself.
        PatchError::Unprocessable(_) => {
            let message = "the server rejected our request due to an error in our request";
            ApiError::new(422, "Invalid", message).with_details(serde_json::json!({}))
        }
        other => ApiError::new(500, "", other.to_string()),
    })?;
    if !object.is_object() {
        return Err(ApiError::bad_request("the patch does not make an object"));
    }
    Ok(object)
}

/// The patch as a refusal shows it: the whole object, or the patch the way Go prints a map.
pub(crate) fn shown_patch(form: Form, patch: &Value, merged: &Value) -> String {
    let text = if form == Form::Strategic { fl_golang::plain(patch) } else { merged.to_string() };
    Value::from(text).to_string()
}

pub(crate) async fn run(
    inner: &Arc<Inner>,
    call: &Call,
    target: &Target,
    options: &WriteOptions,
) -> Outcome<Answer> {
    let rt = &target.rt;
    let applied = crate::yaml::read(&call.body).map_err(|why| {
        ApiError::bad_request(format!("error decoding YAML: error converting YAML to JSON: {why}"))
    })?;
    let repeated = crate::yaml::repeated_keys(&call.body);
    if let (Some(repeated), FieldValidation::Strict) = (&repeated, options.validation) {
        let around = "error strict decoding YAML: error converting YAML to JSON";
        return Err(ApiError::bad_request(format!("{around}: {}", repeated.refused)));
    }
    if !applied.is_object() && !applied.is_null() {
        let what = decode::go_type(&applied);
        let why = format!("json: cannot unmarshal {what} into Go value of type map[string]interface {{}}");
        let around = "error unmarshaling JSON: while decoding JSON";
        return Err(ApiError::bad_request(format!("error decoding YAML: {around}: {why}")));
    }
    check_type(rt, &applied)?;
    let named = !matches!(object::meta_field(&applied, "name"), Value::Null | Value::String(_));
    let name = object::name(&applied);
    let nameless = name.is_empty() && !named;
    if name != target.name && !named && !nameless {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    refuse_other_namespace(&applied, target)?;
    let answer = change::run(inner, call, target, options, Style::Patch, |old| {
        if nameless && old.is_none() {
            // An object that is there has its name already.
            return Err(ApiError::nameless(&target.name));
        }
        let registry = inner.registry();
        let now = call.now_text();
        let tracker = Tracker {
            registry: &registry,
            rt,
            options,
            subresource: &target.subresource,
            now: &now,
            conversions: &call.conversions,
        };
        let mut object = tracker.apply(old, &applied)?;
        check_values(rt, &applied)?;
        if let (true, Some(schema)) = (rt.is_custom(), rt.behaviour.schema()) {
            // What a looser part of the schema let through is cut off where a stricter part begins.
            fl_schema::prune(&mut object, &schema);
            tidy_metadata(&mut object)?;
        }
        check_namespace(&mut object, target)?;
        let given = object::meta_str(&applied, "resourceVersion");
        let expected = (!given.is_empty()).then(|| given.to_owned());
        Ok(Proposal { object, tracking: Tracking::Done, expected })
    })
    .await?;
    if let (Some(repeated), FieldValidation::Warn) = (repeated, options.validation) {
        repeated.told.into_iter().for_each(|told| call.warn(told));
    }
    Ok(answer)
}

/// Metadata goes through its type, which knows no empty labels; the rest of a custom resource stays as it is.
fn tidy_metadata(object: &mut Value) -> Outcome<()> {
    let Some(metadata) = object.get_mut("metadata") else { return Ok(()) };
    let mut alone = serde_json::json!({"metadata": metadata.take()});
    let bare = fl_schema::Schema {
        ty: fl_schema::Type::Object,
        embedded_resource: true,
        ..fl_schema::Schema::default()
    };
    let coerced = fl_schema::coerce(&mut alone, &bare);
    *metadata = alone["metadata"].take();
    if let Some(fields) = metadata.as_object_mut() {
        fields.retain(|_, value| match value {
            Value::Object(map) => !map.is_empty(),
            Value::Array(list) => !list.is_empty(),
            _ => true,
        });
    }
    coerced.map(drop).map_err(ApiError::internal)
}

/// Whether a built-in type can hold what was applied. The merge knows texts and numbers; that a text is a quantity, a time or
/// base64 shows when the outcome is turned into the type.
fn check_values(rt: &ResourceType, applied: &Value) -> Outcome<()> {
    let Some(schema) = rt.behaviour.schema().filter(|_| !rt.is_custom()) else { return Ok(()) };
    let Err(error) = fl_schema::check_value(applied, fl_schema::Shape::Typed(&schema)) else { return Ok(()) };
    let mut why = super::patch::restored(&error);
    match error {
        // Upstream cuts what is too large and goes on.
        DecodeError::Value { misfit: Misfit::Range, .. } => return Ok(()),
        DecodeError::Value { misfit: Misfit::Base64, .. } => why.insert_str(0, "error decoding from json: "),
        _ => {}
    }
    let gvk = format!("{}/{}, Kind={}", rt.group, rt.version, rt.kind);
    let place = format!("{}/{}", object::namespace(applied), object::name(applied));
    Err(ApiError::new(
        500,
        "",
        format!(
            "failed to convert new object ({place}; {gvk}) to proper version: unable to convert unstructured object to {gvk}: {why}"
        ),
    ))
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
