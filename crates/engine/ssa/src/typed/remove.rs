//! Removal of fields from an object.

use serde_json::{Map, Value};

use super::{Items, Kind, Ty};
use crate::path::PathElement;
use crate::set::Set;

/// The object without the fields of `set`. Like upstream, a map or list that becomes empty is null.
pub(crate) fn without(value: &Value, set: &Set, ty: Ty<'_>) -> Value {
    match (ty.kind(Some(value)), value) {
        (Kind::Map { atomic: true, .. }, Value::Object(_))
        | (Kind::List { items: Items::Atomic, .. }, Value::Array(_)) => Value::Null,
        (Kind::Map { ty, .. }, Value::Object(map)) => members(map, set, ty),
        (Kind::List { items, element }, Value::Array(list)) => kept_items(list, set, items, element),
        (Kind::Scalar(_) | Kind::Invalid, scalar) => scalar.clone(),
        _ => Value::Null,
    }
}

fn members(map: &Map<String, Value>, set: &Set, ty: Ty<'_>) -> Value {
    let mut out = Map::new();
    for (name, below) in map {
        let at = PathElement::field(name);
        if set.has_member(&at) {
            continue;
        }
        let kept = match set.child(&at).filter(|s| !s.is_empty()) {
            Some(subset) => without(below, subset, ty.member(name).0),
            None => below.clone(),
        };
        out.insert(name.clone(), kept);
    }
    if out.is_empty() { Value::Null } else { Value::Object(out) }
}

fn kept_items(list: &[Value], set: &Set, items: Items<'_>, element: Ty<'_>) -> Value {
    let mut out = Vec::with_capacity(list.len());
    for item in list {
        let Ok(at) = items.element(item) else {
            out.push(item.clone());
            continue;
        };
        if set.has_member(&at) {
            continue;
        }
        out.push(match set.child(&at).filter(|s| !s.is_empty()) {
            Some(subset) => without(item, subset, element),
            None => item.clone(),
        });
    }
    if out.is_empty() { Value::Null } else { Value::Array(out) }
}

/// Adds every named field that has members below it: a field of a struct is removed when all of it is.
pub(crate) fn with_named_fields(set: &Set, ty: Ty<'_>) -> Set {
    let mut members = set.members().to_vec();
    let mut children = Vec::with_capacity(set.children().len());
    let map = ty.map();
    let list = ty.list();
    for (element, child) in set.children() {
        let below = match (element, map, list) {
            (PathElement::Field(name), Some(Kind::Map { ty, .. }), _) => {
                let (below, named) = ty.member(name);
                if named {
                    members.push(element.clone());
                }
                below
            }
            (PathElement::Key(_), _, Some(Kind::List { element, .. })) => element,
            _ => Ty::Missing,
        };
        children.push((element.clone(), with_named_fields(child, below)));
    }
    Set::from_parts(members, children)
}
