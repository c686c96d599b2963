//! Parses schemas from JSON: a CRD's `openAPIV3Schema` or a definition of an OpenAPI v3 document.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::node::{Definitions, Node, Overrides};
use crate::structural::{
    Additional, CelRule, ListType, MapType, Name, Number, Patch, PatchStrategy, Properties, Rules, Schema,
    Type,
};

/// Limit on nesting, because every walk over a schema recurses.
const MAX_DEPTH: usize = 256;

/// Why a schema cannot be parsed.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    #[error("schema at {at} must be an object")]
    NotAnObject { at: String },
    #[error("field {at} of the schema must be {want}")]
    WrongType { at: String, want: &'static str },
    #[error("unknown type \"{found}\" at {at}")]
    UnknownType { at: String, found: String },
    #[error("schema nests deeper than {MAX_DEPTH} levels at {at}")]
    TooDeep { at: String },
    #[error("reference \"{reference}\" at {at} cannot be resolved here")]
    Reference { at: String, reference: String },
}

impl Schema {
    /// Parses a schema without references, such as a CRD's.
    pub fn from_json(json: &Value) -> Result<Schema, ParseError> {
        Parser { source: None }.schema(json, &At::Root, 0)
    }

    /// Parses a definition whose `$ref`s are resolved by `source`.
    pub fn from_openapi(json: &Value, source: &Arc<dyn Definitions>) -> Result<Schema, ParseError> {
        Parser { source: Some(source) }.schema(json, &At::Root, 0)
    }
}

/// Position for error messages, formatted only when needed.
enum At<'a> {
    Root,
    Under(&'a At<'a>, &'a str),
}

impl At<'_> {
    fn text(&self) -> String {
        match self {
            At::Root => "$".to_owned(),
            At::Under(parent, name) => format!("{}.{name}", parent.text()),
        }
    }
}

struct Parser<'s> {
    source: Option<&'s Arc<dyn Definitions>>,
}

