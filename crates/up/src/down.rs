//! `fluorite down`.

use std::path::PathBuf;

use crate::output::note;
use crate::state_dir::{self as state, StopResult};

/// Stops the `fluorite up` that uses a state directory, and removes the directory if `purge` is set.
///
/// # Errors
/// The process does not end, or the directory was not made by `up` or cannot be removed.
pub fn down(state_dir: Option<PathBuf>, purge: bool) -> anyhow::Result<()> {
    let root = state_dir.map_or_else(state::default_state_dir, Ok)?;
    match state::stop(&root)? {
        StopResult::Stopped(pid) => note(&format!("stopped process {pid}")),
        StopResult::NotRunning => note(&format!("no `fluorite up` runs on {}", root.display())),
    }
    if purge {
        note(&match state::purge(&root)? {
            true => format!("removed {}", root.display()),
            false => format!("there is no state in {}", root.display()),
        });
    }
    Ok(())
}
