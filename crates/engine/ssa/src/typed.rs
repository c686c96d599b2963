//! A schema as server-side apply sees it: maps, lists and scalars, and which of them are atomic.

mod check;
mod compare;
mod field_set;
mod merge;
mod remove;
mod schema_change;

use std::sync::Arc;

use fl_schema::{Additional, ListType, MapType, Node, Schema, Type};
use serde_json::Value;
use thiserror::Error;

pub(crate) use check::{check, scalar_fits};
pub(crate) use compare::{Comparison, compare};
pub(crate) use field_set::field_set;
pub(crate) use merge::{Position, merge};
pub(crate) use remove::{with_named_fields, without};
pub(crate) use schema_change::adapt_to_schema;

use crate::path::PathElement;

/// The type of a value.
#[derive(Clone, Copy)]
pub(crate) enum Ty<'s> {
    /// A schema; `open` if it or its parent preserves unknown fields.
    Known { schema: &'s Schema, open: bool },
    /// Structure deduced from the value: maps are granular, lists atomic.
    Deduced,
    /// Any value, atomic.
    Untyped,
    /// Not declared.
    Missing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    Number,
    Text,
    Flag,
    Any,
}

/// How the items of a list are identified.
#[derive(Clone, Copy)]
pub(crate) enum Items<'s> {
    /// Not at all: the list is atomic.
    Atomic,
    Set,
    Keyed {
        keys: Keys<'s>,
        item: Option<&'s Schema>,
    },
}

#[derive(Clone, Copy)]
pub(crate) enum Keys<'s> {
    List(&'s [fl_schema::Name]),
    One(&'s str),
}

/// The structure of a value by its type.
#[derive(Clone, Copy)]
pub(crate) enum Kind<'s> {
    Map { ty: Ty<'s>, atomic: bool },
    List { items: Items<'s>, element: Ty<'s> },
    Scalar(Scalar),
    Invalid,
}

impl<'s> Ty<'s> {
    pub(crate) fn root(schema: &'s Schema) -> Self {
        Ty::Known { schema, open: schema.preserve_unknown }
    }

    fn of(node: &'s Node, parent_open: bool) -> Self {
        let schema: &'s Schema = node;
        if schema.int_or_string && schema.format.as_deref() != Some("quantity") {
            // Values that are neither numbers nor strings are rejected by the decoder of the type.
            return Ty::Untyped;
        }
        if node.reference().is_some() || schema.name.is_some() {
            // A named definition does not inherit `open` from its parent.
            return match schema.name.as_deref() {
                Some("io.k8s.apimachinery.pkg.runtime.RawExtension") => Ty::Untyped,
                Some("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1") => Ty::Deduced,
                _ => Ty::Known { schema, open: schema.preserve_unknown },
            };
        }
        Ty::Known { schema, open: parent_open || schema.preserve_unknown }
    }

    fn map(self) -> Option<Kind<'s>> {
        match self {
            Ty::Known { schema, .. }
                if matches!(schema.ty, Type::Object | Type::Any) && !schema.int_or_string =>
            {
                Some(Kind::Map { ty: self, atomic: schema.map == MapType::Atomic })
            }
            Ty::Deduced => Some(Kind::Map { ty: self, atomic: false }),
            Ty::Untyped => Some(Kind::Map { ty: self, atomic: true }),
            Ty::Known { .. } | Ty::Missing => None,
        }
    }

    fn scalar(self) -> Option<Kind<'s>> {
        let scalar = match self {
            Ty::Known { schema, .. } if schema.int_or_string => Scalar::Any,
            Ty::Known { schema, .. } => match schema.ty {
                Type::Integer | Type::Number => Scalar::Number,
                Type::Boolean => Scalar::Flag,
                Type::String => match schema.format.as_deref() {
                    None | Some("" | "byte") => Scalar::Text,
                    Some(_) => Scalar::Any,
                },
                Type::Any => Scalar::Any,
                Type::Object | Type::Array => return None,
            },
            Ty::Deduced | Ty::Untyped => Scalar::Any,
            Ty::Missing => return None,
        };
        Some(Kind::Scalar(scalar))
    }

    fn list(self) -> Option<Kind<'s>> {
        match self {
            Ty::Known { schema, open }
                if matches!(schema.ty, Type::Array | Type::Any) && !schema.int_or_string =>
            {
                let element = schema.items.as_ref().map_or(Ty::Untyped, |node| Ty::of(node, open));
                let item = schema.items.as_deref();
                let items = match schema.list {
                    ListType::Atomic => Items::Atomic,
                    ListType::Set => Items::Set,
                    ListType::Map => Items::Keyed { keys: Keys::List(&schema.list_keys), item },
                    ListType::Unset if schema.patch.strategy.merge => match &schema.patch.merge_key {
                        Some(key) => Items::Keyed { keys: Keys::One(key), item },
                        None => Items::Set,
                    },
                    ListType::Unset => Items::Atomic,
                };
                Some(Kind::List { items, element })
            }
            Ty::Deduced | Ty::Untyped => Some(Kind::List { items: Items::Atomic, element: Ty::Untyped }),
            Ty::Known { .. } | Ty::Missing => None,
        }
    }

    /// The kind that matches the value, else the first one of the type; callers handle the mismatch.
    pub(crate) fn kind(self, value: Option<&Value>) -> Kind<'s> {
        let fitting = match value {
            None | Some(Value::Null) => None,
            Some(Value::Object(_)) => self.map(),
            Some(Value::Array(_)) => self.list(),
            Some(_) => self.scalar(),
        };
        fitting
            .or_else(|| self.map())
            .or_else(|| self.scalar())
            .or_else(|| self.list())
            .unwrap_or(Kind::Invalid)
    }

    /// The type of a member of a map, and whether it is declared by name.
    pub(crate) fn member(self, name: &str) -> (Ty<'s>, bool) {
        match self {
            Ty::Known { schema, open } => match schema.property(name) {
                Some(node) => (Ty::of(node, open), true),
                None => (self.element(), false),
            },
            other => (other.element(), false),
        }
    }

    /// The type of undeclared members of a map.
    pub(crate) fn element(self) -> Ty<'s> {
        match self {
            Ty::Known { schema, open } => match &schema.additional {
                Additional::Schema(node) => Ty::of(node, open),
                Additional::Allowed(true) => Ty::Deduced,
                Additional::Allowed(false) => Ty::Missing,
                Additional::Unset if open || schema.properties.is_empty() => Ty::Deduced,
                Additional::Unset => Ty::Missing,
            },
            other => other,
        }
    }
}