impl Parser<'_> {
    fn node(&self, json: &Value, at: &At<'_>, depth: usize) -> Result<Node, ParseError> {
        let map = json.as_object().ok_or_else(|| ParseError::NotAnObject { at: at.text() })?;
        match reference_of(map) {
            Some(reference) => self.reference(map, reference, at),
            None => Ok(Node::new(self.schema(json, at, depth)?)),
        }
    }

    fn reference(&self, map: &Map<String, Value>, reference: &str, at: &At<'_>) -> Result<Node, ParseError> {
        let dangling = || ParseError::Reference { at: at.text(), reference: reference.to_owned() };
        let source = self.source.ok_or_else(dangling)?;
        let name = reference.strip_prefix("#/components/schemas/").ok_or_else(dangling)?;
        let overrides = Overrides {
            patch: patch_of(map, at)?,
            map: map_type(map, at)?,
            list: None,
            default: map
                .get("default")
                .filter(|d| d.as_object().is_none_or(|m| !m.is_empty()))
                .cloned()
                .map(Arc::new),
            nullable: flag(map, "nullable", at)?,
        };
        Ok(Node::named_with(name.to_owned(), Arc::clone(source), overrides))
    }

    fn schema(&self, json: &Value, at: &At<'_>, depth: usize) -> Result<Schema, ParseError> {
        if depth > MAX_DEPTH {
            return Err(ParseError::TooDeep { at: at.text() });
        }
        let map = json.as_object().ok_or_else(|| ParseError::NotAnObject { at: at.text() })?;
        let format = text(map, "format", at)?.map(|f| Name::Owned(f.to_owned()));
        let properties = match map.get("properties") {
            None | Some(Value::Null) => Properties::default(),
            Some(Value::Object(list)) => {
                let here = At::Under(at, "properties");
                list.iter()
                    .map(|(name, sub)| {
                        Ok((Name::Owned(name.clone()), self.node(sub, &At::Under(&here, name), depth + 1)?))
                    })
                    .collect::<Result<Properties, ParseError>>()?
            }
            Some(_) => return Err(wrong(at, "properties", "an object")),
        };
        let items = match map.get("items") {
            None | Some(Value::Null) => None,
            // Draft 4 allows a list of schemas; CRD validation rejects it before.
            Some(sub) => Some(self.node(sub, &At::Under(at, "items"), depth + 1)?),
        };
        let additional = match map.get("additionalProperties") {
            None | Some(Value::Null) => Additional::Unset,
            Some(Value::Bool(allowed)) => Additional::Allowed(*allowed),
            Some(sub) => {
                Additional::Schema(self.node(sub, &At::Under(at, "additionalProperties"), depth + 1)?)
            }
        };
        let rules = self.rules(map, at, depth)?;
        Ok(Schema {
            name: None,
            go_type: None,
            ty: type_of(map, at)?,
            int_or_string: flag(map, "x-kubernetes-int-or-string", at)?
                || format.as_deref() == Some("int-or-string"),
            format,
            nullable: flag(map, "nullable", at)?,
            embedded_resource: flag(map, "x-kubernetes-embedded-resource", at)?,
            preserve_unknown: flag(map, "x-kubernetes-preserve-unknown-fields", at)?,
            list: list_type(map, at)?.unwrap_or_default(),
            list_keys: names(map, "x-kubernetes-list-map-keys", at)?,
            map: map_type(map, at)?.unwrap_or_default(),
            patch: patch_of(map, at)?.unwrap_or_default(),
            properties: Arc::new(properties),
            items,
            additional,
            default: map.get("default").cloned().map(Arc::new),
            rules,
        })
    }

    fn rules(
        &self,
        map: &Map<String, Value>,
        at: &At<'_>,
        depth: usize,
    ) -> Result<Option<Arc<Rules>>, ParseError> {
        const KEYS: &[&str] = &[
            "required",
            "enum",
            "pattern",
            "minimum",
            "maximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "uniqueItems",
            "minProperties",
            "maxProperties",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "x-kubernetes-validations",
        ];
        if !KEYS.iter().any(|k| map.contains_key(*k)) {
            return Ok(None);
        }
        let list = |key: &str| -> Result<Vec<Node>, ParseError> {
            let here = At::Under(at, key);
            match map.get(key) {
                None | Some(Value::Null) => Ok(Vec::new()),
                Some(Value::Array(subs)) => subs.iter().map(|sub| self.node(sub, &here, depth + 1)).collect(),
                Some(_) => Err(wrong(at, key, "a list")),
            }
        };
        Ok(Some(Arc::new(Rules {
            required: names(map, "required", at)?,
            enumeration: match map.get("enum") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(values)) => values.clone(),
                Some(_) => return Err(wrong(at, "enum", "a list")),
            },
            pattern: text(map, "pattern", at)?.filter(|p| !p.is_empty()).map(str::to_owned),
            minimum: number(map, "minimum", at)?,
            exclusive_minimum: flag(map, "exclusiveMinimum", at)?,
            maximum: number(map, "maximum", at)?,
            exclusive_maximum: flag(map, "exclusiveMaximum", at)?,
            multiple_of: number(map, "multipleOf", at)?,
            min_length: count(map, "minLength", at)?,
            max_length: count(map, "maxLength", at)?,
            min_items: count(map, "minItems", at)?,
            max_items: count(map, "maxItems", at)?,
            unique_items: flag(map, "uniqueItems", at)?,
            min_properties: count(map, "minProperties", at)?,
            max_properties: count(map, "maxProperties", at)?,
            all_of: list("allOf")?,
            any_of: list("anyOf")?,
            one_of: list("oneOf")?,
            not: match map.get("not") {
                None | Some(Value::Null) => None,
                Some(sub) => Some(self.node(sub, &At::Under(at, "not"), depth + 1)?),
            },
            cel: cel_rules(map, at)?,
            ..Rules::default()
        })))
    }
}

/// `{"$ref": …}`, or the form OpenAPI v3 uses when a reference has siblings: `{"allOf": [{"$ref": …}], …}`.
fn reference_of(map: &Map<String, Value>) -> Option<&str> {
    if let Some(reference) = map.get("$ref") {
        return reference.as_str();
    }
    match map.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([Value::Object(only)]) => only.get("$ref").and_then(Value::as_str),
        _ => None,
    }
}

fn wrong(at: &At<'_>, key: &str, want: &'static str) -> ParseError {
    ParseError::WrongType { at: At::Under(at, key).text(), want }
}

