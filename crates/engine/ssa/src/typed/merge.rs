//! Merge of an applied configuration into the live object.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::{Items, Kind, Ty, as_list, as_map};
use crate::path::PathElement;

/// The merged object without managed fields, which the caller sets. Items of keyed lists keep the live order
/// except where the configuration orders them.
pub(crate) fn merge(live: &Value, config: &Value, ty: Ty<'_>) -> Value {
    both(Some(live), Some(config), ty, Position::Object).unwrap_or(Value::Null)
}

/// Position of a value, which decides how its fields are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    Object,
    Metadata,
    Below,
}

impl Position {
    pub(crate) fn of(self, name: &str) -> Self {
        if self == Position::Object && name == "metadata" { Position::Metadata } else { Position::Below }
    }
}

fn both(live: Option<&Value>, config: Option<&Value>, ty: Ty<'_>, position: Position) -> Option<Value> {
    let (live, config) = match (live, config) {
        (one, None) => return one.cloned(),
        (None, Some(new)) => return Some(new.clone()),
        (Some(l), Some(c)) => (l, c),
    };
    let kind = match (live, config) {
        (_, Value::Null) => ty.kind(Some(live)),
        _ => ty.kind(Some(config)),
    };
    match kind {
        Kind::Map { ty, atomic: false } => {
            let (l, c) = (as_map(Some(live)), as_map(Some(config)));
            if l.is_none_or(Map::is_empty) && c.is_none_or(Map::is_empty) {
                return Some(config.clone());
            }
            Some(Value::Object(members(l, c, ty, position)))
        }
        Kind::List { items, element } if !matches!(items, Items::Atomic) => {
            let (l, c) = (as_list(Some(live)).unwrap_or_default(), as_list(Some(config)).unwrap_or_default());
            if l.is_empty() && c.is_empty() {
                return Some(config.clone());
            }
            Some(Value::Array(list(l, c, items, element)))
        }
        _ => Some(config.clone()),
    }
}

fn members(
    live: Option<&Map<String, Value>>,
    config: Option<&Map<String, Value>>,
    ty: Ty<'_>,
    position: Position,
) -> Map<String, Value> {
    let kept = live
        .into_iter()
        .flatten()
        .filter(|(name, _)| position != Position::Metadata || *name != "managedFields");
    // Collected in sorted order, which avoids a search for every key.
    let mut out: Map<String, Value> = kept
        .filter_map(|(name, value)| {
            let other = config.and_then(|m| m.get(name));
            // The type is needed only if both sides have a value.
            let ty = if other.is_some() { ty.member(name).0 } else { Ty::Untyped };
            both(Some(value), other, ty, position.of(name)).map(|merged| (name.clone(), merged))
        })
        .collect();
    for (name, value) in config.into_iter().flatten() {
        if live.is_none_or(|m| !m.contains_key(name)) {
            out.insert(name.clone(), value.clone());
        }
    }
    out
}

fn list(live: &[Value], config: &[Value], items: Items<'_>, element: Ty<'_>) -> Vec<Value> {
    let live_keys: Vec<PathElement> = live.iter().filter_map(|v| items.element(v).ok()).collect();
    let config_keys: Vec<PathElement> = config.iter().filter_map(|v| items.element(v).ok()).collect();
    if live_keys.len() != live.len() || config_keys.len() != config.len() {
        // An item without keys cannot be merged. The configuration was checked before, so the live list is
        // invalid.
        return config.to_vec();
    }
    let mut seen_live: BTreeMap<&PathElement, Option<&Value>> = BTreeMap::new();
    for (key, value) in live_keys.iter().zip(live) {
        // A repeated live item is replaced rather than merged.
        seen_live.entry(key).and_modify(|slot| *slot = None).or_insert(Some(value));
    }
    let seen_config: BTreeMap<&PathElement, &Value> = config_keys.iter().zip(config).collect();
    let merge_one = |key: &PathElement| {
        let old = seen_live.get(key).copied().flatten();
        both(old, seen_config.get(key).copied(), element, Position::Below)
    };
    let mut shared: VecDeque<&PathElement> =
        config_keys.iter().filter(|k| seen_live.contains_key(k)).collect();
    let mut next = shared.pop_front();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.len().max(config.len()));
    let (mut l, mut c) = (0, 0);
    while l < live.len() || c < config.len() {
        if let (Some(left), Some(right)) = (live_keys.get(l), config_keys.get(c)) {
            if left == right {
                done.insert(left);
                out.extend(merge_one(left));
                l += 1;
                c += 1;
                next = shared.pop_front();
                continue;
            }
            // In both, but the configuration has another one first.
            if seen_config.contains_key(left) && next.is_some_and(|n| n != left) {
                l += 1;
                continue;
            }
        }
        if let Some(left) = live_keys.get(l) {
            if !seen_config.contains_key(left) {
                out.push(live[l].clone());
                l += 1;
                continue;
            }
            if done.contains(left) {
                l += 1;
            }
        }
        if let Some(right) = config_keys.get(c) {
            done.insert(right);
            out.extend(merge_one(right));
            c += 1;
            if next == Some(right) {
                next = shared.pop_front();
            }
        }
    }
    out
}
