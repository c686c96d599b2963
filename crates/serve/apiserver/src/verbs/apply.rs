//! Server-side apply.

use std::sync::Arc;

use fl_schema::{DecodeError, Misfit};
use serde_json::Value;

use super::change::{self, Proposal, Style};
use super::decode;
use super::fields::Tracker;
use super::identity::{check_namespace, refuse_other_namespace};
use super::options::{FieldValidation, WriteOptions};
use super::patch_type::restored;
use super::pipeline::Tracking;
use crate::answer::Answer;
use crate::object;
use crate::resource::ResourceType;
use crate::server::{Call, Inner, Target};
use crate::status::{ApiError, Outcome};

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
        if let (true, Some(schema)) = (rt.is_custom(), rt.strategy.schema()) {
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
    let Some(schema) = rt.strategy.schema().filter(|_| !rt.is_custom()) else { return Ok(()) };
    let Err(error) = fl_schema::check_value(applied, fl_schema::Shape::Typed(&schema)) else { return Ok(()) };
    let mut why = restored(&error);
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
