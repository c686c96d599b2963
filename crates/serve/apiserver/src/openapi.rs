//! OpenAPI documents, v2 and v3, of built-in and custom types.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::answer::{Answer, respond};
use crate::resource::ResourceType;
use crate::server::{Call, Inner};
use crate::status::{ApiError, Outcome};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
/// What a custom type's document needs of the built-in ones.
const SHARED: [&str; 9] = [
    OBJECT_META,
    LIST_META,
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
];

/// `com.example.v1.Widget` for `example.com/v1` `Widget`.
fn definition_name(rt: &ResourceType, kind: &str) -> String {
    let mut parts: Vec<&str> = rt.group.split('.').collect();
    parts.reverse();
    format!("{}.{}.{kind}", parts.join("."), rt.version)
}

fn gvk(rt: &ResourceType, kind: &str) -> Value {
    json!({"group": rt.group, "version": rt.version, "kind": kind})
}

/// The schema of a custom type with the fields every object has; `prefix` is where definitions live.
fn definition(rt: &ResourceType, prefix: &str) -> Value {
    let mut schema = rt.behaviour.openapi().unwrap_or_else(|| json!({"type": "object"}));
    if prefix == "#/definitions/" {
        for_v2(&mut schema);
    }
    let text = |description: &str| json!({"type": "string", "description": description});
    let meta = if prefix == "#/definitions/" {
        json!({"$ref": format!("{prefix}{OBJECT_META}")})
    } else {
        json!({"allOf": [{"$ref": format!("{prefix}{OBJECT_META}")}]})
    };
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    schema["properties"]["apiVersion"] =
        text("APIVersion defines the versioned schema of this representation of an object.");
    schema["properties"]["kind"] =
        text("Kind is a string value representing the REST resource this object represents.");
    schema["properties"]["metadata"] = meta;
    schema["x-kubernetes-group-version-kind"] = json!([gvk(rt, &rt.kind)]);
    schema
}

/// Takes out what OpenAPI v2 has no word for.
fn for_v2(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for key in ["nullable", "oneOf", "anyOf", "not", "x-kubernetes-validations"] {
                map.remove(key);
            }
            map.values_mut().for_each(for_v2);
        }
        Value::Array(list) => list.iter_mut().for_each(for_v2),
        _ => {}
    }
}

fn list_definition(rt: &ResourceType, prefix: &str) -> Value {
    json!({
        "type": "object", "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": format!("{prefix}{}", definition_name(rt, &rt.kind))}},
            "metadata": {"$ref": format!("{prefix}{LIST_META}")}
        },
        "x-kubernetes-group-version-kind": [gvk(rt, &rt.list_kind)]
    })
}

fn parameter(name: &str, v3: bool) -> Value {
    if v3 {
        json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}})
    } else {
        json!({"name": name, "in": "query", "type": "string", "uniqueItems": true})
    }
}

/// The operations clients look for: which verbs there are and what they take.
fn paths(rt: &ResourceType, v3: bool) -> Map<String, Value> {
    let root = format!("/apis/{}/{}", rt.group, rt.version);
    let base = if rt.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", rt.plural)
    } else {
        format!("{root}/{}", rt.plural)
    };
    let operation = |method: &str, action: &str| {
        let id = format!("{action}{}{}{}", rt.group.replace('.', ""), rt.version, rt.kind);
        let mut value = json!({
            "operationId": id, "tags": [format!("{}_{}", rt.group.replace('.', "_"), rt.version)],
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk(rt, &rt.kind),
            "responses": {"200": {"description": "OK"}, "401": {"description": "Unauthorized"}}
        });
        let names: &[&str] = match method {
            "post" | "put" => &["dryRun", "fieldManager", "fieldValidation"],
            "patch" => &["dryRun", "fieldManager", "fieldValidation", "force"],
            _ => &[],
        };
        value["parameters"] = names.iter().map(|n| parameter(n, v3)).collect();
        value
    };
    let mut out = Map::new();
    let mut collection = json!({"get": operation("get", "list"), "post": operation("post", "post"), "delete": operation("delete", "deletecollection")});
    let mut single = json!({
        "get": operation("get", "get"), "put": operation("put", "put"), "patch": operation("patch", "patch"),
        "delete": operation("delete", "delete")
    });
    for item in [&mut collection, &mut single] {
        item["parameters"] = json!([parameter("pretty", v3)]);
    }
    if rt.namespaced {
        out.insert(format!("{root}/{}", rt.plural), json!({"get": operation("get", "list")}));
    }
    out.insert(base.clone(), collection);
    out.insert(format!("{base}/{{name}}"), single.clone());
    for sub in &rt.subresources {
        let mut path = single.clone();
        if let Some(map) = path.as_object_mut() {
            map.remove("delete");
        }
        out.insert(format!("{base}/{{name}}/{}", sub.name), path);
    }
    out
}

