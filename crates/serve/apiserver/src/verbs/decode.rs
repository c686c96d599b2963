//! Decoding of request bodies.

use fl_schema::{DecodeError, Shape};
use serde_json::Value;

use super::options::FieldValidation;
use crate::object;
use crate::resource_type::ResourceType;
use crate::server::{Inner, RequestContext};
use crate::status::{ApiError, ApiResult};

/// The media type without parameters.
pub(crate) fn media_type(ctx: &RequestContext) -> String {
    ctx.headers.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The body as JSON; YAML and protobuf are converted.
pub(crate) fn json_text(ctx: &RequestContext) -> ApiResult<std::borrow::Cow<'_, [u8]>> {
    let media = media_type(ctx);
    if media == "application/vnd.kubernetes.protobuf"
        && let Some(text) = crate::protobuf::to_json(&ctx.body)
    {
        return Ok(std::borrow::Cow::Owned(text));
    }
    match media.as_str() {
        "" | "application/json" => Ok(std::borrow::Cow::Borrowed(&ctx.body)),
        "application/yaml" => yaml_to_json(&ctx.body).map(std::borrow::Cow::Owned),
        // Typed Go clients send built-in types this way; the response may still be JSON.
        "application/vnd.kubernetes.protobuf" => fl_kubeschema::protobuf_to_json(&ctx.body)
            .map(|value| std::borrow::Cow::Owned(value.to_string().into_bytes()))
            .map_err(|why| ApiError::bad_request(why.to_string())),
        _ => Err(ApiError::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

pub(crate) fn yaml_to_json(text: &[u8]) -> ApiResult<Vec<u8>> {
    crate::yaml::to_json(text)
        .map_err(|why| ApiError::bad_request(format!("error converting YAML to JSON: {why}")))
}

/// Decodes an object of a type and checks its kind. Findings of strict decoding become warnings or errors,
/// depending on `fieldValidation`.
pub(crate) fn body(
    inner: &Inner,
    ctx: &RequestContext,
    rt: &ResourceType,
    validation: FieldValidation,
) -> ApiResult<Value> {
    let text = match json_text(ctx) {
        Err(error) if error.code == 400 && media_type(ctx) == "application/yaml" => {
            let why = error.message.trim_start_matches("error converting YAML to JSON: ");
            return Err(unrecognized(rt, why, &ctx.body));
        }
        other => other?,
    };
    let repeated = (media_type(ctx) == "application/yaml").then(|| crate::yaml::duplicate_keys(&ctx.body));
    let repeated = repeated.flatten().map_or_else(Vec::new, |repeated| match validation {
        FieldValidation::Strict => vec![repeated.strict_error],
        _ => repeated.warnings,
    });
    let decoding = DecodeContext { inner, rt, repeated };
    // Go decodes `null` into any type as its empty value.
    if !rt.is_custom() && text.trim_ascii() == b"null" {
        return typed(b"{}", ctx, &decoding, validation);
    }
    typed(&text, ctx, &decoding, validation)
}

/// The expected type of a body, for error messages.
struct DecodeContext<'a> {
    inner: &'a Inner,
    rt: &'a ResourceType,
    /// Messages about duplicate keys in YAML.
    repeated: Vec<String>,
}

fn typed(
    text: &[u8],
    ctx: &RequestContext,
    decoding: &DecodeContext<'_>,
    validation: FieldValidation,
) -> ApiResult<Value> {
    let rt = decoding.rt;
    let refuse = |why: String| {
        ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {why}",
            rt.kind, rt.version, rt.kind
        ))
    };
    let unrecognized = |why: &str| unrecognized(rt, why, &ctx.body);
    // The type decides how the rest is decoded, so it is read first.
    if let Some(what) = not_an_object(text) {
        return Err(unrecognized(&not_a_type(what)));
    }
    let (kind, api_version) = peek_type(text)
        .map_err(|why| unrecognized(&format!("couldn't get version/kind; json parse error: {why}")))?;
    if api_version.matches('/').count() > 1 {
        return Err(unrecognized(&format!("unexpected GroupVersion string: {api_version}")));
    }
    if rt.is_custom() && kind.is_empty() {
        // The type of a built-in resource may be omitted; that of a custom resource may not.
        let shown = String::from_utf8_lossy(&ctx.body);
        return Err(unrecognized(&format!("Object 'Kind' is missing in '{shown}'")));
    }
    if rt.is_custom() && kind == rt.kind {
        report_unknown_version(ctx, rt, &api_version, validation, text)?;
    }
    check_type(decoding, &kind, &api_version, text)?;
    let schema = rt.strategy.schema();
    let shape = match (&schema, rt.is_custom()) {
        (Some(schema), false) => Shape::Typed(schema),
        _ => Shape::Free,
    };
    let decoded = fl_schema::decode(text, shape).map_err(|e| refuse(decode_message(&e)))?;
    let mut value = decoded.value;
    if !value.is_object() {
        return Err(ApiError::bad_request(not_a_type(go_type(&value))));
    }
    let mut strict = decoding.repeated.clone();
    strict.extend(decoded.strict.iter().map(ToString::to_string));
    if let (Some(schema), true) = (&schema, rt.is_custom()) {
        let unknown = fl_schema::coerce(&mut value, schema).map_err(|error| refuse(error.to_string()))?;
        strict.extend(unknown.into_iter().map(|p| format!("unknown field {p:?}")));
    }
    report(ctx, rt, validation, &strict, refuse)?;
    stamp_type(&mut value, rt);
    rt.strategy.normalize(&mut value);
    Ok(value)
}

