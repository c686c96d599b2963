//! The error of a reconcile: how it is reported, and when it is retried.

use std::collections::BTreeMap;
use std::time::Duration;

use super::EventKind;

/// When a reconcile that failed is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// With exponential backoff.
    Backoff,
    /// After exactly this long: something else has to happen first, or the object has its own retry interval.
    After(Duration),
    /// After this long with jitter.
    Interval(Duration),
    /// At once: what the reconcile worked on has been replaced meanwhile.
    Immediately,
    /// Not until the object or something it refers to changes.
    Stalled,
}

/// Why a reconcile did not complete: the condition and event it reports, and when it is retried.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ReconcileError {
    pub retry: Retry,
    /// The reason of the condition and of the event.
    pub reason: String,
    /// The message of the condition.
    pub message: String,
    /// The event, if any.
    pub event: Option<EventKind>,
    /// The message of the event and the log line, where it differs from that of the condition.
    pub detail: Option<String>,
    /// Metadata of the event; the API group of the object is prefixed to each key.
    pub metadata: BTreeMap<&'static str, String>,
    /// The condition that reports the error.
    pub condition: ErrorCondition,
    /// The log line and its level, where it differs from the table.
    pub log: ErrorLog,
    /// controller-runtime's terminal error: not retried, but counted as an error. Only for [`Retry::Stalled`].
    pub terminal: bool,
    /// Whether `Stalled` records the generation as observed.
    pub observed: bool,
}

/// The condition that an error is reported with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCondition {
    /// `Ready=False`, or for controllers that summarise, whatever the reconciler has set.
    Ready,
    /// An abnormal-true condition such as `FetchFailed`.
    AbnormalTrue(&'static str),
    /// `Stalled=True` only: `Ready` keeps the result of the last action. Only for [`Retry::Stalled`].
    Stalled,
    /// None: the reconciler has set the conditions already, or the error is only logged.
    Unchanged,
}

/// How an error is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorLog {
    /// By the table in the module documentation.
    Default,
    /// At level info, with this message.
    Info(String),
    /// At level error, with this message; the error is [`ReconcileError::detail`] or the condition's message.
    Error(String),
}

impl ReconcileError {
    fn new(retry: Retry, event: Option<EventKind>, reason: &str, message: impl Into<String>) -> Self {
        ReconcileError {
            retry,
            reason: reason.to_owned(),
            message: message.into(),
            event,
            detail: None,
            metadata: BTreeMap::new(),
            condition: ErrorCondition::Ready,
            log: ErrorLog::Default,
            terminal: false,
            observed: true,
        }
    }

    /// An error that is retried with backoff, with a Warning event.
    pub fn backoff(reason: &str, message: impl Into<String>) -> Self {
        Self::new(Retry::Backoff, Some(EventKind::Warning), reason, message)
    }

    /// An error that only a change of the object resolves, with a Warning event.
    pub fn stalled(reason: &str, message: impl Into<String>) -> Self {
        Self::new(Retry::Stalled, Some(EventKind::Warning), reason, message)
    }

    /// Something else has to happen first. Requeued after `delay` at the latest; a zero delay is the object's interval.
    pub fn waiting(delay: Duration, reason: &str, message: impl Into<String>) -> Self {
        Self::new(Retry::After(delay), Some(EventKind::Trace), reason, message)
    }

    /// The reconcile is void because of a newer change, with a Normal event.
    pub fn superseded(reason: &str, message: impl Into<String>) -> Self {
        Self::new(Retry::Immediately, Some(EventKind::Normal), reason, message)
    }

    /// An error with a fixed retry delay, with a Warning event.
    pub fn retry_after(delay: Duration, reason: &str, message: impl Into<String>) -> Self {
        Self::new(Retry::After(delay), Some(EventKind::Warning), reason, message)
    }

    /// The same without an event.
    #[must_use]
    pub fn without_event(mut self) -> Self {
        self.event = None;
        self
    }

    /// The same with another kind of event.
    #[must_use]
    pub fn with_event(mut self, kind: EventKind) -> Self {
        self.event = Some(kind);
        self
    }

    /// The same with another message for the event and the log line.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    #[must_use]
    pub fn with_metadata(mut self, metadata: BTreeMap<&'static str, String>) -> Self {
        self.metadata = metadata;
        self
    }

    /// The same, reported by an abnormal-true condition such as `FetchFailed`.
    #[must_use]
    pub fn on(mut self, condition: &'static str) -> Self {
        self.condition = ErrorCondition::AbnormalTrue(condition);
        self
    }

    /// The same, reported by `Stalled` alone, without a change of `Ready`.
    #[must_use]
    pub fn on_stalled_only(mut self) -> Self {
        self.condition = ErrorCondition::Stalled;
        self
    }

    /// The same, for a reconciler that has set the conditions already.
    #[must_use]
    pub fn conditions_set(mut self) -> Self {
        self.condition = ErrorCondition::Unchanged;
        self
    }

    #[must_use]
    pub fn logged(mut self, log: ErrorLog) -> Self {
        self.log = log;
        self
    }

    /// The same, counted and logged as an error although it is not retried.
    #[must_use]
    pub fn terminal(mut self) -> Self {
        self.terminal = true;
        self
    }

    /// The same, without recording the generation as observed.
    #[must_use]
    pub fn not_observed(mut self) -> Self {
        self.observed = false;
        self
    }

    /// The text of the event and of the log line.
    pub fn detail(&self) -> &str {
        self.detail.as_deref().unwrap_or(&self.message)
    }
}
