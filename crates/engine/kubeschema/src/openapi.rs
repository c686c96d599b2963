//! OpenAPI documents of the built-in types, generated on request: everything that tools use, including
//! descriptions.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::descriptions::Descriptions;
use crate::operations::{Dialect, paths};
use crate::resources::{GroupVersion, group_versions};
use crate::schemas::zero;
use crate::types::{Element, Field, FieldType, TypeDef, names, type_named};

/// Descriptions of enumerated values.
const VALUES: &str = include_str!("../data/values.txt");

/// The definition of a type in OpenAPI v3.
#[must_use]
pub fn definition_v3(def: &TypeDef, texts: &Descriptions) -> Value {
    definition(def, Dialect::V3, texts)
}

fn definition(def: &TypeDef, dialect: Dialect, texts: &Descriptions) -> Value {
    let described = |mut schema: Value, text: Option<&str>| {
        if let (Some(text), Some(fields)) = (text, schema.as_object_mut()) {
            fields.insert("description".to_owned(), json!(text));
        }
        schema
    };
    if let Some(text) = def.literal {
        return described(literal(def, text, dialect), texts.of_type(&def.name));
    }
    let field = |f: &Field| {
        let text = texts.of_field(&def.name, f.name).map(|text| with_values(text, f));
        described(property(f, dialect), text.as_deref())
    };
    let properties: Map<String, Value> = def.fields.iter().map(|f| (f.name.to_owned(), field(f))).collect();
    let mut out = described(json!({"type": "object"}), texts.of_type(&def.name));
    // A type without fields has no `properties`.
    if !properties.is_empty() {
        out["properties"] = properties.into();
    }
    let required: Vec<&str> = def.fields.iter().filter(|f| f.required).map(|f| f.name).collect();
    if !required.is_empty() {
        out["required"] = json!(required);
    }
    if let Some(map_type) = def.map_type {
        out["x-kubernetes-map-type"] = json!(map_type);
    }
    if !def.kinds.is_empty() {
        let kinds = def.kinds.iter().map(|k| {
            let mut parts = k.splitn(3, '/');
            let mut part = || parts.next().unwrap_or_default();
            json!({"group": part(), "version": part(), "kind": part()})
        });
        out["x-kubernetes-group-version-kind"] = kinds.collect();
    }
    if let Some(unions) = def.unions.and_then(|u| serde_json::from_str(u).ok()) {
        out["x-kubernetes-unions"] = unions;
    }
    out
}

/// Appends the possible values to the description of a field.
fn with_values<'t>(text: &'t str, field: &Field) -> Cow<'t, str> {
    if field.enumeration.is_empty() {
        return text.into();
    }
    let row = |value: &&str| {
        let meaning = field.go_type.and_then(|of| meaning(of.trim_start_matches('*'), value));
        format!("\n - `{value:?}`{}{}", if meaning.is_some() { " " } else { "" }, meaning.unwrap_or_default())
    };
    let rows: String = field.enumeration.iter().map(row).collect();
    format!("{text}\n\nPossible enum values:{rows}").into()
}

/// The description of a value of an enumeration.
fn meaning(go_type: &str, value: &str) -> Option<&'static str> {
    let value = if value.is_empty() { "-" } else { value };
    VALUES.lines().find_map(|line| {
        line.strip_prefix(go_type)?.strip_prefix(' ')?.strip_prefix(value)?.strip_prefix(' ')
    })
}

/// v2 has no `oneOf`: both scalar alternatives are strings there.
fn literal(def: &TypeDef, text: &str, dialect: Dialect) -> Value {
    if dialect == Dialect::V2 {
        match def.name.rsplit('.').next().unwrap_or_default() {
            "Quantity" => return json!({"type": "string"}),
            "IntOrString" => return json!({"type": "string", "format": "int-or-string"}),
            _ => {}
        }
    }
    serde_json::from_str(text).unwrap_or_default()
}

/// The schema of a field. In v3 a reference with siblings is wrapped in `allOf`; fields always have a
/// description, so theirs always is.
fn property(field: &Field, dialect: Dialect) -> Value {
    let mut out = match &field.ty {
        FieldType::Ref(to) if dialect == Dialect::V3 => json!({"allOf": [dialect.reference(to.name())]}),
        ty => schema_of(ty, dialect, &field.element_enumeration),
    };
    let mut set = |key: &str, value: Value| out[key] = value;
    for (key, value) in [
        ("x-kubernetes-list-type", field.list_type),
        ("x-kubernetes-map-type", field.map_type),
        ("x-kubernetes-patch-strategy", field.patch_strategy),
        ("x-kubernetes-patch-merge-key", field.merge_key),
    ] {
        if let Some(value) = value {
            set(key, json!(value));
        }
    }
    if !field.map_keys.is_empty() {
        set("x-kubernetes-list-map-keys", json!(field.map_keys));
    }
    if !field.enumeration.is_empty() {
        set("enum", json!(field.enumeration));
    }
    if dialect == Dialect::V3 {
        if field.zero_default {
            set("default", zero(&field.ty));
        } else if let Some(default) = field.default.and_then(|d| serde_json::from_str(d).ok()) {
            set("default", default);
        }
    }
    out
}

fn schema_of(ty: &FieldType, dialect: Dialect, values: &[&str]) -> Value {
    match ty {
        FieldType::String => json!({"type": "string"}),
        FieldType::Bytes => json!({"type": "string", "format": "byte"}),
        FieldType::Int32 => json!({"type": "integer", "format": "int32"}),
        FieldType::Int64 => json!({"type": "integer", "format": "int64"}),
        FieldType::Bool => json!({"type": "boolean"}),
        FieldType::Double => json!({"type": "number", "format": "double"}),
        FieldType::Ref(to) => dialect.reference(to.name()),
        FieldType::List(element) => json!({"type": "array", "items": element_of(element, dialect, values)}),
        FieldType::Map(element) => {
            json!({"type": "object", "additionalProperties": element_of(element, dialect, values)})
        }
    }
}

