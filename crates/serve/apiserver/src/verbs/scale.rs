//! The `scale` subresource.

use std::sync::Arc;

use fl_builtin::ScalePaths;
use fl_schema::FieldError;
use serde_json::{Value, json};

use super::guaranteed_update::{self, UpdateAttempt, UpdateKind};
use super::identity::check_name;
use super::patch_type::{self, PatchType};
use super::pipeline::Tracking;
use super::{Verb, decode, options, patch, read};
use crate::crd::convert;
use crate::object;
use crate::response::ApiResponse;
use crate::server::{Inner, RequestContext, Target};
use crate::status::{ApiError, ApiResult};

/// The value at a path such as `.spec.replicas`.
fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|p| !p.is_empty()).try_fold(object, |v, p| v.get(p))
}

fn set(object: &mut Value, path: &str, value: Value) {
    let parts: Vec<&str> = path.split('.').filter(|p| !p.is_empty()).collect();
    let Some((last, parents)) = parts.split_last() else { return };
    let mut here = object;
    for part in parents {
        if !here.get(*part).is_some_and(Value::is_object) {
            here[*part] = json!({});
        }
        here = &mut here[*part];
    }
    here[*last] = value;
}

/// A selector object as the string in `Scale`.
fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let pairs = |map: &Value| -> Vec<String> {
        map.as_object()
            .into_iter()
            .flatten()
            .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
            .collect()
    };
    let structured = selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some();
    let mut parts = if structured { pairs(&selector["matchLabels"]) } else { pairs(selector) };
    for item in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = item.get("key").and_then(Value::as_str).unwrap_or_default();
        let values: Vec<&str> = item
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        parts.push(match item.get("operator").and_then(Value::as_str).unwrap_or_default() {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}

/// The `Scale` of an object.
pub(crate) fn scale_of(object: &Value, paths: &ScalePaths) -> Value {
    let mut meta = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.get("metadata").and_then(|m| m.get(field)) {
            meta[field] = value.clone();
        }
    }
    let number = |path: &str| at(object, path).and_then(Value::as_i64).unwrap_or(0);
    let mut spec = json!({});
    let wanted = number(&paths.spec);
    if wanted != 0 {
        spec["replicas"] = json!(wanted);
    }
    let mut status = json!({"replicas": number(&paths.status)});
    if let Some(selector) = paths.selector.as_deref().and_then(|p| at(object, p)) {
        let text = selector_text(selector);
        if !text.is_empty() {
            status["selector"] = json!(text);
        }
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status})
}

