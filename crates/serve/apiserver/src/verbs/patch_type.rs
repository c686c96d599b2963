//! Patch types, and how each is applied to an object.

use fl_schema::{DecodeError, FieldError, TypeMismatch};
use fl_ssa::patch::PatchError;
use serde_json::Value;

use super::decode;
use crate::resource_type::ResourceType;
use crate::server::{RequestContext, Target};
use crate::status::{ApiError, ApiResult};

/// Patch types by media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

pub(crate) fn patch_type(ctx: &RequestContext, target: &Target) -> ApiResult<PatchType> {
    let custom = target.rt.is_custom();
    let unsupported = || {
        ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            .with_details(serde_json::json!({}))
    };
    match decode::media_type(ctx).as_str() {
        "application/json-patch+json" => Ok(PatchType::Json),
        "application/merge-patch+json" => Ok(PatchType::Merge),
        "application/strategic-merge-patch+json" if !custom => Ok(PatchType::Strategic),
        "application/apply-patch+yaml" => Ok(PatchType::Apply),
        _ if custom => Err(ApiError::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
        _ => Err(unsupported()),
    }
}

/// Applies a patch of any type but apply.
pub(crate) fn merge(
    rt: &ResourceType,
    patch_type: PatchType,
    old: &Value,
    patch: &Value,
) -> ApiResult<Value> {
    let mut object = old.clone();
    let done = match (patch_type, rt.strategy.schema()) {
        (PatchType::Json, _) => fl_ssa::patch::json_patch(&mut object, patch),
        (PatchType::Strategic, Some(schema)) => {
            fl_ssa::patch::strategic_merge(&mut object, patch.clone(), &schema)
        }
        _ => fl_ssa::patch::merge_patch(&mut object, patch.clone()),
    };
    done.map_err(|e| match e {
        PatchError::BadRequest(message) => ApiError::bad_request(message),
        PatchError::TooLarge(message) => ApiError::too_large(&message),
        // Upstream does not return the reason.
        PatchError::JsonPatch(_) | PatchError::ListOfLists => {
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

/// The patch as error messages show it: the patched object, or the patch as Go prints a map.
pub(crate) fn shown_patch(patch_type: PatchType, patch: &Value, merged: &Value) -> String {
    let text = if patch_type == PatchType::Strategic { fl_go::plain(patch) } else { merged.to_string() };
    Value::from(text).to_string()
}

/// The error for a patched object that does not decode into its type.
pub(crate) fn refuse(shown: &str, why: String) -> ApiError {
    let error = FieldError {
        kind: fl_schema::FieldErrorKind::Invalid,
        field: "patch".to_owned(),
        value: Some(shown.to_owned()),
        detail: why,
    };
    ApiError::invalid_kind("", "", "", &[error])
}

/// Upstream decodes a strategic merge patch into Go values without JSON in between, with other messages for a
/// value of a wrong type.
pub(crate) fn restored(error: &DecodeError) -> String {
    let why = decode::decode_message(error);
    let message = why.strip_prefix("json: cannot unmarshal ").and_then(|rest| {
        let (given, rest) = rest.split_once(" into Go ")?;
        if matches!(error, DecodeError::Value { mismatch: TypeMismatch::IntOrString, .. }) {
            // This type decodes JSON itself, without the path of the field.
            return Some(format!("json: cannot unmarshal {given} into Go value of type int32"));
        }
        let (_, wanted) = rest.rsplit_once(" of type ")?;
        let given = match given.split(' ').next().unwrap_or(given) {
            "object" => "map",
            "array" => "slice",
            "number" if given.contains('.') => "float64",
            "number" => "int64",
            other => other,
        };
        Some(match wanted {
            "bool" | "int32" | "int64" | "string" | "float64" if matches!(given, "int64" | "float64") => {
                format!("cannot convert {given} to {wanted}")
            }
            "bool" | "int32" | "int64" | "string" | "float64" => format!("unrecognized type: {wanted}"),
            list if list.starts_with("[]") => format!("cannot restore slice from {given}"),
            map if map.starts_with("map[") => format!("cannot restore map from {given}"),
            _ => format!("cannot restore struct from: {given}"),
        })
    });
    message.unwrap_or(why)
}
