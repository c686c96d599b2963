//! Runs the shared checkers and compares their results with floors that may only rise.
//!
//! `conformance.toml` keeps one number per checker: how many cases passed when it was last recorded. Below it CI fails;
//! above it the run prints the line to record.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::paths;

/// One checker: its name in `conformance.toml` and how it is run.
struct Check {
    name: &'static str,
    run: fn(&Path, &Path) -> anyhow::Result<Output>,
    /// What the line with the score starts with.
    score: &'static str,
}

const CHECKS: &[Check] = &[
    Check { name: "crds", run: crds, score: "crds: " },
    Check { name: "kustomize", run: |s, b| kustomize(s, b, "kustomize"), score: "kustomize: " },
    Check { name: "trees", run: |s, b| kustomize(s, b, "trees"), score: "kustomize: " },
    Check { name: "helm", run: helm, score: "helm: " },
    Check { name: "apiserver", run: apiserver, score: "apiserver: " },
    Check { name: "cli", run: cli, score: "cli: " },
    Check { name: "flux", run: flux, score: "flux: " },
];

fn python(args: &[&Path]) -> Command {
    let mut command = Command::new("python3");
    command.args(args).stdin(Stdio::null());
    command
}

fn crds(shared: &Path, binary: &Path) -> anyhow::Result<Output> {
    let export = Command::new(binary).args(["install", "--export", "--crds-only"]).output()?;
    if !export.status.success() {
        bail!("`fluorite install --export --crds-only` failed: {}", String::from_utf8_lossy(&export.stderr));
    }
    let mut child = python(&[&shared.join("crds/check_crds.py"), Path::new("-"), Path::new("--quiet")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("no pipe to the checker")?.write_all(&export.stdout)?;
    Ok(child.wait_with_output()?)
}

fn kustomize(shared: &Path, binary: &Path, corpus: &str) -> anyhow::Result<Output> {
    let corpora = shared.join("corpus");
    Ok(python(&[&corpora.join("check_kustomize.py"), &corpora.join(corpus), binary]).output()?)
}

fn helm(shared: &Path, binary: &Path) -> anyhow::Result<Output> {
    let corpora = shared.join("corpus");
    Ok(python(&[&corpora.join("check_helm.py"), &corpora.join("helm"), binary]).output()?)
}

fn apiserver(shared: &Path, binary: &Path) -> anyhow::Result<Output> {
    let work = std::env::temp_dir().join(format!("fluorite-conformance-{}", std::process::id()));
    std::fs::create_dir_all(&work)?;
    let kubeconfig = work.join("kubeconfig");
    let mut server = Command::new(binary)
        .args(["apiserver", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(work.join("data"))
        .arg("--kubeconfig-out")
        .arg(&kubeconfig)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let begun = Instant::now();
    while !kubeconfig.is_file() && begun.elapsed().as_secs() < 30 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let corpora = shared.join("corpus");
    let run = python(&[
        &corpora.join("check_apiserver.py"),
        Path::new("run"),
        Path::new("--kubeconfig"),
        &kubeconfig,
    ])
    .arg("--scenarios")
    .arg(corpora.join("apiserver"))
    .output();
    let _ = server.kill();
    let _ = server.wait();
    let _ = std::fs::remove_dir_all(&work);
    Ok(run?)
}

/// The commands of `flux`, through a link of that name, on prepared states of a real API server.
fn cli(shared: &Path, binary: &Path) -> anyhow::Result<Output> {
    let (corpora, oracles) = (shared.join("corpus"), paths::oracles()?);
    let work = std::env::temp_dir().join(format!("fluorite-cli-{}", std::process::id()));
    std::fs::create_dir_all(&work)?;
    let link = work.join("flux");
    std::os::unix::fs::symlink(binary, &link)?;
    let mut path = vec![oracles.clone()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let run = python(&[&corpora.join("check_cli.py"), Path::new("run"), &link, Path::new("--bin"), &oracles])
        .arg("--cases")
        .arg(corpora.join("cli"))
        .env("PATH", std::env::join_paths(path)?)
        .output();
    let _ = std::fs::remove_dir_all(&work);
    Ok(run?)
}

/// Controllers against a real control plane: the families that are steady. Hand-over needs Flux itself and is run by hand.
fn flux(shared: &Path, binary: &Path) -> anyhow::Result<Output> {
    let corpora = shared.join("corpus");
    let folder = binary.parent().context("the binary has no folder")?;
    Ok(python(&[&corpora.join("check_flux.py"), Path::new("run"), Path::new("--bin"), &paths::oracles()?])
        .arg("--engine-bin")
        .arg(folder)
        .arg("--scenarios")
        .arg(corpora.join("flux"))
        .args(["--filter", "git-,oci-,ks-,hsrc-,hr-", "--wait", "60"])
        .output()?)
}

/// The first number after `prefix` on the last line that starts with it, and the whole line.
fn score(output: &str, prefix: &str) -> Option<(u64, String)> {
    let line = output.lines().rev().find(|l| l.starts_with(prefix))?;
    let digits: String = line[prefix.len()..].chars().take_while(char::is_ascii_digit).collect();
    Some((digits.parse().ok()?, line.to_owned()))
}

pub(crate) fn run(names: &[String]) -> anyhow::Result<()> {
    let (shared, binary) = (paths::shared()?, paths::release_binary()?);
    let file = paths::checkout().join("conformance.toml");
    let floors: BTreeMap<String, u64> = toml::from_str(
        &std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?,
    )?;
    if let Some(unknown) = names.iter().find(|n| !CHECKS.iter().any(|c| c.name == n.as_str())) {
        bail!("no checker `{unknown}`");
    }
    let mut fallen = Vec::new();
    for check in CHECKS.iter().filter(|c| names.is_empty() || names.iter().any(|n| n == c.name)) {
        let Some(floor) = floors.get(check.name).copied() else {
            bail!("conformance.toml has no floor for `{}`", check.name)
        };
        let begun = Instant::now();
        let output = (check.run)(&shared, &binary)
            .with_context(|| format!("cannot run the {} checker", check.name))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let Some((got, line)) = score(&text, check.score) else {
            bail!(
                "the {} checker gave no score: {text}{}",
                check.name,
                String::from_utf8_lossy(&output.stderr)
            );
        };
        println!(
            "conformance {}: {line} (floor {floor}, {:.0} s)",
            check.name,
            begun.elapsed().as_secs_f64()
        );
        if got > floor {
            println!("  above the floor: record `{} = {got}` in conformance.toml", check.name);
        } else if got < floor {
            for failed in text.lines().filter(|l| l.starts_with("FAIL") || l.starts_with("near")).take(20) {
                println!("  {failed}");
            }
            fallen.push(check.name);
        }
    }
    if !fallen.is_empty() {
        bail!("below the floor of conformance.toml: {}", fallen.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::score;

    #[test]
    fn the_score_is_the_first_number_of_the_last_matching_line() {
        let output = "helm/charts: 3/108 exact\nhelm: 7/9 exact (1.0s)\nother\n";
        assert_eq!(score(output, "helm: "), Some((7, "helm: 7/9 exact (1.0s)".to_owned())));
        assert_eq!(score(output, "crds: "), None);
    }
}
