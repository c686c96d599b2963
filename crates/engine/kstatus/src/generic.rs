//! Rules for every kind: deletion, observed generation, and the standard conditions.

use serde_json::Value;

use crate::fields::{conditions, text};
use crate::{Health, State};

/// The rules that take precedence over those of the kind.
pub(crate) fn common(object: &Value) -> Option<Health> {
    if !text(object, "/metadata/deletionTimestamp").is_empty() {
        return Some(Health {
            state: State::Terminating,
            message: "Resource scheduled for deletion".to_owned(),
        });
    }
    stale_generation(object).or_else(|| {
        conditions(object).find_map(|c| {
            if c.is("Reconciling", "True") {
                Some(Health::in_progress(c.message))
            } else if c.is("Stalled", "True") {
                Some(Health::failed(c.message))
            } else {
                None
            }
        })
    })
}

fn stale_generation(object: &Value) -> Option<Health> {
    let generation = object.pointer("/metadata/generation")?.as_i64()?;
    let observed = object.pointer("/status/observedGeneration")?.as_i64()?;
    (generation != observed).then(|| {
        let kind = text(object, "/kind");
        Health::in_progress(format!(
            "{kind} generation is {generation}, but latest observed generation is {observed}"
        ))
    })
}

/// The `Ready` condition, for kinds without a rule of their own.
pub(crate) fn ready_condition(object: &Value) -> Option<Health> {
    conditions(object).filter(|c| c.kind == "Ready").find_map(|c| match c.status {
        "True" => Some(Health::current("Resource is Ready")),
        "False" | "Unknown" => Some(Health::in_progress(c.message)),
        _ => None,
    })
}
