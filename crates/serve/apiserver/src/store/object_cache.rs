//! Recently written objects as decoded values. An object that was just written is often written again soon;
//! the cache saves decoding it. It holds the last state of each object. The replaced state is dropped on the
//! thread that has just read it, whose next value can reuse the memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// Maximum encoded bytes of the cached objects; a decoded value takes a few times as much.
const MAX_BYTES: usize = 64 << 10;
/// Maximum number of cached objects: lookups are linear.
const MAX_OBJECTS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct ObjectCache(Mutex<RingBuffer>);

#[derive(Debug, Default)]
struct RingBuffer {
    objects: VecDeque<CachedObject>,
    bytes: usize,
}

#[derive(Debug)]
struct CachedObject {
    revision: u64,
    bytes: usize,
    object: Arc<Value>,
}

impl ObjectCache {
    fn ring(&self) -> std::sync::MutexGuard<'_, RingBuffer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inserts the object that was written as `revision` (which it must contain), in place of the state
    /// written as `replaced`.
    pub(super) fn insert(&self, revision: u64, replaced: Option<u64>, bytes: usize, object: Value) {
        if bytes > MAX_BYTES / 4 {
            return;
        }
        let objects = CachedObject { revision, bytes, object: Arc::new(object) };
        let mut ring = self.ring();
        let old = replaced.and_then(|old| ring.objects.iter().rposition(|objects| objects.revision == old));
        let old = old.and_then(|at| ring.objects.remove(at));
        ring.bytes += bytes;
        ring.bytes -= old.as_ref().map_or(0, |old| old.bytes);
        ring.objects.push_back(objects);
        let full = ring.objects.len() > 2 * MAX_OBJECTS || ring.bytes > 2 * MAX_BYTES;
        // Unlock before freeing memory.
        drop(ring);
        drop(old);
        if full {
            self.evict();
        }
    }

    /// Removes the oldest objects above the limits. The store's writer thread calls this after each batch, so
    /// that requests rarely have to.
    pub(super) fn evict(&self) {
        let mut ring = self.ring();
        let mut freed = Vec::new();
        while ring.objects.len() > MAX_OBJECTS || ring.bytes > MAX_BYTES {
            let Some(oldest) = ring.objects.pop_front() else { break };
            ring.bytes -= oldest.bytes;
            freed.push(oldest);
        }
        // Unlock before freeing memory.
        drop(ring);
        drop(freed);
    }

    pub(super) fn get(&self, revision: u64) -> Option<Arc<Value>> {
        // The newest are read most often.
        self.ring()
            .objects
            .iter()
            .rev()
            .find(|objects| objects.revision == revision)
            .map(|objects| objects.object.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_objects_are_cached_within_limits() {
        let cache = ObjectCache::default();
        for revision in 1..=100 {
            cache.insert(revision, None, 100, Value::from(revision));
        }
        assert!(cache.get(36).is_some());
        cache.evict();
        assert_eq!(cache.get(36), None);
        assert_eq!(cache.get(37).as_deref(), Some(&Value::from(37)));
        cache.insert(101, None, MAX_BYTES, Value::Null);
        assert_eq!(cache.get(101), None, "too large");
        for revision in 102..=109 {
            cache.insert(revision, None, MAX_BYTES / 4, Value::from(revision));
        }
        // No `evict` was called in time.
        assert_eq!((cache.get(105), cache.get(100)), (None, None));
        assert!((106..=109).all(|revision| cache.get(revision).is_some()));
        assert!(cache.ring().bytes <= MAX_BYTES);
    }

    #[test]
    fn last_state_of_an_object_is_cached() {
        let cache = ObjectCache::default();
        cache.insert(1, None, 10, Value::from("other"));
        cache.insert(2, None, 10, Value::from(2));
        for revision in 3..1000 {
            cache.insert(revision, Some(revision - 1), 20, Value::from(revision));
        }
        assert_eq!((cache.get(1).as_deref(), cache.get(998)), (Some(&Value::from("other")), None));
        assert_eq!(cache.get(999).as_deref(), Some(&Value::from(999)));
        let ring = cache.ring();
        assert_eq!((ring.objects.len(), ring.bytes), (2, 30));
    }
}
