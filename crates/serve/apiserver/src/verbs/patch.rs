//! The `patch` verb: JSON patch, merge patch, strategic merge patch, and apply.

use std::sync::Arc;

use fl_schema::FieldError;
use serde_json::Value;

use super::guaranteed_update::{self, UpdateAttempt, UpdateKind};
use super::identity::{check_name, check_namespace};
use super::options::{self, FieldValidation, WriteOptions};
use super::patch_type::{self, PatchType, refuse, restored};
use super::pipeline::Tracking;
use super::{apply, decode};
use crate::object;
use crate::resource_type::ResourceType;
use crate::response::ApiResponse;
use crate::server::{Inner, RequestContext, Target};
use crate::status::{ApiError, ApiResult};

pub(crate) async fn run(inner: &Arc<Inner>, ctx: &RequestContext, target: &Target) -> ApiResult<ApiResponse> {
    let patch_type = patch_type::patch_type(ctx, target)?;
    let options = options::read(ctx, "PatchOptions", patch_type == PatchType::Apply)?;
    if patch_type == PatchType::Apply {
        return apply::run(inner, ctx, target, &options).await;
    }
    if inner.store.latest(target.table(), &target.key()).is_none() {
        return Err(ApiError::not_found(&target.rt, &target.name));
    }
    let patch = read_patch(ctx, patch_type)?;
    let repeated = repeated_fields(ctx, patch_type);
    guaranteed_update::run(inner, ctx, target, &options, UpdateKind::Patch, |old| {
        let Some(old) = old else { return Err(ApiError::not_found(&target.rt, &target.name)) };
        let patched = patched(inner, ctx, target, &options, patch_type, (&patch, &repeated), old)?;
        let given = object::meta_str(&patched, "resourceVersion");
        let expected = (given != object::meta_str(old, "resourceVersion")).then(|| given.to_owned());
        Ok(UpdateAttempt { object: patched, tracking: Tracking::Update, expected })
    })
    .await
}

/// Error messages of strict decoding about duplicate fields in a patch.
fn repeated_fields(ctx: &RequestContext, patch_type: PatchType) -> Vec<String> {
    if patch_type == PatchType::Json {
        return Vec::new();
    }
    let read = fl_schema::decode(&ctx.body, fl_schema::Shape::Free);
    read.map(|found| found.strict.iter().map(ToString::to_string).collect()).unwrap_or_default()
}

