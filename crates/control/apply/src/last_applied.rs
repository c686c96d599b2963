//! What was applied last, so that an object nobody touched costs no request.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use fl_api::ObjectMeta;
use serde_json::Value;

use crate::{Error, Lookup, ObjectId, ObjectRef};

/// Tells whether a live object is still the one that was seen, as far as an apply is concerned.
///
/// Kinds that count generations change theirs with every change outside metadata and status, so with the labels and annotations that
/// is enough, and a status that moves all the time does not matter. For other kinds every write counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    uid: String,
    state: State,
    going: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    /// The generation, and a hash of labels and annotations.
    Generation(i64, Hash),
    /// The version.
    Version(String),
}

impl Fingerprint {
    /// Of a live object.
    #[must_use]
    pub fn of(object: &Value) -> Option<Self> {
        let meta = object.get("metadata")?;
        let text = |field: &str| meta[field].as_str();
        let pairs = |field: &str| {
            let map = meta[field].as_object().into_iter().flatten();
            map.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        };
        let state = match meta["generation"].as_i64().filter(|g| *g > 0) {
            Some(generation) => {
                State::Generation(generation, pairs_hash(pairs("labels"), pairs("annotations")))
            }
            None => State::Version(text("resourceVersion").unwrap_or_default().to_owned()),
        };
        let uid = text("uid").unwrap_or_default().to_owned();
        Some(Fingerprint { uid, state, going: text("deletionTimestamp").is_some() })
    }

    /// Of the metadata of a live object.
    #[must_use]
    pub fn of_meta(meta: &ObjectMeta) -> Self {
        let state = match meta.generation.filter(|g| *g > 0) {
            Some(generation) => {
                State::Generation(generation, pairs_hash(pairs(&meta.labels), pairs(&meta.annotations)))
            }
            None => State::Version(meta.resource_version.clone().unwrap_or_default()),
        };
        let uid = meta.uid.clone().unwrap_or_default();
        Fingerprint { uid, state, going: meta.deletion_timestamp.is_some() }
    }
}

fn pairs(map: &Option<BTreeMap<String, String>>) -> impl Iterator<Item = (&str, &str)> {
    map.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()))
}

/// Of two lists of pairs, in the order of their keys.
fn pairs_hash<'a>(
    labels: impl Iterator<Item = (&'a str, &'a str)>,
    annotations: impl Iterator<Item = (&'a str, &'a str)>,
) -> Hash {
    let mut hasher = blake3::Hasher::new();
    let mut text = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    };
    for (key, value) in labels {
        text(key);
        text(value);
    }
    // No key is empty.
    text("");
    for (key, value) in annotations {
        text(key);
        text(value);
    }
    *hasher.finalize().as_bytes()
}

/// Knows the current state of objects without asking for each: a watch of their metadata.
pub trait LiveVersions: Send + Sync {
    /// An object's fingerprint, none when it does not exist, unknown when no watch that is current covers it.
    fn version(&self, object: &ObjectRef) -> Lookup<Fingerprint, Error>;
}

type Hash = [u8; 32];

/// What one owner applied: the hash of the wanted object and the fingerprint of the live one that was found or made equal to it.
///
/// Only a cache: forgetting costs requests, never correctness.
#[derive(Debug, Default)]
pub struct LastApplied {
    objects: Mutex<HashMap<ObjectId, (Hash, Fingerprint)>>,
}

impl LastApplied {
    /// Whether the live object is known to be what the text of an object asks for.
    #[must_use]
    pub fn is_current(&self, id: &ObjectId, wanted: &[u8], live: &Fingerprint) -> bool {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.get(id).is_some_and(|(hash, seen)| seen == live && *hash == *blake3::hash(wanted).as_bytes())
    }

    /// Notes that the live object is what was wanted, by the text of that.
    pub fn note(&self, id: &ObjectId, wanted: &[u8], live: Fingerprint) {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.insert(id.clone(), (*blake3::hash(wanted).as_bytes(), live));
    }

    /// The fingerprint noted for an object.
    #[must_use]
    pub fn seen(&self, id: &ObjectId) -> Option<Fingerprint> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.get(id).map(|(_, seen)| seen.clone())
    }

    /// Forgets an object.
    pub fn forget(&self, id: &ObjectId) {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Keeps only what an inventory still names.
    pub fn retain(&self, keep: impl Fn(&ObjectId) -> bool) {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).retain(|id, _| keep(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live(version: &str, generation: Option<i64>, label: &str) -> Fingerprint {
        let object = json!({"metadata": {"uid": "u", "resourceVersion": version, "generation": generation, "labels": {"a": label}}});
        Fingerprint::of(&object).expect("has metadata")
    }

    #[test]
    fn metadata_gives_the_same_as_the_object() {
        let objects = [
            json!({"metadata": {"uid": "u", "resourceVersion": "7", "labels": {"a": "b"}}}),
            json!({"metadata": {"uid": "u", "generation": 2, "labels": {"b": "1", "a": "2"}, "annotations": {"x": ""}}}),
            json!({"metadata": {"uid": "u", "generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        ];
        let mut all: Vec<Fingerprint> = objects.iter().filter_map(Fingerprint::of).collect();
        for (object, print) in objects.iter().zip(&all) {
            let meta: ObjectMeta = serde_json::from_value(object["metadata"].clone()).expect("metadata");
            assert_eq!(Fingerprint::of_meta(&meta), *print);
        }
        let moved = json!({"metadata": {"uid": "u", "generation": 2, "labels": {"b": "1"}, "annotations": {"a": "2", "x": ""}}});
        all.extend(Fingerprint::of(&moved));
        let different: std::collections::HashSet<_> = all.into_iter().collect();
        assert_eq!(different.len(), 4);
    }

    #[test]
    fn status_does_not_count_where_generations_do() {
        assert_eq!(live("1", Some(1), "x"), live("2", Some(1), "x"));
        assert_ne!(live("1", Some(1), "x"), live("2", Some(2), "x"));
        assert_ne!(live("1", Some(1), "x"), live("2", Some(1), "y"));
        assert_ne!(live("1", None, "x"), live("2", None, "x"));
    }

    #[test]
    fn current_only_for_the_same_content_and_version() {
        let memory = LastApplied::default();
        let id = ObjectRef::new("v1", "ConfigMap", "ns", "a").id;
        memory.note(&id, b"one", live("7", None, "x"));
        assert!(memory.is_current(&id, b"one", &live("7", None, "x")));
        assert!(!memory.is_current(&id, b"one", &live("8", None, "x")));
        assert!(!memory.is_current(&id, b"two", &live("7", None, "x")));
        memory.forget(&id);
        assert!(!memory.is_current(&id, b"one", &live("7", None, "x")));
    }
}
