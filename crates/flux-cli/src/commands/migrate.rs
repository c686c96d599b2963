//! `migrate`: objects in the cluster and manifests in files to the latest API versions.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use http::Method;
use serde_json::{Value, json};

use crate::args::{Call, CommandResult, action};
use crate::cluster::{Cluster, Resource, Select, name_of, namespace_of, text_at};
use crate::command::{Node, Plain};
use crate::commands::check::{PART_OF, crds};
use crate::flag::{list, switch, text};
use crate::format::go_io_error;
use crate::logger;
use crate::prompt::{self, Answer};
use crate::resource_kinds;

/// Releases manifests can be brought to, newest first.
const RELEASES: [&str; 4] = ["2.9", "2.8", "2.7", "2.6"];

pub(crate) fn node() -> Node {
    Node::leaf(
        "migrate",
        "Bring objects or manifests to the latest API versions",
        action(|call: Call| async move { run(&call).await }),
    )
    .plain(Plain::None)
    .flags(&[
        text("path", "Migrate the manifests of this file or folder instead of the cluster").short('f'),
        list("extensions", "Files to look at, with --path").or(".yaml,.yml").short('e'),
        text("version", "Release to migrate to, with --path; by default this one").short('v'),
        switch("yes", "Do not ask, with --path").short('y'),
        switch("dry-run", "Only say what would change, with --path"),
    ])
    .example("Objects of the cluster", "migrate")
    .example("Manifests of a repository", "migrate -f . --dry-run")
}

async fn run(call: &Call) -> CommandResult {
    if call.text("path").is_empty() { cluster(call).await } else { files(call) }
}

async fn cluster(call: &Call) -> CommandResult {
    logger::action("starting migration of custom resources");
    let cluster = Cluster::connect(call).await.context("the Kubernetes client initialization failed")?;
    let select = Select { labels: Some(PART_OF.to_owned()), ..Select::default() };
    let found = cluster.list(&crds(), &select).await.context("failed to list CRDs")?;
    for crd in found {
        migrate_crd(&cluster, name_of(&crd)).await?;
    }
    logger::success("custom resources migrated successfully");
    Ok(())
}

async fn migrate_crd(cluster: &Cluster, name: &str) -> CommandResult {
    let crd = cluster.get(&crds(), "", name).await.with_context(|| format!("failed to get CRD {name}"))?;
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let Some(stored) =
        versions.into_iter().find(|v| v["storage"] == true).map(|v| text_at(v, "/name").to_owned())
    else {
        bail!("no storage version found for CRD {name}");
    };
    let resource = Resource::new(
        &format!("{}/{stored}", text_at(&crd, "/spec/group")),
        text_at(&crd, "/spec/names/kind"),
        text_at(&crd, "/spec/names/plural"),
        crd.pointer("/spec/scope") == Some(&json!("Namespaced")),
    );
    rewrite(cluster, &resource, &stored)
        .await
        .with_context(|| format!("failed to migrate resources for CRD {name}"))?;
    let recorded = crd.pointer("/status/storedVersions").cloned().unwrap_or_default();
    if recorded != json!([stored]) {
        let path = format!("{}/status", crds().path(None, Some(name)));
        let patch = json!({"status": {"storedVersions": [stored]}}).to_string().into_bytes();
        cluster
            .json(
                Method::PATCH,
                &path,
                &[("fieldManager", "flux".to_owned())],
                Some(("application/merge-patch+json", patch)),
            )
            .await
            .with_context(|| format!("failed to update CRD {name} status"))?;
        logger::success(format!("{name} migrated to storage version {stored}"));
    }
    Ok(())
}

