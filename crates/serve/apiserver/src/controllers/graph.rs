//! Who owns whom, kept from the events of the store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use crate::object;

/// An object's place in the store.
pub(super) type Place = (Arc<str>, Arc<str>);

/// One reference of a dependent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) uid: String,
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) blocks: bool,
}

/// What the collector needs to know about one object.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) uid: String,
    pub(super) owners: Vec<Reference>,
    pub(super) deleting: bool,
    pub(super) orphan: bool,
    pub(super) foreground: bool,
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Place, Node>,
    /// UID of an owner to its dependents.
    dependents: HashMap<String, HashSet<Place>>,
    /// UIDs of objects that exist.
    uids: HashMap<String, Place>,
}

pub(super) fn read(object: &Value) -> Node {
    let owners = object::owner_references(object)
        .iter()
        .map(|r| {
            let text = |f: &str| r.get(f).and_then(Value::as_str).unwrap_or_default().to_owned();
            Reference {
                uid: text("uid"),
                api_version: text("apiVersion"),
                kind: text("kind"),
                name: text("name"),
                blocks: r.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true),
            }
        })
        .collect();
    let has = |f: &str| object::finalizers(object).contains(&f);
    let deleting = object::is_deleting(object);
    Node {
        uid: object::uid(object).to_owned(),
        owners,
        deleting,
        orphan: deleting && has("orphan"),
        foreground: deleting && has("foregroundDeletion"),
    }
}

impl Graph {
    pub(super) fn put(&mut self, place: &Place, node: Node) {
        self.unlink(place);
        for owner in &node.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(place.clone());
        }
        self.uids.insert(node.uid.clone(), place.clone());
        // Objects without owners, dependents or a deletion are only known by their UID.
        if !node.owners.is_empty() || node.deleting {
            self.nodes.insert(place.clone(), node);
        }
    }

    pub(super) fn remove(&mut self, place: &Place, uid: &str) {
        self.unlink(place);
        if self.uids.get(uid) == Some(place) {
            self.uids.remove(uid);
        }
    }

    fn unlink(&mut self, place: &Place) {
        if let Some(old) = self.nodes.remove(place) {
            for owner in &old.owners {
                if let Some(set) = self.dependents.get_mut(&owner.uid) {
                    set.remove(place);
                    if set.is_empty() {
                        self.dependents.remove(&owner.uid);
                    }
                }
            }
        }
    }

    pub(super) fn node(&self, place: &Place) -> Option<&Node> {
        self.nodes.get(place)
    }

    pub(super) fn place_of(&self, uid: &str) -> Option<&Place> {
        self.uids.get(uid)
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<Place> {
        self.dependents.get(uid).map(|s| s.iter().cloned().collect()).unwrap_or_default()
    }
}
