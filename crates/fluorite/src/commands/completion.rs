//! `fluorite completion SHELL`: the completion script for a shell.

use clap_complete::Shell;

/// Load it with, for example: `. <(fluorite completion bash)`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell to complete for
    shell: Shell,
}

impl Args {
    #[expect(clippy::unnecessary_wraps, reason = "all commands share one signature")]
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut definition = crate::definition();
        clap_complete::generate(self.shell, &mut definition, crate::called_as(), &mut std::io::stdout());
        Ok(())
    }
}
