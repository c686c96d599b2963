//! Managed fields of the `scale` subresource, whose `spec.replicas` is another field in the parent.

use serde_json::Value;

use crate::managed::{Entry, Managed};
use crate::path::PathElement;
use crate::set::Set;

const SCALE_VERSION: &str = "autoscaling/v1";

/// The managers of the parent's replicas as managers of the `spec.replicas` of `Scale`. `path` maps a version
/// of the parent to its replicas field (`["spec", "replicas"]`); `None` for an unknown version.
pub fn scale_to_subresource(parent: &[Value], path: &dyn Fn(&str) -> Option<Vec<String>>) -> Vec<Value> {
    let managed = Managed::decode_list(parent).unwrap_or_default();
    let mut out = Managed::default();
    for entry in managed.entries {
        let Some(replicas) = path(&entry.version) else { continue };
        if entry.set().has(&elements(&replicas)) {
            out.put(Entry::new(entry.identity.clone(), SCALE_VERSION, scale_set(), entry.time.clone()));
        }
    }
    out.encode()
}

/// The managed fields of the parent after a write of `Scale`: new owners of the replicas replace the former
/// ones.
pub fn scale_to_parent(
    parent: &[Value],
    scale: &[Value],
    api_version: &str,
    path: &dyn Fn(&str) -> Option<Vec<String>>,
) -> Vec<Value> {
    let before = Managed::decode_list(parent).unwrap_or_default();
    let mut written = Managed::decode_list(scale).unwrap_or_default();
    let mut out = Managed::default();
    // A manager keeps the time of its entry in the parent; one that wrote only the scale has none.
    let times: Vec<_> = before.entries.iter().map(|e| (e.identity.clone(), e.time.clone())).collect();
    for entry in before.entries {
        let Some(replicas) = path(&entry.version) else { continue };
        let at = elements(&replicas);
        if !entry.set().has(&at) || written.remove(&entry.identity).is_some() {
            out.put(entry);
            continue;
        }
        let mut single = Set::new();
        single.insert(&at);
        let left = entry.set().difference(&single);
        if !left.is_empty() {
            out.put(Entry::new(entry.identity.clone(), &entry.version, left, entry.time.clone()));
        }
    }
    let Some(replicas) = path(api_version) else { return out.encode() };
    for entry in written.entries {
        if !entry.set().has(&elements(&["spec".to_owned(), "replicas".to_owned()])) {
            continue;
        }
        let mut single = Set::new();
        single.insert(&elements(&replicas));
        let time = times.iter().find(|(i, _)| *i == entry.identity).and_then(|(_, t)| t.clone());
        out.put(Entry::new(entry.identity.clone(), api_version, single, time));
    }
    out.encode()
}

fn elements(path: &[String]) -> Vec<PathElement> {
    path.iter().map(|name| PathElement::field(name)).collect()
}

fn scale_set() -> Set {
    Set::of_fields(&[&["spec", "replicas"]])
}
