//! Conditions with the life cycle of Flux's controllers.

use fl_api::condition::{reasons, types};
use fl_api::meta::condition::{Condition, ConditionStatus};
use jiff::Timestamp;

use crate::resource::Reconciled;

/// The API's limit on a message.
const MAX_MESSAGE_BYTES: usize = 32768;
const ELLIPSIS: &str = "...";

/// Reads and sets conditions of an object.
pub trait Conditions {
    fn condition(&self, kind: &str) -> Option<&Condition>;
    fn set_condition(&mut self, kind: &str, status: ConditionStatus, reason: &str, message: &str);
    fn remove_condition(&mut self, kind: &str);

    fn mark_true(&mut self, kind: &str, reason: &str, message: &str) {
        self.set_condition(kind, ConditionStatus::True, reason, message);
    }

    fn mark_false(&mut self, kind: &str, reason: &str, message: &str) {
        self.set_condition(kind, ConditionStatus::False, reason, message);
    }

    fn mark_unknown(&mut self, kind: &str, reason: &str, message: &str) {
        self.set_condition(kind, ConditionStatus::Unknown, reason, message);
    }

    /// Sets `Reconciling` and removes `Stalled`.
    fn mark_reconciling(&mut self, reason: &str, message: &str) {
        self.remove_condition(types::STALLED);
        self.mark_true(types::RECONCILING, reason, message);
    }

    /// Sets `Stalled` and removes `Reconciling`: no progress until the spec changes.
    fn mark_stalled(&mut self, reason: &str, message: &str) {
        self.remove_condition(types::RECONCILING);
        self.mark_true(types::STALLED, reason, message);
    }

    /// Sets `Reconciling`. `Ready` becomes `Unknown` if the current state is outdated (`drift`) or was never
    /// reported.
    fn mark_progressing(&mut self, drift: bool, message: &str) {
        self.mark_reconciling(reasons::PROGRESSING, message);
        if drift
            || self.has_status(types::READY, ConditionStatus::Unknown)
            || !self.has_condition(types::READY)
        {
            self.mark_unknown(types::READY, reasons::PROGRESSING, message);
        }
    }

    /// Changes the reason of `Reconciling` to `ProgressingWithRetry` after a failed reconcile.
    fn mark_retrying(&mut self) {
        if let Some(message) = self.condition(types::RECONCILING).map(|c| c.message.clone()) {
            self.mark_true(types::RECONCILING, reasons::PROGRESSING_WITH_RETRY, &message);
        }
    }

    fn has_condition(&self, kind: &str) -> bool {
        self.condition(kind).is_some()
    }

    fn has_status(&self, kind: &str, status: ConditionStatus) -> bool {
        self.condition(kind).is_some_and(|c| c.status == status)
    }

    fn is_true(&self, kind: &str) -> bool {
        self.has_status(kind, ConditionStatus::True)
    }

    fn is_false(&self, kind: &str) -> bool {
        self.has_status(kind, ConditionStatus::False)
    }

    fn is_stalled(&self) -> bool {
        self.is_true(types::STALLED)
    }

    fn is_reconciling(&self) -> bool {
        self.is_true(types::RECONCILING)
    }

    /// `Ready` is true, and neither `Reconciling` nor `Stalled` is.
    fn is_ready(&self) -> bool {
        !self.is_stalled() && !self.is_reconciling() && self.is_true(types::READY)
    }
}

