//! OpenAPI documents, v2 and v3, of built-in and custom types.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::resource_type::ResourceType;
use crate::response::{ApiResponse, respond};
use crate::server::{Inner, RequestContext};
use crate::status::{ApiError, ApiResult};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
/// Built-in definitions that the document of a custom type references.
const SHARED: [&str; 12] = [
    OBJECT_META,
    LIST_META,
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    "io.k8s.apimachinery.pkg.apis.meta.v1.StatusCause",
    "io.k8s.apimachinery.pkg.apis.meta.v1.StatusDetails",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
];

/// Definitions that scalable types reference in addition.
const SCALE: [&str; 3] = [
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.autoscaling.v1.ScaleSpec",
    "io.k8s.api.autoscaling.v1.ScaleStatus",
];
const POD: &str = "io.k8s.api.core.v1.Pod";

/// `com.example.v1.Widget` for `example.com/v1` `Widget`.
fn definition_name(rt: &ResourceType, kind: &str) -> String {
    let mut parts: Vec<&str> = rt.group.split('.').collect();
    parts.reverse();
    format!("{}.{}.{kind}", parts.join("."), rt.version)
}

fn gvk(rt: &ResourceType, kind: &str) -> Value {
    json!({"group": rt.group, "version": rt.version, "kind": kind})
}

/// Descriptions of the fields that every object has, from the built-in types.
struct Descriptions {
    api_version: Value,
    kind: Value,
    metadata: Value,
}

impl Descriptions {
    /// Reads them from the definition of a pod.
    fn of(pod: &Value) -> Self {
        let text = |field: &str| pod["properties"][field]["description"].clone();
        Self { api_version: text("apiVersion"), kind: text("kind"), metadata: text("metadata") }
    }
}

/// OpenAPI v2 or v3.
struct OpenApiVersion<'a> {
    /// Prefix of references to definitions.
    prefix: &'a str,
    v2: bool,
    descriptions: Descriptions,
}

impl OpenApiVersion<'_> {
    /// A reference with a description.
    fn reference(&self, name: &str, text: &Value) -> Value {
        let target = json!({"$ref": format!("{}{name}", self.prefix)});
        let mut value = if self.v2 { target } else { json!({"allOf": [target]}) };
        if !text.is_null() {
            value["description"] = text.clone();
        }
        value
    }

    fn text(description: &Value) -> Value {
        let mut value = json!({"type": "string"});
        if !description.is_null() {
            value["description"] = description.clone();
        }
        value
    }

    /// The schema of a custom type, with the fields that every object has.
    fn definition(&self, rt: &ResourceType) -> Value {
        let mut schema = rt.strategy.openapi().unwrap_or_else(|| json!({"type": "object"}));
        self.publish(&mut schema);
        if self.v2 && schema["type"].is_null() {
            schema["type"] = json!("object");
        }
        if !schema["properties"].is_object() {
            schema["properties"] = json!({});
        }
        schema["properties"]["apiVersion"] = Self::text(&self.descriptions.api_version);
        schema["properties"]["kind"] = Self::text(&self.descriptions.kind);
        schema["properties"]["metadata"] = self.reference(OBJECT_META, &self.descriptions.metadata);
        schema["x-kubernetes-group-version-kind"] = json!([gvk(rt, &rt.kind)]);
        schema
    }

    fn list_definition(&self, rt: &ResourceType) -> Value {
        let item = json!({"$ref": format!("{}{}", self.prefix, definition_name(rt, &rt.kind))});
        json!({
            "type": "object", "required": ["items"],
            "description": format!("{} is a list of {}", rt.list_kind, rt.kind),
            "properties": {
                "apiVersion": Self::text(&self.descriptions.api_version), "kind": Self::text(&self.descriptions.kind),
                "items": {"type": "array", "items": item}, "metadata": self.reference(LIST_META, &Value::Null)
            },
            "x-kubernetes-group-version-kind": [gvk(rt, &rt.list_kind)]
        })
    }

    /// Converts the schema of a CRD into its published form.
    fn publish(&self, schema: &mut Value) {
        let Some(map) = schema.as_object_mut() else { return };
        map.remove("example");
        let on = |map: &Map<String, Value>, key: &str| map.get(key) == Some(&json!(true));
        if on(map, "x-kubernetes-int-or-string") && !self.v2 && !map.contains_key("anyOf") {
            map.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
        }
        if self.v2 {
            for key in ["oneOf", "anyOf", "allOf", "not", "default"] {
                map.remove(key);
            }
            // OpenAPI v2 has neither nullable nor unknown fields: their schemas are dropped.
            if map.remove("nullable") == Some(json!(true)) || on(map, "x-kubernetes-preserve-unknown-fields")
            {
                for key in ["type", "items", "properties", "additionalProperties", "required"] {
                    map.remove(key);
                }
                return;
            }
        }
        for (key, below) in map.iter_mut() {
            match (key.as_str(), below) {
                ("properties", Value::Object(fields)) => {
                    fields.values_mut().for_each(|field| self.publish(field));
                }
                ("items" | "additionalProperties", below) => self.publish(below),
                _ => {}
            }
        }
        if on(map, "x-kubernetes-embedded-resource") {
            self.embed(map);
        }
    }

    /// Adds the fields of an embedded resource.
    fn embed(&self, map: &mut Map<String, Value>) {
        let fields = map.entry("properties").or_insert_with(|| json!({}));
        fields["apiVersion"] = json!({"type": "string"});
        fields["kind"] = json!({"type": "string"});
        fields["metadata"] = self.reference(OBJECT_META, &self.descriptions.metadata);
        let required = map.entry("required").or_insert_with(|| json!([]));
        for name in ["kind", "apiVersion"] {
            if let Some(list) = required.as_array_mut().filter(|list| !list.contains(&json!(name))) {
                list.push(json!(name));
            }
        }
    }
}

