//! Why an action did not succeed, in Helm's words: they reach conditions and records as they are.

use fl_apply::Error as ClusterError;

/// A failed action.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ActionError {
    /// Nothing in storage.
    #[error("release: not found")]
    NotFound,
    /// Somebody wrote the same revision.
    #[error("release: already exists")]
    Exists,
    /// The identity of the release may not read its records.
    #[error("{0}")]
    Forbidden(String),
    /// Helm's or the cluster's own words.
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

    /// The same with words in front.
    pub(crate) fn within(self, words: &str) -> Self {
        Self::Failed(format!("{words}: {self}"))
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
