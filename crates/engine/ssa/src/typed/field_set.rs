//! The set of fields of an object, which its applier will own.

use serde_json::Value;

use super::{Items, Kind, Ty, as_list, as_map};
use crate::path::PathElement;
use crate::set::Set;

/// The paths of an object.
pub(crate) fn field_set(value: &Value, ty: Ty<'_>) -> Set {
    collect(value, ty).1
}

/// Whether the value itself is a leaf, and the paths below it.
fn collect(value: &Value, ty: Ty<'_>) -> (bool, Set) {
    match ty.kind(Some(value)) {
        Kind::Scalar(_) => (true, Set::new()),
        Kind::Invalid => (false, Set::new()),
        Kind::Map { atomic: true, .. } | Kind::List { items: Items::Atomic, .. } => (true, Set::new()),
        Kind::Map { ty, .. } => {
            (false, as_map(Some(value)).map_or_else(Set::new, |map| collect_map(map, ty)))
        }
        Kind::List { items, element } => {
            (false, as_list(Some(value)).map_or_else(Set::new, |list| collect_list(list, items, element)))
        }
    }
}

fn collect_map(map: &serde_json::Map<String, Value>, ty: Ty<'_>) -> Set {
    let mut members = Vec::with_capacity(map.len());
    let mut children = Vec::new();
    for (name, below) in map {
        let (member, named) = ty.member(name);
        let (leaf, set) = collect(below, member);
        let empty = below.is_null() || below.as_object().is_some_and(serde_json::Map::is_empty);
        let element = PathElement::field(name);
        if !set.is_empty() {
            children.push((element.clone(), set));
        }
        if leaf || empty || !named {
            members.push(element);
        }
    }
    Set::from_parts(members, children)
}

fn collect_list(list: &[Value], items: Items<'_>, element: Ty<'_>) -> Set {
    let mut members: Vec<PathElement> = Vec::with_capacity(list.len());
    let mut children = Vec::new();
    let elements: Vec<Option<PathElement>> = list.iter().map(|item| items.element(item).ok()).collect();
    let mut sorted: Vec<&PathElement> = elements.iter().flatten().collect();
    sorted.sort();
    let repeated: Vec<PathElement> =
        sorted.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0].clone()).collect();
    for (item, at) in list.iter().zip(elements) {
        let Some(at) = at else { continue };
        // Duplicate items are owned as a whole, because they cannot be distinguished.
        if !repeated.contains(&at) {
            let (_, set) = collect(item, element);
            if !set.is_empty() {
                children.push((at.clone(), set));
            }
        }
        members.push(at);
    }
    Set::from_parts(members, children)
}
