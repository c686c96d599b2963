//! The conditions of sources, and the events that follow from them.

use fl_api::condition::{reasons, types};
use fl_runtime::{ConditionPolicy, Conditions, Context, EventKind, Reconciled, Source};

/// All conditions that controllers of sources write, by priority. A kind that never sets one of them never has it.
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

/// Those whose removal is a recovery.
const FAILURES: &[&str] =
    &[types::FETCH_FAILED, types::STORAGE_OPERATION_FAILED, types::INCLUDE_UNAVAILABLE, types::BUILD_FAILED];

/// `Ready` of a source summarises the conditions above.
pub const POLICY: ConditionPolicy = ConditionPolicy::Summary(CONDITIONS);

/// Sets the conditions of a reconcile that begins.
pub fn begin<T: Reconciled>(cx: &mut Context<T>) {
    cx.object.mark_progressing(false, "reconciliation in progress");
    let (generation, observed) =
        (cx.object.generation(), cx.object.observed_generation().unwrap_or_default());
    if generation != observed {
        let message = format!("processing object: new generation {observed} -> {generation}");
        cx.object.mark_progressing(false, &message);
        cx.progress();
    } else if cx.requested() {
        cx.progress();
    }
    cx.object.remove_condition(types::STORAGE_OPERATION_FAILED);
}

/// Reports that the remote has another revision than the artifact, and that an artifact is being built.
pub fn mark_outdated<T: Source>(cx: &mut Context<T>, reason: &str, message: &str) {
    if cx.object.artifact().is_some() {
        cx.object.mark_true(types::ARTIFACT_OUTDATED, reason, message);
    }
    cx.object.mark_progressing(true, &format!("building artifact: {message}"));
    cx.progress();
}

/// A signature that could not be verified is checked again; until then the condition does not apply.
pub fn reset_verification<T: Reconciled>(cx: &mut Context<T>) {
    if cx.object.is_false(types::SOURCE_VERIFIED) {
        cx.object.remove_condition(types::SOURCE_VERIFIED);
    }
}

/// Whether a condition of an earlier reconcile that reports a failure was removed by this one.
pub fn recovered<T: Reconciled>(cx: &Context<T>) -> bool {
    failing(cx.original.as_ref()) && !failing(&cx.object)
}

/// Whether a condition of the object reports a failure.
pub fn failing<T: Reconciled>(object: &T) -> bool {
    FAILURES.iter().any(|kind| object.has_condition(kind))
}

/// Emits the event of a new artifact, or of a recovery without one. `reason` is that of the event where it is not the
/// usual one.
pub fn emit_event<T: Source>(cx: &Context<T>, reason: Option<&'static str>, message: &str) {
    let Some(artifact) = cx.object.artifact() else { return };
    let digest = |object: &T| object.artifact().and_then(|a| a.digest.clone());
    let usual = if digest(&cx.original) != digest(&cx.object) {
        reasons::source::NEW_ARTIFACT
    } else if recovered(cx) {
        reasons::SUCCEEDED
    } else {
        return;
    };
    let metadata = [
        ("revision", artifact.revision.clone()),
        ("digest", artifact.digest.as_ref().map(ToString::to_string).unwrap_or_default()),
    ];
    cx.event_with(EventKind::Normal, reason.unwrap_or(usual), message, metadata.into());
    cx.log.info(message);
}
