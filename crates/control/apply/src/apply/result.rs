//! The result of an apply.

use crate::{ChangeSet, LiveObject, ObjectRef};

/// Objects that reached the cluster. Only [`crate::Applier::apply`] makes it.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    pub(super) changes: ChangeSet,
    pub(super) live: Vec<LiveObject>,
}

impl Applied {
    /// The change of each object, in the order of apply.
    #[must_use]
    pub fn changes(&self) -> &ChangeSet {
        &self.changes
    }

    /// The live objects as far as they were seen, to begin a wait with.
    #[must_use]
    pub fn into_live(self) -> Vec<LiveObject> {
        self.live
    }
}

/// An apply that failed; objects that were applied before the failure stay applied.
#[derive(Debug)]
pub struct ApplyFailure {
    /// All errors, in the order of apply.
    pub errors: Vec<String>,
    /// The objects that were applied.
    pub changes: ChangeSet,
    /// Objects whose write may have been sent: some of them may exist now.
    pub attempted: Vec<ObjectRef>,
    /// The error of the [`crate::WriteAhead`], when it is the cause.
    pub write_ahead: Option<fl_client::Error>,
}

/// Why a stage ended early.
pub(super) struct StageFailure {
    pub(super) errors: Vec<String>,
    pub(super) attempted: Vec<ObjectRef>,
    pub(super) write_ahead: Option<fl_client::Error>,
}

impl From<Vec<String>> for StageFailure {
    /// Nothing of the stage was written.
    fn from(errors: Vec<String>) -> Self {
        StageFailure { errors, attempted: Vec::new(), write_ahead: None }
    }
}

impl std::fmt::Display for ApplyFailure {
    /// The errors, then what changed, each on a line: the text of Flux's condition.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.errors.join("\n"))?;
        for change in self.changes.changed().entries {
            writeln!(f, "{change}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ApplyFailure {}
