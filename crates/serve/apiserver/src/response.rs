//! Responses: from objects to bytes in the negotiated encoding.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use crate::body::{Body, full, segments};
use crate::negotiate::{Accept, Form, View};
use crate::object;
use crate::resource_type::ResourceType;
use crate::status::ApiError;

/// The result of a verb.
#[derive(Debug)]
pub(crate) enum ApiResponse {
    /// One object of a type, as JSON bytes of the served version.
    Object {
        code: u16,
        rt: Arc<ResourceType>,
        bytes: Bytes,
    },
    /// Another JSON document (Status, review, discovery).
    Document {
        code: u16,
        value: Value,
    },
    List {
        rt: Arc<ResourceType>,
        meta: Value,
        items: Vec<Bytes>,
        kind: Option<(String, String)>,
    },
    /// A complete HTTP response.
    Raw(Response<Body>),
}

impl ApiResponse {
    pub(crate) fn document(value: Value) -> Self {
        Self::Document { code: 200, value }
    }
}

/// JSON with `kind` and `apiVersion` first, so that they can be read or removed without parsing.
pub(crate) fn to_bytes(value: &Value) -> Bytes {
    Bytes::from(write_object(value))
}

/// The field order of Go's ObjectMeta: streaming clients get the name before large fields.
const METADATA: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

pub(crate) fn write_object(value: &Value) -> Vec<u8> {
    write(value, None)
}

/// [`write_object`] with an empty `resourceVersion`, and the offset where its value belongs; `None` without
/// metadata.
pub(crate) fn write_without_revision(value: &Value) -> (Vec<u8>, Option<usize>) {
    let mut revision = 0;
    let text = write(value, Some(&mut revision));
    (text, Some(revision).filter(|&at| at > 0))
}

fn write(value: &Value, mut revision: Option<&mut usize>) -> Vec<u8> {
    let Some(map) = value.as_object() else { return value.to_string().into_bytes() };
    // Most objects fit, and allocators serve this size quickly.
    let mut out = Vec::with_capacity(1000);
    // Go's field order: the type, then metadata; a Status has its own.
    let leading: &[&str] = if map.get("kind").is_some_and(|k| k == "Status") {
        &["kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code"]
    } else {
        &["kind", "apiVersion", "metadata"]
    };
    out.push(b'{');
    for key in leading {
        match map.get(*key) {
            Some(Value::Object(metadata)) if *key == "metadata" => {
                begin_member(&mut out, key);
                write_metadata(&mut out, metadata, revision.take());
            }
            Some(value) => write_member(&mut out, key, value),
            None => {}
        }
    }
    write_others(&mut out, map, leading);
    out.push(b'}');
    out
}

fn write_metadata(
    out: &mut Vec<u8>,
    metadata: &serde_json::Map<String, Value>,
    mut revision: Option<&mut usize>,
) {
    out.push(b'{');
    for key in METADATA {
        if *key == "resourceVersion"
            && let Some(at) = revision.take()
        {
            begin_member(out, key);
            out.extend_from_slice(b"\"\"");
            *at = out.len() - 1;
        } else if let Some(value) = metadata.get(*key) {
            write_member(out, key, value);
        }
    }
    write_others(out, metadata, METADATA);
    out.push(b'}');
}

/// Writes the members that are not in `written`.
fn write_others(out: &mut Vec<u8>, map: &serde_json::Map<String, Value>, written: &[&str]) {
    for (key, value) in map.iter().filter(|(key, _)| !written.contains(&key.as_str())) {
        write_member(out, key, value);
    }
}

fn write_member(out: &mut Vec<u8>, key: &str, value: &Value) {
    begin_member(out, key);
    write_value(out, value);
}

fn begin_member(out: &mut Vec<u8>, key: &str) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    write_text(out, key);
    out.push(b':');
}

