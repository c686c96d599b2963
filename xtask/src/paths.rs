//! Paths: the checkout, the shared corpora next to it, the cache of upstream tools.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

pub(crate) fn checkout() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map_or_else(|| manifest.to_owned(), Path::to_owned)
}

/// The shared corpora: `FLUORITE_SHARED`, or `shared` next to the checkout. A missing directory is an error, never a skip.
pub(crate) fn shared() -> anyhow::Result<PathBuf> {
    let dir = match std::env::var_os("FLUORITE_SHARED") {
        Some(dir) => PathBuf::from(dir),
        None => checkout().join("../shared"),
    };
    if !dir.join("corpus").is_dir() {
        bail!("no shared corpora at {}; put them next to the checkout or set FLUORITE_SHARED", dir.display());
    }
    Ok(dir)
}

/// The directory of the upstream tools: `FLUORITE_ORACLES`, or a cache in the home directory that survives between runs.
pub(crate) fn oracles() -> anyhow::Result<PathBuf> {
    if let Some(dir) = std::env::var_os("FLUORITE_ORACLES") {
        return Ok(dir.into());
    }
    let home = std::env::var_os("HOME").context("neither FLUORITE_ORACLES nor HOME is set")?;
    Ok(Path::new(&home).join(".cache/fluorite-oracles/bin"))
}

/// The binary of `cargo build --release`, which must have been built already.
pub(crate) fn release_binary() -> anyhow::Result<PathBuf> {
    binary("release", "--release")
}

/// The binary that is shipped: `cargo build --profile dist`, which must have been built already.
pub(crate) fn dist_binary() -> anyhow::Result<PathBuf> {
    binary("dist", "--profile dist")
}

fn binary(profile: &str, flag: &str) -> anyhow::Result<PathBuf> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| checkout().join("target"), PathBuf::from);
    let binary = target.join(profile).join("fluorite");
    if !binary.is_file() {
        bail!("no binary at {}; run `cargo build {flag}` first", binary.display());
    }
    Ok(binary)
}
