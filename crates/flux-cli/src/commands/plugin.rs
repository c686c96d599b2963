//! `plugin`: executables named `flux-<name>` as further commands.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::args::{Call, CommandResult, action};
use crate::cluster::text_at;
use crate::command::{Node, Plain};
use crate::flag::{Flag, Kind};
use crate::kubeconfig::GLOBAL_FLAGS;
use crate::{Wanted, format, logger, table};

const PREFIX: &str = "flux-";
const API_VERSION: &str = "cli.fluxcd.io/v1beta1";

macro_rules! leaf {
    ($name:literal, $about:literal, $run:path) => {
        Node::leaf($name, $about, action(|call: Call| async move { $run(&call).await }))
    };
}

pub(crate) fn node() -> Node {
    Node::group(
        "plugin",
        "Manage plugins: executables that become commands",
        vec![
            leaf!("install", "Install a plugin of the catalog", install)
                .takes("NAME[@VERSION]")
                .plain(Plain::Exactly(1))
                .example("The latest version", "plugin install operator")
                .example("Pinned", "plugin install operator@0.45.0"),
            leaf!("list", "List installed plugins", list).alias(&["ls"]),
            leaf!("search", "Search the catalog", search).takes("QUERY").plain(Plain::AtMost(1)),
            leaf!("uninstall", "Remove a plugin", uninstall)
                .alias(&["delete"])
                .takes("NAME")
                .plain(Plain::Exactly(1)),
            leaf!("update", "Update installed plugins", update)
                .alias(&["upgrade"])
                .takes("NAME")
                .plain(Plain::AtMost(1)),
        ],
    )
}

/// Where plugins are: `FLUXCD_PLUGINS`, else a folder of the home directory.
fn folder() -> PathBuf {
    match std::env::var_os("FLUXCD_PLUGINS").filter(|v| !v.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default().join(".fluxcd/plugins"),
    }
}

/// Names and paths of the plugins, by name; a plugin never hides a command of the program.
fn installed(builtin: &dyn Fn(&str) -> bool) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder()).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let Some(name) = file.strip_prefix(PREFIX).filter(|n| !n.is_empty()) else { continue };
        let path = entry.path();
        let runs = std::fs::metadata(&path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
        if runs && !["plugin", "help"].contains(&name) && !builtin(name) {
            found.push((name.to_owned(), path));
        }
    }
    found.sort();
    found
}

/// Runs the plugin that the first argument names, with all arguments behind it unread.
pub(crate) fn run(args: &[OsString], builtin: &dyn Fn(&str) -> bool) -> Option<ExitCode> {
    let at = first_word(args)?;
    let name = args[at].to_str()?;
    if builtin(name) {
        return None;
    }
    let (_, path) = installed(builtin).into_iter().find(|(n, _)| n == name)?;
    let path = if path.components().count() == 1 { Path::new(".").join(path) } else { path };
    // Flags before its name are the plugin's, too.
    let passed = args[1..at].iter().chain(&args[at + 1..]);
    Some(match std::process::Command::new(&path).args(passed).status() {
        Ok(status) => ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)),
        Err(error) => {
            logger::failure(format!("cannot run {}: {error}", path.display()));
            ExitCode::FAILURE
        }
    })
}

/// Where the name of the command stands: behind flags that every command has, and their values.
fn first_word(args: &[OsString]) -> Option<usize> {
    let mut at = 1;
    loop {
        let arg = args.get(at)?.to_str()?;
        let Some(flag) = arg.strip_prefix('-') else { return Some(at) };
        let takes_value = |f: &&Flag| {
            let long = flag.strip_prefix('-').is_some_and(|name| name == f.name);
            let short = f.short.is_some_and(|letter| flag == letter.to_string());
            !matches!(f.kind, Kind::Switch) && (long || short)
        };
        at += if GLOBAL_FLAGS.iter().any(|f| takes_value(&f)) { 2 } else { 1 };
    }
}

fn builtin(call: &Call) -> impl Fn(&str) -> bool + use<> {
    let program = call.definition.map(|definition| definition(&Wanted::All));
    move |name| program.as_ref().is_some_and(|p| p.find_subcommand(name).is_some())
}

fn receipt_path(name: &str) -> PathBuf {
    folder().join(format!("{PREFIX}{name}.yaml"))
}

fn receipt(name: &str) -> Option<Value> {
    let text = std::fs::read(receipt_path(name)).ok()?;
    format::documents(&text).ok()?.into_iter().next()
}

async fn list(call: &Call) -> CommandResult {
    let plugins = installed(&builtin(call));
    if plugins.is_empty() {
        logger::data_line("No plugins found");
        return Ok(());
    }
    let row = |(name, path): &(String, PathBuf)| {
        let version =
            receipt(name).map_or_else(|| "manual".to_owned(), |r| text_at(&r, "/version").to_owned());
        vec![name.clone(), version, path.display().to_string()]
    };
    logger::data(&table::render(&["NAME", "VERSION", "PATH"], &plugins.iter().map(row).collect::<Vec<_>>()));
    Ok(())
}

