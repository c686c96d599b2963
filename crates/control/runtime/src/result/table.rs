//! The table: from the result of a reconcile to conditions, event, log line and requeue.

use std::time::Duration;

use fl_api::condition::types;

use super::{
    Completed, ConditionPolicy, ErrorCondition, ErrorLog, EventKind, ObservedGeneration, Outcome, Phase,
    ReconcileError, ReconcileResult, Requeue, Retry,
};
use crate::conditions::{Conditions, summarize};
use crate::context::Context;
use crate::resource::Reconciled;

/// Completes the status of an object from the result of its reconcile, and says what follows. The table of this module.
pub(crate) fn finish<T: Reconciled>(
    cx: &mut Context<T>,
    policy: ConditionPolicy,
    phase: Phase,
    result: &ReconcileResult,
) -> Outcome {
    let interval = cx.object.interval().unwrap_or_default();
    let reported = match policy {
        ConditionPolicy::Summary(_) => phase != Phase::Deleting,
        ConditionPolicy::Ready { .. } => true,
        ConditionPolicy::None => false,
    };
    if !reported {
        if let Err(error) = result {
            report(cx, error);
        }
        return outcome(result, interval);
    }
    if let Err(error) = result {
        set_conditions(&mut cx.object, policy, error);
        report(cx, error);
    } else if let Ok(Completed::Unchanged { reason, message }) = result {
        cx.log.info(message);
        cx.event(EventKind::Trace, reason, message);
    }
    if let Some(at) = cx.object.requested_at().map(str::to_owned) {
        *cx.object.status_head().last_handled = Some(at);
    }
    let outcome = outcome(result, interval);
    let outcome = if phase == Phase::Suspended { Outcome::never() } else { outcome };
    match policy {
        ConditionPolicy::None => outcome,
        ConditionPolicy::Summary(order) => summary(cx, order, phase, result, outcome),
        ConditionPolicy::Ready { progressing_with_retry, observed_generation } => {
            let object = &mut cx.object;
            let ready = object.is_true(types::READY);
            let settled =
                phase != Phase::Deleting && matches!(outcome.requeue, Requeue::Interval(_) | Requeue::Never);
            match observed_generation {
                ObservedGeneration::WhenReady if ready => observe(object),
                ObservedGeneration::WhenSettled if settled => observe(object),
                _ => {}
            }
            if progressing_with_retry {
                if ready {
                    object.remove_condition(types::RECONCILING);
                } else if object.is_false(types::READY) {
                    object.mark_retrying();
                }
            }
            outcome
        }
    }
}

/// The requeue column of the table.
fn outcome(result: &ReconcileResult, interval: Duration) -> Outcome {
    let error = match result {
        Ok(Completed::Done | Completed::Unchanged { .. } | Completed::UpToDate) => {
            return Outcome::requeue(Requeue::Interval(interval));
        }
        Ok(Completed::Requeue(requeue)) => return Outcome::requeue(*requeue),
        Err(error) => error,
    };
    match error.retry {
        Retry::Backoff => Outcome { requeue: Requeue::Backoff, error: Some(error.detail().to_owned()) },
        Retry::After(delay) if delay.is_zero() => Outcome::requeue(Requeue::Interval(interval)),
        Retry::After(delay) => Outcome::requeue(Requeue::After(delay)),
        Retry::Interval(delay) => Outcome::requeue(Requeue::Interval(delay)),
        Retry::Immediately => Outcome::requeue(Requeue::Immediately),
        Retry::Stalled => {
            Outcome { requeue: Requeue::Never, error: error.terminal.then(|| error.detail().to_owned()) }
        }
    }
}

/// The condition columns of the table, for an error.
fn set_conditions<T: Reconciled>(object: &mut T, policy: ConditionPolicy, error: &ReconcileError) {
    let (reason, message) = (error.reason.as_str(), error.message.as_str());
    let summarised = matches!(policy, ConditionPolicy::Summary(_));
    match error.condition {
        ErrorCondition::AbnormalTrue(condition) => object.mark_true(condition, reason, message),
        ErrorCondition::Ready if !summarised => object.mark_false(types::READY, reason, message),
        ErrorCondition::Ready | ErrorCondition::Stalled | ErrorCondition::Unchanged => {}
    }
    if error.retry == Retry::Stalled && !summarised {
        if error.condition != ErrorCondition::Unchanged {
            object.mark_stalled(reason, message);
        }
        if error.observed {
            observe(object);
        }
    }
}

/// The event and the log line of an error. With [`Retry::Backoff`] and terminal errors the driver logs the error.
fn report<T: Reconciled>(cx: &Context<T>, error: &ReconcileError) {
    match (&error.log, error.retry) {
        (ErrorLog::Info(text), _) => cx.log.info(text),
        (ErrorLog::Error(text), _) => cx.log.error(error.detail(), text),
        (ErrorLog::Default, Retry::After(_) | Retry::Interval(_) | Retry::Immediately) => {
            cx.log.info(error.detail());
        }
        (ErrorLog::Default, Retry::Stalled) if !error.terminal => {
            cx.log.error(error.detail(), "reconciliation stalled");
        }
        (ErrorLog::Default, Retry::Stalled | Retry::Backoff) => {}
    }
    if let Some(kind) = error.event {
        cx.event_with(kind, &error.reason, error.detail(), error.metadata.clone());
    }
}

