//! `build kustomization` and `diff kustomization`: what would be applied, and what that would change.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fl_api::meta::drift::IgnoreRule;
use fl_apply::{Action, Applier, IgnoreRules, Inventory, ObjectId, ObjectRef, Options, Owner};
use serde_json::{Value, json};

use crate::args::{Call, CommandResult, ExitError, action};
use crate::cluster::{Cluster, name_of, namespace_of, text_at};
use crate::command::Node;
use crate::commands::artifact;
use crate::dyff;
use crate::flag::{Flag, list, switch, text};
use crate::ksbuild::{Builder, Built, is_kustomization, same_object};
use crate::resource_kinds::KUSTOMIZATION;
use crate::{format as view, logger};

const SHARED: &[Flag] = &[
    text("path", "Folder with the manifests"),
    text("kustomization-file", "File with the Kustomization instead of the cluster's"),
    list("ignore-paths", "Paths to leave out, in .gitignore form"),
    switch("strict-substitute", "Fail when a variable without default is not set"),
    switch("recursive", "Also the Kustomizations that are delivered").short('r'),
    list("local-sources", "Folders of sources, kind/namespace/name=path"),
    switch("in-memory-build", "Accepted for compatibility: folders are never written to")
        .constant("every build is done in memory"),
];

pub(crate) fn build_node() -> Node {
    Node::group(
        "build",
        "Build what would be applied or published",
        vec![
            artifact::build_node(),
            Node::leaf(
                "kustomization",
                "Build a Kustomization from a local folder",
                action(|call: Call| async move { build(&call).await }),
            )
            .alias(&["ks"])
            .takes("NAME")
            .flags(SHARED)
            .flags(&[switch("dry-run", "Ask no cluster; needs --kustomization-file")])
            .example("As the controller would build it", "build kustomization apps --path ./apps")
            .example(
                "Without a cluster",
                "build ks apps --path ./apps --kustomization-file ./clusters/prod/apps.yaml --dry-run",
            ),
        ],
    )
}

pub(crate) fn diff_node() -> Node {
    Node::group(
        "diff",
        "Compare local files with what is live or published",
        vec![
            artifact::diff_node(),
            Node::leaf(
                "kustomization",
                "Compare a local folder with the cluster",
                action(|call: Call| async move { diff(&call).await }),
            )
            .alias(&["ks"])
            .takes("NAME")
            .flags(SHARED)
            .flags(&[
                switch("progress-bar", "Show progress in a terminal").or("true"),
                switch("ignore-not-found", "The Kustomization may be new"),
            ])
            .example("What would a merge change?", "diff kustomization apps --path ./apps")
            .example(
                "With everything below",
                "diff ks fleet --path ./fleet -r --local-sources GitRepository/flux-system/fleet=.",
            ),
        ],
    )
}

fn local_sources(call: &Call) -> anyhow::Result<BTreeMap<String, String>> {
    let mut sources = BTreeMap::new();
    for pair in call.list("local-sources") {
        let Some((source, path)) = pair.split_once('=') else {
            bail!(
                "invalid argument {pair:?} for \"--local-sources\" flag: {pair} must be formatted as key=value"
            );
        };
        sources.insert(source.to_owned(), path.to_owned());
    }
    Ok(sources)
}

fn builder(call: &Call, cluster: Option<Cluster>, folder: &Path) -> anyhow::Result<Builder> {
    let file = call.text("kustomization-file");
    Ok(Builder {
        cluster,
        name: call.args[0].clone(),
        namespace: call.namespace().to_owned(),
        folder: folder.to_owned(),
        file: (!file.is_empty()).then(|| file.to_owned()),
        fallback: None,
        ignore_not_found: call.has("ignore-not-found") && call.on("ignore-not-found"),
        ignore: call.list("ignore-paths").to_vec(),
        strict: call.on("strict-substitute"),
        recursive: call.on("recursive"),
        local_sources: local_sources(call)?,
    })
}

fn check_file(call: &Call) -> CommandResult {
    let file = call.text("kustomization-file");
    if !file.is_empty() && !Path::new(file).is_file() {
        bail!("invalid kustomization file {file:?}");
    }
    Ok(())
}

async fn build(call: &Call) -> CommandResult {
    if call.args.is_empty() {
        bail!("kustomization name is required");
    }
    let path = call.text("path");
    if path.is_empty() {
        bail!("invalid resource path {path:?}");
    }
    let folder = absolute(path)?;
    if !folder.is_dir() {
        bail!("invalid resource path {:?}", folder.display().to_string());
    }
    let dry = call.on("dry-run");
    if dry && call.text("kustomization-file").is_empty() {
        bail!("dry-run mode requires a kustomization file");
    }
    check_file(call)?;
    let cluster = if dry { None } else { Some(Cluster::connect(call).await?) };
    for object in builder(call, cluster, &folder)?.build_all(0).await? {
        logger::data(&format!("{}---\n", view::yaml(&object)));
    }
    Ok(())
}

