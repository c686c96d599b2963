//! Who owns whom, kept from the events of the store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// An object's place in the store.
pub(super) type Place = (Arc<str>, Arc<str>);

/// One reference of a dependent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Reference {
    pub(super) uid: String,
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    #[serde(rename = "blockOwnerDeletion")]
    pub(super) blocks: Option<bool>,
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

/// As much of a stored object as is read. Every write comes by here, so the rest is passed over, not built.
#[derive(Default, Deserialize)]
struct Stored {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: String,
    owner_references: Option<Vec<Reference>>,
    deletion_timestamp: Option<IgnoredAny>,
    finalizers: Option<Vec<String>>,
}

impl Node {
    /// Reads the bytes of an object. They were written by this server, so they parse.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let Stored { metadata } = serde_json::from_slice(bytes).unwrap_or_default();
        let deleting = metadata.deletion_timestamp.is_some();
        let has = |f: &str| metadata.finalizers.iter().flatten().any(|name| name == f);
        Self {
            deleting,
            orphan: deleting && has("orphan"),
            foreground: deleting && has("foregroundDeletion"),
            uid: metadata.uid,
            owners: metadata.owner_references.unwrap_or_default(),
        }
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

    /// The objects of a table that are known here and whose UIDs are not in `there`.
    pub(super) fn missing(&self, table: &Arc<str>, there: &HashSet<&str>) -> Vec<(Place, Node)> {
        let gone = self.uids.iter().filter(|(uid, place)| place.0 == *table && !there.contains(uid.as_str()));
        let read = |uid: &String, place: &Place| {
            let known = self.nodes.get(place).filter(|node| node.uid == *uid).cloned();
            (place.clone(), known.unwrap_or_else(|| Node { uid: uid.clone(), ..Node::default() }))
        };
        gone.map(|(uid, place)| read(uid, place)).collect()
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<Place> {
        self.dependents.get(uid).map(|s| s.iter().cloned().collect()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_matters_of_an_object_is_read_from_its_bytes() {
        let read = |object: serde_json::Value| Node::read(object.to_string().as_bytes());
        let plain = read(json!({"kind": "ConfigMap", "metadata": {"uid": "u"}, "data": {"a": "b"}}));
        assert_eq!((plain.uid.as_str(), plain.owners.len(), plain.deleting), ("u", 0, false));
        let owner = json!({"uid": "o", "apiVersion": "v1", "kind": "K", "name": "n", "controller": true});
        let owned = read(json!({"metadata": {
            "uid": "u", "ownerReferences": [owner], "finalizers": ["orphan"], "deletionTimestamp": "2026-01-01T00:00:00Z",
        }}));
        let want = Reference {
            uid: "o".into(),
            api_version: "v1".into(),
            kind: "K".into(),
            name: "n".into(),
            blocks: None,
        };
        assert_eq!(owned.owners, [want]);
        assert!(owned.deleting && owned.orphan && !owned.foreground);
    }
}
