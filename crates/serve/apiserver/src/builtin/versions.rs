//! Kinds served in two forms: autoscalers (v2 is stored) and events (the core form is stored).

mod autoscaler;
mod event;

use serde_json::Value;

pub(super) use autoscaler::{to_v1 as autoscaler_to_v1, to_v2 as autoscaler_to_v2};
pub(super) use event::{to_core as event_to_core, to_events as event_to_events};

/// `apiVersion` objects of a kind are stored in, where it is not the served one.
pub(super) fn storage_version(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    match (group, version, kind) {
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => Some("autoscaling/v2"),
        ("events.k8s.io", "v1", "Event") => Some("v1"),
        _ => None,
    }
}

pub(super) fn stored_as_served(group: &str, version: &str, kind: &str) -> bool {
    storage_version(group, version, kind).is_none()
}

pub(super) fn read_from_storage(group: &str, version: &str, kind: &str, object: Value) -> Value {
    match (group, version, kind) {
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => autoscaler_to_v1(object),
        ("events.k8s.io", "v1", "Event") => event_to_events(object),
        _ => object,
    }
}

pub(super) fn to_storage(group: &str, version: &str, kind: &str, object: Value) -> Value {
    match (group, version, kind) {
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => autoscaler_to_v2(object),
        ("events.k8s.io", "v1", "Event") => event_to_core(object),
        _ => object,
    }
}
