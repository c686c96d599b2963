//! Event correlation: repeated events are counted, similar ones are aggregated, and events are rate limited
//! per object. The rules are those of client-go's recorder.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::InvolvedObject;

/// More than this many different messages of one kind within [`SIMILAR_WINDOW`] are combined.
const SIMILAR_LIMIT: usize = 10;
const SIMILAR_WINDOW: Duration = Duration::from_secs(600);
const COMBINED: &str = "(combined from similar events): ";
/// Burst of events per object, refilled by one per [`REFILL`].
const BURST: f64 = 25.0;
const REFILL: Duration = Duration::from_secs(300);
/// Size of the caches.
const REMEMBERED: usize = 1024;

/// The key of events that are aggregated.
pub(super) type Id = String;

/// How an event is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    New { message: String, id: Id },
    Repeat { name: String, count: u32, message: String, id: Id },
    Drop,
}

#[derive(Debug)]
struct AggregateKey {
    messages: HashSet<String>,
    last: Instant,
}

#[derive(Debug)]
struct Budget {
    tokens: f64,
    last: Instant,
}

#[derive(Debug)]
struct SeenEvent {
    name: String,
    count: u32,
}

/// A map that evicts the oldest entry when it is full.
#[derive(Debug)]
struct Memory<V> {
    entries: HashMap<String, V>,
    order: VecDeque<String>,
}

impl<V> Default for Memory<V> {
    fn default() -> Self {
        Memory { entries: HashMap::new(), order: VecDeque::new() }
    }
}

impl<V> Memory<V> {
    fn entry(&mut self, key: &str, make: impl FnOnce() -> V) -> &mut V {
        if !self.entries.contains_key(key) {
            if self.order.len() >= REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.entries.remove(&oldest);
            }
            self.order.push_back(key.to_owned());
        }
        self.entries.entry(key.to_owned()).or_insert_with(make)
    }
}

/// The recently recorded events.
#[derive(Debug, Default)]
pub(super) struct Correlator {
    similar: Memory<AggregateKey>,
    budgets: Memory<Budget>,
    recorded: Memory<SeenEvent>,
}

impl Correlator {
    pub(super) fn decide(
        &mut self,
        component: &str,
        about: &InvolvedObject,
        warning: bool,
        reason: &str,
        message: &str,
        now: Instant,
    ) -> Decision {
        let object = format!(
            "{component}\0{}\0{}\0{}\0{}\0{}",
            about.api_version, about.kind, about.namespace, about.name, about.uid
        );
        let group = format!("{object}\0{warning}\0{reason}");
        let similar = self.similar.entry(&group, || AggregateKey { messages: HashSet::new(), last: now });
        if now.duration_since(similar.last) > SIMILAR_WINDOW {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(message.to_owned());
        let (id, message) = if similar.messages.len() < SIMILAR_LIMIT {
            (format!("{group}\0{message}"), message.to_owned())
        } else {
            // Only the count matters from here on: messages are not kept.
            if similar.messages.len() > SIMILAR_LIMIT {
                similar.messages.remove(message);
            }
            (group, format!("{COMBINED}{message}"))
        };
        let budget = self.budgets.entry(&object, || Budget { tokens: BURST, last: now });
        let refilled = now.duration_since(budget.last).as_secs_f64() / REFILL.as_secs_f64();
        budget.tokens = (budget.tokens + refilled).min(BURST);
        budget.last = now;
        if budget.tokens < 1.0 {
            return Decision::Drop;
        }
        budget.tokens -= 1.0;
        match self.recorded.entries.get_mut(&id) {
            Some(known) => {
                known.count += 1;
                Decision::Repeat { name: known.name.clone(), count: known.count, message, id }
            }
            None => Decision::New { message, id },
        }
    }

    /// Records the name under which an event was written.
    pub(super) fn recorded(&mut self, id: Id, name: String) {
        let entry = self.recorded.entry(&id, || SeenEvent { name: name.clone(), count: 1 });
        *entry = SeenEvent { name, count: 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(c: &mut Correlator, reason: &str, message: &str) -> Decision {
        c.decide("x", &InvolvedObject::default(), true, reason, message, Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn repeats_are_counted() {
        let mut c = Correlator::default();
        let Decision::New { id, .. } = decide(&mut c, "A", "m") else { panic!() };
        c.recorded(id, "n".to_owned());
        assert!(matches!(decide(&mut c, "A", "m"), Decision::Repeat { count: 2, .. }));
        assert!(matches!(decide(&mut c, "A", "other"), Decision::New { .. }));
    }

    #[tokio::test(start_paused = true)]
    async fn similar_events_are_aggregated_and_rate_limited() {
        let mut c = Correlator::default();
        let mut dropped = 0;
        for i in 0..100 {
            match decide(&mut c, "A", &i.to_string()) {
                Decision::New { message, id } => {
                    assert_eq!(message.starts_with(COMBINED), i >= SIMILAR_LIMIT - 1, "{i}");
                    c.recorded(id, i.to_string());
                }
                Decision::Drop => dropped += 1,
                Decision::Repeat { message, .. } => assert!(message.starts_with(COMBINED)),
            }
        }
        assert_eq!(dropped, 75);
        tokio::time::advance(REFILL + Duration::from_secs(1)).await;
        assert!(!matches!(decide(&mut c, "A", "later"), Decision::Drop));
    }
}