/// A version of a custom resource that is not served has no fields: all of them are unknown.
fn report_unknown_version(
    ctx: &RequestContext,
    rt: &ResourceType,
    api_version: &str,
    validation: FieldValidation,
    text: &[u8],
) -> ApiResult<()> {
    let (group, version) = object::split_api_version(api_version);
    if group != rt.group || version == rt.version {
        return Ok(());
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(text) else { return Ok(()) };
    let bare = fl_schema::Schema {
        ty: fl_schema::Type::Object,
        embedded_resource: true,
        ..fl_schema::Schema::default()
    };
    let Ok(mut unknown) = fl_schema::coerce(&mut value, &bare) else { return Ok(()) };
    unknown.sort();
    let strict: Vec<String> = unknown.into_iter().map(|path| format!("unknown field {path:?}")).collect();
    report(ctx, rt, validation, &strict, |why| {
        let kind = &rt.kind;
        ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
    })
}

/// Go's name for a valid JSON document that is not an object.
fn not_an_object(text: &[u8]) -> Option<&'static str> {
    let first = text.iter().find(|b| !b.is_ascii_whitespace())?;
    if *first == b'{' {
        return None;
    }
    serde_json::from_slice::<Value>(text).ok().filter(|v| !v.is_object() && !v.is_null()).map(|v| go_type(&v))
}

/// Go's error message for a document that is not an object and has no type.
pub(crate) fn not_a_type(what: &str) -> String {
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {what} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )
}

/// The error for a body whose type cannot be read.
fn unrecognized(rt: &ResourceType, why: &str, text: &[u8]) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why} ({})",
        rt.kind,
        summary(text)
    ))
}

/// The start of a body as upstream shows it.
fn summary(text: &[u8]) -> String {
    const MAX_SHOWN_BYTES: usize = 30;
    let start = &text[..text.len().min(MAX_SHOWN_BYTES)];
    let shown = match start.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().map(|b| format!("{b:02x}")).collect(),
    };
    if text.len() > MAX_SHOWN_BYTES { format!("{shown} ...") } else { shown }
}

/// Go's error message for a `kind` or `apiVersion` that is not a string.
fn type_error(text: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct RawTypeMeta {
        #[serde(default)]
        kind: Value,
        #[serde(default, rename = "apiVersion")]
        api_version: Value,
    }
    let raw: RawTypeMeta = serde_json::from_slice(text).ok()?;
    for (name, value) in [("apiVersion", &raw.api_version), ("kind", &raw.kind)] {
        if !value.is_string() && !value.is_null() {
            let what = go_type(value);
            return Some(format!(
                "json: cannot unmarshal {what} into Go struct field .{name} of type string"
            ));
        }
    }
    None
}

/// Reports findings of strict decoding as warnings or as an error.
pub(crate) fn report(
    ctx: &RequestContext,
    _rt: &ResourceType,
    validation: FieldValidation,
    strict: &[String],
    refuse: impl FnOnce(String) -> ApiError,
) -> ApiResult<()> {
    if strict.is_empty() {
        return Ok(());
    }
    match validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => strict.iter().for_each(|s| ctx.warn(s.clone())),
        FieldValidation::Strict => {
            return Err(refuse(format!("strict decoding error: {}", strict.join(", "))));
        }
    }
    Ok(())
}

