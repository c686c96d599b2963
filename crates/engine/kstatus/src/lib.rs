//! Computes the status of a live object, as kstatus does.
//!
//! [`health`] is a pure function with the rules of kstatus and the one change Flux makes: a running Job is
//! not current. Custom resources are judged by their `Ready`, `Reconciling` and `Stalled` conditions and
//! `observedGeneration`.
//!
//! ```
//! use fl_kstatus::{State, health};
//! use serde_json::json;
//!
//! let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}});
//! let health = health(&claim, 0);
//! assert_eq!(health.state, State::InProgress);
//! assert_eq!(health.message, "PVC is not Bound. phase: Pending");
//! ```

mod fields;
mod generic;
mod workloads;

use serde_json::Value;

/// The statuses of kstatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The live object matches its spec.
    Current,
    /// The controller is still working on it.
    InProgress,
    /// It failed and does not recover by itself.
    Failed,
    /// It is being deleted.
    Terminating,
    /// The object lacks fields that its kind requires.
    Unknown,
}

impl State {
    /// The name that kstatus uses and Flux prints in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Current => "Current",
            State::InProgress => "InProgress",
            State::Failed => "Failed",
            State::Terminating => "Terminating",
            State::Unknown => "Unknown",
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The status of one object, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub state: State,
    pub message: String,
}

impl Health {
    pub(crate) fn current(message: impl Into<String>) -> Self {
        Self { state: State::Current, message: message.into() }
    }

    pub(crate) fn in_progress(message: impl Into<String>) -> Self {
        Self { state: State::InProgress, message: message.into() }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { state: State::Failed, message: message.into() }
    }
}

/// Computes the status of a live object. `now` is in seconds since 1970, for the age of unschedulable Pods.
pub fn health(object: &Value, now: i64) -> Health {
    if let Some(early) = generic::common(object) {
        return early;
    }
    let (group, kind) = fields::group_kind(object);
    match workloads::rule(group, kind) {
        Some(rule) => rule(object, now),
        None => generic::ready_condition(object).unwrap_or_else(|| Health::current("Resource is current")),
    }
}