pub(crate) async fn run(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    target: &Target,
    verb: Verb,
) -> ApiResult<ApiResponse> {
    let rt = &target.rt;
    let Some(paths) = rt.strategy.scale_paths() else { return Err(ApiError::no_such_resource()) };
    if verb == Verb::Get {
        let entry = inner
            .store
            .get(target.table(), &target.key())
            .ok_or_else(|| ApiError::not_found(rt, &target.name))?;
        let entry = convert::entry(inner, rt, entry).await?;
        let object = read::served_value(rt, &entry);
        if rt.is_custom() && at(&object, &paths.spec).is_none_or(Value::is_null) {
            return Err(ApiError::internal(format!(
                "the spec replicas field {:?} does not exist",
                paths.spec
            )));
        }
        return Ok(ApiResponse::document(scale_of(&object, &paths)));
    }
    let form = if verb == Verb::Patch { Some(patch_type::patch_type(ctx, target)?) } else { None };
    let kind = if verb == Verb::Patch { "PatchOptions" } else { "UpdateOptions" };
    let options = options::read(ctx, kind, form == Some(PatchType::Apply))?;
    let document = match form {
        None => {
            let text = decode::json_text(ctx)?;
            let scale: Value =
                serde_json::from_slice(&text).map_err(|e| ApiError::bad_request(e.to_string()))?;
            if object::kind(&scale) != "Scale" {
                let (kind, version) =
                    (object::kind(&scale), object::split_api_version(object::api_version(&scale)).1);
                return Err(ApiError::bad_request(format!(
                    "{kind} in version {version:?} cannot be handled as a Scale: converting ({version}.{kind}) to (autoscaling.Scale): unknown conversion"
                )));
            }
            check_name(object::name(&scale), target)?;
            scale
        }
        Some(PatchType::Apply) => {
            let text = decode::yaml_to_json(&ctx.body)?;
            serde_json::from_slice(&text).map_err(|e| ApiError::bad_request(e.to_string()))?
        }
        Some(form) => patch::read_patch(ctx, form)?,
    };
    let main = Target { subresource: "scale".to_owned(), ..target.clone() };
    let answered = guaranteed_update::run(inner, ctx, &main, &options, UpdateKind::Patch, |old| {
        let Some(old) = old else { return Err(ApiError::not_found(rt, &target.name)) };
        if rt.is_custom() && form == Some(PatchType::Apply) {
            // Upstream cannot convert the scale of a custom resource to another version than the resource's
            // own.
            let why = "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid group/version: autoscaling/v1";
            return Err(ApiError::new(500, "", why));
        }
        let current = scale_of(old, &paths);
        let registry = inner.registry();
        let now = ctx.now_text();
        let mut current = current;
        let managed =
            old.pointer("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
        let replicas_path: Vec<String> =
            paths.spec.split('.').filter(|p| !p.is_empty()).map(str::to_owned).collect();
        let path_in = |version: &str| {
            let known =
                registry.iter().any(|t| t.storage.prefix == rt.storage.prefix && t.api_version() == version);
            known.then(|| replicas_path.clone())
        };
        object::set_meta(&mut current, "managedFields", fl_ssa::scale_to_subresource(&managed, &path_in));
        let Some(schema) = fl_kubeschema::schema("autoscaling", "v1", "Scale") else {
            return Err(ApiError::no_such_resource());
        };
        let none = fl_ssa::Set::new();
        let request = fl_ssa::Request {
            schema: &schema,
            api_version: "autoscaling/v1",
            kind: "Scale",
            subresource: "scale",
            manager: &options.manager,
            now: &now,
            reset: &none,
            versions: &fl_ssa::OneVersion,
        };
        let typed = |scale: Value, refuse: &dyn Fn(String) -> ApiError| -> ApiResult<Value> {
            let decoded = fl_schema::decode_value(scale, fl_schema::Shape::Typed(&schema))
                .map_err(|error| refuse(decode::decode_message(&error)))?;
            let strict: Vec<String> = decoded.strict.iter().map(ToString::to_string).collect();
            decode::report(ctx, rt, options.validation, &strict, refuse)?;
            Ok(decoded.value)
        };
        let mut scale = match form {
            None => typed(document.clone(), &|why| {
                ApiError::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {why}"))
            })?,
            Some(PatchType::Apply) => fl_ssa::apply(request, &current, &document, options.force)
                .map_err(|e| super::managed_fields::apply_error(&e))?,
            Some(form) => {
                // `Scale` has no lists with merge keys.
                let merged = if form == PatchType::Strategic { PatchType::Merge } else { form };
                let merged = patch_type::merge(rt, merged, &current, &document)?;
                let shown = patch_type::shown_patch(form, &document, &merged);
                typed(merged, &|why| patch_type::refuse(&shown, why))?
            }
        };
        if form != Some(PatchType::Apply) {
            object::remove_meta(&mut scale, "managedFields");
            fl_ssa::update(request, &current, &mut scale);
        }
        let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        if replicas < 0 && !rt.is_custom() {
            let error =
                FieldError::invalid("spec.replicas", &json!(replicas), "must be greater than or equal to 0");
            return Err(ApiError::invalid_kind("autoscaling", "Scale", &target.name, &[error]));
        }
        let mut object = old.clone();
        set(&mut object, &paths.spec, json!(replicas));
        let written =
            scale.pointer("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut merged = fl_ssa::scale_to_parent(&managed, &written, &rt.api_version(), &path_in);
        // Upstream drops the time of a write to `scale`.
        for entry in &mut merged {
            if entry["subresource"] == "scale"
                && let Some(entry) = entry.as_object_mut()
            {
                entry.remove("time");
            }
        }
        object::set_meta(&mut object, "managedFields", merged);
        let given = object::meta_str(&scale, "resourceVersion");
        let expected = (!given.is_empty() && given != object::meta_str(old, "resourceVersion"))
            .then(|| given.to_owned());
        Ok(UpdateAttempt { object, tracking: Tracking::Done, expected })
    })
    .await?;
    match answered {
        ApiResponse::Object { code, bytes, .. } => {
            let object: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
            Ok(ApiResponse::Document { code, value: scale_of(&object, &paths) })
        }
        other => Ok(other),
    }
}
