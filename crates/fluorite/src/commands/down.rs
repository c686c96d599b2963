//! `fluorite down`: ends what `fluorite up` runs, and removes its state when asked.

use std::path::PathBuf;

use super::up::state::{self, Ended};

/// Ends a running `fluorite up`; its state stays unless it is purged
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of the state
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Remove the state too: the objects of the embedded cluster, the artifacts, the example
    #[arg(long)]
    purge: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let root = self.state_dir.map_or_else(state::default_folder, Ok)?;
        match state::stop(&root)? {
            Ended::Stopped(pid) => crate::output::note(&format!("stopped process {pid}")),
            Ended::NotRunning => {
                crate::output::note(&format!("no `fluorite up` runs on {}", root.display()));
            }
        }
        if self.purge {
            let text = match state::purge(&root)? {
                true => format!("removed {}", root.display()),
                false => format!("there is no state in {}", root.display()),
            };
            crate::output::note(&text);
        }
        Ok(())
    }
}
