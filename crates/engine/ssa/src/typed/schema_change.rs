//! Adapts ownership that was recorded with an older schema: fields that are atomic now are owned as a whole.

use super::{Items, Kind, Ty};
use crate::path::PathElement;
use crate::set::Set;

/// The set by the current schema; `None` when it does not change.
pub(crate) fn adapt_to_schema(set: &Set, ty: Ty<'_>) -> Option<Set> {
    let mut units = Set::new();
    visit(Some(set), false, ty, &mut Vec::new(), &mut units);
    if units.is_empty() {
        return None;
    }
    Some(set.recursive_difference(&units).union(&units))
}

fn visit(set: Option<&Set>, whole: bool, ty: Ty<'_>, path: &mut Vec<PathElement>, units: &mut Set) {
    match ty.kind(None) {
        Kind::Map { ty: map, atomic } => {
            if matches!(ty, Ty::Deduced) || is_free(ty) {
                return;
            }
            if !whole && atomic {
                if set.is_some_and(|s| !s.is_empty()) {
                    units.insert(path);
                }
                return;
            }
            below(set, path, units, |element| match element {
                PathElement::Field(name) => map.member(name).0,
                _ => map.element(),
            });
        }
        Kind::List { items, element } => {
            if !whole && matches!(items, Items::Atomic) {
                units.insert(path);
                return;
            }
            below(set, path, units, |_| element);
        }
        Kind::Scalar(_) | Kind::Invalid => {}
    }
}

/// Whether an object has no declared fields and preserves unknown ones.
fn is_free(ty: Ty<'_>) -> bool {
    matches!(ty, Ty::Known { schema, .. } if schema.properties.is_empty())
        && matches!(ty.element(), Ty::Deduced | Ty::Untyped)
}

fn below<'s>(
    set: Option<&Set>,
    path: &mut Vec<PathElement>,
    units: &mut Set,
    ty_of: impl Fn(&PathElement) -> Ty<'s>,
) {
    let Some(set) = set else { return };
    let mut step = |element: &PathElement, child: Option<&Set>, member: bool| {
        let ty = ty_of(element);
        if matches!(ty, Ty::Missing) {
            return;
        }
        path.push(element.clone());
        visit(child, member && child.is_none(), ty, path, units);
        path.pop();
    };
    for (element, child) in set.children() {
        step(element, Some(child), set.has_member(element));
    }
    for element in set.members() {
        if set.child(element).is_none() {
            step(element, None, true);
        }
    }
}
