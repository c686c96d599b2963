//! The actions of the release loop.

use std::time::Duration;

use fl_api::helm::HelmRelease;

use crate::drift::Differences;
use crate::spec::ReleaseSpec;

/// An action of the release loop.
#[derive(Debug)]
pub(crate) enum Action {
    Install,
    Upgrade,
    Unlock,
    Test,
    Rollback {
        /// The revision to roll back to.
        version: i64,
    },
    Uninstall,
    CorrectDrift(Differences),
}

/// The kind of an action. One run of the loop performs at most one action of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActionKind {
    Release,
    Unlock,
    Test,
    Remediate,
    DriftCorrection,
}

impl Action {
    pub(crate) fn kind(&self) -> ActionKind {
        match self {
            Action::Install | Action::Upgrade => ActionKind::Release,
            Action::Unlock => ActionKind::Unlock,
            Action::Test => ActionKind::Test,
            Action::Rollback { .. } | Action::Uninstall => ActionKind::Remediate,
            Action::CorrectDrift(_) => ActionKind::DriftCorrection,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Action::Install => "install",
            Action::Upgrade => "upgrade",
            Action::Unlock => "unlock",
            Action::Test => "test",
            Action::Rollback { .. } => "rollback",
            Action::Uninstall => "uninstall",
            Action::CorrectDrift(_) => "correct cluster drift",
        }
    }

    pub(crate) fn timeout(&self, object: &HelmRelease) -> Duration {
        match self {
            Action::Install => object.timeout_of(object.install().timeout),
            Action::Upgrade => object.timeout_of(object.upgrade().timeout),
            Action::Test => object.timeout_of(object.test().timeout),
            Action::Rollback { .. } => object.timeout_of(object.rollback().timeout),
            Action::Uninstall => object.timeout_of(object.uninstall().timeout),
            Action::Unlock | Action::CorrectDrift(_) => object.timeout(),
        }
    }
}