fn text<'m>(map: &'m Map<String, Value>, key: &str, at: &At<'_>) -> Result<Option<&'m str>, ParseError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(s)) => Ok(Some(s)),
        Some(_) => Err(wrong(at, key, "a string")),
    }
}

fn flag(map: &Map<String, Value>, key: &str, at: &At<'_>) -> Result<bool, ParseError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(b)) => Ok(*b),
        Some(_) => Err(wrong(at, key, "a boolean")),
    }
}

fn number(map: &Map<String, Value>, key: &str, at: &At<'_>) -> Result<Option<Number>, ParseError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(n)) => Ok(n.as_f64().map(Number)),
        Some(_) => Err(wrong(at, key, "a number")),
    }
}

fn count(map: &Map<String, Value>, key: &str, at: &At<'_>) -> Result<Option<i64>, ParseError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(n)) if n.as_i64().is_some() => Ok(n.as_i64()),
        Some(_) => Err(wrong(at, key, "a whole number")),
    }
}

fn names(map: &Map<String, Value>, key: &str, at: &At<'_>) -> Result<Vec<Name>, ParseError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => list
            .iter()
            .map(|v| {
                v.as_str()
                    .map(|s| Cow::Owned(s.to_owned()))
                    .ok_or_else(|| wrong(at, key, "a list of strings"))
            })
            .collect(),
        Some(_) => Err(wrong(at, key, "a list of strings")),
    }
}

fn type_of(map: &Map<String, Value>, at: &At<'_>) -> Result<Type, ParseError> {
    Ok(match text(map, "type", at)? {
        None | Some("") => Type::Any,
        Some("object") => Type::Object,
        Some("array") => Type::Array,
        Some("string") => Type::String,
        Some("integer") => Type::Integer,
        Some("number") => Type::Number,
        Some("boolean") => Type::Boolean,
        Some(found) => return Err(ParseError::UnknownType { at: at.text(), found: found.to_owned() }),
    })
}

fn list_type(map: &Map<String, Value>, at: &At<'_>) -> Result<Option<ListType>, ParseError> {
    Ok(match text(map, "x-kubernetes-list-type", at)? {
        None => None,
        Some("atomic") => Some(ListType::Atomic),
        Some("set") => Some(ListType::Set),
        Some("map") => Some(ListType::Map),
        Some(_) => return Err(wrong(at, "x-kubernetes-list-type", "one of atomic, set, map")),
    })
}

fn map_type(map: &Map<String, Value>, at: &At<'_>) -> Result<Option<MapType>, ParseError> {
    Ok(match text(map, "x-kubernetes-map-type", at)? {
        None => None,
        Some("granular") => Some(MapType::Granular),
        Some("atomic") => Some(MapType::Atomic),
        Some(_) => return Err(wrong(at, "x-kubernetes-map-type", "one of granular, atomic")),
    })
}

fn patch_of(map: &Map<String, Value>, at: &At<'_>) -> Result<Option<Patch>, ParseError> {
    let Some(words) = text(map, "x-kubernetes-patch-strategy", at)? else { return Ok(None) };
    let mut strategy = PatchStrategy::default();
    for word in words.split(',') {
        match word {
            "merge" => strategy.merge = true,
            "replace" => strategy.replace = true,
            "retainKeys" => strategy.retain_keys = true,
            _ => {}
        }
    }
    let merge_key = text(map, "x-kubernetes-patch-merge-key", at)?.map(|k| Cow::Owned(k.to_owned()));
    Ok(Some(Patch { strategy, merge_key }))
}

fn cel_rules(map: &Map<String, Value>, at: &At<'_>) -> Result<Vec<CelRule>, ParseError> {
    const KEY: &str = "x-kubernetes-validations";
    let here = At::Under(at, KEY);
    let list = match map.get(KEY) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(wrong(at, KEY, "a list")),
    };
    list.iter()
        .map(|entry| {
            let rule = entry.as_object().ok_or_else(|| ParseError::NotAnObject { at: here.text() })?;
            let word = |key: &str| Ok(text(rule, key, &here)?.unwrap_or_default().to_owned());
            Ok(CelRule {
                rule: word("rule")?,
                message: word("message")?,
                message_expression: word("messageExpression")?,
                reason: text(rule, "reason", &here)?.map(str::to_owned),
                field_path: word("fieldPath")?,
                optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool),
            })
        })
        .collect()
}
