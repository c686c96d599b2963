//! One table: what an error means for the conditions and for the next try.

use std::time::Duration;

/// What kind of trouble it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Try again, waiting longer each time.
    Retry,
    /// Nobody but the user can help: no retry until the spec changes.
    Stall,
    /// Something else has to happen first; look again after this long at the latest.
    Wait(Duration),
    /// Not a failure at all: nothing was to be done.
    NoOp,
}

/// What an event is, and who hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// For people and for the notification sink.
    Normal,
    /// As `Normal`, as an error.
    Warning,
    /// A Kubernetes event of type Normal that is not sent on.
    Trace,
}

/// Why a pass did not get to its end.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub kind: FailureKind,
    /// The reason of its event, and of `Stalled`.
    pub reason: String,
    pub message: String,
    /// The event it makes, if any.
    pub event: Option<EventKind>,
}

impl Failure {
    pub fn retry(reason: &str, message: impl Into<String>) -> Self {
        Failure {
            kind: FailureKind::Retry,
            reason: reason.to_owned(),
            message: message.into(),
            event: Some(EventKind::Warning),
        }
    }

    pub fn stall(reason: &str, message: impl Into<String>) -> Self {
        Failure { kind: FailureKind::Stall, ..Failure::retry(reason, message) }
    }

    pub fn wait(after: Duration, reason: &str, message: impl Into<String>) -> Self {
        Failure {
            kind: FailureKind::Wait(after),
            event: Some(EventKind::Trace),
            ..Failure::retry(reason, message)
        }
    }

    pub fn no_op(reason: &str, message: impl Into<String>) -> Self {
        Failure { kind: FailureKind::NoOp, event: Some(EventKind::Trace), ..Failure::retry(reason, message) }
    }

    /// The same without an event.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.event = None;
        self
    }
}

/// When an object is due again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// After its interval, a little earlier or later so that objects do not march in step.
    Interval(Duration),
    /// After exactly this long.
    After(Duration),
    /// At once.
    Now,
    /// After a delay that grows with each failure.
    Backoff,
    /// The same, but soon: the API server did not answer, and will.
    Returning,
    /// When something changes.
    Never,
}

/// How a pass ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub next: Next,
    /// Logged and counted as an error. Conditions and events are the reconciler's own.
    pub error: Option<String>,
}

impl Outcome {
    pub fn interval(interval: Duration) -> Self {
        Outcome { next: Next::Interval(interval), error: None }
    }

    pub fn after(delay: Duration) -> Self {
        Outcome { next: Next::After(delay), error: None }
    }

    pub fn now() -> Self {
        Outcome { next: Next::Now, error: None }
    }

    /// Done for good, or until something changes.
    pub fn never() -> Self {
        Outcome { next: Next::Never, error: None }
    }

    /// An error that is retried with backoff.
    pub fn backoff(error: impl Into<String>) -> Self {
        Outcome { next: Next::Backoff, error: Some(error.into()) }
    }

    /// The table: what follows from a failure, given the interval of success.
    pub fn of_failure(failure: &Failure, interval: Duration) -> Self {
        match failure.kind {
            FailureKind::Retry => Outcome::backoff(failure.message.clone()),
            FailureKind::Stall => Outcome::never(),
            FailureKind::Wait(after) if after.is_zero() => Outcome::interval(interval),
            FailureKind::Wait(after) => Outcome::after(after),
            FailureKind::NoOp => Outcome::interval(interval),
        }
    }
}
