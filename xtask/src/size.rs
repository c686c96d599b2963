//! Size, dependency count and hardening of the shipped binary, printed by CI so that growth is seen.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::Context;

use crate::{elf, paths};

pub(crate) fn print() -> anyhow::Result<()> {
    let binary = paths::dist_binary()?;
    elf::check_hardening(&binary)?;
    let bytes = binary.metadata()?.len();
    let tree = Command::new("cargo")
        .args(["tree", "--package", "fluorite", "--edges", "normal", "--prefix", "none", "--locked"])
        .current_dir(paths::checkout())
        .output()
        .context("cannot run cargo tree")?;
    let text = String::from_utf8_lossy(&tree.stdout);
    let crates: BTreeSet<&str> =
        text.lines().filter_map(|l| l.split(" (").next()).filter(|l| !l.is_empty()).collect();
    let own = crates.iter().filter(|c| c.starts_with("fl-") || c.starts_with("fluorite ")).count();
    println!(
        "size: fluorite is {:.1} MiB, position independent with full RELRO; it links {} crates, {own} of them ours",
        bytes as f64 / 1_048_576.0,
        crates.len()
    );
    Ok(())
}
