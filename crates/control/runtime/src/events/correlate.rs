//! Repeated events become one with a count, similar ones are combined, and no object can flood the cluster.
//! The rules are those of Kubernetes' own recorder.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::About;

/// More than this many different messages of one kind within [`SIMILAR_WINDOW`] are combined.
const SIMILAR_LIMIT: usize = 10;
const SIMILAR_WINDOW: Duration = Duration::from_secs(600);
const COMBINED: &str = "(combined from similar events): ";
/// Events of one object: so many at once, then one in [`REFILL`].
const BURST: f64 = 25.0;
const REFILL: Duration = Duration::from_secs(300);
/// Objects and events remembered.
const REMEMBERED: usize = 1024;

/// Names what is counted together.
pub(super) type Id = String;

/// What to do with an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    New { message: String, id: Id },
    Repeat { name: String, count: u32, message: String, id: Id },
    Drop,
}

#[derive(Debug)]
struct Similar {
    messages: HashSet<String>,
    last: Instant,
}

#[derive(Debug)]
struct Budget {
    tokens: f64,
    last: Instant,
}

#[derive(Debug)]
struct Recorded {
    name: String,
    count: u32,
}

/// A map that forgets the oldest entry when it is full.
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

/// Remembers what was recorded lately.
#[derive(Debug, Default)]
pub(super) struct Correlator {
    similar: Memory<Similar>,
    budgets: Memory<Budget>,
    recorded: Memory<Recorded>,
}

impl Correlator {
    pub(super) fn decide(
        &mut self,
        component: &str,
        about: &About,
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
        let similar = self.similar.entry(&group, || Similar { messages: HashSet::new(), last: now });
        if now.duration_since(similar.last) > SIMILAR_WINDOW {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(message.to_owned());
        let (id, message) = if similar.messages.len() < SIMILAR_LIMIT {
            (format!("{group}\0{message}"), message.to_owned())
        } else {
            // Only the number matters from here on: do not keep every message of a storm.
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

    /// An event was written under a name.
    pub(super) fn recorded(&mut self, id: Id, name: String) {
        let entry = self.recorded.entry(&id, || Recorded { name: name.clone(), count: 1 });
        *entry = Recorded { name, count: 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(c: &mut Correlator, reason: &str, message: &str) -> Decision {
        c.decide("x", &About::default(), true, reason, message, Instant::now())
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
    async fn storms_are_combined_and_cut() {
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
