//! `fluorite down`: stops `fluorite up`, and removes its state when asked.

use std::path::PathBuf;

/// Stops a running `fluorite up`; its state is kept unless it is purged
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// State directory
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Also remove the state: the objects of the embedded cluster, the artifacts, the example
    #[arg(long)]
    purge: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        fl_up::down(self.state_dir, self.purge)
    }
}
