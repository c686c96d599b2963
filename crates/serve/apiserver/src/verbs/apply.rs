//! Server-side apply.

use std::sync::Arc;

use fl_schema::{DecodeError, TypeMismatch};
use serde_json::Value;

use super::decode;
use super::guaranteed_update::{self, UpdateAttempt, UpdateKind};
use super::identity::{check_namespace, refuse_other_namespace};
use super::managed_fields::Tracker;
use super::options::{FieldValidation, WriteOptions};
use super::patch_type::restored;
use super::pipeline::Tracking;
use crate::object;
use crate::resource_type::ResourceType;
use crate::response::ApiResponse;
use crate::server::{Inner, RequestContext, Target};
use crate::status::{ApiError, ApiResult};

pub(crate) async fn run(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    target: &Target,
    options: &WriteOptions,
) -> ApiResult<ApiResponse> {
    let rt = &target.rt;
    let applied = crate::yaml::read(&ctx.body).map_err(|why| {
        ApiError::bad_request(format!("error decoding YAML: error converting YAML to JSON: {why}"))
    })?;
    let repeated = crate::yaml::duplicate_keys(&ctx.body);
    if let (Some(repeated), FieldValidation::Strict) = (&repeated, options.validation) {
        let around = "error strict decoding YAML: error converting YAML to JSON";
        return Err(ApiError::bad_request(format!("{around}: {}", repeated.strict_error)));
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
    let answer = guaranteed_update::run(inner, ctx, target, options, UpdateKind::Patch, |old| {
        if nameless && old.is_none() {
            // An existing object has its name already.
            return Err(ApiError::nameless(&target.name));
        }
        let registry = inner.registry();
        let now = ctx.now_text();
        let tracker = Tracker {
            registry: &registry,
            rt,
            options,
            subresource: &target.subresource,
            now: &now,
            conversions: &ctx.conversions,
        };
        let mut object = tracker.apply(old, &applied)?;
        check_values(rt, &applied)?;
        if let (true, Some(schema)) = (rt.is_custom(), rt.strategy.schema()) {
            // Prunes values that an unpruned part of the schema allowed into a pruned part.
            fl_schema::prune(&mut object, &schema);
            tidy_metadata(&mut object)?;
        }
        check_namespace(&mut object, target)?;
        let given = object::meta_str(&applied, "resourceVersion");
        let expected = (!given.is_empty()).then(|| given.to_owned());
        Ok(UpdateAttempt { object, tracking: Tracking::Done, expected })
    })
    .await?;
    if let (Some(repeated), FieldValidation::Warn) = (repeated, options.validation) {
        repeated.warnings.into_iter().for_each(|warning| ctx.warn(warning));
    }
    Ok(answer)
}

/// Round-trips the metadata of a custom resource through its Go type, which drops empty labels. All other
/// fields stay as they are.
fn tidy_metadata(object: &mut Value) -> ApiResult<()> {
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
    coerced.map(drop).map_err(|error| ApiError::internal(error.to_string()))
}

/// Checks that a built-in type can hold the applied values. The merge only distinguishes strings and numbers;
/// whether a string is a valid quantity, time or base64 shows when the result is decoded into the type.
fn check_values(rt: &ResourceType, applied: &Value) -> ApiResult<()> {
    let Some(schema) = rt.strategy.schema().filter(|_| !rt.is_custom()) else { return Ok(()) };
    let Err(error) = fl_schema::check_value(applied, fl_schema::Shape::Typed(&schema)) else { return Ok(()) };
    let mut why = restored(&error);
    match error {
        // Upstream truncates numbers that are out of range.
        DecodeError::Value { mismatch: TypeMismatch::Range, .. } => return Ok(()),
        DecodeError::Value { mismatch: TypeMismatch::Base64, .. } => {
            why.insert_str(0, "error decoding from json: ");
        }
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

fn check_type(rt: &ResourceType, applied: &Value) -> ApiResult<()> {
    if object::kind(applied) == rt.kind && object::api_version(applied) == rt.api_version() {
        return Ok(());
    }
    let (group, version) = object::split_api_version(object::api_version(applied));
    Err(ApiError::bad_request(format!(
        "invalid object type: {group}/{version}, Kind={}",
        object::kind(applied)
    )))
}
