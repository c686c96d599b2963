//! Sets of field paths: a tree whose nodes list their members.

use std::cmp::Ordering;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::path::{PathElement, PathElementError};

/// A set of paths. An element may be a member, have members below it, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    members: Vec<PathElement>,
    children: Vec<(PathElement, Set)>,
}

/// Limit on nesting, because walks recurse; upstream's limit on documents is lower.
const MAX_DEPTH: usize = 500;

impl Set {
    pub fn new() -> Self {
        Self::default()
    }

    /// A set of paths of field names, such as `[["metadata", "name"]]`.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::new();
        for path in paths {
            let elements: Vec<PathElement> = path.iter().map(|name| PathElement::field(name)).collect();
            set.insert(&elements);
        }
        set
    }

    /// A set from members and children; sorts them if needed.
    pub(crate) fn from_parts(mut members: Vec<PathElement>, mut children: Vec<(PathElement, Set)>) -> Self {
        if !members.is_sorted() {
            members.sort();
        }
        members.dedup();
        if !children.is_sorted_by(|a, b| a.0 <= b.0) {
            children.sort_by(|a, b| a.0.cmp(&b.0));
        }
        Self { members, children }
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.iter().all(|(_, child)| child.is_empty())
    }

    pub fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => {
                if let Err(at) = self.members.binary_search(last) {
                    self.members.insert(at, last.clone());
                }
            }
            [first, rest @ ..] => self.descend(first).insert(rest),
        }
    }

    fn descend(&mut self, element: &PathElement) -> &mut Set {
        let at = match self.children.binary_search_by(|(e, _)| e.cmp(element)) {
            Ok(at) => at,
            Err(at) => {
                self.children.insert(at, (element.clone(), Set::new()));
                at
            }
        };
        &mut self.children[at].1
    }

    pub fn has_member(&self, element: &PathElement) -> bool {
        self.members.binary_search(element).is_ok()
    }

    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has_member(last),
            [first, rest @ ..] => self.child(first).is_some_and(|c| c.has(rest)),
        }
    }

    pub fn child(&self, element: &PathElement) -> Option<&Set> {
        self.children.binary_search_by(|(e, _)| e.cmp(element)).ok().map(|at| &self.children[at].1)
    }

    pub(crate) fn members(&self) -> &[PathElement] {
        &self.members
    }

    pub(crate) fn children(&self) -> &[(PathElement, Set)] {
        &self.children
    }

    pub fn union(&self, other: &Set) -> Set {
        let members = zip(&self.members, &other.members, |e| e, |l, r| l.or(r).cloned());
        let children = zip(
            &self.children,
            &other.children,
            |c| &c.0,
            |l, r| match (l, r) {
                (Some(l), Some(r)) => Some((l.0.clone(), l.1.union(&r.1))),
                (one, other) => one.or(other).cloned(),
            },
        );
        Set { members, children }
    }

    pub fn intersection(&self, other: &Set) -> Set {
        let members = zip(&self.members, &other.members, |e| e, |l, r| r.and(l).cloned());
        let children = zip(
            &self.children,
            &other.children,
            |c| &c.0,
            |l, r| {
                let (l, r) = (l?, r?);
                Some((l.0.clone(), l.1.intersection(&r.1))).filter(|c| !c.1.is_empty())
            },
        );
        Set { members, children }
    }

    /// Members of this set that are not members of the other.
    pub fn difference(&self, other: &Set) -> Set {
        let members =
            zip(&self.members, &other.members, |e| e, |l, r| if r.is_some() { None } else { l.cloned() });
        let children = zip(
            &self.children,
            &other.children,
            |c| &c.0,
            |l, r| match (l?, r) {
                (l, None) => Some(l.clone()),
                (l, Some(r)) => Some((l.0.clone(), l.1.difference(&r.1))).filter(|c| !c.1.is_empty()),
            },
        );
        Set { members, children }
    }

    /// Like [`Set::difference`], but also removes everything below a member of the other set.
    pub fn recursive_difference(&self, other: &Set) -> Set {
        let members =
            zip(&self.members, &other.members, |e| e, |l, r| if r.is_some() { None } else { l.cloned() });
        let children = zip(
            &self.children,
            &other.children,
            |c| &c.0,
            |l, r| {
                let l = l?;
                if other.has_member(&l.0) {
                    return None;
                }
                match r {
                    None => Some(l.clone()),
                    Some(r) => {
                        Some((l.0.clone(), l.1.recursive_difference(&r.1))).filter(|c| !c.1.is_empty())
                    }
                }
            },
        );
        Set { members, children }
    }

    /// All paths, parents before children.
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Vec<PathElement>>) {
        for member in &self.members {
            let mut path = prefix.clone();
            path.push(member.clone());
            out.push(path);
        }
        for (element, child) in &self.children {
            prefix.push(element.clone());
            child.collect(prefix, out);
            prefix.pop();
        }
    }

    /// The FieldsV1 form.
    pub fn to_fields(&self) -> Value {
        Value::Object(self.fields(false))
    }

    fn fields(&self, include_self: bool) -> Map<String, Value> {
        let mut map = Map::new();
        if include_self && !(self.members.is_empty() && self.children.is_empty()) {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for member in &self.members {
            map.insert(member.encode(), Value::Object(Map::new()));
        }
        for (element, child) in &self.children {
            map.insert(element.encode(), Value::Object(child.fields(self.has_member(element))));
        }
        map
    }

    /// Parses the FieldsV1 form.
    pub fn from_fields(fields: &Value) -> Result<Set, FieldsError> {
        let (set, _) = read(fields, 0)?;
        Ok(set.unwrap_or_default())
    }
}

