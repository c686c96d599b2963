//! A child process that is killed when its handle is dropped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

/// A running tool. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a tool; what it says goes to a log in `folder`.
    pub(crate) fn start(
        name: &'static str,
        program: &Path,
        args: &[String],
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let out = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let child = Command::new(program)
            .args(args)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Process { name, child, log })
    }

    /// Fails when the process has ended, with the end of its log.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} ended with {status}:\n{}", self.name, self.last_words());
        }
        Ok(())
    }

    /// The end of the log.
    pub(crate) fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines = log.lines().rev().take(20).collect::<Vec<_>>();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