async fn uninstall(call: &Call) -> CommandResult {
    let name = &call.args[0];
    let path = folder().join(format!("{PREFIX}{name}"));
    if name.contains('/') || std::fs::symlink_metadata(&path).is_err() {
        bail!("plugin {name:?} is not installed");
    }
    std::fs::remove_file(&path).context("failed to remove plugin binary")?;
    match std::fs::remove_file(receipt_path(name)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            bail!("failed to remove plugin receipt: {error}")
        }
        _ => {}
    }
    logger::success(format!("uninstalled {name}"));
    Ok(())
}

async fn fetch(url: &str, limit: usize) -> anyhow::Result<Vec<u8>> {
    let client = reqwest::Client::builder().timeout(std::time::Duration::from_secs(300)).build()?;
    let mut answer = client.get(url).send().await?;
    if !answer.status().is_success() {
        bail!("HTTP {} from {url}", answer.status().as_u16());
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > limit {
            bail!("{url} is larger than {limit} bytes");
        }
    }
    Ok(body)
}

fn catalog_url(file: &str) -> String {
    let base = std::env::var("FLUXCD_PLUGIN_CATALOG").ok().filter(|v| !v.is_empty());
    format!(
        "{}{file}",
        base.unwrap_or_else(|| "https://github.com/fluxcd/plugins/releases/latest/download/".to_owned())
    )
}

async fn catalog_document(file: &str, kind: &str, what: &str) -> anyhow::Result<Value> {
    let body = fetch(&catalog_url(file), 10 << 20).await?;
    let document = format::documents(&body)?.into_iter().next().unwrap_or_default();
    if document["apiVersion"] != API_VERSION {
        bail!("{what} has unsupported apiVersion {} (expected {API_VERSION:?})", document["apiVersion"]);
    }
    if document["kind"] != kind {
        bail!("{what} has unexpected kind {} (expected {kind:?})", document["kind"]);
    }
    Ok(document)
}

async fn manifest(name: &str) -> anyhow::Result<Value> {
    let what = format!("plugin {name:?}");
    let manifest = match catalog_document(&format!("{name}.yaml"), "Plugin", &what).await {
        Ok(manifest) => manifest,
        Err(error) if error.to_string().starts_with("plugin ") => return Err(error),
        Err(_) => bail!("plugin {name:?} not found in catalog"),
    };
    let bin = text_at(&manifest, "/bin");
    if !bin.starts_with(PREFIX) || Path::new(bin).components().count() != 1 {
        bail!("plugin {name:?} has invalid bin {bin:?} (must be a plain filename prefixed with {PREFIX:?})");
    }
    Ok(manifest)
}

async fn search(call: &Call) -> CommandResult {
    let catalog = catalog_document("catalog.yaml", "PluginCatalog", "plugin catalog")
        .await
        .context("failed to fetch plugin catalog")?;
    let query = call.args.first().map(|q| q.to_lowercase()).unwrap_or_default();
    let mut rows = Vec::new();
    for entry in catalog["plugins"].as_array().into_iter().flatten() {
        let (name, about) = (text_at(entry, "/name"), text_at(entry, "/description"));
        if name.to_lowercase().contains(&query) || about.to_lowercase().contains(&query) {
            let version = receipt(name).map_or_else(String::new, |r| text_at(&r, "/version").to_owned());
            rows.push(vec![name.to_owned(), about.to_owned(), version]);
        }
    }
    match (rows.is_empty(), query.is_empty()) {
        (true, true) => logger::data_line("No plugins found in catalog"),
        (true, false) => logger::data_line(&format!("No plugins matching {query:?} found in catalog")),
        _ => logger::data(&table::render(&["NAME", "DESCRIPTION", "INSTALLED"], &rows)),
    }
    Ok(())
}

/// Names of systems and processors as Go has them.
fn platform() -> (&'static str, &'static str) {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    (if std::env::consts::OS == "macos" { "darwin" } else { std::env::consts::OS }, arch)
}

/// The version and the download for this machine; `wanted` is empty, a version or a digest.
fn resolve(manifest: &Value, name: &str, wanted: &str) -> anyhow::Result<(String, Value)> {
    let (os, arch) = platform();
    let versions = manifest["versions"].as_array().cloned().unwrap_or_default();
    let fits = |p: &&Value| p["os"] == os && p["arch"] == arch;
    let here = |v: &Value| v["platforms"].as_array().into_iter().flatten().find(fits).cloned();
    if versions.is_empty() {
        bail!("plugin {name:?} has no versions");
    }
    if wanted.starts_with("sha256:") {
        let matching = versions.iter().find_map(|v| {
            here(v).filter(|p| p["checksum"] == wanted).map(|p| (text_at(v, "/version").to_owned(), p))
        });
        return matching
            .with_context(|| format!("digest {wanted:?} not found for plugin {name:?} on {os}/{arch}"));
    }
    let version = versions.iter().find(|v| wanted.is_empty() || v["version"] == wanted);
    let version = version.with_context(|| format!("version {wanted:?} not found for plugin {name:?}"))?;
    let number = text_at(version, "/version").to_owned();
    let platform =
        here(version).with_context(|| format!("plugin {name:?} v{number} has no binary for {os}/{arch}"))?;
    Ok((number, platform))
}

