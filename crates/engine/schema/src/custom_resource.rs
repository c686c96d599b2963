//! Coercion of custom resources between decoding and validation: metadata is decoded with its Go type, the
//! rest is pruned; embedded resources likewise.

use std::sync::Arc;

use serde_json::Value;

use crate::decode::{DecodeError, Shape, decode_value};
use crate::field_error::FieldError;
use crate::node::Node;
use crate::object_meta::object_meta;
use crate::prune::{prune, prune_nulls};
use crate::structural::{Additional, Name, Schema, Type};

impl Schema {
    /// The schema of a custom resource including the fields that every object has, at the root and in
    /// embedded resources. Needed by apply, not by validation.
    #[must_use]
    pub fn served(&self) -> Schema {
        let mut schema = serve(self, true);
        schema.name = None;
        schema
    }
}

fn serve(schema: &Schema, with_meta: bool) -> Schema {
    let mut out = schema.clone();
    let below = |node: &Node| Node::new(serve(node, node.embedded_resource));
    let mut properties: Vec<(Name, Node)> =
        schema.properties.iter().map(|(name, node)| (Name::Owned(name.to_owned()), below(node))).collect();
    if with_meta {
        let text = || Node::new(Schema { ty: Type::String, ..Schema::default() });
        properties.push((Name::Borrowed("apiVersion"), text()));
        properties.push((Name::Borrowed("kind"), text()));
        properties.push((Name::Borrowed("metadata"), object_meta().clone()));
    }
    out.properties = Arc::new(properties.into_iter().collect());
    out.items = schema.items.as_ref().map(below);
    if let Additional::Schema(node) = &schema.additional {
        out.additional = Additional::Schema(below(node));
    }
    out
}

/// Why a custom resource cannot be coerced to its schema.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CoerceError {
    /// The metadata of the object do not decode.
    #[error(transparent)]
    Metadata(#[from] DecodeError),
    /// Type or metadata of an embedded resource are invalid.
    #[error("{0}")]
    EmbeddedResource(FieldError),
}

/// Coerces an object to its schema and returns the unknown fields in the order of strict decoding.
pub fn coerce(object: &mut Value, schema: &Schema) -> Result<Vec<String>, CoerceError> {
    let mut unknown = coerce_meta(object, "metadata")?;
    unknown.extend(prune(object, schema));
    prune_nulls(object, Some(schema));
    let mut embedded = Vec::new();
    coerce_embedded(object, schema, "", &mut embedded)?;
    embedded.sort();
    unknown.extend(embedded);
    Ok(unknown)
}

fn coerce_meta(object: &mut Value, path: &str) -> Result<Vec<String>, DecodeError> {
    let Some(slot) = object.get_mut("metadata") else { return Ok(Vec::new()) };
    let decoded = decode_value(slot.take(), Shape::Typed(object_meta()))?;
    *slot = decoded.value;
    Ok(decoded
        .strict
        .iter()
        .map(|e| match e {
            crate::StrictError::Unknown(at) | crate::StrictError::Duplicate(at) => format!("{path}.{at}"),
        })
        .collect())
}

fn coerce_embedded(
    value: &mut Value,
    schema: &Schema,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<(), CoerceError> {
    let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    if schema.embedded_resource && value.is_object() {
        for name in ["apiVersion", "kind"] {
            if let Some(found) = value.get(name).filter(|v| !v.is_string()) {
                let error = FieldError::invalid(join(name), found, "must be a string");
                return Err(CoerceError::EmbeddedResource(error));
            }
        }
        let before = value.get("metadata").cloned();
        let at = join("metadata");
        let found = coerce_meta(value, &at)
            .map_err(|error| FieldError::invalid(at, &before.unwrap_or_default(), error.to_string()))
            .map_err(CoerceError::EmbeddedResource)?;
        unknown.extend(found);
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut)
            && meta.get("creationTimestamp").is_some_and(Value::is_null)
        {
            meta.remove("creationTimestamp");
        }
    }
    match value {
        Value::Object(map) => {
            for (name, below) in map.iter_mut() {
                if let Some(property) = schema.property(name) {
                    coerce_embedded(below, property, &join(name), unknown)?;
                } else if let Some(values) = schema.map_values() {
                    coerce_embedded(below, values, &format!("{path}[{name}]"), unknown)?;
                }
            }
        }
        Value::Array(list) => {
            let Some(items) = &schema.items else { return Ok(()) };
            for (index, item) in list.iter_mut().enumerate() {
                coerce_embedded(item, items, &format!("{path}[{index}]"), unknown)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Validates embedded resources: they must have `apiVersion`, a valid `kind`, and metadata without errors of
/// `check_meta`, which is called with the resource and returns paths relative to it.
pub fn check_embedded(
    value: &Value,
    schema: &Schema,
    check_meta: &dyn Fn(&Value) -> Vec<FieldError>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    visit_embedded(value, schema, "", check_meta, &mut errors);
    errors
}

fn check_type(map: &serde_json::Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    let join = |name: &str| format!("{path}.{name}");
    for name in ["apiVersion", "kind"] {
        if !map.contains_key(name) {
            errors.push(FieldError::required(join(name), ""));
        }
    }
    for name in ["apiVersion", "kind"] {
        let detail = match map.get(name) {
            None => continue,
            Some(Value::String(text)) if text.is_empty() => "must not be empty".to_owned(),
            Some(Value::String(text)) if name == "apiVersion" && text.matches('/').count() > 1 => {
                format!("unexpected GroupVersion string: {text}")
            }
            Some(Value::String(text)) if name == "kind" && !is_label(text) => {
                format!("may have mixed case, but should otherwise match: {LABEL_1035}")
            }
            Some(Value::String(_)) => continue,
            Some(_) => "must be a string".to_owned(),
        };
        errors.push(FieldError::invalid(join(name), &map[name], detail));
    }
}

const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Whether a text in lower case is a DNS-1035 label.
fn is_label(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !text.ends_with('-')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn visit_embedded(
    value: &Value,
    schema: &Schema,
    path: &str,
    check_meta: &dyn Fn(&Value) -> Vec<FieldError>,
    errors: &mut Vec<FieldError>,
) {
    let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Object(map) => {
            if schema.embedded_resource {
                check_type(map, path, errors);
                errors.extend(check_meta(value).into_iter().map(|mut error| {
                    error.field = join(&error.field);
                    error
                }));
            }
            for (name, below) in map {
                if let Some(property) = schema.property(name) {
                    visit_embedded(below, property, &join(name), check_meta, errors);
                } else if let Some(values) = schema.map_values() {
                    visit_embedded(below, values, &format!("{path}[{name}]"), check_meta, errors);
                }
            }
        }
        Value::Array(list) => {
            let Some(items) = &schema.items else { return };
            for (index, item) in list.iter().enumerate() {
                visit_embedded(item, items, &format!("{path}[{index}]"), check_meta, errors);
            }
        }
        _ => {}
    }
}