pub(crate) fn decode_message(error: &DecodeError) -> String {
    match error {
        DecodeError::Syntax { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// Sets kind and apiVersion to those of the type.
pub(crate) fn stamp_type(value: &mut Value, rt: &ResourceType) {
    if let Some(map) = value.as_object_mut() {
        map.insert("kind".to_owned(), Value::from(rt.kind.as_str()));
        map.insert("apiVersion".to_owned(), Value::from(rt.api_version()));
    }
}

pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[derive(serde::Deserialize)]
struct TypeMeta {
    #[serde(default)]
    kind: Option<String>,
    #[serde(default, rename = "apiVersion")]
    api_version: Option<String>,
}

/// Reads `kind` and `apiVersion`, as far as they are present.
fn peek_type(text: &[u8]) -> Result<(String, String), String> {
    if let Ok(meta) = serde_json::from_slice::<TypeMeta>(text) {
        return Ok((meta.kind.unwrap_or_default(), meta.api_version.unwrap_or_default()));
    }
    // Not JSON, fields of a wrong type, or duplicate fields.
    if let Some(why) = type_error(text) {
        return Err(why);
    }
    let value: Value = serde_json::from_slice(text).map_err(|_| fl_go::json_syntax_error(text))?;
    Ok((object::kind(&value).to_owned(), object::api_version(&value).to_owned()))
}

fn check_type(decoding: &DecodeContext<'_>, kind: &str, api_version: &str, text: &[u8]) -> ApiResult<()> {
    let rt = decoding.rt;
    let own = rt.api_version();
    let version_ok = api_version == own || api_version.is_empty() && !rt.is_custom();
    let kind_ok = kind.is_empty() || kind == rt.kind;
    if kind_ok && version_ok {
        return Ok(());
    }
    let (shown_kind, shown_version) = (
        if kind.is_empty() { &rt.kind } else { kind },
        if api_version.is_empty() { &own } else { api_version },
    );
    let (group, version) = object::split_api_version(shown_version);
    if rt.is_custom() {
        if version_ok {
            // Any object decodes as a custom resource; its validation rejects another kind.
            let named: Value = serde_json::from_slice(text).unwrap_or_default();
            let why = format!("must be {}", rt.kind);
            let error = fl_schema::FieldError::invalid("kind", &Value::from(shown_kind), why);
            return Err(ApiError::invalid_kind(group, shown_kind, object::name(&named), &[error]));
        }
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({own})"
        )));
    }
    if shown_kind == rt.kind && is_former_version(rt, group, version) {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({own})"
        )));
    }
    let registered = decoding.inner.registry().by_kind(group, version, shown_kind).cloned();
    let why = match registered {
        Some(other) if other.group == rt.group && other.kind == rt.kind => {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({own})"
            )));
        }
        Some(other) if !other.is_custom() => format!(
            "converting ({version}.{shown_kind}) to ({}.{}): unknown conversion",
            internal_package(&rt.group),
            rt.kind
        ),
        _ => format!(
            "no kind {shown_kind:?} is registered for version {shown_version:?} in scheme \"pkg/runtime/scheme.go:110\""
        ),
    };
    Err(ApiError::bad_request(format!(
        "{shown_kind} in version {version:?} cannot be handled as a {}: {why}",
        rt.kind
    )))
}

/// Versions that are no longer served but are still registered upstream.
fn is_former_version(rt: &ResourceType, group: &str, version: &str) -> bool {
    let old: &[&str] = match group {
        "extensions" => {
            let moved = ["DaemonSet", "Deployment", "Ingress", "NetworkPolicy", "ReplicaSet"];
            return version == "v1beta1" && moved.contains(&rt.kind.as_str());
        }
        _ if group != rt.group => return false,
        "apps" => &["v1beta1", "v1beta2"],
        "autoscaling" => &["v2beta1", "v2beta2"],
        "batch" | "policy" | "discovery.k8s.io" | "events.k8s.io" | "networking.k8s.io" => &["v1beta1"],
        "rbac.authorization.k8s.io"
        | "scheduling.k8s.io"
        | "storage.k8s.io"
        | "node.k8s.io"
        | "admissionregistration.k8s.io"
        | "certificates.k8s.io" => &["v1alpha1", "v1beta1"],
        "coordination.k8s.io" => &["v1alpha2", "v1beta1"],
        "flowcontrol.apiserver.k8s.io" => &["v1beta1", "v1beta2", "v1beta3"],
        _ => &[],
    };
    old.contains(&version)
}

/// The Go package of upstream's internal types, which appears in messages.
pub(crate) fn internal_package(group: &str) -> &str {
    match group {
        "" => "core",
        other => other.split('.').next().unwrap_or(other),
    }
}
