//! Paths of the upstream tools.

use std::path::PathBuf;

use anyhow::{Context, bail};

/// The path of a real tool.
///
/// # Errors
/// When it is not there; the message says how to get it.
pub fn oracle(name: &str) -> anyhow::Result<PathBuf> {
    let folder = match std::env::var_os("FLUORITE_ORACLES") {
        Some(folder) => PathBuf::from(folder),
        None => {
            let home = std::env::var_os("HOME").context("neither FLUORITE_ORACLES nor HOME is set")?;
            PathBuf::from(home).join(".cache/fluorite-oracles/bin")
        }
    };
    let path = folder.join(name);
    if !path.is_file() {
        bail!("{name} is not in {}, run `cargo xtask oracles {name}`", folder.display());
    }
    Ok(path)
}
