//! Is an object there yet?
//!
//! A pure function from an object to [`Health`]: the rules of kstatus, with the one change Flux makes (a running Job is not
//! ready). Custom resources follow the `Ready`, `Reconciling` and `Stalled` conditions and `observedGeneration`.
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

/// How far an object has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It is what its spec asks for.
    Current,
    /// It is on its way.
    InProgress,
    /// It will not get there by itself.
    Failed,
    /// It is being deleted.
    Terminating,
    /// The object does not say: its shape is not what its kind promises.
    Unknown,
}

impl State {
    /// The word kstatus uses, which Flux prints in messages.
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

/// The verdict on one object and the reason for it in a sentence.
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

/// Judges a live object. `now` is the time in seconds since 1970; only an unschedulable Pod's age depends on it.
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