/// The path from the root, without `.` and `..`, without looking at the disk.
fn absolute(path: &str) -> std::io::Result<std::path::PathBuf> {
    let mut out = std::path::PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        match part {
            std::path::Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

async fn diff(call: &Call) -> CommandResult {
    if call.args.is_empty() {
        bail!("kustomization name is required");
    }
    // A flag that cannot be read is bad usage, not a comparison that failed.
    local_sources(call)?;
    let failed = |message: String| ExitError::Failure { code: 2, message };
    let path = call.text("path");
    if path.is_empty() || !Path::new(path).is_dir() {
        return Err(failed(format!("invalid resource path {path:?}")).into());
    }
    check_file(call)?;
    if call.on("ignore-not-found") && call.text("kustomization-file").is_empty() {
        return Err(
            failed("kustomization file is required when assuming new kustomizations".to_owned()).into()
        );
    }
    let found = async {
        let cluster = Cluster::connect(call).await?;
        compare(&builder(call, Some(cluster), Path::new(path))?, 0).await
    };
    let progress = call.on("progress-bar").then(|| logger::Progress::start("Kustomization diffing..."));
    let report = found.await;
    drop(progress);
    let report = report.map_err(|error| failed(format!("{error:#}")))?;
    logger::data(&report.text);
    if report.changed {
        let message = "identified at least one change, exiting with non-zero exit code".to_owned();
        return Err(ExitError::Warning { code: 1, message }.into());
    }
    Ok(())
}

#[derive(Default)]
struct Report {
    text: String,
    changed: bool,
}

fn id_text(object: &Value) -> String {
    match namespace_of(object) {
        "" => format!("{}/{}", text_at(object, "/kind"), name_of(object)),
        namespace => format!("{}/{namespace}/{}", text_at(object, "/kind"), name_of(object)),
    }
}

async fn compare(builder: &Builder, depth: usize) -> anyhow::Result<Report> {
    let Built { kustomization, objects } = builder.build().await?;
    let cluster = builder.cluster.as_ref().expect("a diff asks the cluster");
    let owner = Owner {
        field_manager: "kustomize-controller".to_owned(),
        group: KUSTOMIZATION.group.to_owned(),
        name: name_of(&kustomization).to_owned(),
        namespace: namespace_of(&kustomization).to_owned(),
    };
    let rules: Vec<IgnoreRule> = match kustomization.pointer("/spec/ignore") {
        Some(rules) => serde_json::from_value(rules.clone())?,
        None => Vec::new(),
    };
    let ignore = IgnoreRules::compile(&rules)?;
    let options = Options { ignore: ignore.clone(), ..Options::flux(&owner) };
    let applier = Applier::new(fl_apply::Cluster::new(cluster.client()), owner, options);
    let (mut report, mut failures, mut seen) = (Report::default(), Vec::new(), Vec::new());
    for object in &objects {
        let prepared = applier.prepare(vec![object.clone()], &BTreeMap::new(), &BTreeMap::new())?;
        let (change, live, merged) = match applier.diff(&prepared).await {
            Ok(mut changes) if !changes.is_empty() => changes.swap_remove(0),
            Ok(_) => continue,
            Err(failure) => {
                failures.extend(failure.errors);
                continue;
            }
        };
        seen.push(change.object.id.clone());
        report.add(object, change.action, live, merged, &ignore);
        if builder.recursive
            && is_kustomization(object)
            && change.action != Action::Created
            && !same_object(object, &kustomization)
        {
            if object.pointer("/spec/kubeConfig").is_some() {
                report.text.push_str(&format!(
                    "⚠️ {} skipped: diff not supported for remote clusters\n",
                    id_text(object)
                ));
                continue;
            }
            if depth > 32 {
                bail!("kustomizations nest deeper than 32 levels at {}", id_text(object));
            }
            let below = match builder.child(object) {
                Ok(child) => Box::pin(compare(&child, depth + 1)).await,
                Err(error) => Err(error),
            };
            match below {
                Ok(below) if below.changed => {
                    report.changed = true;
                    report.text.push_str(&format!("📁 {} changed\n{}", id_text(object), below.text));
                }
                Ok(_) => {}
                Err(error) => failures.push(format!("{error:#}")),
            }
        }
    }
    match failures.as_slice() {
        [] => {}
        [one] => bail!("{one}"),
        many => bail!("[{}]", many.join(", ")),
    }
    if kustomization.pointer("/spec/prune") == Some(&json!(true)) {
        report.add_deleted(&kustomization, &seen)?;
    }
    Ok(report)
}

impl Report {
    fn add(
        &mut self,
        object: &Value,
        action: Action,
        live: Option<Value>,
        merged: Option<Value>,
        ignore: &IgnoreRules,
    ) {
        let id = id_text(object);
        match action {
            Action::Skipped => self.text.push_str(&format!("► {id} skipped\n")),
            Action::Created => {
                self.changed = true;
                self.text.push_str(&format!("► {id} created\n"));
            }
            Action::Configured => {
                let (mut live, mut merged) = (live.unwrap_or_default(), merged.unwrap_or_default());
                for side in [&mut live, &mut merged] {
                    if let Some(metadata) = side.get_mut("metadata").and_then(Value::as_object_mut) {
                        metadata.remove("managedFields");
                    }
                }
                let wanted = merged.clone();
                ignore.strip(&wanted, &mut live);
                ignore.strip(&wanted, &mut merged);
                if object["kind"] == "Secret" {
                    hide(&mut live, &mut merged);
                    if encrypted(object) && same_keys(&mut live, &mut merged) {
                        return;
                    }
                }
                self.changed = true;
                self.text.push_str(&format!("► {id} drifted\n{}", dyff::report(&live, &merged)));
            }
            _ => {}
        }
    }

    /// What the inventory has and the build does not.
    fn add_deleted(&mut self, kustomization: &Value, seen: &[ObjectId]) -> CommandResult {
        let Some(stored) = kustomization.pointer("/status/inventory") else { return Ok(()) };
        let stored = serde_json::from_value(stored.clone())?;
        let inventory = Inventory::read(&stored).map_err(anyhow::Error::msg)?;
        let mut stale: Vec<ObjectRef> =
            inventory.objects().iter().filter(|o| !seen.contains(&o.id)).cloned().collect();
        fl_apply::sort(&mut stale);
        for object in stale {
            self.changed = true;
            self.text.push_str(&format!("► {} deleted\n", object.id));
        }
        Ok(())
    }
}

/// Secret values never show: only that they are there, or that they changed.
fn hide(live: &mut Value, merged: &mut Value) {
    let keys = |side: &Value| {
        side["data"].as_object().map(|m| m.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
    };
    for key in keys(live) {
        match merged["data"].get(&key) {
            Some(new) if *new != live["data"][&key] => {
                live["data"][&key] = json!("*** (before)");
                merged["data"][&key] = json!("*** (after)");
                continue;
            }
            Some(_) => merged["data"][&key] = json!("***"),
            None => {}
        }
        live["data"][&key] = json!("***");
    }
    for key in keys(merged) {
        if live["data"].get(&key).is_none() {
            merged["data"][&key] = json!("***");
        }
    }
}

/// Whether the build hid a value because SOPS encrypted it.
fn encrypted(object: &Value) -> bool {
    let hidden = |value: &Value| {
        let text = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
        String::from_utf8_lossy(&text).contains("**SOPS**")
    };
    let written = |value: &Value| value.as_str().is_some_and(|text| text.contains("**SOPS**"));
    object["data"].as_object().is_some_and(|m| m.values().any(hidden))
        || object["stringData"].as_object().is_some_and(|m| m.values().any(written))
}

/// Encrypted values cannot be compared; their keys can. Values are made alike on the way.
fn same_keys(live: &mut Value, merged: &mut Value) -> bool {
    let keys = |side: &mut Value| {
        let map = side["data"].as_object_mut();
        map.map(|m| {
            m.iter_mut()
                .map(|(k, v)| {
                    *v = json!("*****");
                    k.clone()
                })
                .collect::<std::collections::BTreeSet<_>>()
        })
        .unwrap_or_default()
    };
    keys(live) == keys(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_values_are_masked() {
        let mut live = json!({"data": {"same": "a", "new": "b", "gone": "c"}});
        let mut merged = json!({"data": {"same": "a", "new": "x", "more": "d"}});
        hide(&mut live, &mut merged);
        assert_eq!(live["data"], json!({"same": "***", "new": "*** (before)", "gone": "***"}));
        assert_eq!(merged["data"], json!({"same": "***", "new": "*** (after)", "more": "***"}));
    }

    #[test]
    fn encrypted_values_are_recognised_by_their_mask() {
        let masked = STANDARD.encode("**SOPS**");
        assert!(encrypted(&json!({"data": {"a": masked}})));
        assert!(encrypted(&json!({"stringData": {"a": "**SOPS**"}})));
        assert!(!encrypted(&json!({"data": {"a": "eA=="}, "stringData": {"b": "x"}})));
    }

    #[test]
    fn paths_are_made_absolute_without_dots() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(absolute("./a/../b").unwrap(), here.join("b"));
    }
}
