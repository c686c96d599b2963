//! The long forms of randomised tests. `cargo test` runs short forms of the same tests; they differ only in the number of rounds.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::paths;

/// One test and how its length is set.
struct Soak {
    name: &'static str,
    package: &'static str,
    /// `--lib` or the name of an integration test.
    target: &'static [&'static str],
    test: &'static str,
    variable: &'static str,
    long: &'static str,
}

const SOAKS: &[Soak] = &[
    Soak {
        name: "store",
        package: "fl-apiserver",
        target: &["--lib"],
        test: "store::tests::model::no_acknowledged_write_is_lost_and_no_corruption_is_silent",
        variable: "FLUORITE_STORE_SEEDS",
        long: "0..10000",
    },
    Soak {
        name: "kill",
        package: "fl-apiserver",
        target: &["--test", "crash"],
        test: "acknowledged_writes_survive_kill",
        variable: "FLUORITE_KILL_ROUNDS",
        long: "1000",
    },
    Soak {
        name: "history",
        package: "fl-apiserver",
        target: &["--test", "linearizability"],
        test: "histories_are_linearizable_in_memory_and_on_disk",
        variable: "FLUORITE_HISTORY_SEEDS",
        long: "500",
    },
    Soak {
        name: "watches",
        package: "fl-apiserver",
        target: &["--test", "overload"],
        test: "idle_watches_use_little_memory",
        variable: "FLUORITE_IDLE_WATCHES",
        long: "10000",
    },
    Soak {
        name: "storms",
        package: "fl-kustomization",
        target: &["--test", "concurrency"],
        test: "last_of_many_revisions_is_applied",
        variable: "FLUORITE_STORM_SEEDS",
        long: "0..10000",
    },
    Soak {
        name: "decryptions",
        package: "fl-kustomization",
        target: &["--test", "multi_tenancy"],
        test: "decrypted_bytes_are_never_written_to_disk",
        variable: "FLUORITE_DECRYPTIONS",
        long: "10000",
    },
];

/// Runs the named ones, or all. A length in the environment goes before the one of the table.
pub(crate) fn run(names: &[String]) -> anyhow::Result<()> {
    if let Some(unknown) = names.iter().find(|name| !SOAKS.iter().any(|soak| soak.name == **name)) {
        let known: Vec<&str> = SOAKS.iter().map(|soak| soak.name).collect();
        bail!("there is no soak test {unknown:?}; there are {}", known.join(", "));
    }
    let mut failed = Vec::new();
    for soak in SOAKS.iter().filter(|soak| names.is_empty() || names.iter().any(|name| name == soak.name)) {
        let length = std::env::var(soak.variable).unwrap_or_else(|_| soak.long.to_owned());
        println!("\n=== {}: {}={length} {}", soak.name, soak.variable, soak.test);
        let begin = Instant::now();
        let passed = Command::new("cargo")
            .args(["test", "--locked", "--package", soak.package])
            .args(soak.target)
            .args(["--", "--exact", soak.test, "--nocapture"])
            .env(soak.variable, length)
            .current_dir(paths::checkout())
            .status()
            .context("cannot run cargo test")?
            .success();
        println!(
            "{}: {} after {} s",
            soak.name,
            if passed { "ok" } else { "failed" },
            begin.elapsed().as_secs()
        );
        if !passed {
            failed.push(soak.name);
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter that matches nothing would pass.
    #[test]
    fn every_soak_test_exists() {
        for soak in SOAKS {
            let (_, function) = soak.test.rsplit_once("::").unwrap_or(("", soak.test));
            let grep = Command::new("git")
                .args(["grep", "-lF", &format!("fn {function}("), "--", "crates"])
                .current_dir(paths::checkout())
                .output()
                .expect("git runs");
            let file = String::from_utf8_lossy(&grep.stdout).trim().to_owned();
            assert!(!file.is_empty() && !file.contains('\n'), "{}: {file:?}", soak.test);
            let text = std::fs::read_to_string(paths::checkout().join(&file)).expect("the file");
            assert!(text.contains(&format!("\"{}\"", soak.variable)), "{}: {}", soak.name, soak.variable);
        }
    }
}