/// Why a value is not a set in FieldsV1 form.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FieldsError {
    #[error("field set nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("field set must be an object")]
    NotAnObject,
    #[error("parsing key as path element: {0}")]
    PathElement(#[from] PathElementError),
}

/// The paths below a node, and whether the node itself is a member.
fn read(fields: &Value, depth: usize) -> Result<(Option<Set>, bool), FieldsError> {
    if depth > MAX_DEPTH {
        return Err(FieldsError::TooDeep);
    }
    let map = match fields {
        Value::Object(map) => map,
        Value::Null => return Ok((None, true)),
        _ => return Err(FieldsError::NotAnObject),
    };
    let mut members = Vec::new();
    let mut children = Vec::new();
    let mut is_member = false;
    for (key, below) in map {
        if key == "." {
            is_member = true;
            continue;
        }
        let Some(element) = PathElement::decode(key)? else {
            continue;
        };
        let (grandchildren, member) = read(below, depth + 1)?;
        if member {
            members.push(element.clone());
        }
        if let Some(set) = grandchildren {
            children.push((element, set));
        }
    }
    if members.is_empty() && children.is_empty() {
        return Ok((None, true));
    }
    Ok((Some(Set::from_parts(members, children)), is_member))
}

/// Walks two sorted lists in parallel and keeps the results of `pick` for each distinct key.
fn zip<T>(
    left: &[T],
    right: &[T],
    key: impl Fn(&T) -> &PathElement,
    pick: impl Fn(Option<&T>, Option<&T>) -> Option<T>,
) -> Vec<T> {
    let mut out = Vec::with_capacity(left.len());
    let (mut l, mut r) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let order = match (l.peek(), r.peek()) {
            (None, None) => return out,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => key(a).cmp(key(b)),
        };
        let picked = match order {
            Ordering::Less => pick(l.next(), None),
            Ordering::Greater => pick(None, r.next()),
            Ordering::Equal => pick(l.next(), r.next()),
        };
        out.extend(picked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(fields: &Value) -> Set {
        Set::from_fields(fields).expect("fields")
    }

    #[test]
    fn fields_round_trip() {
        let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {
            "f:containers": {"k:{\"name\":\"x\"}": {".": {}, "f:image": {}, "f:args": {"v:\"-v\"": {}, "i:3": {}}}}, "f:replicas": {}}});
        assert_eq!(set(&fields).to_fields(), fields);
    }

    #[test]
    fn set_operations_follow_membership() {
        let a = set(&json!({"f:a": {}, "f:b": {".": {}, "f:x": {}, "f:y": {}}, "f:c": {"f:z": {}}}));
        let b = set(&json!({"f:b": {"f:x": {}}, "f:c": {}}));
        assert_eq!(
            a.difference(&b).to_fields(),
            json!({"f:a": {}, "f:b": {".": {}, "f:y": {}}, "f:c": {"f:z": {}}})
        );
        assert_eq!(a.recursive_difference(&b).to_fields(), json!({"f:a": {}, "f:b": {".": {}, "f:y": {}}}));
        assert_eq!(a.intersection(&b).to_fields(), json!({"f:b": {"f:x": {}}}));
        assert_eq!(
            b.union(&a).to_fields(),
            json!({"f:a": {}, "f:b": {".": {}, "f:x": {}, "f:y": {}}, "f:c": {".": {}, "f:z": {}}})
        );
    }

    #[test]
    fn later_kinds_are_ignored_and_invalid_ones_rejected() {
        assert!(set(&json!({"q:x": {}})).is_empty());
        assert!(Set::from_fields(&json!({"x": {}})).is_err());
        assert!(Set::from_fields(&json!({"k:{": {}})).is_err());
    }
}
