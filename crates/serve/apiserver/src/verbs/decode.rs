//! From request bodies to objects.

use fl_schema::{DecodeError, Shape};
use serde_json::Value;

use super::options::FieldValidation;
use crate::object;
use crate::resource::ResourceType;
use crate::server::{Call, Inner};
use crate::status::{ApiError, Outcome};

/// The media type without parameters.
pub(crate) fn media_type(call: &Call) -> String {
    call.header("content-type").split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The body as JSON text; YAML is turned into it.
pub(crate) fn json_text(call: &Call) -> Outcome<std::borrow::Cow<'_, [u8]>> {
    let media = media_type(call);
    if media == "application/vnd.kubernetes.protobuf"
        && let Some(text) = crate::wire::to_json(&call.body)
    {
        return Ok(std::borrow::Cow::Owned(text));
    }
    match media.as_str() {
        "" | "application/json" => Ok(std::borrow::Cow::Borrowed(&call.body)),
        "application/yaml" => yaml_to_json(&call.body).map(std::borrow::Cow::Owned),
        // Typed Go clients send built-in types this way; the answer may still be JSON.
        "application/vnd.kubernetes.protobuf" => fl_kubeschema::protobuf_to_json(&call.body)
            .map(|value| std::borrow::Cow::Owned(value.to_string().into_bytes()))
            .map_err(|why| ApiError::bad_request(why.to_string())),
        _ => Err(ApiError::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

pub(crate) fn yaml_to_json(text: &[u8]) -> Outcome<Vec<u8>> {
    crate::yaml::to_json(text)
        .map_err(|why| ApiError::bad_request(format!("error converting YAML to JSON: {why}")))
}

/// Decodes an object of a type, checks its kind, and says or refuses what strict decoding finds.
pub(crate) fn body(
    inner: &Inner,
    call: &Call,
    rt: &ResourceType,
    validation: FieldValidation,
) -> Outcome<Value> {
    let text = json_text(call)?;
    let kinds = Kinds { inner, rt };
    typed(&text, call, &kinds, validation)
}

/// What a body may be, for the words of a refusal.
struct Kinds<'a> {
    inner: &'a Inner,
    rt: &'a ResourceType,
}

fn typed(text: &[u8], call: &Call, kinds: &Kinds<'_>, validation: FieldValidation) -> Outcome<Value> {
    let rt = kinds.rt;
    let refuse = |why: String| {
        ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {why}",
            rt.kind, rt.version, rt.kind
        ))
    };
    // The type decides how the rest is read, so it is looked at first.
    if let Some(what) = not_an_object(text) {
        let subject = if rt.is_custom() {
            String::new()
        } else {
            format!("the object provided is unrecognized (must be of type {}): ", rt.kind)
        };
        let shown = if rt.is_custom() { String::new() } else { format!(" ({})", hex(text)) };
        return Err(ApiError::bad_request(format!("{subject}{}{shown}", not_a_type(what))));
    }
    let (kind, api_version) = peek_type(text).map_err(refuse)?;
    check_type(kinds, &kind, &api_version)?;
    let schema = rt.behaviour.schema();
    let shape = match (&schema, rt.is_custom()) {
        (Some(schema), false) => Shape::Typed(schema),
        _ => Shape::Free,
    };
    let decoded = fl_schema::decode(text, shape).map_err(|e| refuse(decode_message(&e)))?;
    let mut value = decoded.value;
    if !value.is_object() {
        return Err(ApiError::bad_request(not_a_type(go_type(&value))));
    }
    let mut strict: Vec<String> = decoded.strict.iter().map(ToString::to_string).collect();
    if let (Some(schema), true) = (&schema, rt.is_custom()) {
        let unknown = fl_schema::coerce(&mut value, schema).map_err(refuse)?;
        strict.extend(unknown.into_iter().map(|p| format!("unknown field {p:?}")));
    }
    report(call, rt, validation, &strict, refuse)?;
    stamp_type(&mut value, rt);
    rt.behaviour.normalize(&mut value);
    Ok(value)
}

