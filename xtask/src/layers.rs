//! The direction of dependencies, checked against `cargo metadata`, and what sources may name ([`source_rules`]).
//!
//! Folders are layers: `engine` (pure) < `io` < `control` and `serve` < `flux-cli` and `up` < the binary. A crate may
//! depend on its own folder and on those below it, except that `control` and `serve` do not depend on each other and
//! `flux-cli` does not depend on `serve`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::{paths, source_rules};

/// Crates that a pure engine may not depend on, directly or through another crate: async, Kubernetes clients, TLS, C
/// libraries.
const IMPURE: &[&str] =
    &["tokio", "kube", "kube-client", "hyper", "reqwest", "rustls", "ring", "openssl-sys"];

/// Folder below `crates/` -> folders its crates may depend on.
fn allowed(folder: &str) -> &'static [&'static str] {
    match folder {
        "engine" => &["engine"],
        "io" => &["engine", "io"],
        "control" => &["engine", "io", "control"],
        "serve" => &["engine", "io", "serve"],
        "flux-cli" => &["engine", "io", "control", "flux-cli"],
        "up" => &["engine", "io", "control", "serve", "up"],
        "testing" => &["engine", "io", "control", "serve", "testing"],
        _ => &["engine", "io", "control", "serve", "flux-cli", "up"],
    }
}

struct Graph {
    /// package id -> (name, folder below crates/, or None for crates from the registry)
    packages: BTreeMap<String, (String, Option<String>)>,
    /// package id -> ids of its normal and build dependencies
    edges: BTreeMap<String, Vec<String>>,
}

fn graph() -> anyhow::Result<Graph> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let run = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .current_dir(paths::checkout())
        .output()
        .context("cannot run cargo metadata")?;
    if !run.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&run.stderr));
    }
    let meta: Value = serde_json::from_slice(&run.stdout)?;
    let text = |v: &Value, key: &str| v[key].as_str().unwrap_or_default().to_owned();
    let mut packages = BTreeMap::new();
    for p in meta["packages"].as_array().context("no packages in the metadata")? {
        let manifest = text(p, "manifest_path");
        let folder = (p["source"].is_null()).then(|| {
            manifest
                .split("/crates/")
                .nth(1)
                .and_then(|rest| rest.split('/').next())
                .unwrap_or("xtask")
                .to_owned()
        });
        packages.insert(text(p, "id"), (text(p, "name"), folder));
    }
    let mut edges = BTreeMap::new();
    for node in meta["resolve"]["nodes"].as_array().context("no resolve graph in the metadata")? {
        let deps = node["deps"].as_array().into_iter().flatten();
        let normal = deps
            .filter(|d| d["dep_kinds"].as_array().is_some_and(|k| k.iter().any(|k| k["kind"] != "dev")))
            .map(|d| text(d, "pkg"))
            .collect();
        edges.insert(text(node, "id"), normal);
    }
    Ok(Graph { packages, edges })
}

/// Every offence as a sentence; empty when the rules hold.
fn offences(graph: &Graph) -> Vec<String> {
    let mut found = Vec::new();
    for (id, (name, folder)) in &graph.packages {
        let Some(folder) = folder else { continue };
        for dep in graph.edges.get(id).into_iter().flatten() {
            let (dep_name, Some(dep_folder)) = &graph.packages[dep] else { continue };
            if !allowed(folder).contains(&dep_folder.as_str()) {
                found.push(format!(
                    "{name} ({folder}) depends on {dep_name} ({dep_folder}): that is upwards or sideways"
                ));
            }
        }
        if folder == "engine" {
            found.extend(
                impurities(graph, id)
                    .into_iter()
                    .map(|bad| format!("{name} is a pure engine but reaches {bad}")),
            );
        }
    }
    found
}

fn impurities(graph: &Graph, from: &str) -> Vec<String> {
    let (mut seen, mut stack, mut bad) = (BTreeSet::new(), vec![from], Vec::new());
    while let Some(id) = stack.pop() {
        for dep in graph.edges.get(id).into_iter().flatten() {
            if seen.insert(dep.as_str()) {
                let name = &graph.packages[dep].0;
                if IMPURE.contains(&name.as_str()) {
                    bad.push(name.clone());
                }
                stack.push(dep);
            }
        }
    }
    bad
}

pub(crate) fn check() -> anyhow::Result<()> {
    let graph = graph()?;
    let mut found = offences(&graph);
    found.extend(source_rules::offences(&paths::checkout())?);
    if !found.is_empty() {
        bail!("the layers are broken:\n  {}", found.join("\n  "));
    }
    println!(
        "layers: {} packages, no edge points up, engines are pure, one Kubernetes client",
        graph.packages.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_dependencies_follow_the_layers() {
        let graph = graph().expect("cargo metadata works in a checkout");
        assert!(graph.packages.values().any(|(name, _)| name == "fl-yaml"), "the workspace was not read");
        assert_eq!(offences(&graph), Vec::<String>::new());
    }

    #[test]
    fn engine_that_depends_on_tokio_is_found() {
        let package = |name: &str, folder: Option<&str>| (name.to_owned(), folder.map(str::to_owned));
        let graph = Graph {
            packages: BTreeMap::from([
                ("a".to_owned(), package("fl-a", Some("engine"))),
                ("b".to_owned(), package("between", None)),
                ("c".to_owned(), package("tokio", None)),
                ("d".to_owned(), package("fl-d", Some("serve"))),
            ]),
            edges: BTreeMap::from([
                ("a".to_owned(), vec!["b".to_owned(), "d".to_owned()]),
                ("b".to_owned(), vec!["c".to_owned()]),
            ]),
        };
        let found = offences(&graph);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("upwards") && found[1].contains("reaches tokio"), "{found:?}");
    }
}
