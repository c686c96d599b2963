//! `patch`: JSON patch, merge patch, strategic merge patch, and apply.

use std::sync::Arc;

use fl_schema::{DecodeError, FieldError, Misfit};
use serde_json::Value;

use super::change::{self, Proposal, Style};
use super::create::{Tracking, check_namespace};
use super::options::{self, FieldValidation, WriteOptions};
use super::{apply, decode};
use crate::answer::Answer;
use crate::object;
use crate::resource::ResourceType;
use crate::server::{Call, Inner, Target};
use crate::status::{ApiError, Outcome};

/// The forms of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Merge,
    Strategic,
    Apply,
}

pub(crate) fn form(call: &Call, target: &Target) -> Outcome<Form> {
    let custom = target.rt.is_custom();
    let unsupported = || {
        ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            .with_details(serde_json::json!({}))
    };
    match decode::media_type(call).as_str() {
        "application/json-patch+json" => Ok(Form::Json),
        "application/merge-patch+json" => Ok(Form::Merge),
        "application/strategic-merge-patch+json" if !custom => Ok(Form::Strategic),
        "application/apply-patch+yaml" => Ok(Form::Apply),
        _ if custom => Err(ApiError::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
        _ => Err(unsupported()),
    }
}

pub(crate) async fn run(inner: &Arc<Inner>, call: &Call, target: &Target) -> Outcome<Answer> {
    let form = form(call, target)?;
    let options = options::read(call, "PatchOptions", form == Form::Apply)?;
    if form == Form::Apply {
        return apply::run(inner, call, target, &options).await;
    }
    if inner.store.latest(target.table(), &target.key()).is_none() {
        return Err(ApiError::not_found(&target.rt, &target.name));
    }
    let patch = read_patch(call, form)?;
    let repeated = repeated_fields(call, form);
    change::run(inner, call, target, &options, Style::Patch, |old| {
        let Some(old) = old else { return Err(ApiError::not_found(&target.rt, &target.name)) };
        let patched = patched(inner, call, target, &options, form, (&patch, &repeated), old)?;
        let given = object::meta_str(&patched, "resourceVersion");
        let expected = (given != object::meta_str(old, "resourceVersion")).then(|| given.to_owned());
        Ok(Proposal { object: patched, tracking: Tracking::Update, expected })
    })
    .await
}

/// Fields that stand twice in a patch, as strict readers complain about them.
fn repeated_fields(call: &Call, form: Form) -> Vec<String> {
    if form == Form::Json {
        return Vec::new();
    }
    let read = fl_schema::decode(&call.body, fl_schema::Shape::Free);
    read.map(|found| found.strict.iter().map(ToString::to_string).collect()).unwrap_or_default()
}

/// The patch document.
pub(crate) fn read_patch(call: &Call, form: Form) -> Outcome<Value> {
    // Strategic patches are read by another reader, which says less.
    let said = if form == Form::Strategic { "" } else { "error decoding patch: " };
    let patch: Value = serde_json::from_slice(&call.body)
        .map_err(|_| ApiError::bad_request(format!("{said}{}", fl_schema::go_syntax_error(&call.body))))?;
    let wanted = if form == Form::Json { "[]handlers.jsonPatchOp" } else { "map[string]interface {}" };
    let fits = match form {
        Form::Json => patch.is_array() || patch.is_null(),
        Form::Strategic => patch.is_object() || patch.is_null(),
        Form::Merge => patch.is_object() || patch.is_null(),
        Form::Apply => patch.is_object(),
    };
    if !fits {
        let what = decode::go_type(&patch);
        let why = format!("json: cannot unmarshal {what} into Go value of type {wanted}");
        return Err(ApiError::bad_request(format!("{said}{why}")));
    }
    if patch.is_null() && form == Form::Strategic {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    if form == Form::Merge && patch.is_null() {
        return Err(ApiError::bad_request("Invalid JSON Patch"));
    }
    if form == Form::Json {
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

/// What a patch makes of an object is not of its type.
pub(super) fn refuse(shown: &str, why: String) -> ApiError {
    let error = FieldError {
        kind: fl_schema::FieldErrorKind::Invalid,
        field: "patch".to_owned(),
        value: Some(shown.to_owned()),
        detail: why,
    };
    ApiError::invalid_kind("", "", "", &[error])
}

/// The current object with the patch applied and decoded again.
fn patched(
    inner: &Inner,
    call: &Call,
    target: &Target,
    options: &WriteOptions,
    form: Form,
    (patch, repeated): (&Value, &[String]),
    old: &Value,
) -> Outcome<Value> {
    let rt = &target.rt;
    let merged = apply::merge(rt, form, old, patch)?;
    let shown = apply::shown_patch(form, patch, &merged);
    let invalid = |why: String| refuse(&shown, why);
    let mut object = decode_patched(
        inner,
        call,
        target,
        options.validation,
        (merged, repeated),
        form == Form::Strategic,
        &invalid,
    )?;
    change::check_name(object::name(&object), target)?;
    check_namespace(&mut object, target)?;
    Ok(object)
}

/// Why an object that a patch turned into another kind is refused.
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
    let schema = other.behaviour.schema()?;
    Some(match fl_schema::decode_value(merged.clone(), fl_schema::Shape::Typed(&schema)) {
        Err(error) => decode::decode_message(&error),
        Ok(_) => {
            let package = decode::internal_package(&rt.group);
            format!("converting ({version}.{kind}) to ({package}.{}): unknown conversion", rt.kind)
        }
    })
}

/// A strategic patch is turned into Go values without JSON in between: a value of a wrong type is told differently.
pub(super) fn restored(error: &DecodeError) -> String {
    let why = decode::decode_message(error);
    let told = why.strip_prefix("json: cannot unmarshal ").and_then(|rest| {
        let (given, rest) = rest.split_once(" into Go ")?;
        if matches!(error, DecodeError::Value { misfit: Misfit::IntOrString, .. }) {
            // That type reads JSON itself, and does not know where it stands.
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
    told.unwrap_or(why)
}

/// A patch does not make a custom resource something else.
fn check_custom_type(target: &Target, merged: &Value) -> Outcome<()> {
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
    call: &Call,
    target: &Target,
    validation: FieldValidation,
    (merged, repeated): (Value, &[String]),
    strategic: bool,
    invalid: &dyn Fn(String) -> ApiError,
) -> Outcome<Value> {
    let rt = &target.rt;
    let schema = rt.behaviour.schema();
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
            let unknown = fl_schema::coerce(&mut object, schema).map_err(&invalid)?;
            strict.extend(unknown.into_iter().map(|p| format!("unknown field {p:?}")));
        }
    } else {
        if object::api_version(&merged).is_empty() {
            return Err(ApiError::nameless(&target.name));
        }
        // A strategic patch goes by the fields of the type alone.
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
    decode::report(call, rt, validation, &strict, invalid)?;
    decode::stamp_type(&mut object, rt);
    rt.behaviour.normalize(&mut object);
    Ok(object)
}
