//! Errors of actions, with Helm's messages: conditions and stored releases show them unchanged.

use fl_apply::Error as ClusterError;

/// A failed action.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ActionError {
    /// There is no release in storage.
    #[error("release: not found")]
    NotFound,
    /// Another client stored the same revision.
    #[error("release: already exists")]
    Exists,
    /// The wait for readiness was cancelled because another reconcile was triggered; with Go's message.
    #[error("context canceled")]
    Canceled,
    /// The service account may not read the storage.
    #[error("{0}")]
    Forbidden(String),
    /// With the message of Helm or of the API server.
    #[error("{0}")]
    Failed(String),
}

impl ActionError {
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }

    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Forbidden(_))
    }

    /// The same with a context in front.
    pub(crate) fn within(self, context: &str) -> Self {
        Self::Failed(format!("{context}: {self}"))
    }
}

impl From<ClusterError> for ActionError {
    fn from(error: ClusterError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<fl_helm::Error> for ActionError {
    fn from(error: fl_helm::Error) -> Self {
        Self::Failed(error.to_string())
    }
}