/// JSON as serde_json writes it. Objects consist mostly of strings without escapes: those are copied.
fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => write_text(out, text),
        Value::Object(map) => {
            out.push(b'{');
            map.iter().for_each(|(key, value)| write_member(out, key, value));
            out.push(b'}');
        }
        Value::Array(list) => {
            out.push(b'[');
            for (at, item) in list.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_value(out, item);
            }
            out.push(b']');
        }
        // Writing JSON into memory cannot fail.
        Value::Null | Value::Bool(_) | Value::Number(_) => drop(serde_json::to_writer(out, value)),
    }
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    if text.bytes().any(|b| b < b' ' || b == b'"' || b == b'\\') {
        drop(serde_json::to_writer(out, text));
        return;
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// The first bytes of [`write_object`] for an object of this type.
fn type_prefix(kind: &str, api_version: &str) -> String {
    format!("{{\"kind\":{},\"apiVersion\":{},", Value::from(kind), Value::from(api_version))
}

/// Encodes the result of a verb.
pub(crate) fn render(
    answer: ApiResponse,
    accept: &Accept,
    warnings: &[String],
    include: &str,
    now: i64,
) -> Response<Body> {
    let (code, body) = match answer {
        ApiResponse::Raw(response) => return with_warnings(response, warnings),
        ApiResponse::Document { code, value } => (code, encode(&value, accept)),
        ApiResponse::Object { code, rt, bytes } => match accept.view {
            View::Object if accept.form == Form::Json && !accept.pretty => (code, bytes),
            View::Object => (code, encode(&parse(&bytes), accept)),
            View::Table => {
                let object = parse(&bytes);
                let mut meta = json!({});
                if let Some(rv) = object.pointer("/metadata/resourceVersion") {
                    meta["resourceVersion"] = rv.clone();
                }
                (code, encode(&table(&rt, &meta, &[object], accept, include, now), accept))
            }
            View::Partial => (code, encode(&partial(&parse(&bytes), &accept.meta_version), accept)),
            View::PartialList => {
                let message = format!(
                    "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
                    go_name(&rt, "")
                );
                return error_response(&ApiError::new(406, "NotAcceptable", message), accept);
            }
        },
        ApiResponse::List { rt, .. } if accept.view == View::Partial => {
            let message = format!(
                "you requested PartialObjectMetadata, but the requested object is a list ({})",
                go_name(&rt, "List")
            );
            return error_response(&ApiError::new(406, "NotAcceptable", message), accept);
        }
        ApiResponse::List { rt, meta, items, kind } => {
            let parts = list(&rt, &meta, &items, kind, accept, include, now);
            let response = respond(200, content_type(accept), Bytes::new());
            return with_warnings(response.map(|_| segments(parts)), warnings);
        }
    };
    with_warnings(respond(code, content_type(accept), body), warnings)
}

fn content_type(accept: &Accept) -> &'static str {
    match accept.form {
        Form::Json => "application/json",
        Form::Yaml => "application/yaml",
    }
}

/// The Go type of a response, for messages.
fn go_name(rt: &ResourceType, suffix: &str) -> String {
    if rt.is_custom() {
        return format!("*unstructured.Unstructured{suffix}");
    }
    format!("*{}.{}{suffix}", crate::verbs::decode::internal_package(&rt.group), rt.kind)
}

fn parse(bytes: &Bytes) -> Value {
    serde_json::from_slice(bytes).unwrap_or(Value::Null)
}

/// The segments of a list. Objects that are sent as stored are shared with the store, not copied.
fn list(
    rt: &ResourceType,
    meta: &Value,
    items: &[Bytes],
    kind: Option<(String, String)>,
    accept: &Accept,
    include: &str,
    now: i64,
) -> Vec<Bytes> {
    match accept.view {
        View::Table => {
            let objects: Vec<Value> = items.iter().map(parse).collect();
            vec![encode(&table(rt, meta, &objects, accept, include, now), accept)]
        }
        View::Partial | View::PartialList => {
            let items: Vec<Value> = items.iter().map(|b| partial(&parse(b), &accept.meta_version)).collect();
            let version = format!("meta.k8s.io/{}", accept.meta_version);
            let value = json!({"kind": "PartialObjectMetadataList", "apiVersion": version, "metadata": meta, "items": items});
            vec![encode(&value, accept)]
        }
        View::Object => {
            let (kind, api_version) = kind.unwrap_or_else(|| (rt.list_kind.clone(), rt.api_version()));
            let prefix = type_prefix(&rt.kind, &rt.api_version());
            let mut meta = meta.clone();
            if rt.is_custom() && meta.get("continue").is_none() {
                meta["continue"] = json!("");
            }
            let mut parts = Vec::with_capacity(items.len() * 2 + 2);
            let head = type_prefix(&kind, &api_version);
            parts.push(Bytes::from(format!("{head}\"metadata\":{meta},\"items\":[")));
            for (i, bytes) in items.iter().enumerate() {
                let separator = if i > 0 { "," } else { "" };
                if !rt.is_custom() && bytes.starts_with(prefix.as_bytes()) {
                    parts.push(Bytes::from_static(if i > 0 { b",{" } else { b"{" }));
                    parts.push(bytes.slice(prefix.len()..));
                } else {
                    parts.push(Bytes::from_static(separator.as_bytes()));
                    parts.push(bytes.clone());
                }
            }
            parts.push(Bytes::from_static(b"]}"));
            if accept.form == Form::Json && !accept.pretty {
                return parts;
            }
            vec![encode(&parse(&Bytes::from(parts.concat())), accept)]
        }
    }
}

/// Annotations that are fields of upstream's internal types; partial metadata does not contain them.
const FIELDS_AS_ANNOTATIONS: [&str; 3] = [
    "deprecated.daemonset.template.generation",
    "autoscaling.alpha.kubernetes.io/metrics",
    "autoscaling.alpha.kubernetes.io/behavior",
];

fn partial(object: &Value, version: &str) -> Value {
    let mut metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        for key in FIELDS_AS_ANNOTATIONS {
            annotations.remove(key);
        }
        if annotations.is_empty()
            && let Some(metadata) = metadata.as_object_mut()
        {
            metadata.remove("annotations");
        }
    }
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": metadata
    })
}

