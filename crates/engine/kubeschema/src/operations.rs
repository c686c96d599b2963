//! Paths and operations of the OpenAPI documents, derived from resources and verbs.

use serde_json::{Map, Value, json};

use crate::resources::{GroupVersion, Resource};
use crate::types::type_of;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    V2,
    V3,
}

impl Dialect {
    pub(crate) fn reference(self, name: &str) -> Value {
        let at = if self == Dialect::V2 { "#/definitions/" } else { "#/components/schemas/" };
        json!({"$ref": format!("{at}{name}")})
    }

    fn parameter(self, place: &str, name: &str, ty: &str) -> Value {
        let mut out = json!({"in": place, "name": name});
        if place == "path" {
            out["required"] = json!(true);
        }
        if self == Dialect::V2 {
            out["type"] = json!(ty);
            out["uniqueItems"] = json!(true);
        } else {
            out["schema"] = json!({"type": ty, "uniqueItems": true});
        }
        out
    }
}

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const MEDIA: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const LIST_MEDIA: &[&str] =
    &["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
const PATCH_MEDIA: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

const WRITE: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const LIST: &[(&str, &str)] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const DELETE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

/// One verb on one path.
struct Operation<'a> {
    method: &'a str,
    action: &'a str,
    /// Start of the operation id: `list`, `read`, `create`, …
    word: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    body: Option<(&'a [&'a str], String)>,
    answer: String,
    codes: &'a [&'a str],
}

struct Writer<'a> {
    dialect: Dialect,
    version: &'a GroupVersion,
    prefix: String,
}

/// The paths of one group version.
pub(crate) fn paths(version: &GroupVersion, dialect: Dialect) -> Map<String, Value> {
    let prefix = if version.group.is_empty() {
        "/api/v1".to_owned()
    } else {
        format!("/apis/{}", version.api_version())
    };
    let writer = Writer { dialect, version, prefix };
    let mut out = Map::new();
    for resource in &version.resources {
        writer.resource(resource, &mut out);
    }
    out
}

/// The definition name of a kind; `None` for the options of connect verbs.
fn definition(group: &str, version: &str, kind: &str) -> Option<String> {
    type_of(group, version, kind).map(|def| def.name.clone())
}

impl Writer<'_> {
    fn resource(&self, resource: &Resource, out: &mut Map<String, Value>) {
        let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("{}{scope}/{}", self.prefix, resource.plural);
        let scoped: &[&str] = if resource.namespaced { &["namespace"] } else { &[] };
        let named: Vec<&str> = std::iter::once("name").chain(scoped.iter().copied()).collect();
        let own = (self.version.group, self.version.version, resource.kind);
        let Some(object) = definition(own.0, own.1, own.2) else { return };
        let id = format!("{}{}", if resource.namespaced { "Namespaced" } else { "" }, resource.kind);
        self.path(out, &collection, scoped, own, &id, &collection_operations(resource, &object));
        // `create` of a resource is an operation of its collection, that of a subresource one of its own
        // path.
        let item: Vec<&str> = resource.verbs.iter().copied().filter(|v| *v != "create").collect();
        let item = item_operations(&item, &object);
        self.path(out, &format!("{collection}/{{name}}"), &named, own, &id, &item);
        for sub in &resource.subresources {
            let group = if sub.version.is_empty() { self.version.group } else { sub.group };
            let version = if sub.version.is_empty() { self.version.version } else { sub.version };
            let Some(object) = definition(group, version, sub.kind) else { continue };
            let operations = item_operations(&sub.verbs, &object);
            let id = format!("{id}{}", capital(sub.name));
            let path = format!("{collection}/{{name}}/{}", sub.name);
            self.path(out, &path, &named, (group, version, sub.kind), &id, &operations);
        }
        if resource.namespaced && resource.verbs.contains(&"list") {
            let all = format!("{}/{}", self.prefix, resource.plural);
            let id = format!("{}ForAllNamespaces", resource.kind);
            let mut list = collection_operations(resource, &object);
            list.retain(|op| op.action == "list");
            self.path(out, &all, &[], own, &id, &list);
        }
    }

    fn path(
        &self,
        out: &mut Map<String, Value>,
        path: &str,
        in_path: &[&str],
        kind: (&str, &str, &str),
        id: &str,
        operations: &[Operation<'_>],
    ) {
        if operations.is_empty() {
            return;
        }
        let mut item = Map::new();
        for operation in operations {
            item.insert(operation.method.to_owned(), self.operation(operation, kind, id));
        }
        let mut parameters: Vec<Value> =
            in_path.iter().map(|name| self.dialect.parameter("path", name, "string")).collect();
        parameters.push(self.dialect.parameter("query", "pretty", "string"));
        item.insert("parameters".to_owned(), Value::Array(parameters));
        out.insert(path.to_owned(), Value::Object(item));
    }

    fn operation(&self, operation: &Operation<'_>, kind: (&str, &str, &str), id: &str) -> Value {
        let group = self.version.group;
        let tag = if group.is_empty() { "core".to_owned() } else { camel(group, false) };
        let start = format!("{}{}{}", operation.word, camel(group, true), capital(self.version.version));
        let collection = if operation.action == "deletecollection" { "Collection" } else { "" };
        let mut out = json!({
            "operationId": format!("{start}{collection}{id}"),
            "tags": [format!("{tag}_{}", self.version.version)],
            "x-kubernetes-action": operation.action,
            "x-kubernetes-group-version-kind": {"group": kind.0, "version": kind.1, "kind": kind.2},
        });
        let mut parameters: Vec<Value> =
            operation.parameters.iter().map(|(name, ty)| self.dialect.parameter("query", name, ty)).collect();
        let answer = self.dialect.reference(&operation.answer);
        let media: Vec<&str> = match operation.action {
            "list" => MEDIA.iter().chain(LIST_MEDIA).copied().collect(),
            _ => MEDIA.to_vec(),
        };
        if self.dialect == Dialect::V2 {
            if let Some((consumes, name)) = &operation.body {
                parameters.push(json!({"in": "body", "name": "body", "required": true, "schema": self.dialect.reference(name)}));
                out["consumes"] = json!(consumes);
            }
            out["produces"] = json!(media);
            out["schemes"] = json!(["https"]);
        } else if let Some((consumes, name)) = &operation.body {
            out["requestBody"] = json!({"content": content(consumes, &self.dialect.reference(name))});
            if operation.action != "delete" && operation.action != "deletecollection" {
                out["requestBody"]["required"] = json!(true);
            }
        }
        if !parameters.is_empty() {
            out["parameters"] = Value::Array(parameters);
        }
        let mut responses = Map::new();
        for code in operation.codes {
            let response = match self.dialect {
                Dialect::V2 => json!({"description": "", "schema": answer}),
                Dialect::V3 => json!({"description": "", "content": content(&media, &answer)}),
            };
            responses.insert((*code).to_owned(), response);
        }
        responses.insert("401".to_owned(), json!({"description": ""}));
        out["responses"] = Value::Object(responses);
        out
    }
}