/// Go's name for a document that is whole but no object.
fn not_an_object(text: &[u8]) -> Option<&'static str> {
    let first = text.iter().find(|b| !b.is_ascii_whitespace())?;
    if *first == b'{' {
        return None;
    }
    serde_json::from_slice::<Value>(text).ok().filter(|v| !v.is_object() && !v.is_null()).map(|v| go_type(&v))
}

/// Why a document that is no object has no type.
pub(crate) fn not_a_type(what: &str) -> String {
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {what} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )
}

/// The start of a body as upstream shows it.
fn hex(text: &[u8]) -> String {
    text.iter().take(100).map(|b| format!("{b:02x}")).collect()
}

/// Says or refuses strict findings.
pub(crate) fn report(
    call: &Call,
    _rt: &ResourceType,
    validation: FieldValidation,
    strict: &[String],
    refuse: impl FnOnce(String) -> ApiError,
) -> Outcome<()> {
    if strict.is_empty() {
        return Ok(());
    }
    match validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => strict.iter().for_each(|s| call.warn(s.clone())),
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

fn peek_type(text: &[u8]) -> Result<(String, String), String> {
    let found: Result<TypeMeta, _> = serde_json::from_slice(text);
    match found {
        Ok(meta) => Ok((meta.kind.unwrap_or_default(), meta.api_version.unwrap_or_default())),
        Err(_) => {
            // Either not JSON at all, or fields of a wrong type; a generic read tells which.
            let value: Value = serde_json::from_slice(text)
                .map_err(|e| format!("couldn't get version/kind; json parse error: {e}"))?;
            Ok((object::kind(&value).to_owned(), object::api_version(&value).to_owned()))
        }
    }
}

fn check_type(kinds: &Kinds<'_>, kind: &str, api_version: &str) -> Outcome<()> {
    let rt = kinds.rt;
    let own = rt.api_version();
    let (kind_ok, version_ok) =
        (kind.is_empty() || kind == rt.kind, api_version.is_empty() || api_version == own);
    if kind_ok && version_ok {
        return Ok(());
    }
    let (shown_kind, shown_version) = (
        if kind.is_empty() { &rt.kind } else { kind },
        if api_version.is_empty() { &own } else { api_version },
    );
    let (group, version) = object::split_api_version(shown_version);
    if rt.is_custom() {
        let message = if kind_ok {
            format!(
                "the API version in the data ({api_version}) does not match the expected API version ({own})"
            )
        } else {
            format!(
                "{shown_kind}.{group} in version {version:?} cannot be handled as a {}: unstructured object has kind {shown_kind}",
                rt.kind
            )
        };
        return Err(ApiError::bad_request(message));
    }
    let registered = kinds.inner.registry().by_kind(group, version, shown_kind).cloned();
    let why = match registered {
        Some(other) if other.is_custom() => format!(
            "no kind {shown_kind:?} is registered for version {shown_version:?} in scheme \"pkg/api/legacyscheme/scheme.go:30\""
        ),
        Some(other) if other.group == rt.group && other.kind == rt.kind => {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({own})"
            )));
        }
        Some(_) => format!(
            "converting ({version}.{shown_kind}) to ({}.{}): unknown conversion",
            internal_package(&rt.group),
            rt.kind
        ),
        None => format!(
            "no kind {shown_kind:?} is registered for version {shown_version:?} in scheme \"pkg/runtime/scheme.go:110\""
        ),
    };
    Err(ApiError::bad_request(format!(
        "{shown_kind} in version {version:?} cannot be handled as a {}: {why}",
        rt.kind
    )))
}

/// The package of upstream's internal types, as it shows in messages.
pub(crate) fn internal_package(group: &str) -> &str {
    match group {
        "" => "core",
        other => other.split('.').next().unwrap_or(other),
    }
}
