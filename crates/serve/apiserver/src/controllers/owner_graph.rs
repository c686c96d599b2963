//! The owner graph of the garbage collector, built from the events of the store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// Table and key of an object in the store.
pub(super) type ObjectKey = (Arc<str>, Arc<str>);

/// One owner reference of a dependent.
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

/// The part of an object that the collector needs.
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
    nodes: HashMap<ObjectKey, Node>,
    /// UID of an owner to its dependents.
    dependents: HashMap<String, HashSet<ObjectKey>>,
    /// UIDs of objects that exist.
    uids: HashMap<String, ObjectKey>,
}

/// The fields that are decoded. Every write passes here, so other fields are skipped without being built.
#[derive(Default, Deserialize)]
struct StoredObject {
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
    /// Decodes the bytes of an object. They were written by this server, so they parse.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let StoredObject { metadata } = serde_json::from_slice(bytes).unwrap_or_default();
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
    pub(super) fn put(&mut self, key: &ObjectKey, node: Node) {
        self.unlink(key);
        for owner in &node.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        self.uids.insert(node.uid.clone(), key.clone());
        // For objects without owners, dependents or a deletion only the UID is kept.
        if !node.owners.is_empty() || node.deleting {
            self.nodes.insert(key.clone(), node);
        }
    }

    pub(super) fn remove(&mut self, key: &ObjectKey, uid: &str) {
        self.unlink(key);
        if self.uids.get(uid) == Some(key) {
            self.uids.remove(uid);
        }
    }

    fn unlink(&mut self, key: &ObjectKey) {
        if let Some(old) = self.nodes.remove(key) {
            for owner in &old.owners {
                if let Some(set) = self.dependents.get_mut(&owner.uid) {
                    set.remove(key);
                    if set.is_empty() {
                        self.dependents.remove(&owner.uid);
                    }
                }
            }
        }
    }

    pub(super) fn node(&self, key: &ObjectKey) -> Option<&Node> {
        self.nodes.get(key)
    }

    pub(super) fn key_of(&self, uid: &str) -> Option<&ObjectKey> {
        self.uids.get(uid)
    }

    /// The nodes of a table whose UIDs are not in `there`.
    pub(super) fn missing(&self, table: &Arc<str>, there: &HashSet<&str>) -> Vec<(ObjectKey, Node)> {
        let gone = self.uids.iter().filter(|(uid, key)| key.0 == *table && !there.contains(uid.as_str()));
        let read = |uid: &String, key: &ObjectKey| {
            let known = self.nodes.get(key).filter(|node| node.uid == *uid).cloned();
            (key.clone(), known.unwrap_or_else(|| Node { uid: uid.clone(), ..Node::default() }))
        };
        gone.map(|(uid, key)| read(uid, key)).collect()
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<ObjectKey> {
        self.dependents.get(uid).map(|s| s.iter().cloned().collect()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn node_is_decoded_from_object_bytes() {
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