fn parameter(name: &str, v3: bool) -> Value {
    if v3 {
        json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}})
    } else {
        json!({"name": name, "in": "query", "type": "string", "uniqueItems": true})
    }
}

/// The operations of a type: its verbs and their parameters.
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

/// The response with its digest as ETag.
fn tagged(ctx: &RequestContext, content_type: &'static str, text: String) -> ApiResponse {
    let tag = format!("\"{}\"", digest(text.as_bytes()));
    if ctx.headers.if_none_match == tag {
        return ApiResponse::Raw(respond(304, content_type, ""));
    }
    let mut response = respond(200, content_type, text);
    if let Ok(value) = http::HeaderValue::from_str(&tag) {
        response.headers_mut().insert(http::header::ETAG, value);
    }
    ApiResponse::Raw(response)
}

fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|b| format!("{b:02X}")).collect()
}

pub(crate) fn v2(inner: &Arc<Inner>, ctx: &RequestContext) -> ApiResult<ApiResponse> {
    let accepted = &ctx.headers.accept;
    if !accepted.is_empty() && !accepted.contains("json") && !accepted.contains('*') {
        return Err(ApiError::new(
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json",
        ));
    }
    let mut document = fl_kubeschema::openapi_v2();
    let known = &document["definitions"];
    let descriptions = Descriptions::of(&known[POD]);
    let dialect = OpenApiVersion { prefix: "#/definitions/", v2: true, descriptions };
    for rt in custom(inner) {
        document["definitions"][definition_name(&rt, &rt.kind)] = dialect.definition(&rt);
        document["definitions"][definition_name(&rt, &rt.list_kind)] = dialect.list_definition(&rt);
        if let Some(all) = document["paths"].as_object_mut() {
            all.extend(paths(&rt, false));
        }
    }
    Ok(tagged(ctx, "application/json", document.to_string()))
}

pub(crate) fn index(inner: &Arc<Inner>, ctx: &RequestContext) -> ApiResult<ApiResponse> {
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
        let schema = rt.strategy.openapi().unwrap_or_default().to_string();
        let path = format!("apis/{}/{}", rt.group, rt.version);
        hashes.entry(path).or_default().push_str(&format!("{}{schema}", rt.plural));
    }
    for (path, text) in hashes {
        add(path, &digest(text.as_bytes()));
    }
    let document = json!({"paths": Value::Object(paths)});
    Ok(tagged(ctx, "text/plain; charset=utf-8", document.to_string()))
}

pub(crate) fn v3(inner: &Arc<Inner>, ctx: &RequestContext, path: &str) -> ApiResult<ApiResponse> {
    if let Some(document) = fl_kubeschema::openapi_v3(path) {
        return Ok(tagged(ctx, "application/json", document.to_string()));
    }
    let types: Vec<Arc<ResourceType>> =
        custom(inner).into_iter().filter(|t| format!("apis/{}/{}", t.group, t.version) == path).collect();
    if types.is_empty() {
        return Err(ApiError::page_not_found());
    }
    let (mut all_paths, mut schemas) = (Map::new(), Map::new());
    let descriptions = fl_kubeschema::Descriptions::unpack();
    let known = |name: &str| {
        fl_kubeschema::type_named(name).map(|def| fl_kubeschema::definition_v3(def, &descriptions))
    };
    let scaled = types.iter().any(|t| t.subresource("scale").is_some());
    for name in SHARED.iter().chain(SCALE.iter().filter(|_| scaled)) {
        if let Some(definition) = known(name) {
            schemas.insert((*name).to_owned(), definition);
        }
    }
    let descriptions = Descriptions::of(&known(POD).unwrap_or_default());
    let dialect = OpenApiVersion { prefix: "#/components/schemas/", v2: false, descriptions };
    for rt in &types {
        schemas.insert(definition_name(rt, &rt.kind), dialect.definition(rt));
        schemas.insert(definition_name(rt, &rt.list_kind), dialect.list_definition(rt));
        all_paths.extend(paths(rt, true));
    }
    let document = json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": Value::Object(all_paths), "components": {"schemas": Value::Object(schemas)}
    });
    Ok(tagged(ctx, "application/json", document.to_string()))
}
