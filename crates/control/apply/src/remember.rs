//! What was applied last, so that an object nobody touched costs no request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use fl_api::ObjectMeta;
use serde_json::Value;

use crate::{Known, ObjectId, ObjectRef};

/// Tells whether a live object is still the one that was seen, as far as an apply is concerned.
///
/// Kinds that count generations change theirs with every change outside metadata and status, so with the labels and annotations that
/// is enough, and a status that moves all the time does not matter. For other kinds every write counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Of a live object.
    #[must_use]
    pub fn of(object: &Value) -> Option<Self> {
        serde_json::from_value(object.get("metadata")?.clone()).ok().map(|meta| Self::of_meta(&meta))
    }

    /// Of the metadata of a live object.
    #[must_use]
    pub fn of_meta(meta: &ObjectMeta) -> Self {
        let uid = meta.uid.as_deref().unwrap_or_default();
        let going = if meta.deletion_timestamp.is_some() { " going" } else { "" };
        match meta.generation.filter(|g| *g > 0) {
            Some(generation) => {
                let pairs = serde_json::json!([meta.labels, meta.annotations]).to_string();
                let hash = blake3::hash(pairs.as_bytes()).to_hex();
                Fingerprint(format!("{uid} {generation} {}{going}", &hash[..16]))
            }
            None => {
                Fingerprint(format!("{uid} {}{going}", meta.resource_version.as_deref().unwrap_or_default()))
            }
        }
    }
}

/// Knows the current state of objects without asking for each: a watch of their metadata.
pub trait LiveVersions: Send + Sync {
    /// An object's fingerprint, none when it does not exist, unknown when no watch that is current covers it.
    fn version(&self, object: &ObjectRef) -> Known<Option<Fingerprint>>;
}

type Hash = [u8; 32];

/// What one owner applied: the hash of the wanted object and the fingerprint of the live one that was found or made equal to it.
///
/// Only a cache: forgetting costs requests, never correctness.
#[derive(Debug, Default)]
pub struct Remembered {
    objects: Mutex<HashMap<ObjectId, (Hash, Fingerprint)>>,
}

impl Remembered {
    /// Whether the live object is known to be what `wanted` asks for.
    #[must_use]
    pub fn is_current(&self, id: &ObjectId, wanted: &Value, live: &Fingerprint) -> bool {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.get(id).is_some_and(|(hash, seen)| seen == live && *hash == hash_of(wanted))
    }

    /// Notes that the live object is what was wanted.
    pub fn note(&self, id: &ObjectId, wanted: &Value, live: Fingerprint) {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.insert(id.clone(), (hash_of(wanted), live));
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

fn hash_of(object: &Value) -> Hash {
    *blake3::hash(object.to_string().as_bytes()).as_bytes()
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
    fn status_does_not_count_where_generations_do() {
        assert_eq!(live("1", Some(1), "x"), live("2", Some(1), "x"));
        assert_ne!(live("1", Some(1), "x"), live("2", Some(2), "x"));
        assert_ne!(live("1", Some(1), "x"), live("2", Some(1), "y"));
        assert_ne!(live("1", None, "x"), live("2", None, "x"));
    }

    #[test]
    fn current_only_for_the_same_content_and_version() {
        let memory = Remembered::default();
        let id = ObjectRef::new("v1", "ConfigMap", "ns", "a").id;
        memory.note(&id, &json!({"data": 1}), live("7", None, "x"));
        assert!(memory.is_current(&id, &json!({"data": 1}), &live("7", None, "x")));
        assert!(!memory.is_current(&id, &json!({"data": 1}), &live("8", None, "x")));
        assert!(!memory.is_current(&id, &json!({"data": 2}), &live("7", None, "x")));
        memory.forget(&id);
        assert!(!memory.is_current(&id, &json!({"data": 1}), &live("7", None, "x")));
    }
}
