//! From the error of a step to the result of a reconcile: the one place that chooses reason, message, event and retry.

use std::time::Duration;

use fl_api::condition::reasons;
use fl_apply::HealthRuleError;
use fl_runtime::{ClientError, ErrorLog, EventKind, ReconcileError};

use crate::action::ActionError;
use crate::chart_cache::{ChartError, ChartVersionError};
use crate::chart_template::ChartTemplateError;
use crate::dependencies::DependencyError;
use crate::release::ReleaseError;
use crate::source::SourceError;
use crate::target::NoTarget;
use crate::values::ValuesError;

/// Prefix of the message of errors that only a change of the spec resolves.
const TERMINAL: &str = "Reconciliation failed terminally due to configuration error";

/// The error of a step of a reconcile.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error(transparent)]
    HealthChecks(#[from] HealthRuleError),
    #[error(transparent)]
    ChartTemplate(#[from] ChartTemplateError),
    #[error(transparent)]
    Dependency(#[from] DependencyError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Values(#[from] ValuesError),
    #[error(transparent)]
    Chart(#[from] ChartError),
    #[error(transparent)]
    ChartVersion(#[from] ChartVersionError),
    #[error(transparent)]
    Target(#[from] NoTarget),
    /// The uninstall of a release failed; it has set the conditions.
    #[error(transparent)]
    Uninstall(ActionError),
    #[error(transparent)]
    Release(#[from] ReleaseError),
}

impl StepError {
    /// The result that reports this error. `requeue` is `--requeue-dependency`.
    pub(crate) fn into_result(self, requeue: Duration) -> ReconcileError {
        let text = self.to_string();
        let retrying_in = fl_types::Duration::from(requeue);
        match self {
            StepError::HealthChecks(_) => terminal(reasons::INVALID_CEL_EXPRESSION, &text),
            StepError::ChartTemplate(_) | StepError::Uninstall(_) => unreported(text),
            StepError::Dependency(DependencyError::Syntax { .. } | DependencyError::NotBool { .. }) => {
                terminal(reasons::INVALID_CEL_EXPRESSION, &format!("terminal error: {text}"))
            }
            StepError::Dependency(DependencyError::Denied(_)) => denied(text),
            StepError::Dependency(
                DependencyError::NotFound { .. }
                | DependencyError::NotReady(_)
                | DependencyError::ExpressionIsFalse(_)
                | DependencyError::Evaluation(_),
            ) => {
                let log =
                    format!("dependencies do not meet ready condition ({text}): retrying in {retrying_in}");
                ReconcileError::waiting(requeue, reasons::DEPENDENCY_NOT_READY, text)
                    .with_event(EventKind::Normal)
                    .logged(ErrorLog::Info(log))
            }
            StepError::Source(
                SourceError::CrossNamespace(_) | SourceError::GateClosed { .. } | SourceError::Denied(_),
            ) => denied(text),
            StepError::Source(SourceError::NoReference | SourceError::Unavailable(_)) => {
                let message = format!("could not get Source object: {text}");
                ReconcileError::backoff(reasons::ARTIFACT_FAILED, message).with_detail(text).without_event()
            }
            StepError::Source(SourceError::NotReady { .. }) => {
                ReconcileError::waiting(requeue, "SourceNotReady", text).without_event()
            }
            StepError::Values(_) => ReconcileError::backoff("ValuesError", text),
            StepError::Chart(ChartError::Missing) => {
                let message = format!("Source not ready: artifact not found. Retrying in {retrying_in}");
                ReconcileError::waiting(requeue, reasons::ARTIFACT_FAILED, message).without_event()
            }
            StepError::Chart(_) => {
                let message = format!("Could not load chart: {text}");
                ReconcileError::backoff(reasons::ARTIFACT_FAILED, message).with_detail(text)
            }
            StepError::ChartVersion(_) => ReconcileError::backoff("ChartMutateError", text).without_event(),
            StepError::Target(_) => ReconcileError::backoff("RESTClientError", text).without_event(),
            StepError::Release(error) => release(error, text),
        }
    }
}

fn release(error: ReleaseError, text: String) -> ReconcileError {
    match error {
        ReleaseError::State(error) => {
            let message = format!("Could not determine release state: {error}");
            ReconcileError::backoff("StateError", message).with_detail(text).without_event()
        }
        ReleaseError::RetriesExceeded { action, failures, .. } => {
            let message = format!("Failed to {action} after {failures} attempt(s)");
            stalled_only("RetriesExceeded", message, text)
        }
        ReleaseError::MissingRollbackTarget(_) => {
            let message = format!("Failed to perform remediation: {text}");
            stalled_only("MissingRollbackTarget", message, text)
        }
        ReleaseError::PreviousRelease(_) | ReleaseError::Action(_) => unreported(text),
    }
}

/// The error of a deletion.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeleteError {
    #[error("{0}")]
    Target(NoTarget),
    #[error("{error}")]
    ServiceAccount { name: String, error: ClientError },
    /// The records of the release could not be read.
    #[error("{0}")]
    Storage(ActionError),
    #[error("{0}")]
    HealthChecks(HealthRuleError),
    /// It has set the conditions.
    #[error("{0}")]
    Uninstall(ActionError),
    #[error(transparent)]
    ChartTemplate(#[from] ChartTemplateError),
}

impl From<DeleteError> for ReconcileError {
    fn from(error: DeleteError) -> Self {
        let text = error.to_string();
        let message = match error {
            DeleteError::Target(_) => {
                format!("failed to build REST client getter to uninstall release: {text}")
            }
            DeleteError::ServiceAccount { name, .. } => {
                format!("failed to confirm ServiceAccount '{name}' can be used to uninstall release: {text}")
            }
            DeleteError::Storage(_)
            | DeleteError::HealthChecks(_)
            | DeleteError::Uninstall(_)
            | DeleteError::ChartTemplate(_) => return unreported(text),
        };
        ReconcileError::backoff("UninstallFailed", message).with_detail(text).without_event()
    }
}

/// An error in the spec: `Stalled`, until the spec changes.
fn terminal(reason: &str, text: &str) -> ReconcileError {
    ReconcileError::stalled(reason, format!("{TERMINAL}: {text}")).with_detail(text).terminal()
}

/// A reference that the lockdown or a feature gate forbids.
fn denied(text: String) -> ReconcileError {
    ReconcileError::stalled(reasons::ACCESS_DENIED, text).terminal()
}

/// An error that `Stalled` reports; `Ready` keeps the result of the last action.
fn stalled_only(reason: &str, message: String, text: String) -> ReconcileError {
    ReconcileError::stalled(reason, message).with_detail(text).on_stalled_only().without_event().terminal()
}

/// An error that is logged and retried; conditions and events are those of the step.
fn unreported(text: String) -> ReconcileError {
    ReconcileError::backoff(reasons::FAILED, text).conditions_set().without_event()
}
