//! Writes the files that the program generates. A test of the binary compares them; this task runs it in recording mode.

use std::process::Command;

use anyhow::{Context, ensure};

pub(crate) fn write() -> anyhow::Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let run = Command::new(cargo)
        .args(["test", "--workspace", "--locked", "--test", "generated"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .env("RECORD", "1")
        .status()
        .context("cannot run cargo")?;
    ensure!(run.success(), "the files could not be written");
    Ok(())
}