fn element_of(element: &Element, dialect: Dialect, values: &[&str]) -> Value {
    let with_default = dialect == Dialect::V3 && element.zero_default;
    let mut out = match &element.ty {
        FieldType::Ref(to) if with_default => json!({"allOf": [dialect.reference(to.name())]}),
        ty => schema_of(ty, dialect, &[]),
    };
    if with_default {
        out["default"] = zero(&element.ty);
    }
    if !values.is_empty() {
        out["enum"] = json!(values);
    }
    out
}

/// The path of a group version's document: `api/v1`, `apis/apps/v1`.
fn document_path(version: &GroupVersion) -> String {
    if version.group.is_empty() { "api/v1".to_owned() } else { format!("apis/{}", version.api_version()) }
}

/// The paths of all documents, for the index.
#[must_use]
pub fn openapi_v3_paths() -> Vec<String> {
    group_versions().iter().map(document_path).collect()
}

/// The document of a group version.
#[must_use]
pub fn openapi_v3(path: &str) -> Option<Value> {
    let version = group_versions().iter().find(|g| document_path(g) == path)?;
    let paths = paths(version, Dialect::V3);
    let texts = Descriptions::unpack();
    let mut wanted = BTreeSet::new();
    collect_references(&Value::Object(paths.clone()), &mut wanted);
    let mut schemas = Map::new();
    let mut open: Vec<String> = wanted.iter().cloned().collect();
    while let Some(name) = open.pop() {
        let Some(def) = type_named(&name) else { continue };
        let schema = definition_v3(def, &texts);
        let mut found = BTreeSet::new();
        collect_references(&schema, &mut found);
        schemas.insert(name, schema);
        open.extend(found.into_iter().filter(|n| wanted.insert(n.clone())));
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.34"},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        },
    }))
}

fn collect_references(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value.as_str() {
                    Some(text) if key == "$ref" => {
                        into.insert(text.rsplit('/').next().unwrap_or_default().to_owned());
                    }
                    _ => collect_references(value, into),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|v| collect_references(v, into)),
        _ => {}
    }
}

/// The v2 document of all groups.
#[must_use]
pub fn openapi_v2() -> Value {
    let mut all_paths = Map::new();
    for version in group_versions() {
        all_paths.append(&mut paths(version, Dialect::V2));
    }
    let texts = Descriptions::unpack();
    let definitions: Map<String, Value> = names()
        .filter_map(|name| type_named(&name).map(|def| (name, definition(def, Dialect::V2, &texts))))
        .collect();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "1.34"},
        "paths": all_paths,
        "definitions": definitions,
        "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        "security": [{"BearerToken": []}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v3_field_with_a_reference_uses_all_of() {
        let def = type_named("io.k8s.api.apps.v1.DeploymentSpec").expect("type");
        let mut schema = definition_v3(def, &Descriptions::unpack());
        let text =
            schema["properties"]["strategy"].as_object_mut().and_then(|field| field.remove("description"));
        assert!(text.is_some(), "described beside the reference");
        assert_eq!(
            schema["properties"]["strategy"],
            json!({"allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}],
                "default": {}, "x-kubernetes-patch-strategy": "retainKeys"})
        );
        assert_eq!(schema["required"], json!(["selector", "template"]));
    }

    #[test]
    fn enumerated_values_are_described() {
        let def = type_named("io.k8s.api.core.v1.HostPathVolumeSource").expect("type");
        let schema = definition_v3(def, &Descriptions::unpack());
        let text = schema["properties"]["type"]["description"].as_str().expect("a description");
        assert!(text.contains("\n - `\"\"` checks nothing"), "{text}");
        assert!(text.contains("\n - `\"Socket\"` demands a UNIX socket"), "{text}");

        let fields = names().filter_map(|name| type_named(&name)).flat_map(|def| &def.fields);
        let known: BTreeSet<(&str, &str)> = fields
            .filter_map(|f| Some((f.go_type?.trim_start_matches('*'), f)))
            .flat_map(|(of, f)| f.enumeration.iter().map(move |v| (of, if v.is_empty() { "-" } else { v })))
            .collect();
        for line in VALUES.lines().filter(|l| !l.starts_with('#')) {
            let mut words = line.splitn(3, ' ');
            let value = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            assert!(known.contains(&value), "{line}");
            assert!(words.next().is_some_and(|meaning| meaning.ends_with('.')), "{line}");
        }
    }

    #[test]
    fn documents_contain_all_referenced_types() {
        for path in openapi_v3_paths() {
            let document = openapi_v3(&path).expect("listed");
            let mut named = BTreeSet::new();
            collect_references(&document, &mut named);
            for name in named {
                assert!(document["components"]["schemas"].get(&name).is_some(), "{path}: {name}");
            }
        }
    }

    #[test]
    fn patch_has_the_field_validation_parameter() {
        let document = openapi_v3("apis/apps/v1").expect("apps");
        let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
        assert_eq!(
            patch["x-kubernetes-group-version-kind"],
            json!({"group": "apps", "version": "v1", "kind": "Deployment"})
        );
        let parameters = patch["parameters"].as_array().expect("parameters");
        assert!(parameters.iter().any(|p| p["name"] == "fieldValidation"));
    }
}
