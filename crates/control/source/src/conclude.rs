//! How a pass over any source ends: from its result to conditions, events and the next try.

use fl_api::condition::{reasons, types};
use fl_runtime::conditions::summarize;
use fl_runtime::{Conditions, End, EventKind, Failure, FailureKind, Outcome, Pass, Reconciled};

/// All conditions that controllers of sources write, in order of importance. A kind that never sets one of them never has it.
pub const CONDITIONS: &[&str] = &[
    types::READY,
    types::STORAGE_OPERATION_FAILED,
    types::FETCH_FAILED,
    types::INCLUDE_UNAVAILABLE,
    types::BUILD_FAILED,
    types::ARTIFACT_OUTDATED,
    types::ARTIFACT_IN_STORAGE,
    types::SOURCE_VERIFIED,
    types::STALLED,
    types::RECONCILING,
];

/// Those whose disappearance is a recovery.
const FAILURES: &[&str] =
    &[types::FETCH_FAILED, types::STORAGE_OPERATION_FAILED, types::INCLUDE_UNAVAILABLE, types::BUILD_FAILED];

/// What a pass came to.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The artifact is what the spec asks for.
    Success,
    /// Nothing was done: suspended.
    Nothing,
    Failed(Failure),
}

impl From<Result<(), Failure>> for Verdict {
    fn from(result: Result<(), Failure>) -> Self {
        match result {
            Ok(()) => Verdict::Success,
            Err(failure) => Verdict::Failed(failure),
        }
    }
}

/// Begins a pass: what is in progress, and that it is seen when it takes long.
pub fn begin<T: Reconciled>(pass: &mut Pass<T>) {
    pass.object.mark_progressing(false, "reconciliation in progress");
    let (generation, observed) =
        (pass.object.generation(), pass.object.observed_generation().unwrap_or_default());
    if generation != observed {
        let message = format!("processing object: new generation {observed} -> {generation}");
        pass.object.mark_progressing(false, &message);
        pass.progress();
    } else if pass.requested() {
        pass.progress();
    }
    pass.object.remove_condition(types::STORAGE_OPERATION_FAILED);
}

/// Ends a pass. The status is complete afterwards; the driver writes it.
pub fn conclude<T: Reconciled>(pass: &mut Pass<T>, verdict: &Verdict) -> Outcome {
    if let Verdict::Failed(failure) = verdict {
        tell(pass, failure);
    }
    if let Some(at) = pass.object.requested_at().map(str::to_owned) {
        *pass.object.status_head().last_handled = Some(at);
    }
    let interval = pass.object.interval().unwrap_or_default();
    let object = &mut pass.object;
    match verdict {
        Verdict::Success => object.remove_condition(types::RECONCILING),
        _ => object.mark_retrying(),
    }
    let kind = match verdict {
        Verdict::Failed(failure) => Some(failure.kind),
        _ => None,
    };
    match (verdict, kind) {
        (Verdict::Failed(failure), Some(FailureKind::Stall)) => {
            object.mark_stalled(&failure.reason, &failure.message);
            observe(object);
        }
        (_, Some(FailureKind::NoOp)) => {
            object.remove_condition(types::STALLED);
            observe(object);
            object.remove_condition(types::RECONCILING);
        }
        (_, Some(_)) => object.remove_condition(types::STALLED),
        (_, None) => {
            observe(object);
            object.remove_condition(types::STALLED);
        }
    }
    summarize(object, CONDITIONS);
    // A signature that is not there speaks louder than everything else.
    if let Some(failed) =
        object.condition(types::SOURCE_VERIFIED).filter(|_| object.is_false(types::SOURCE_VERIFIED))
    {
        let (reason, message) = (failed.reason.clone(), failed.message.clone());
        object.mark_false(types::READY, &reason, &message);
    }
    let outcome = match verdict {
        Verdict::Success => Outcome::interval(interval),
        Verdict::Nothing => Outcome::never(),
        Verdict::Failed(failure) => Outcome::of_failure(failure, interval),
    };
    // A pass that thinks it succeeded while the object is not ready is tried again.
    let thinks_so = matches!(verdict, Verdict::Success) || kind == Some(FailureKind::NoOp);
    if thinks_so && !object.is_stalled() && !object.is_ready() {
        let message = object.condition(types::READY).map(|c| c.message.clone()).unwrap_or_default();
        return Outcome::backoff(message);
    }
    outcome
}

/// Ends a pass that did nothing, for the object is suspended.
pub fn finish<T: Reconciled>(pass: &mut Pass<T>, end: End) {
    if end == End::Suspended {
        conclude(pass, &Verdict::Nothing);
    }
}

fn observe<T: Reconciled>(object: &mut T) {
    if !object.conditions().is_empty() {
        let generation = object.generation();
        *object.status_head().observed_generation = Some(generation);
    }
}

fn tell<T: Reconciled>(pass: &Pass<T>, failure: &Failure) {
    match failure.kind {
        FailureKind::NoOp => pass.log.info(&failure.message),
        FailureKind::Wait(_) => pass.log.info("reconciliation waiting"),
        FailureKind::Stall => pass.log.error(&failure.message, "reconciliation stalled"),
        // Logged by the driver, with the outcome.
        FailureKind::Retry => {}
    }
    if let Some(event) = failure.event {
        pass.event(event, &failure.reason, &failure.message);
    }
}

/// Whether something that failed before this pass does no longer.
pub fn recovered<T: Reconciled>(pass: &Pass<T>) -> bool {
    failing(pass.original.as_ref()) && !failing(&pass.object)
}

/// Whether something failed when the object was looked at last.
pub fn failing<T: Reconciled>(object: &T) -> bool {
    FAILURES.iter().any(|kind| object.has_condition(kind))
}

/// Sets a negative condition and gives the failure back, for `?`.
pub fn failed<T: Reconciled>(pass: &mut Pass<T>, condition: &str, failure: Failure) -> Failure {
    pass.object.mark_true(condition, &failure.reason, &failure.message);
    failure
}

/// The event of a new artifact, or of a recovery without one.
pub fn announce<T: fl_runtime::Source>(pass: &Pass<T>, message: &str) {
    let Some(artifact) = pass.object.artifact() else { return };
    let digest = |object: &T| object.artifact().and_then(|a| a.digest.clone());
    let reason = if digest(&pass.original) != digest(&pass.object) {
        reasons::source::NEW_ARTIFACT
    } else if recovered(pass) {
        reasons::SUCCEEDED
    } else {
        return;
    };
    let metadata = [
        ("revision", artifact.revision.clone()),
        ("digest", artifact.digest.as_ref().map(ToString::to_string).unwrap_or_default()),
    ];
    pass.event_with(EventKind::Normal, reason, message, metadata.into());
    pass.log.info(message);
}
