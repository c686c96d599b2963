//! Errors of the apply step.

use std::time::Duration;

use fl_api::condition::reasons;
use fl_apply::{ApplyFailure, PruneFailure};
use fl_runtime::ClientError;

use super::prune::APPROVE;
use crate::status::go;

/// Why the objects are not as wanted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    /// The inventory of the status cannot be read.
    #[error("{0}")]
    Inventory(String),
    #[error("failed to create ignore rule selector: {0}\n")]
    IgnoreRules(String),
    /// An object without apiVersion, kind or name.
    #[error(transparent)]
    InvalidObject(#[from] fl_apply::Error),
    #[error("{0} is SOPS encrypted, configuring decryption is required for this secret to be reconciled")]
    EncryptedSecret(String),
    #[error(
        "revision {revision} would delete {deletions} of {total} objects, more than the budget of {budget}; nothing was changed. To approve it, set the annotation {APPROVE} to this revision"
    )]
    DeletionBudget { revision: String, deletions: usize, total: usize, budget: usize },
    #[error("cannot store the inventory before the apply: {0}")]
    StoreInventory(#[source] ClientError),
    #[error(transparent)]
    Apply(#[from] ApplyFailure),
    #[error(transparent)]
    Prune(#[from] PruneFailure),
    #[error("health check failed after {}: {message}", go(*.elapsed))]
    Unhealthy { elapsed: Duration, message: String },
    /// The source has a newer revision; the health checks were canceled.
    #[error("New reconciliation {trigger}")]
    Superseded { trigger: String },
}

impl ApplyError {
    /// The reason of the Ready condition and of the history.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            ApplyError::Inventory(_)
            | ApplyError::IgnoreRules(_)
            | ApplyError::InvalidObject(_)
            | ApplyError::EncryptedSecret(_)
            | ApplyError::StoreInventory(_)
            | ApplyError::Apply(_) => reasons::RECONCILIATION_FAILED,
            ApplyError::DeletionBudget { .. } | ApplyError::Prune(_) => reasons::PRUNE_FAILED,
            ApplyError::Unhealthy { .. } => reasons::HEALTH_CHECK_FAILED,
            ApplyError::Superseded { .. } => reasons::HEALTH_CHECK_CANCELED,
        }
    }
}