/// The patch document.
pub(crate) fn read_patch(ctx: &RequestContext, patch_type: PatchType) -> ApiResult<Value> {
    // Strategic merge patches have another decoder upstream, whose messages have no prefix.
    let said = if patch_type == PatchType::Strategic { "" } else { "error decoding patch: " };
    let patch: Value = serde_json::from_slice(&ctx.body)
        .map_err(|_| ApiError::bad_request(format!("{said}{}", fl_go::json_syntax_error(&ctx.body))))?;
    let wanted =
        if patch_type == PatchType::Json { "[]handlers.jsonPatchOp" } else { "map[string]interface {}" };
    let fits = match patch_type {
        PatchType::Json => patch.is_array() || patch.is_null(),
        PatchType::Strategic => patch.is_object() || patch.is_null(),
        PatchType::Merge => patch.is_object() || patch.is_null(),
        PatchType::Apply => patch.is_object(),
    };
    if !fits {
        let what = decode::go_type(&patch);
        let why = format!("json: cannot unmarshal {what} into Go value of type {wanted}");
        return Err(ApiError::bad_request(format!("{said}{why}")));
    }
    if patch.is_null() && patch_type == PatchType::Strategic {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    if patch_type == PatchType::Merge && patch.is_null() {
        return Err(ApiError::bad_request("Invalid JSON Patch"));
    }
    if patch_type == PatchType::Json {
        let odd = patch.as_array().into_iter().flatten().find(|op| !op.is_object() && !op.is_null());
        if let Some(odd) = odd {
            let what = decode::go_type(odd);
            let why = format!("json: cannot unmarshal {what} into Go value of type handlers.jsonPatchOp");
            return Err(ApiError::bad_request(format!("{said}{why}")));
        }
        let operations = patch.as_array().map_or(0, Vec::len);
        if operations > 10_000 {
            return Err(ApiError::too_large(&format!(
                "The allowed maximum operations in a JSON patch is 10000, got {operations}"
            )));
        }
    }
    Ok(patch)
}

/// The current object with the patch applied, decoded into its type.
fn patched(
    inner: &Inner,
    ctx: &RequestContext,
    target: &Target,
    options: &WriteOptions,
    patch_type: PatchType,
    (patch, repeated): (&Value, &[String]),
    old: &Value,
) -> ApiResult<Value> {
    let rt = &target.rt;
    let merged = patch_type::merge(rt, patch_type, old, patch)?;
    let shown = patch_type::shown_patch(patch_type, patch, &merged);
    let invalid = |why: String| refuse(&shown, why);
    let mut object = decode_patched(
        inner,
        ctx,
        target,
        options.validation,
        (merged, repeated),
        patch_type == PatchType::Strategic,
        &invalid,
    )?;
    check_name(object::name(&object), target)?;
    check_namespace(&mut object, target)?;
    Ok(object)
}

/// The error for a patch that changes the kind of an object.
fn foreign_kind(
    inner: &Inner,
    rt: &ResourceType,
    kind: &str,
    api_version: &str,
    merged: &Value,
) -> Option<String> {
    let (group, version) = object::split_api_version(api_version);
    let registry = inner.registry();
    let other = registry.by_kind(group, version, kind).filter(|t| !t.is_custom())?;
    let schema = other.strategy.schema()?;
    Some(match fl_schema::decode_value(merged.clone(), fl_schema::Shape::Typed(&schema)) {
        Err(error) => decode::decode_message(&error),
        Ok(_) => {
            let package = decode::internal_package(&rt.group);
            format!("converting ({version}.{kind}) to ({package}.{}): unknown conversion", rt.kind)
        }
    })
}

/// Rejects a patch that changes the type of a custom resource.
fn check_custom_type(target: &Target, merged: &Value) -> ApiResult<()> {
    let (kind, api_version) = (object::kind(merged), object::api_version(merged));
    let refuse = |field: &str, given: &str, own: &str| {
        let error = FieldError::invalid(field, &Value::from(given), format!("must be {own}"));
        let (group, _) = object::split_api_version(api_version);
        Err(ApiError::invalid_kind(group, kind, &target.name, &[error]))
    };
    let own = target.rt.api_version();
    if kind != target.rt.kind {
        return refuse("kind", kind, &target.rt.kind);
    }
    if api_version != own {
        return refuse("apiVersion", api_version, &own);
    }
    Ok(())
}

fn decode_patched(
    inner: &Inner,
    ctx: &RequestContext,
    target: &Target,
    validation: FieldValidation,
    (merged, repeated): (Value, &[String]),
    strategic: bool,
    invalid: &dyn Fn(String) -> ApiError,
) -> ApiResult<Value> {
    let rt = &target.rt;
    let schema = rt.strategy.schema();
    let mut strict: Vec<String>;
    let mut object;
    if rt.is_custom() {
        if object::kind(&merged).is_empty() {
            return Err(invalid(format!("Object 'Kind' is missing in '{merged}'")));
        }
        if object::api_version(&merged).is_empty() {
            let why = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
            return Err(ApiError::internal(why));
        }
        check_custom_type(target, &merged)?;
        object = merged;
        strict = Vec::new();
        if let Some(schema) = &schema {
            let unknown =
                fl_schema::coerce(&mut object, schema).map_err(|error| invalid(error.to_string()))?;
            strict.extend(unknown.into_iter().map(|p| format!("unknown field {p:?}")));
        }
    } else {
        if object::api_version(&merged).is_empty() {
            return Err(ApiError::nameless(&target.name));
        }
        // A strategic merge patch ignores fields outside the type.
        let or =
            |given: &str, own: String| if given.is_empty() || strategic { own } else { given.to_owned() };
        let kind = or(object::kind(&merged), rt.kind.clone());
        let api_version = or(object::api_version(&merged), rt.api_version());
        if (kind != rt.kind || api_version != rt.api_version())
            && let Some(why) = foreign_kind(inner, rt, &kind, &api_version, &merged)
        {
            return Err(invalid(why));
        }
        let shape = schema.as_ref().map_or(fl_schema::Shape::Free, |s| fl_schema::Shape::Typed(s));
        let decoded = fl_schema::decode_value(merged, shape)
            .map_err(|e| invalid(if strategic { restored(&e) } else { decode::decode_message(&e) }))?;
        if kind != rt.kind || api_version != rt.api_version() {
            return Err(invalid(format!(
                "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:110\""
            )));
        }
        strict = decoded.strict.iter().map(ToString::to_string).collect();
        object = decoded.value;
    }
    strict.splice(0..0, repeated.iter().cloned());
    decode::report(ctx, rt, validation, &strict, invalid)?;
    decode::stamp_type(&mut object, rt);
    rt.strategy.normalize(&mut object);
    Ok(object)
}