impl<T: Reconciled> Conditions for T {
    fn condition(&self, kind: &str) -> Option<&Condition> {
        Reconciled::conditions(self).iter().find(|c| c.r#type == kind)
    }

    fn set_condition(&mut self, kind: &str, status: ConditionStatus, reason: &str, message: &str) {
        let generation = self.generation();
        let list = self.status_head().conditions.get_or_insert_default();
        set(list, kind, status, reason, message, generation, now());
    }

    fn remove_condition(&mut self, kind: &str) {
        if self.condition(kind).is_none() {
            return;
        }
        let conditions = self.status_head().conditions;
        if let Some(list) = conditions {
            list.retain(|c| c.r#type != kind);
            // No list instead of an empty one: an empty list would be a difference to an object without
            // conditions.
            if list.is_empty() {
                *conditions = None;
            }
        }
    }
}

/// The current time in whole seconds, as conditions have it.
pub fn now() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default()
}

fn set(
    list: &mut Vec<Condition>,
    kind: &str,
    status: ConditionStatus,
    reason: &str,
    message: &str,
    generation: i64,
    now: Timestamp,
) {
    let message = cut(message);
    let known = list.iter_mut().find(|c| c.r#type == kind);
    match known {
        Some(c) if c.status == status && c.reason == reason && c.message == message => {
            c.observed_generation = Some(generation);
        }
        Some(c) => {
            *c = Condition {
                last_transition_time: now,
                message,
                observed_generation: Some(generation),
                reason: reason.to_owned(),
                status,
                r#type: kind.to_owned(),
            };
        }
        None => list.push(Condition {
            last_transition_time: now,
            message,
            observed_generation: Some(generation),
            reason: reason.to_owned(),
            status,
            r#type: kind.to_owned(),
        }),
    }
    sort(list);
}

/// `Stalled`, `Reconciling`, `Ready`, then newer generations first, then by name.
pub(crate) fn sort(list: &mut [Condition]) {
    let weight = |c: &Condition| match c.r#type.as_str() {
        types::STALLED => 0,
        types::RECONCILING => 1,
        types::READY => 2,
        _ => 3,
    };
    list.sort_by(|a, b| {
        weight(a).cmp(&weight(b)).then_with(|| {
            let newer = b.observed_generation.cmp(&a.observed_generation);
            if weight(a) == 3 {
                newer.then_with(|| a.r#type.cmp(&b.r#type))
            } else {
                std::cmp::Ordering::Equal
            }
        })
    });
}

fn cut(message: &str) -> String {
    if message.len() <= MAX_MESSAGE_BYTES {
        return message.to_owned();
    }
    let mut end = MAX_MESSAGE_BYTES - ELLIPSIS.len();
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ELLIPSIS}", &message[..end])
}

/// Summarises the other conditions in `Ready`, as source-controller does. They are given by priority: the
/// worst group decides, and in it the first condition provides reason and message.
pub fn summarize<T: Reconciled>(object: &mut T, of: &[&str]) {
    let negative = |c: &Condition| types::NEGATIVE.contains(&c.r#type.as_str());
    let priority = |c: &Condition| match (c.status, negative(c)) {
        (ConditionStatus::True, true) => 0,
        (ConditionStatus::False, false) => 1,
        (ConditionStatus::True, false) => 2,
        (ConditionStatus::False, true) => 3,
        (ConditionStatus::Unknown, _) => 4,
    };
    let others = of.iter().filter(|kind| **kind != types::READY);
    let found: Vec<&Condition> = others.filter_map(|kind| object.condition(kind)).collect();
    // `min_by_key` returns the first of equals, which has the highest priority.
    let Some(top) = found.into_iter().min_by_key(|c| priority(c)) else { return };
    let status = match priority(top) {
        0 | 1 => ConditionStatus::False,
        2 | 3 => ConditionStatus::True,
        _ => ConditionStatus::Unknown,
    };
    let (reason, message) = (top.reason.clone(), top.message.clone());
    object.set_condition(types::READY, status, &reason, &message);
}

#[cfg(test)]
mod tests {
    use super::*;
    use fl_api::source::GitRepository;

    fn object() -> GitRepository {
        serde_json::from_value(serde_json::json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": "a", "namespace": "b", "generation": 3},
            "spec": {"url": "https://example.com", "interval": "1m"}
        }))
        .unwrap()
    }

    #[test]
    fn order_and_transition_times() {
        let mut o = object();
        o.mark_true(types::ARTIFACT_IN_STORAGE, "Succeeded", "m");
        o.mark_true(types::READY, "Succeeded", "m");
        o.mark_reconciling("Progressing", "x");
        let order: Vec<&str> = Reconciled::conditions(&o).iter().map(|c| c.r#type.as_str()).collect();
        assert_eq!(order, ["Reconciling", "Ready", "ArtifactInStorage"]);
        let old = Timestamp::UNIX_EPOCH;
        o.status_head().conditions.as_mut().unwrap()[1].last_transition_time = old;
        o.meta_mut().generation = Some(4);
        o.mark_true(types::READY, "Succeeded", "m");
        let ready = o.condition(types::READY).unwrap();
        assert_eq!((ready.last_transition_time, ready.observed_generation), (old, Some(4)));
        o.mark_true(types::READY, "Succeeded", "other");
        assert_ne!(o.condition(types::READY).unwrap().last_transition_time, old);
        o.mark_stalled("URLInvalid", "bad");
        assert!(!o.is_reconciling());
    }

    #[test]
    fn the_worst_decides() {
        let summary = [
            types::READY,
            types::FETCH_FAILED,
            types::ARTIFACT_IN_STORAGE,
            types::STALLED,
            types::RECONCILING,
        ];
        let mut o = object();
        summarize(&mut o, &summary);
        assert!(!o.has_condition(types::READY));
        o.mark_true(types::ARTIFACT_IN_STORAGE, "Succeeded", "stored");
        summarize(&mut o, &summary);
        assert!(o.is_true(types::READY));
        o.mark_reconciling("Progressing", "working");
        o.mark_true(types::FETCH_FAILED, "GitOperationFailed", "no");
        summarize(&mut o, &summary);
        let ready = o.condition(types::READY).unwrap();
        assert_eq!((ready.reason.as_str(), ready.status), ("GitOperationFailed", ConditionStatus::False));
    }

    #[test]
    fn long_messages_are_truncated() {
        let mut o = object();
        o.mark_false(types::READY, "Failed", &"ä".repeat(40000));
        assert!(o.condition(types::READY).unwrap().message.len() <= MAX_MESSAGE_BYTES);
    }
}