/// Conditions of controllers whose `Ready` summarises the others.
fn summary<T: Reconciled>(
    cx: &mut Context<T>,
    order: &[&str],
    phase: Phase,
    result: &ReconcileResult,
    outcome: Outcome,
) -> Outcome {
    let object = &mut cx.object;
    let completed = phase == Phase::Reconciled && result.is_ok();
    if completed {
        object.remove_condition(types::RECONCILING);
    } else {
        object.mark_retrying();
    }
    match result {
        Err(error) if error.retry == Retry::Stalled => {
            object.mark_stalled(&error.reason, &error.message);
            observe_if_reported(object);
        }
        Err(error) if error.condition != ErrorCondition::Unchanged => object.remove_condition(types::STALLED),
        Err(_) | Ok(_) => {
            object.remove_condition(types::STALLED);
            observe_if_reported(object);
        }
    }
    summarize(object, order);
    // A failed verification takes precedence over every other condition.
    if let Some(failed) =
        object.condition(types::SOURCE_VERIFIED).filter(|_| object.is_false(types::SOURCE_VERIFIED))
    {
        let (reason, message) = (failed.reason.clone(), failed.message.clone());
        object.mark_false(types::READY, &reason, &message);
    }
    // A reconcile that returned success while the object is not ready is retried.
    if completed && !object.is_stalled() && !object.is_ready() {
        let message = object.condition(types::READY).map(|c| c.message.clone()).unwrap_or_default();
        return Outcome { requeue: Requeue::Backoff, error: Some(message) };
    }
    outcome
}

fn observe<T: Reconciled>(object: &mut T) {
    let generation = object.meta().generation;
    *object.status_head().observed_generation = generation;
}

fn observe_if_reported<T: Reconciled>(object: &mut T) {
    if !object.conditions().is_empty() {
        observe(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(60);

    fn requeue(result: ReconcileResult) -> (Requeue, bool) {
        let outcome = outcome(&result, INTERVAL);
        (outcome.requeue, outcome.error.is_some())
    }

    #[test]
    fn requeue_follows_from_the_result() {
        let second = Duration::from_secs(1);
        let unchanged = Completed::Unchanged { reason: "Succeeded", message: String::new() };
        assert_eq!(requeue(Ok(Completed::Done)), (Requeue::Interval(INTERVAL), false));
        assert_eq!(requeue(Ok(unchanged)), (Requeue::Interval(INTERVAL), false));
        assert_eq!(requeue(Ok(Completed::Requeue(Requeue::Immediately))), (Requeue::Immediately, false));
        assert_eq!(requeue(Err(ReconcileError::backoff("R", "m"))), (Requeue::Backoff, true));
        assert_eq!(requeue(Err(ReconcileError::waiting(second, "R", "m"))), (Requeue::After(second), false));
        assert_eq!(
            requeue(Err(ReconcileError::waiting(Duration::ZERO, "R", "m"))),
            (Requeue::Interval(INTERVAL), false)
        );
        assert_eq!(requeue(Ok(Completed::UpToDate)), (Requeue::Interval(INTERVAL), false));
        assert_eq!(requeue(Err(ReconcileError::superseded("R", "m"))), (Requeue::Immediately, false));
        assert_eq!(requeue(Err(ReconcileError::stalled("R", "m"))), (Requeue::Never, false));
        assert_eq!(requeue(Err(ReconcileError::stalled("R", "m").terminal())), (Requeue::Never, true));
    }

    fn kustomization() -> fl_api::kustomize::Kustomization {
        serde_json::from_value(serde_json::json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "a", "generation": 3},
            "spec": {"interval": "1m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "a"}}}))
        .expect("a Kustomization")
    }

    const READY: ConditionPolicy = ConditionPolicy::Ready {
        progressing_with_retry: true,
        observed_generation: ObservedGeneration::WhenReady,
    };

    #[test]
    fn stalled_errors_are_reported_by_both_conditions() {
        let mut object = kustomization();
        set_conditions(&mut object, READY, &ReconcileError::stalled("Invalid", "no"));
        assert!(object.is_false(types::READY) && object.is_stalled());
        assert_eq!(object.observed_generation(), Some(3));
        let mut object = kustomization();
        set_conditions(&mut object, READY, &ReconcileError::stalled("Denied", "no").not_observed());
        assert_eq!(object.observed_generation(), None);
    }

    #[test]
    fn abnormal_conditions_leave_ready_to_the_summary() {
        let mut object = kustomization();
        let error = ReconcileError::backoff("GitOperationFailed", "no").on(types::FETCH_FAILED);
        set_conditions(&mut object, ConditionPolicy::Summary(&[types::READY]), &error);
        assert!(object.is_true(types::FETCH_FAILED) && !object.has_condition(types::READY));
        set_conditions(&mut object, READY, &error.clone().conditions_set());
        assert!(!object.has_condition(types::READY));
    }
}
