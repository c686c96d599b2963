//! From the error of a step to the result of the reconcile.

use std::time::Duration;

use fl_api::condition::reasons;
use fl_kustomize_build::BuildError;
use fl_runtime::{ArtifactError, ErrorLog, EventKind, ReconcileError};
use tokio::time::Instant;

use crate::apply::ApplyError;
use crate::dereference::{DecryptionKeysError, DependencyNotReady, OpenError, SourceError};
use crate::status::{Revision, go};
use crate::target::NoTarget;
use crate::validate::{self, ValidationError};

/// Why a reconcile ended before the objects were as wanted: the error of the step that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error(transparent)]
    Validation(#[from] ValidationError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Dependency(#[from] DependencyNotReady),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("kustomization path not found: stat {0}: no such file or directory")]
    Path(String),
    /// The API server to apply to, or the identity to apply with.
    #[error(transparent)]
    Target(#[from] NoTarget),
    #[error(transparent)]
    DecryptionKeys(#[from] DecryptionKeysError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("the build ended by a bug in this engine; please report it")]
    BuildPanicked,
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

/// What the report of an error depends on beside the error.
#[derive(Debug)]
pub(crate) struct ErrorContext {
    /// The revision that is being applied; empty before the source is known.
    pub(crate) revision: Revision,
    /// `spec.retryInterval`.
    pub(crate) retry_interval: Duration,
    /// `--requeue-dependency`.
    pub(crate) requeue_dependency: Duration,
    pub(crate) started: Instant,
}

impl ErrorContext {
    /// The reason, delay and event of every error of this controller.
    pub(crate) fn report(&self, error: StepError) -> ReconcileError {
        let message = error.to_string();
        let report = match error {
            StepError::Validation(error) => invalid(&error, message),
            StepError::Source(error) => self.source(&error, message),
            StepError::Dependency(error) => self.dependency(&error, message),
            StepError::Open(OpenError::Artifact(ArtifactError::NotFound)) => {
                let after = go(self.requeue_dependency);
                let message = format!("Source is not ready, artifact not found, retrying in {after}");
                ReconcileError::waiting(self.requeue_dependency, reasons::ARTIFACT_FAILED, message)
                    .without_event()
            }
            StepError::Open(_) | StepError::Path(_) => self.failed(reasons::ARTIFACT_FAILED, message),
            StepError::Target(_) => {
                let detail = format!("failed to build kube client: {message}");
                self.failed(reasons::RECONCILIATION_FAILED, message).with_detail(detail)
            }
            StepError::DecryptionKeys(_) | StepError::Build(_) | StepError::BuildPanicked => {
                self.failed(reasons::BUILD_FAILED, message)
            }
            StepError::Apply(ApplyError::Superseded { trigger }) => {
                let detail = format!("Health checks canceled due to new reconciliation {trigger}");
                ReconcileError::superseded(reasons::HEALTH_CHECK_CANCELED, message).with_detail(detail)
            }
            StepError::Apply(error) => self.failed(error.reason(), message),
        };
        report.with_metadata(self.revision.metadata())
    }

    /// An error that is retried after `spec.retryInterval`.
    fn failed(&self, reason: &str, message: String) -> ReconcileError {
        let text = format!(
            "Reconciliation failed after {}, next try in {}",
            go(self.started.elapsed()),
            go(self.retry_interval)
        );
        ReconcileError::retry_after(self.retry_interval, reason, message).logged(ErrorLog::Error(text))
    }

    fn source(&self, error: &SourceError, message: String) -> ReconcileError {
        let reason = reasons::ARTIFACT_FAILED;
        match error {
            SourceError::NotFound { .. } => {
                ReconcileError::waiting(self.retry_interval, reason, message).without_event()
            }
            SourceError::Denied(_) => denied(message),
            SourceError::NoArtifact => {
                let message = format!("{message}, retrying in {}", go(self.requeue_dependency));
                ReconcileError::waiting(self.requeue_dependency, reason, message).without_event()
            }
            SourceError::Unavailable(_) => ReconcileError::backoff(reason, message).without_event(),
        }
    }

    fn dependency(&self, error: &DependencyNotReady, message: String) -> ReconcileError {
        match error {
            DependencyNotReady::InvalidExpression(_) => {
                ReconcileError::stalled(reasons::INVALID_CEL_EXPRESSION, validate::terminal(&message))
            }
            DependencyNotReady::Denied(_) => denied(message),
            DependencyNotReady::Waiting(_) => {
                let after = go(self.requeue_dependency);
                let detail = format!("Dependencies do not meet ready condition, retrying in {after}");
                ReconcileError::waiting(self.requeue_dependency, reasons::DEPENDENCY_NOT_READY, message)
                    .with_event(EventKind::Normal)
                    .with_detail(detail)
            }
        }
    }
}

fn invalid(error: &ValidationError, message: String) -> ReconcileError {
    match error {
        ValidationError::HealthCheckExpression(_) => {
            ReconcileError::stalled(reasons::INVALID_CEL_EXPRESSION, message)
        }
        ValidationError::WorkloadIdentityGate => {
            ReconcileError::stalled("FeatureGateDisabled", message).not_observed()
        }
        ValidationError::WorkloadIdentity => ReconcileError::stalled("InvalidDecryption", message),
    }
}

fn denied(message: String) -> ReconcileError {
    ReconcileError::stalled(reasons::ACCESS_DENIED, message).not_observed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fl_runtime::Retry;

    fn context() -> ErrorContext {
        ErrorContext {
            revision: Revision { revision: "main@sha1:1".to_owned(), origin: String::new() },
            retry_interval: Duration::from_secs(60),
            requeue_dependency: Duration::from_secs(30),
            started: Instant::now(),
        }
    }

    #[tokio::test]
    async fn errors_are_retried_as_flux_does() {
        let report = |error: StepError| {
            let report = context().report(error);
            assert_eq!(report.metadata.get("revision").map(String::as_str), Some("main@sha1:1"));
            (report.retry, report.reason, report.event)
        };
        let minute = Retry::After(Duration::from_secs(60));
        let half = Retry::After(Duration::from_secs(30));
        assert_eq!(
            report(BuildError::Encode("no".to_owned()).into()),
            (minute, "BuildFailed".to_owned(), Some(EventKind::Warning))
        );
        let artifact = "ArtifactFailed".to_owned();
        assert_eq!(report(SourceError::NoArtifact.into()), (half, artifact.clone(), None));
        assert_eq!(
            report(OpenError::Artifact(ArtifactError::NotFound).into()),
            (half, artifact.clone(), None)
        );
        assert_eq!(
            report(DependencyNotReady::Waiting(String::new()).into()),
            (half, "DependencyNotReady".to_owned(), Some(EventKind::Normal))
        );
        let canceled = ApplyError::Superseded { trigger: "triggered by x".to_owned() };
        assert_eq!(
            report(canceled.into()),
            (Retry::Immediately, "HealthCheckCanceled".to_owned(), Some(EventKind::Normal))
        );
    }

    #[tokio::test]
    async fn event_of_a_canceled_health_check_names_the_trigger() {
        let canceled = ApplyError::Superseded { trigger: "triggered by GitRepository/a/b".to_owned() };
        let report = context().report(canceled.into());
        assert_eq!(report.message, "New reconciliation triggered by GitRepository/a/b");
        assert_eq!(
            report.detail(),
            "Health checks canceled due to new reconciliation triggered by GitRepository/a/b"
        );
    }
}
