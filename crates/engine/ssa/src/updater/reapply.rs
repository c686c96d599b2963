//! Fast path of apply: the only manager of an object applies the same fields again, usually with other
//! values.
//!
//! There are no conflicts, no field is pruned and the ownership does not change. One walk compares the
//! configuration with the recorded fields; no set is built.

use serde_json::{Map, Value};

use super::{Request, UNTRACKED, UNTRACKED_METADATA, equal_except_managed_fields};
use crate::managed::encoded_managed_fields;
use crate::path::PathElement;
use crate::set::Set;
use crate::typed::{Items, Kind, Position, Ty, as_map, check, merge, scalar_fits};

/// The merged object, if `config` matches its type and `live` has one manager that applied exactly these
/// fields before. `None` means that the full algorithm has to run.
pub(super) fn apply(request: Request<'_>, live: &Value, config: &Value) -> Option<Value> {
    let [owner] = encoded_managed_fields(live)?.as_array()?.as_slice() else { return None };
    let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default();
    let mine = text("manager") == request.manager
        && text("operation") == "Apply"
        && text("apiVersion") == request.api_version
        && text("subresource") == request.subresource
        && text("fieldsType") == "FieldsV1";
    if !mine || resets(request.reset, config) {
        return None;
    }
    let ty = Ty::root(request.schema);
    let owned = owner.get("fieldsV1")?.as_object()?;
    fields(config.as_object()?, ty, owned, Position::Object)?;

    let mut object = merge(live, config, ty);
    let mut owner = owner.clone();
    if !equal_except_managed_fields(live, &object) {
        owner.as_object_mut()?.insert("time".to_owned(), Value::from(request.now));
    }
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    metadata.insert("managedFields".to_owned(), Value::Array(vec![owner]));
    Some(object)
}

/// Whether the endpoint resets a field that is applied.
fn resets(reset: &Set, config: &Value) -> bool {
    let names =
        |element: &PathElement| matches!(element, PathElement::Field(name) if config.get(&**name).is_some());
    reset.members().iter().any(names) || reset.children().iter().any(|(element, _)| names(element))
}

/// Whether a value itself is owned, and the number of entries below it.
struct OwnedEntries {
    leaf: bool,
    below: usize,
}

/// Compares a value with the recorded fields. `None` if they differ or the value does not match its type.
fn value(value: &Value, ty: Ty<'_>, owned: &Map<String, Value>, position: Position) -> Option<OwnedEntries> {
    match ty.kind(Some(value)) {
        Kind::Scalar(scalar) => {
            (!value.is_null() && scalar_fits(scalar, value)).then_some(OwnedEntries { leaf: true, below: 0 })
        }
        Kind::Map { atomic: true, .. } | Kind::List { items: Items::Atomic, .. } => {
            (!value.is_null() && check(value, ty).is_none()).then_some(OwnedEntries { leaf: true, below: 0 })
        }
        Kind::Map { ty, .. } => {
            Some(OwnedEntries { leaf: false, below: fields(as_map(Some(value))?, ty, owned, position)? })
        }
        Kind::List { items, element } => {
            Some(OwnedEntries { leaf: false, below: entries(value.as_array()?, items, element, owned)? })
        }
        Kind::Invalid => None,
    }
}

/// Compares the fields of a map with the recorded ones; both are sorted by name.
fn fields(
    map: &Map<String, Value>,
    ty: Ty<'_>,
    owned: &Map<String, Value>,
    position: Position,
) -> Option<usize> {
    let mut recorded = owned.iter().filter(|(key, _)| *key != ".");
    let mut count = 0;
    for (name, below) in map {
        if is_untracked(name, position) {
            // Any other type is left to the full algorithm.
            below.is_string().then_some(())?;
            continue;
        }
        let inside = position.of(name);
        if inside == Position::Metadata
            && let Some(metadata) = as_map(Some(below))
            && metadata.iter().all(|(name, value)| is_untracked(name, inside) && value.is_string())
        {
            // Untracked metadata only: there is no entry.
            continue;
        }
        let (key, entry) = recorded.next()?;
        if key.strip_prefix("f:") != Some(name) {
            return None;
        }
        let entry = entry.as_object()?;
        let (member, named) = ty.member(name);
        if matches!(member, Ty::Missing) {
            return None;
        }
        let owned_entries = value(below, member, entry, inside)?;
        let whole = owned_entries.leaf || !named || as_map(Some(below)).is_some_and(Map::is_empty);
        matches_entry(entry, &owned_entries, whole).then_some(())?;
        count += 1;
    }
    recorded.next().is_none().then_some(count)
}

/// Whether a field is not tracked.
fn is_untracked(name: &str, position: Position) -> bool {
    match position {
        Position::Object => UNTRACKED.contains(&name),
        Position::Metadata => UNTRACKED_METADATA.contains(&name),
        Position::Below => false,
    }
}

fn entries(list: &[Value], items: Items<'_>, element: Ty<'_>, owned: &Map<String, Value>) -> Option<usize> {
    let mut seen_keys = std::collections::HashSet::new();
    for item in list {
        let (key, entry) = owned.get_key_value(&items.element(item).ok()?.encode())?;
        let entry = entry.as_object()?;
        let owned_entries = value(item, element, entry, Position::Below)?;
        (matches_entry(entry, &owned_entries, true) && seen_keys.insert(key)).then_some(())?;
    }
    let recorded = owned.keys().filter(|key| *key != ".").count();
    (recorded == list.len()).then_some(recorded)
}

/// Whether an entry is encoded as the set of these fields would be. A value that is neither owned nor has
/// fields below it has no entry.
fn matches_entry(entry: &Map<String, Value>, owned_entries: &OwnedEntries, whole: bool) -> bool {
    if owned_entries.below == 0 {
        return whole && entry.is_empty();
    }
    let own = entry.get(".").and_then(Value::as_object);
    entry.len() == owned_entries.below + usize::from(entry.contains_key("."))
        && if whole { own.is_some_and(Map::is_empty) } else { !entry.contains_key(".") }
}
