//! Conversion of kinds with two forms: autoscalers (stored as v2) and events (stored in the core form).

mod autoscaler;
mod event;

use serde_json::Value;

pub(crate) use autoscaler::{to_v1 as autoscaler_to_v1, to_v2 as autoscaler_to_v2};
pub(crate) use event::{to_core as event_to_core, to_events as event_to_events};

/// Whether objects of a kind are stored in the served version.
pub(crate) fn stored_as_served(group: &str, version: &str, kind: &str) -> bool {
    !matches!(
        (group, version, kind),
        ("autoscaling", "v1", "HorizontalPodAutoscaler") | ("events.k8s.io", "v1", "Event")
    )
}

pub(crate) fn read_from_storage(group: &str, version: &str, kind: &str, object: Value) -> Value {
    match (group, version, kind) {
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => autoscaler_to_v1(object),
        ("events.k8s.io", "v1", "Event") => event_to_events(object),
        _ => object,
    }
}

pub(crate) fn to_storage(group: &str, version: &str, kind: &str, object: Value) -> Value {
    match (group, version, kind) {
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => autoscaler_to_v2(object),
        ("events.k8s.io", "v1", "Event") => event_to_core(object),
        _ => object,
    }
}