fn content(media: &[&str], schema: &Value) -> Value {
    media.iter().map(|m| ((*m).to_owned(), json!({"schema": schema}))).collect::<Map<String, Value>>().into()
}

fn collection_operations<'a>(resource: &Resource, object: &str) -> Vec<Operation<'a>> {
    let mut out = Vec::new();
    if resource.verbs.contains(&"list") {
        out.push(Operation {
            method: "get",
            action: "list",
            word: "list",
            parameters: LIST.to_vec(),
            body: None,
            answer: format!("{object}List"),
            codes: &["200"],
        });
    }
    if resource.verbs.contains(&"create") {
        out.push(create(object));
    }
    if resource.verbs.contains(&"deletecollection") {
        let mut parameters: Vec<_> = DELETE.iter().chain(LIST).copied().collect();
        parameters.retain(|(name, _)| !["allowWatchBookmarks", "watch"].contains(name));
        parameters.sort_unstable();
        out.push(Operation {
            method: "delete",
            action: "deletecollection",
            word: "delete",
            parameters,
            body: Some((&["*/*"], format!("{META}.DeleteOptions"))),
            answer: format!("{META}.Status"),
            codes: &["200"],
        });
    }
    out
}

fn create<'a>(object: &str) -> Operation<'a> {
    Operation {
        method: "post",
        action: "post",
        word: "create",
        parameters: WRITE.to_vec(),
        body: Some((&["*/*"], object.to_owned())),
        answer: object.to_owned(),
        codes: &["200", "201", "202"],
    }
}

fn item_operations<'a>(verbs: &[&str], object: &str) -> Vec<Operation<'a>> {
    let mut out = Vec::new();
    for verb in verbs {
        out.push(match *verb {
            "get" => Operation {
                method: "get",
                action: "get",
                word: "read",
                parameters: Vec::new(),
                body: None,
                answer: object.to_owned(),
                codes: &["200"],
            },
            "update" => Operation {
                method: "put",
                action: "put",
                word: "replace",
                parameters: WRITE.to_vec(),
                body: Some((&["*/*"], object.to_owned())),
                answer: object.to_owned(),
                codes: &["200", "201"],
            },
            "patch" => Operation {
                method: "patch",
                action: "patch",
                word: "patch",
                parameters: WRITE.iter().copied().chain([("force", "boolean")]).collect(),
                body: Some((PATCH_MEDIA, format!("{META}.Patch"))),
                answer: object.to_owned(),
                codes: &["200", "201"],
            },
            "delete" => Operation {
                method: "delete",
                action: "delete",
                word: "delete",
                parameters: DELETE.to_vec(),
                body: Some((&["*/*"], format!("{META}.DeleteOptions"))),
                answer: format!("{META}.Status"),
                codes: &["200", "202"],
            },
            "create" => create(object),
            _ => continue,
        });
    }
    out
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|c| c.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
}

/// `rbac.authorization.k8s.io` -> `RbacAuthorization`, or `rbacAuthorization` for tags.
fn camel(group: &str, upper: bool) -> String {
    if group.is_empty() {
        return if upper { "Core".to_owned() } else { "core".to_owned() };
    }
    let parts: Vec<&str> = group.trim_end_matches(".k8s.io").split('.').collect();
    let joined: String = parts
        .iter()
        .enumerate()
        .map(|(at, part)| if at == 0 && !upper { (*part).to_owned() } else { capital(part) })
        .collect();
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::group_versions;

    #[test]
    fn operation_ids_follow_kubernetes() {
        let rbac = group_versions().iter().find(|g| g.group.starts_with("rbac")).expect("rbac");
        let all = paths(rbac, Dialect::V3);
        let at = |path: &str, method: &str| {
            all[path][method]["operationId"].as_str().unwrap_or_default().to_owned()
        };
        let base = "/apis/rbac.authorization.k8s.io/v1";
        assert_eq!(at(&format!("{base}/clusterroles"), "get"), "listRbacAuthorizationV1ClusterRole");
        assert_eq!(at(&format!("{base}/roles"), "get"), "listRbacAuthorizationV1RoleForAllNamespaces");
        assert_eq!(
            at(&format!("{base}/namespaces/{{namespace}}/roles"), "delete"),
            "deleteRbacAuthorizationV1CollectionNamespacedRole"
        );
    }
}