/// An empty patch makes the server write an object again, in the version it stores now. Managers that applied an
/// older version are moved to the new one, or their fields could never be applied again.
async fn rewrite(cluster: &Cluster, resource: &Resource, stored: &str) -> CommandResult {
    let objects = cluster.list(resource, &Select::default()).await.with_context(|| {
        format!("failed to list resources for CRD {}.{}", resource.plural, resource.group)
    })?;
    for object in &objects {
        let path = resource.path(Some(namespace_of(object)), Some(name_of(object)));
        let mut managers =
            object.pointer("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut changed = false;
        for manager in &mut managers {
            let version = text_at(manager, "/apiVersion");
            if version != resource.api_version() && version.starts_with(&format!("{}/", resource.group)) {
                manager["apiVersion"] = json!(resource.api_version());
                changed = true;
            }
        }
        let (kind, body) = if changed {
            let patch = json!([
                {"op": "test", "path": "/metadata/resourceVersion", "value": object.pointer("/metadata/resourceVersion")},
                {"op": "replace", "path": "/metadata/managedFields", "value": managers},
            ]);
            ("application/json-patch+json", patch)
        } else {
            ("application/merge-patch+json", json!({}))
        };
        match cluster
            .json(
                Method::PATCH,
                &path,
                &[("fieldManager", "flux".to_owned())],
                Some((kind, body.to_string().into_bytes())),
            )
            .await
        {
            Ok(_) => {}
            Err(error) if error.is_not_found() => continue,
            Err(error) => bail!(
                " {}/{}/{} failed to migrate: {error}",
                resource.kind,
                namespace_of(object),
                name_of(object)
            ),
        }
        logger::success(format!(
            "{}/{}/{} migrated to version {stored}",
            resource.kind,
            namespace_of(object),
            name_of(object)
        ));
    }
    Ok(())
}

/// The latest version of a kind in a release; image automation became stable after 2.6.
fn latest(release: &str, group: &str, kind: &str) -> Option<&'static str> {
    let found = resource_kinds::all().find(|k| k.group == group && k.kind == kind)?;
    match (release, found.kind) {
        ("2.6", "ArtifactGenerator") => None,
        ("2.6", "ImageRepository" | "ImagePolicy" | "ImageUpdateAutomation") => Some("v1beta2"),
        _ => Some(found.version),
    }
}

struct Upgrade {
    line: usize,
    kind: String,
    from: String,
    to: &'static str,
}

fn files(call: &Call) -> CommandResult {
    let release = match call.text("version") {
        "" => RELEASES[0],
        given => RELEASES.into_iter().find(|r| *r == given).with_context(|| {
            format!("version {given} is not supported, supported versions are: {}", RELEASES.join(", "))
        })?,
    };
    logger::action("starting migration of custom resources");
    let path = clean(call.text("path"));
    let extensions = call.list("extensions");
    let mut upgrades = Vec::new();
    for file in list_files(&path, extensions)? {
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("failed to read file {}", file.display()))?;
        let found =
            detect(&text, release, |line, why| logger::warning(format!("{}:{line}: {why}", file.display())));
        for upgrade in &found {
            logger::generate(format!(
                "{}:{}: {} {} -> {}",
                file.display(),
                upgrade.line + 1,
                upgrade.kind,
                upgrade.from,
                upgrade.to
            ));
        }
        if !found.is_empty() {
            upgrades.push((file, text, found));
        }
    }
    if upgrades.is_empty() {
        logger::success("no custom resources found that require migration");
        return Ok(());
    }
    if call.on("dry-run") {
        logger::success("dry-run mode enabled, no changes will be made");
        return Ok(());
    }
    if !call.on("yes") {
        match prompt::ask("Are you sure you want to proceed with the above upgrades") {
            Answer::Yes => {}
            // flux has no words for a no here.
            Answer::No => bail!(""),
            Answer::Nothing => bail!("^D"),
        }
    }
    for (file, text, found) in upgrades {
        std::fs::write(&file, rewritten(&text, &found))
            .with_context(|| format!("failed to write file {}", file.display()))?;
        logger::success(format!("file {} migrated successfully", file.display()));
    }
    logger::success("custom resources migrated successfully");
    Ok(())
}

