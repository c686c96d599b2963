//! A fuzz runner for stable Rust: every target runs on its stored seeds, then on seeded mutations of them.
//!
//! `cargo run -p fl-fuzz -- [--seconds N] [--seed N] [TARGET…]`
//!
//! A panic is the only failure. The input that caused it is written to `fuzz/artifacts/<target>/` with the command
//! that replays it; once fixed, it moves to `fuzz/seeds/<target>/` and stays in the suite.

mod mutate;
mod targets;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz")
}

fn seeds(target: &str) -> anyhow::Result<Vec<Vec<u8>>> {
    let dir = root().join("seeds").join(target);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&dir)
        .with_context(|| format!("target `{target}` has no seeds in {}", dir.display()))?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    paths.sort();
    paths.iter().map(|p| std::fs::read(p).with_context(|| p.display().to_string())).collect()
}

/// Runs one input; `Err` carries the path where the failing input was kept.
fn run_one(name: &str, target: fn(&[u8]), input: &[u8]) -> Result<(), PathBuf> {
    if std::panic::catch_unwind(|| target(input)).is_ok() {
        return Ok(());
    }
    let dir = root().join("artifacts").join(name);
    let path = dir.join(format!("{:016x}", mutate::fingerprint(input)));
    let _ = std::fs::create_dir_all(&dir);
    let _ = std::fs::write(&path, input);
    Err(path)
}

fn main() -> anyhow::Result<()> {
    let (mut seconds, mut seed, mut wanted) = (5u64, 1u64, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => seconds = args.next().context("--seconds needs a number")?.parse()?,
            "--seed" => seed = args.next().context("--seed needs a number")?.parse()?,
            name => wanted.push(name.to_owned()),
        }
    }
    if let Some(unknown) = wanted.iter().find(|w| !targets::all().any(|(n, _)| n == *w)) {
        bail!(
            "no fuzz target `{unknown}`; there are: {:?}",
            targets::all().map(|(n, _)| n).collect::<Vec<_>>()
        );
    }
    let mut failed = 0;
    for (name, target) in targets::all() {
        if !wanted.is_empty() && !wanted.iter().any(|w| w == name) {
            continue;
        }
        let seeds = seeds(name)?;
        let mut mutator = mutate::Mutator::new(seed, &seeds);
        let (start, mut runs) = (Instant::now(), 0u64);
        let mut inputs: Vec<Vec<u8>> = seeds.clone();
        let outcome = loop {
            let input = match inputs.pop() {
                Some(kept) => kept,
                None if start.elapsed() >= Duration::from_secs(seconds) => break Ok(()),
                None => mutator.next_input(),
            };
            runs += 1;
            if let Err(path) = run_one(name, target, &input) {
                break Err(path);
            }
        };
        match outcome {
            Ok(()) => println!("fuzz {name}: {runs} runs over {} seeds, no crash", seeds.len()),
            Err(path) => {
                failed += 1;
                println!("fuzz {name}: CRASH after {runs} runs, input kept in {}", path.display());
            }
        }
    }
    if failed > 0 {
        bail!("{failed} fuzz targets crashed");
    }
    Ok(())
}
