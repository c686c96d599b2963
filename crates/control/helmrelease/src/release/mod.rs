//! From the stored release to the desired one: which action follows, and how its result is reported.

mod action;
mod atomic_release;
mod run_action;
mod state;
mod status;

pub(crate) use atomic_release::{AtomicRelease, ReleaseError, ReleaseResult, Shared};
pub(crate) use state::is_own;
pub(crate) use status::{record_changes, record_release, snapshot_data, summarize};
