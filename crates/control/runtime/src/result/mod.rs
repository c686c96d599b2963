//! The result of a reconcile, and the one table that turns it into conditions, an event, a log line and a requeue.
//!
//! A reconciler returns `Result<Completed, ReconcileError>`. It sets the conditions that describe its steps while it
//! runs; [`finish`] does the rest for every controller, so that the same error always has the same consequences:
//!
//! | result | `Ready` | `Stalled` | `observedGeneration` | log | requeue |
//! |---|---|---|---|---|---|
//! | `Completed::Done` | set by the reconciler, or the summary | removed | current | | interval |
//! | `Completed::Unchanged` | as for `Done` | removed | current | info | interval |
//! | `Completed::UpToDate` | as for `Done` | removed | current | | interval |
//! | `Completed::Requeue` | as the reconciler left it | | | | as given |
//! | [`Retry::Backoff`] | `False` | removed | | error | backoff |
//! | [`Retry::After`] | `False` | removed | | info, or error | after the delay |
//! | [`Retry::Immediately`] | `False` | removed | | info | at once |
//! | [`Retry::Interval`] | `False` | removed | current | info, or error | interval of the delay, with jitter |
//! | [`Retry::Stalled`] | `False` | `True` | current | error | when the object changes |
//!
//! What differs between Flux's controllers is in [`ConditionPolicy`], not in the controllers.

mod error;
mod table;

use std::time::Duration;

pub use error::{ErrorCondition, ErrorLog, ReconcileError, Retry};
pub(crate) use table::finish;

/// Severity of an event, and whether it is forwarded to notification sinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Type Normal; forwarded with severity `info`.
    Normal,
    /// Type Warning; forwarded with severity `error`.
    Warning,
    /// Type Normal; a Kubernetes event only, not forwarded.
    Trace,
}

/// What a reconcile that completed came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completed {
    /// The object is in the state its spec describes; requeued at its interval.
    Done,
    /// Nothing changed since the last reconcile. Reported by a trace event with this reason and message.
    Unchanged { reason: &'static str, message: String },
    /// Nothing changed since the last reconcile; the status is as it was, and neither an event nor a log line reports it.
    UpToDate,
    /// The reconcile is continued later; conditions are as the reconciler left them.
    Requeue(Requeue),
}

/// What [`crate::Reconciler::reconcile`] returns.
pub type ReconcileResult = Result<Completed, ReconcileError>;

/// When an object is reconciled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// After its interval with jitter, so that objects created together do not stay in step.
    Interval(Duration),
    /// After exactly this long.
    After(Duration),
    Immediately,
    /// After a delay that grows with each failure.
    Backoff,
    /// As `Backoff` with a low upper bound: the API server was unavailable.
    Unavailable,
    /// When something changes.
    Never,
}

/// What the driver does after a reconcile.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub requeue: Requeue,
    /// Logged as `Reconciler error`, and counted.
    pub error: Option<String>,
}

impl Outcome {
    pub(crate) fn requeue(requeue: Requeue) -> Self {
        Outcome { requeue, error: None }
    }

    /// No requeue until something changes.
    pub(crate) fn never() -> Self {
        Outcome::requeue(Requeue::Never)
    }
}

/// Which part of a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The object is suspended; the reconciler was not called.
    Suspended,
    /// [`crate::Reconciler::delete`] failed; the finalizer is still set.
    Deleting,
    /// [`crate::Reconciler::reconcile`] returned.
    Reconciled,
}

/// How the conditions of a controller follow from a result.
#[derive(Clone, Copy, Debug)]
pub enum ConditionPolicy {
    /// `Ready` is set from the result (kustomize-controller, helm-controller).
    Ready {
        /// Whether a failure leaves `Reconciling` with the reason `ProgressingWithRetry`.
        progressing_with_retry: bool,
        observed_generation: ObservedGeneration,
    },
    /// `Ready` is a summary of the other conditions, listed by priority (source-controller).
    Summary(&'static [&'static str]),
    /// The status is not written from the result: the object has none.
    None,
}

/// When `Ready`-style controllers record the observed generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservedGeneration {
    /// When the object is ready (kustomize-controller).
    WhenReady,
    /// When the object is not requeued before its interval (helm-controller).
    WhenSettled,
}