fn clean(path: &str) -> PathBuf {
    let parts: PathBuf = Path::new(path).components().filter(|c| *c != Component::CurDir).collect();
    if parts.as_os_str().is_empty() { PathBuf::from(".") } else { parts }
}

/// Files below the path with one of the extensions, by name. Nothing outside the working directory is touched.
fn list_files(path: &Path, extensions: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    let shown = path.display().to_string();
    let escapes = path.is_absolute() || path.components().any(|c| c == Component::ParentDir);
    if escapes {
        bail!("failed to stat path {shown}: open {shown}: invalid argument");
    }
    let info = std::fs::metadata(path)
        .map_err(|e| anyhow::anyhow!("failed to stat path {shown}: {}", go_io_error("openat", &shown, &e)))?;
    let matches = |p: &Path| extensions.iter().any(|e| p.to_string_lossy().ends_with(e.as_str()));
    if !info.is_dir() {
        if !matches(path) {
            bail!("file {shown} does not match the specified extensions: {}", extensions.join(", "));
        }
        if std::fs::symlink_metadata(path).is_ok_and(|m| !m.is_file()) {
            bail!("file {shown} is irregular");
        }
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    walk(path, &matches, &mut files).with_context(|| format!("failed to walk directory {shown}"))?;
    Ok(files)
}

fn walk(folder: &Path, matches: &dyn Fn(&Path) -> bool, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (kind, path) = (entry.file_type()?, clean(&entry.path().to_string_lossy()));
        if kind.is_dir() {
            walk(&path, matches, files)?;
        } else if matches(&path) && kind.is_file() {
            files.push(path);
        } else if matches(&path) {
            logger::warning(format!("skipping irregular file {}", path.display()));
        }
    }
    Ok(())
}

/// Lines with an `apiVersion` followed by a `kind` that has a newer version.
fn detect(text: &str, release: &str, mut complain: impl FnMut(usize, String)) -> Vec<Upgrade> {
    let word = |line: &str, key: &str| {
        let at = line.find(key)?;
        Some(line[at + key.len()..].trim().split(' ').next().unwrap_or_default().to_owned())
    };
    let lines: Vec<&str> = text.split('\n').collect();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some(api_version) = word(line, "apiVersion: ") else { continue };
        if api_version.matches('/').count() > 1 {
            complain(i + 1, format!("unexpected GroupVersion string: {api_version}"));
            continue;
        }
        let Some(kind) = lines.get(i + 1).and_then(|next| word(next, "kind: ")) else { continue };
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        if let Some(to) = latest(release, group, &kind).filter(|to| *to != version) {
            found.push(Upgrade { line: i, kind, from: version.to_owned(), to });
        }
    }
    found
}

fn rewritten(text: &str, upgrades: &[Upgrade]) -> String {
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    for upgrade in upgrades {
        lines[upgrade.line] = lines[upgrade.line].replacen(&upgrade.from, upgrade.to, 1);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_version_of_a_line_changes() {
        let text = "# x\n  apiVersion: source.toolkit.fluxcd.io/v1beta2 # v1beta2\n  kind: HelmChart\napiVersion: v1\nkind: List\n";
        let found = detect(text, "2.9", |_, _| {});
        assert_eq!((found.len(), found[0].line, found[0].kind.as_str()), (1, 1, "HelmChart"));
        assert_eq!(rewritten(text, &found), text.replacen("v1beta2", "v1", 1));
    }

    #[test]
    fn older_releases_know_older_versions() {
        assert_eq!(latest("2.6", "image.toolkit.fluxcd.io", "ImagePolicy"), Some("v1beta2"));
        assert_eq!(latest("2.7", "image.toolkit.fluxcd.io", "ImagePolicy"), Some("v1"));
        assert_eq!(latest("2.9", "apps", "Deployment"), None);
    }
}
