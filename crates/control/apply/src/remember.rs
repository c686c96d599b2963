//! What was applied last, so that an object nobody touched costs no request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::{Known, ObjectId, ObjectRef};

/// Knows the current version of objects without asking for each: a watch of their metadata.
pub trait LiveVersions: Send + Sync {
    /// The `resourceVersion` of an object, none when it does not exist, unknown when no watch that is current covers it.
    fn version(&self, object: &ObjectRef) -> Known<Option<String>>;
}

type Hash = [u8; 32];

/// What one owner applied: the hash of the wanted object and the version of the live one that was found or made equal to it.
///
/// Only a cache: forgetting costs requests, never correctness.
#[derive(Debug, Default)]
pub struct Remembered {
    objects: Mutex<HashMap<ObjectId, (Hash, String)>>,
}

impl Remembered {
    /// Whether the live object in version `live` is known to be what `wanted` asks for.
    #[must_use]
    pub fn is_current(&self, id: &ObjectId, wanted: &Value, live: &str) -> bool {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.get(id).is_some_and(|(hash, version)| version == live && *hash == hash_of(wanted))
    }

    /// Notes that the live object in this version is what was wanted.
    pub fn note(&self, id: &ObjectId, wanted: &Value, version: &str) {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.insert(id.clone(), (hash_of(wanted), version.to_owned()));
    }

    /// The version noted for an object.
    #[must_use]
    pub fn version(&self, id: &ObjectId) -> Option<String> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.get(id).map(|(_, version)| version.clone())
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

    #[test]
    fn current_only_for_the_same_content_and_version() {
        let memory = Remembered::default();
        let id = ObjectRef::new("v1", "ConfigMap", "ns", "a").id;
        memory.note(&id, &json!({"data": 1}), "7");
        assert!(memory.is_current(&id, &json!({"data": 1}), "7"));
        assert!(!memory.is_current(&id, &json!({"data": 1}), "8"));
        assert!(!memory.is_current(&id, &json!({"data": 2}), "7"));
        memory.forget(&id);
        assert!(!memory.is_current(&id, &json!({"data": 1}), "7"));
    }
}
