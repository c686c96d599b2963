//! From what is stored to what is wanted: which action is next, and what its end means.

mod deed;
mod machine;
mod report;
mod state;

pub(crate) use machine::{End, Machine, Shared};
pub(crate) use report::{record_changes, record_release, snapshot_data, summarize};
pub(crate) use state::is_own;