fn custom(inner: &Inner) -> Vec<Arc<ResourceType>> {
    inner.registry().iter().filter(|t| t.is_custom()).cloned().collect()
}

/// The answer with its digest as tag, so that clients need not fetch what they have.
fn tagged(call: &Call, content_type: &'static str, text: String) -> Answer {
    let tag = format!("\"{}\"", digest(text.as_bytes()));
    if call.header("if-none-match") == tag {
        return Answer::Raw(respond(304, content_type, ""));
    }
    let mut response = respond(200, content_type, text);
    if let Ok(value) = http::HeaderValue::from_str(&tag) {
        response.headers_mut().insert(http::header::ETAG, value);
    }
    Answer::Raw(response)
}

fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|b| format!("{b:02X}")).collect()
}

pub(crate) fn v2(inner: &Arc<Inner>, call: &Call) -> Outcome<Answer> {
    let accepted = call.header("accept");
    if !accepted.is_empty() && !accepted.contains("json") && !accepted.contains('*') {
        return Err(ApiError::new(
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json",
        ));
    }
    let mut document = fl_kubeschema::openapi_v2();
    for rt in custom(inner) {
        document["definitions"][definition_name(&rt, &rt.kind)] = definition(&rt, "#/definitions/");
        document["definitions"][definition_name(&rt, &rt.list_kind)] = list_definition(&rt, "#/definitions/");
        if let Some(all) = document["paths"].as_object_mut() {
            all.extend(paths(&rt, false));
        }
    }
    Ok(tagged(call, "application/json", document.to_string()))
}

pub(crate) fn index(inner: &Arc<Inner>, call: &Call) -> Outcome<Answer> {
    let mut paths = Map::new();
    let mut add = |path: String, hash: &str| {
        let url = format!("/openapi/v3/{path}?hash={hash}");
        paths.insert(path, json!({"serverRelativeURL": url}));
    };
    for path in fl_kubeschema::openapi_v3_paths() {
        add(path, concat!("fluorite-", env!("CARGO_PKG_VERSION")));
    }
    let mut hashes: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    for rt in custom(inner) {
        let schema = rt.behaviour.openapi().unwrap_or_default().to_string();
        let path = format!("apis/{}/{}", rt.group, rt.version);
        hashes.entry(path).or_default().push_str(&format!("{}{schema}", rt.plural));
    }
    for (path, text) in hashes {
        add(path, &digest(text.as_bytes()));
    }
    let document = json!({"paths": Value::Object(paths)});
    Ok(tagged(call, "text/plain; charset=utf-8", document.to_string()))
}

pub(crate) fn v3(inner: &Arc<Inner>, call: &Call, path: &str) -> Outcome<Answer> {
    if let Some(document) = fl_kubeschema::openapi_v3(path) {
        return Ok(tagged(call, "application/json", document.to_string()));
    }
    let types: Vec<Arc<ResourceType>> =
        custom(inner).into_iter().filter(|t| format!("apis/{}/{}", t.group, t.version) == path).collect();
    if types.is_empty() {
        return Err(ApiError::page_not_found());
    }
    let (mut all_paths, mut schemas) = (Map::new(), Map::new());
    let texts = fl_kubeschema::Descriptions::unpack();
    for name in SHARED {
        if let Some(def) = fl_kubeschema::type_named(name) {
            schemas.insert(name.to_owned(), fl_kubeschema::definition_v3(def, &texts));
        }
    }
    for rt in &types {
        schemas.insert(definition_name(rt, &rt.kind), definition(rt, "#/components/schemas/"));
        schemas.insert(definition_name(rt, &rt.list_kind), list_definition(rt, "#/components/schemas/"));
        all_paths.extend(paths(rt, true));
    }
    let document = json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": Value::Object(all_paths), "components": {"schemas": Value::Object(schemas)}
    });
    Ok(tagged(call, "application/json", document.to_string()))
}