/// The table or partial metadata of one object in a watch event.
pub(crate) fn view_of(
    rt: &ResourceType,
    object: &Value,
    accept: &Accept,
    include: &str,
    now: i64,
    first: bool,
) -> Value {
    match accept.view {
        View::Partial | View::PartialList => partial(object, &accept.meta_version),
        View::Table => {
            let mut meta = json!({});
            if let Some(rv) = object.pointer("/metadata/resourceVersion") {
                meta["resourceVersion"] = rv.clone();
            }
            let mut table = table(rt, &meta, std::slice::from_ref(object), accept, include, now);
            if !first {
                table["columnDefinitions"] = Value::Null;
            }
            table
        }
        View::Object => object.clone(),
    }
}

fn table(
    rt: &ResourceType,
    meta: &Value,
    objects: &[Value],
    accept: &Accept,
    include: &str,
    now: i64,
) -> Value {
    let columns: Vec<Value> = rt
        .strategy
        .columns()
        .iter()
        .map(|c| {
            json!({"name": c.name, "type": c.kind, "format": c.format, "description": c.description, "priority": c.priority})
        })
        .collect();
    let rows: Vec<Value> = objects
        .iter()
        .map(|o| {
            let mut row = json!({"cells": rt.strategy.cells(o, now)});
            match include {
                "None" => row["object"] = Value::Null,
                "Object" => row["object"] = o.clone(),
                _ => row["object"] = partial(o, &accept.meta_version),
            }
            if let Some(conditions) = row_conditions(rt, o) {
                row["conditions"] = conditions;
            }
            row
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": format!("meta.k8s.io/{}", accept.meta_version),
        "metadata": meta, "columnDefinitions": columns, "rows": rows
    })
}

/// Conditions of the rows of completed pods and jobs.
fn row_conditions(rt: &ResourceType, object: &Value) -> Option<Value> {
    if rt.group.is_empty() && rt.kind == "Pod" {
        let phase = object.pointer("/status/phase").and_then(Value::as_str)?;
        let reason = match phase {
            "Succeeded" => "Succeeded",
            "Failed" => "Failed",
            _ => return None,
        };
        let message =
            if phase == "Succeeded" { "The pod has completed successfully." } else { "The pod failed." };
        return Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]));
    }
    None
}

fn encode(value: &Value, accept: &Accept) -> Bytes {
    match accept.form {
        Form::Yaml => Bytes::from(crate::yaml::write(value)),
        Form::Json if accept.pretty => {
            let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
            bytes.push(b'\n');
            Bytes::from(bytes)
        }
        Form::Json => to_bytes(value),
    }
}

/// A response with a body.
pub(crate) fn respond(code: u16, content_type: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(body));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// The response for an error.
pub(crate) fn error_response(error: &ApiError, accept: &Accept) -> Response<Body> {
    if error.plain {
        let mut response = respond(error.code, "text/plain; charset=utf-8", error.message.clone());
        response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
        return response;
    }
    let plain = Accept { view: View::Object, ..accept.clone() };
    let content_type = if plain.form == Form::Yaml { "application/yaml" } else { "application/json" };
    let mut response = respond(error.code, content_type, encode(&error.to_status(), &plain));
    let retry = error.details.as_ref().and_then(|d| d.get("retryAfterSeconds")).and_then(Value::as_i64);
    if let Some(seconds) = retry {
        response.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn with_warnings(mut response: Response<Body>, warnings: &[String]) -> Response<Body> {
    add_warnings(&mut response, warnings);
    response
}

/// Adds `Warning` headers, without duplicates.
pub(crate) fn add_warnings(response: &mut Response<Body>, warnings: &[String]) {
    let mut said: Vec<&String> = Vec::new();
    for warning in warnings {
        if said.contains(&warning) {
            continue;
        }
        said.push(warning);
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
            response.headers_mut().append("warning", value);
        }
    }
}

/// The Status of a successful deletion.
pub(crate) fn deleted(rt: &ResourceType, object: &Value) -> Value {
    let mut details = json!({"name": object::name(object), "kind": rt.plural, "uid": object::uid(object)});
    if !rt.group.is_empty() {
        details["group"] = json!(rt.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_encoded_in_the_field_order_of_go() {
        let object = json!({"a": [1, -2, 1.5, null, true, [], {}, {"b": "c"}], "kind": "K", "apiVersion": "v1",
            "text": "quote \" slash \\ line \n bell \u{7} ümlaut \u{2028}", "quote\"d": {"": ""},
            "metadata": {"labels": {"z": "1", "a": "2"}, "name": "n", "other": {"metadata": {"uid": 1, "name": 2}}}});
        let text = String::from_utf8(write_object(&object)).expect("UTF-8");
        assert_eq!(
            text,
            r#"{"kind":"K","apiVersion":"v1","metadata":{"name":"n","labels":{"a":"2","z":"1"},"other":{"metadata":{"name":2,"uid":1}}},"a":[1,-2,1.5,null,true,[],{},{"b":"c"}],"quote\"d":{"":""},"text":"quote \" slash \\ line \n bell \u0007 ümlaut "#
                .to_owned()
                + "\u{2028}\"}"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), object);
        for other in [json!([1, {"a": "b"}]), json!("a\nb"), json!(null)] {
            assert_eq!(write_object(&other), other.to_string().into_bytes());
        }
    }
}
