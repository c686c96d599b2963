//! Access to fields of an object whose types are not checked.

use serde_json::Value;

pub(crate) fn group_kind(object: &Value) -> (&str, &str) {
    let api_version = text(object, "/apiVersion");
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    (group, text(object, "/kind"))
}

pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn int(object: &Value, pointer: &str, default: i64) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(default)
}

/// One entry of `status.conditions`.
#[derive(Clone, Copy)]
pub(crate) struct Condition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

impl Condition<'_> {
    pub(crate) fn is(&self, kind: &str, status: &str) -> bool {
        self.kind == kind && self.status == status
    }
}

pub(crate) fn conditions(object: &Value) -> impl Iterator<Item = Condition<'_>> {
    object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten().map(|c| Condition {
        kind: text(c, "/type"),
        status: text(c, "/status"),
        reason: text(c, "/reason"),
        message: text(c, "/message"),
    })
}
