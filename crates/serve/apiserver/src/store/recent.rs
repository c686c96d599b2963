//! Objects that were written a moment ago, as values: who writes an object often writes it again soon, and then need not read it
//! from its text. Of each object the last state is held. The one before goes when it is replaced, on the thread that just read it:
//! the next value takes its memory while that is at hand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// Bytes of text that are held as values; a value takes a few times as much.
const MOST_BYTES: usize = 64 << 10;
/// Looked through one by one.
const MOST: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    held: VecDeque<Held>,
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    revision: u64,
    bytes: usize,
    object: Arc<Value>,
}

impl Recent {
    fn ring(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds what was written as `revision`, with that revision in it, for a while, in place of the object's state as `replaced`.
    pub(super) fn hold(&self, revision: u64, replaced: Option<u64>, bytes: usize, object: Value) {
        if bytes > MOST_BYTES / 4 {
            return;
        }
        let held = Held { revision, bytes, object: Arc::new(object) };
        let mut ring = self.ring();
        let old = replaced.and_then(|old| ring.held.iter().rposition(|held| held.revision == old));
        let old = old.and_then(|at| ring.held.remove(at));
        ring.bytes += bytes;
        ring.bytes -= old.as_ref().map_or(0, |old| old.bytes);
        ring.held.push_back(held);
        let full = ring.held.len() > 2 * MOST || ring.bytes > 2 * MOST_BYTES;
        // The lock first.
        drop(ring);
        drop(old);
        if full {
            self.let_go();
        }
    }

    /// Frees the oldest. Who writes has somebody waiting, so this is done by somebody who has not, as long as they come in time.
    pub(super) fn let_go(&self) {
        let mut ring = self.ring();
        let mut freed = Vec::new();
        while ring.held.len() > MOST || ring.bytes > MOST_BYTES {
            let Some(oldest) = ring.held.pop_front() else { break };
            ring.bytes -= oldest.bytes;
            freed.push(oldest);
        }
        // The lock first.
        drop(ring);
        drop(freed);
    }

    pub(super) fn find(&self, revision: u64) -> Option<Arc<Value>> {
        // The newest are asked for most.
        self.ring().held.iter().rev().find(|held| held.revision == revision).map(|held| held.object.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_held_within_bounds() {
        let recent = Recent::default();
        for revision in 1..=100 {
            recent.hold(revision, None, 100, Value::from(revision));
        }
        assert!(recent.find(36).is_some());
        recent.let_go();
        assert_eq!(recent.find(36), None);
        assert_eq!(recent.find(37).as_deref(), Some(&Value::from(37)));
        recent.hold(101, None, MOST_BYTES, Value::Null);
        assert_eq!(recent.find(101), None, "too large");
        for revision in 102..=109 {
            recent.hold(revision, None, MOST_BYTES / 4, Value::from(revision));
        }
        // Nobody freed any in time.
        assert_eq!((recent.find(105), recent.find(100)), (None, None));
        assert!((106..=109).all(|revision| recent.find(revision).is_some()));
        assert!(recent.ring().bytes <= MOST_BYTES);
    }

    #[test]
    fn of_an_object_the_last_state_is_held() {
        let recent = Recent::default();
        recent.hold(1, None, 10, Value::from("other"));
        recent.hold(2, None, 10, Value::from(2));
        for revision in 3..1000 {
            recent.hold(revision, Some(revision - 1), 20, Value::from(revision));
        }
        assert_eq!((recent.find(1).as_deref(), recent.find(998)), (Some(&Value::from("other")), None));
        assert_eq!(recent.find(999).as_deref(), Some(&Value::from(999)));
        let ring = recent.ring();
        assert_eq!((ring.held.len(), ring.bytes), (2, 30));
    }
}
