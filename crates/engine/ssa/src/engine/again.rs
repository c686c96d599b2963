//! The everyday apply: the only manager of an object applies the fields it has already, most often with other values.
//!
//! Nothing can be in conflict then, nothing goes, and who owns what stays as it is written. All that takes is one walk over the
//! configuration beside the written set of fields; no set is built.

use serde_json::{Map, Value};

use super::{Request, SYSTEM, SYSTEM_METADATA, same_besides_owners};
use crate::managed::written;
use crate::path::PathElement;
use crate::set::Set;
use crate::typed::{Items, Kind, Place, Ty, as_map, check, merge, scalar_fits};

/// The merged object, where `config` fits its type and `live` has one manager, who applied just these fields before. `None`
/// says nothing but that the long way has to be gone.
pub(super) fn apply(request: Request<'_>, live: &Value, config: &Value) -> Option<Value> {
    let [owner] = written(live)?.as_array()?.as_slice() else { return None };
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
    fields(config.as_object()?, ty, owned, Place::Object)?;

    let mut object = merge(live, config, ty);
    let mut owner = owner.clone();
    if !same_besides_owners(live, &object) {
        owner.as_object_mut()?.insert("time".to_owned(), Value::from(request.now));
    }
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    metadata.insert("managedFields".to_owned(), Value::Array(vec![owner]));
    Some(object)
}

/// Whether the endpoint may reset something that is applied.
fn resets(reset: &Set, config: &Value) -> bool {
    let names =
        |element: &PathElement| matches!(element, PathElement::Field(name) if config.get(&**name).is_some());
    reset.members().iter().any(names) || reset.children().iter().any(|(element, _)| names(element))
}

/// Whether a value is owned as such, and how many of the entries below it are others than its own.
struct Seen {
    leaf: bool,
    below: usize,
}

/// Holds a value against what is written about it. `None` where they differ, or the value does not fit its type.
fn value(value: &Value, ty: Ty<'_>, owned: &Map<String, Value>, place: Place) -> Option<Seen> {
    match ty.kind(Some(value)) {
        Kind::Scalar(scalar) => {
            (!value.is_null() && scalar_fits(scalar, value)).then_some(Seen { leaf: true, below: 0 })
        }
        Kind::Map { atomic: true, .. } | Kind::List { items: Items::Atomic, .. } => {
            (!value.is_null() && check(value, ty).is_none()).then_some(Seen { leaf: true, below: 0 })
        }
        Kind::Map { ty, .. } => {
            Some(Seen { leaf: false, below: fields(as_map(Some(value))?, ty, owned, place)? })
        }
        Kind::List { items, element } => {
            Some(Seen { leaf: false, below: entries(value.as_array()?, items, element, owned)? })
        }
        Kind::Invalid => None,
    }
}

/// The fields of a map and their entries go side by side: both are sorted by name.
fn fields(map: &Map<String, Value>, ty: Ty<'_>, owned: &Map<String, Value>, place: Place) -> Option<usize> {
    let mut written = owned.iter().filter(|(key, _)| *key != ".");
    let mut count = 0;
    for (name, below) in map {
        if is_system(name, place) {
            // Whether something else than a text fits is for the long way to say.
            below.is_string().then_some(())?;
            continue;
        }
        let inside = place.of(name);
        if inside == Place::Metadata
            && let Some(metadata) = as_map(Some(below))
            && metadata.iter().all(|(name, value)| is_system(name, inside) && value.is_string())
        {
            // Nothing is written about it.
            continue;
        }
        let (key, entry) = written.next()?;
        if key.strip_prefix("f:") != Some(name) {
            return None;
        }
        let entry = entry.as_object()?;
        let (member, named) = ty.member(name);
        if matches!(member, Ty::Missing) {
            return None;
        }
        let seen = value(below, member, entry, inside)?;
        let whole = seen.leaf || !named || as_map(Some(below)).is_some_and(Map::is_empty);
        agrees(entry, &seen, whole).then_some(())?;
        count += 1;
    }
    written.next().is_none().then_some(count)
}

/// Whether a field belongs to the system, whoever applies it.
fn is_system(name: &str, place: Place) -> bool {
    match place {
        Place::Object => SYSTEM.contains(&name),
        Place::Metadata => SYSTEM_METADATA.contains(&name),
        Place::Below => false,
    }
}

fn entries(list: &[Value], items: Items<'_>, element: Ty<'_>, owned: &Map<String, Value>) -> Option<usize> {
    let mut told_apart = std::collections::HashSet::new();
    for item in list {
        let (key, entry) = owned.get_key_value(&items.element(item).ok()?.encode())?;
        let entry = entry.as_object()?;
        let seen = value(item, element, entry, Place::Below)?;
        (agrees(entry, &seen, true) && told_apart.insert(key)).then_some(())?;
    }
    let written = owned.keys().filter(|key| *key != ".").count();
    (written == list.len()).then_some(written)
}

/// Whether an entry is written as the set of these fields would be. What is neither owned nor has anything below has no entry.
fn agrees(entry: &Map<String, Value>, seen: &Seen, whole: bool) -> bool {
    if seen.below == 0 {
        return whole && entry.is_empty();
    }
    let own = entry.get(".").and_then(Value::as_object);
    entry.len() == seen.below + usize::from(entry.contains_key("."))
        && if whole { own.is_some_and(Map::is_empty) } else { !entry.contains_key(".") }
}
