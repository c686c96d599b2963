//! Comparison of two objects in terms of owned fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Items, Kind, Ty, as_list, as_map};
use crate::path::{PathElement, same};
use crate::set::Set;

/// Changed fields.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) added: Set,
    pub(crate) removed: Set,
    pub(crate) modified: Set,
}

impl Comparison {
    /// Excludes the fields that a write through this endpoint cannot change.
    pub(crate) fn exclude(&mut self, fields: &Set) {
        if fields.is_empty() {
            return;
        }
        self.added = self.added.recursive_difference(fields);
        self.removed = self.removed.recursive_difference(fields);
        self.modified = self.modified.recursive_difference(fields);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.modified.is_empty()
    }
}

/// Compares two objects of one type, except for their managed fields.
pub(crate) fn compare(old: &Value, new: &Value, ty: Ty<'_>) -> Comparison {
    let mut walk = Walk { out: Comparison::default() };
    walk.visit(Some(old), Some(new), ty, &At::Root);
    walk.out
}

/// Position, as a linked list on the stack; becomes a path only where a field changed.
enum At<'a> {
    Root,
    Field(&'a At<'a>, &'a str),
    Item(&'a At<'a>, &'a PathElement),
}

impl At<'_> {
    fn path(&self) -> Vec<PathElement> {
        match self {
            At::Root => Vec::new(),
            At::Field(parent, name) => {
                let mut path = parent.path();
                path.push(PathElement::field(name));
                path
            }
            At::Item(parent, element) => {
                let mut path = parent.path();
                path.push((*element).clone());
                path
            }
        }
    }
}

struct Walk {
    out: Comparison,
}

impl Walk {
    fn visit(&mut self, old: Option<&Value>, new: Option<&Value>, ty: Ty<'_>, at: &At<'_>) {
        let (before, after) = (ty.kind(old), ty.kind(new));
        let leaf = match (old, new) {
            (_, None) => self.handle(before, old, new, at),
            (None, _) => self.handle(after, old, new, at),
            _ if before.same_shape(&after) || old.is_some_and(Value::is_null) => {
                self.handle(after, old, new, at)
            }
            _ if new.is_some_and(Value::is_null) => self.handle(before, old, new, at),
            _ => {
                self.handle(before, old, new, at);
                self.handle(after, old, new, at)
            }
        };
        if !leaf {
            match (old, new) {
                (None, _) => self.out.added.insert(&at.path()),
                (_, None) => self.out.removed.insert(&at.path()),
                _ => {}
            }
        }
    }

    /// Returns whether the value was compared as a unit.
    fn handle(&mut self, kind: Kind<'_>, old: Option<&Value>, new: Option<&Value>, at: &At<'_>) -> bool {
        match kind {
            Kind::Map { ty, atomic } => {
                let (l, r) = (as_map(old), as_map(new));
                if atomic || (l.is_none_or(Map::is_empty) && r.is_none_or(Map::is_empty)) {
                    return self.unit(old, new, at);
                }
                self.members(l, r, ty, at);
                false
            }
            Kind::List { items, element } => {
                let (l, r) = (as_list(old).unwrap_or_default(), as_list(new).unwrap_or_default());
                if matches!(items, Items::Atomic) || (l.is_empty() && r.is_empty()) {
                    return self.unit(old, new, at);
                }
                self.items(l, r, items, element, at);
                false
            }
            Kind::Scalar(_) | Kind::Invalid => self.unit(old, new, at),
        }
    }

    fn unit(&mut self, old: Option<&Value>, new: Option<&Value>, at: &At<'_>) -> bool {
        match (old, new) {
            (None, _) => self.out.added.insert(&at.path()),
            (_, None) => self.out.removed.insert(&at.path()),
            (Some(l), Some(r)) if !same(l, r) => self.out.modified.insert(&at.path()),
            _ => {}
        }
        true
    }

    fn members(
        &mut self,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
        ty: Ty<'_>,
        at: &At<'_>,
    ) {
        let in_metadata = matches!(at, At::Field(At::Root, "metadata"));
        let counts = |name: &str| !(in_metadata && name == "managedFields");
        if let Some(map) = old {
            for (name, value) in map.iter().filter(|(name, _)| counts(name)) {
                let other = new.and_then(|m| m.get(name));
                self.visit(Some(value), other, ty.member(name).0, &At::Field(at, name));
            }
        }
        if let Some(map) = new {
            for (name, value) in map.iter().filter(|(name, _)| counts(name)) {
                if old.is_none_or(|m| !m.contains_key(name)) {
                    self.visit(None, Some(value), ty.member(name).0, &At::Field(at, name));
                }
            }
        }
    }

    fn items(&mut self, old: &[Value], new: &[Value], items: Items<'_>, element: Ty<'_>, at: &At<'_>) {
        let mut index: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in old {
            if let Ok(key) = items.element(item) {
                index.entry(key).or_default().0.push(item);
            }
        }
        for item in new {
            if let Ok(key) = items.element(item) {
                index.entry(key).or_default().1.push(item);
            }
        }
        for (key, (l, r)) in &index {
            let below = At::Item(at, key);
            match (l.as_slice(), r.as_slice()) {
                ([] | [_], [] | [_]) => self.visit(l.first().copied(), r.first().copied(), element, &below),
                ([_, _, ..], [_, _, ..]) => {
                    if l.len() != r.len() || l.iter().zip(r).any(|(a, b)| !same(a, b)) {
                        self.out.modified.insert(&below.path());
                    }
                }
                ([_, _, ..], one) => {
                    if let [value] = one {
                        self.visit(None, Some(value), element, &below);
                    }
                    self.out.removed.insert(&below.path());
                }
                (one, _) => {
                    if let [value] = one {
                        self.visit(Some(value), None, element, &below);
                    }
                    self.out.added.insert(&below.path());
                }
            }
        }
    }
}