async fn install(call: &Call) -> CommandResult {
    let (name, wanted) = call.args[0].split_once('@').unwrap_or((&call.args[0], ""));
    let manifest = manifest(name).await?;
    let (version, platform) = resolve(&manifest, name, wanted)?;
    put(&manifest, &version, &platform).await?;
    logger::success(format!("installed {name} v{version}"));
    Ok(())
}

async fn put(manifest: &Value, version: &str, platform: &Value) -> anyhow::Result<()> {
    let url = text_at(platform, "/url");
    let body = fetch(url, 512 << 20).await.context("failed to download plugin")?;
    let (expected, actual) =
        (text_at(platform, "/checksum"), format!("sha256:{}", format::hex(&Sha256::digest(&body))));
    if expected != actual {
        bail!("checksum verification failed (expected: {expected}, got: {actual})");
    }
    let bin = text_at(manifest, "/bin");
    let wanted = match text_at(platform, "/extractPath") {
        "" => bin,
        path => path,
    };
    let lower = url.to_lowercase();
    let program = if lower.ends_with(".zip") || body.starts_with(b"PK\x03\x04") {
        bail!(
            "plugin archives in zip format cannot be installed here; unpack {url} into {} by hand",
            folder().display()
        );
    } else if lower.ends_with(".tar.gz") || lower.ends_with(".tgz") || body.starts_with(&[0x1f, 0x8b]) {
        from_tar(flate2::read::GzDecoder::new(body.as_slice()), wanted)?
    } else if lower.ends_with(".tar") || body.get(257..262) == Some(b"ustar") {
        from_tar(body.as_slice(), wanted)?
    } else {
        body
    };
    std::fs::create_dir_all(folder())?;
    let path = folder().join(bin);
    std::fs::write(&path, program).with_context(|| format!("failed to create {}", path.display()))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    let name = text_at(manifest, "/name");
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let receipt = json!({"name": name, "version": version, "installedAt": now, "platform": platform});
    std::fs::write(receipt_path(name), format::yaml(&receipt))?;
    Ok(())
}

/// The wanted file of an archive: by its whole path when it has folders, else by its name.
fn from_tar(reader: impl Read, wanted: &str) -> anyhow::Result<Vec<u8>> {
    let mut archive = tar::Archive::new(reader);
    for entry in archive.entries().context("failed to read tar")? {
        let mut entry = entry.context("failed to read tar")?;
        let path = entry.path()?.into_owned();
        let local = path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        let named = if wanted.contains('/') {
            path == Path::new(wanted)
        } else {
            path.file_name().is_some_and(|n| n == wanted)
        };
        if local && named && entry.header().entry_type().is_file() {
            let mut program = Vec::new();
            entry.read_to_end(&mut program)?;
            return Ok(program);
        }
    }
    bail!("binary {wanted:?} not found in archive")
}

async fn update(call: &Call) -> CommandResult {
    let mut plugins = installed(&builtin(call));
    if plugins.is_empty() {
        logger::data_line("No plugins found");
        return Ok(());
    }
    if let Some(name) = call.args.first() {
        plugins.retain(|(n, _)| n == name);
        if plugins.is_empty() {
            bail!("plugin {name:?} is not installed");
        }
    }
    for (name, _) in plugins {
        let Some(receipt) = receipt(&name) else {
            logger::warning(format!("skipping {name} (manually installed)"));
            continue;
        };
        let from = text_at(&receipt, "/version");
        let checked = async {
            let manifest = manifest(&name).await?;
            let (version, platform) = resolve(&manifest, &name, "")?;
            Ok::<_, anyhow::Error>((manifest, version, platform))
        };
        match checked.await {
            Err(error) => logger::failure(format!("error checking {name}: {error:#}")),
            Ok((_, version, _)) if version == from => {
                logger::success(format!("{name} already up to date (v{from})"));
            }
            Ok((manifest, version, platform)) => match put(&manifest, &version, &platform).await {
                Ok(()) => logger::success(format!("updated {name} v{from} → v{version}")),
                Err(error) => logger::failure(format!("error updating {name}: {error:#}")),
            },
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_name_may_follow_flags() {
        let at = |words: &[&str]| first_word(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(at(&["flux", "hello", "-n", "x"]), Some(1));
        assert_eq!(at(&["flux", "-n", "x", "--verbose", "hello"]), Some(4));
        assert_eq!(at(&["flux", "--namespace=x", "--timeout", "1m", "hello"]), Some(4));
        assert_eq!((at(&["flux"]), at(&["flux", "-n", "x"])), (None, None));
    }
}