impl Kind<'_> {
    /// Whether two kinds have the same structure.
    pub(crate) fn same_shape(&self, other: &Kind<'_>) -> bool {
        matches!(
            (self, other),
            (Kind::Map { .. }, Kind::Map { .. })
                | (Kind::List { .. }, Kind::List { .. })
                | (Kind::Scalar(_), Kind::Scalar(_))
                | (Kind::Invalid, Kind::Invalid)
        )
    }
}

/// Why an item of a list has no identity, with the messages of structured-merge-diff.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ItemError {
    #[error("invalid indexing of non-associative list")]
    Atomic,
    #[error("associative list without keys has an element that's a map type")]
    MapInSet,
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
    #[error("associative list with keys may not have a null element")]
    NullInMap,
    #[error("associative list with keys may not have non-map elements")]
    NotAMap,
    #[error(
        "associative list with keys has an element that omits all key fields [{0}] (and doesn't have default values for any key fields)"
    )]
    NoKeys(String),
}

impl Items<'_> {
    /// The path element of an item.
    pub(crate) fn element(&self, item: &Value) -> Result<PathElement, ItemError> {
        match self {
            Items::Atomic => Err(ItemError::Atomic),
            Items::Set => match item {
                Value::Object(_) => Err(ItemError::MapInSet),
                Value::Array(_) => Err(ItemError::ListInSet),
                Value::Null => Err(ItemError::NullInSet),
                scalar => Ok(PathElement::Value(Arc::new(scalar.clone()))),
            },
            Items::Keyed { keys, item: schema } => keyed(*keys, *schema, item),
        }
    }
}

fn keyed(keys: Keys<'_>, schema: Option<&Schema>, item: &Value) -> Result<PathElement, ItemError> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err(ItemError::NullInMap),
        _ => return Err(ItemError::NotAMap),
    };
    let mut fields: Vec<(Arc<str>, Value)> = Vec::new();
    let mut take = |name: &str| {
        let found = map.get(name).cloned().or_else(|| {
            let property = schema.and_then(|s| s.property(name))?;
            property.default.as_deref().filter(|d| !d.is_null()).cloned()
        });
        if let Some(value) = found {
            fields.push((Arc::from(name), value));
        }
    };
    let names: Vec<String> = match keys {
        Keys::List(list) => list
            .iter()
            .map(|name| {
                take(name);
                format!("{name:?}")
            })
            .collect(),
        Keys::One(name) => {
            take(name);
            vec![format!("{name:?}")]
        }
    };
    if fields.is_empty() && !names.is_empty() {
        return Err(ItemError::NoKeys(names.join(" ")));
    }
    Ok(PathElement::key(fields))
}

/// The map of a value; `None` for null and other types.
pub(crate) fn as_map(value: Option<&Value>) -> Option<&serde_json::Map<String, Value>> {
    value.and_then(Value::as_object)
}

pub(crate) fn as_list(value: Option<&Value>) -> Option<&[Value]> {
    value.and_then(Value::as_array).map(Vec::as_slice)
}
