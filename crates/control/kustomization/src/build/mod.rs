//! From files to objects. No client of a cluster here; runs on the blocking pool.

mod cache;
mod decrypt;
mod generate;
mod key_services;
mod known_fields;
mod overrides;
mod substitute;
mod tree;

use std::path::Path;
use std::sync::Arc;

use fl_api::kustomize::Kustomization;
use fl_api::kustomize::kustomization::SubstituteStrategy;
use fl_bases::{Limits, RemoteBases, WithBases};
use fl_http::{AddressPolicy, Owner};
use fl_kustomize::{ErrorKind, LoadRestrictor, Reorder};
use fl_runtime::{KnownSecrets, Reconciled as _};
use fl_types::Secret;
use fl_yaml::{Dialect, JsonStyle, Node};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub(crate) use cache::{BuildCache, Built};
pub use key_services::EngineKeyServices;

pub(crate) use decrypt::{Decryptor, KeyMaterial, is_encrypted_secret};
pub use generate::NAMES as KUSTOMIZATION_FILES;
pub use known_fields::drop_unknown;
pub use overrides::add_overrides;
pub use substitute::{Settings as SubstituteSettings, object as substitute_object};
use tree::Made;
pub(crate) use tree::{Tree, Trees, View};

use crate::dereference::Variables;

/// Everything a build needs beside the files.
pub(crate) struct Request<'a> {
    pub(crate) object: &'a Kustomization,
    /// What `postBuild` refers to, or why it could not be read.
    pub(crate) variables: Result<Variables, String>,
    pub(crate) strict: bool,
    pub(crate) keys: Option<KeyMaterial>,
    /// The engine's own credentials for key services.
    pub(crate) key_services: &'a EngineKeyServices,
    /// Learns what is decrypted.
    pub(crate) secrets: KnownSecrets,
    /// Where remote bases may be fetched from; none where they are refused.
    pub(crate) remote: Option<AddressPolicy>,
}

/// Whether the path of a Kustomization exists.
///
/// # Errors
/// The text of Flux when it does not.
pub(crate) fn check_path(tree: &Tree, path: &str) -> Result<std::path::PathBuf, String> {
    let directory = tree.join(path);
    if tree.exists(&directory) {
        return Ok(directory);
    }
    Err(format!("kustomization path not found: stat {}: no such file or directory", directory.display()))
}

/// Builds.
///
/// # Errors
/// The text for the condition.
pub(crate) fn build(tree: &Arc<Tree>, directory: &Path, request: &Request<'_>) -> Result<Built, String> {
    let mut view = View::new(tree.clone());
    let generated = generate::generate(&mut view, directory, &request.object.spec)?;
    let decryptor = request.keys.as_ref().map(|keys| Decryptor::new(keys, request));
    if let Some(decryptor) = &decryptor {
        decrypt::sources(&mut view, directory, decryptor)
            .map_err(|e| format!("error decrypting sources: {e}"))?;
    }
    // What was decrypted is not kept.
    let common = if decryptor.is_none() { view.common(directory) } else { None };
    let made = common.as_ref().and_then(|common| common.made.get()).cloned();
    let (Made { objects: nodes, reads }, remote) = match made {
        Some(made) => (made, false),
        None => {
            let (made, remote) = kustomize(&view, directory, request, &generated)?;
            if let Some(common) = common.filter(|_| !remote) {
                // Another one may have been as fast.
                let _ = common.made.set(made.clone());
            }
            (made, remote)
        }
    };
    let mut text = String::new();
    let mut objects = Vec::with_capacity(nodes.len());
    for (i, node) in nodes.into_iter().enumerate() {
        let node = finish(node, request, decryptor.as_ref())?;
        if i > 0 {
            text.push_str("---\n");
        }
        fl_yaml::write_sigs_yaml(&mut text, &node, Dialect::V3)
            .map_err(|e| format!("kustomize build failed: {e}"))?;
        collect(to_json(&node)?, &mut objects);
    }
    let digest = format!("sha256:{}", hex(&Sha256::digest(text.as_bytes())));
    let mut reads: Vec<_> = reads.into_iter().collect();
    reads.extend(generated.looked_at);
    Ok(Built::new(objects, digest, tree, reads, remote))
}

/// The objects of a directory, and whether something was fetched that may be another thing by now.
fn kustomize(
    view: &View,
    directory: &Path,
    request: &Request<'_>,
    generated: &generate::Generated,
) -> Result<(Made, bool), String> {
    let tree = view.tree();
    let owner = Owner::namespace(request.object.namespace());
    let bases = request.remote.clone().map(|policy| RemoteBases::new(owner, policy, Limits::default()));
    let options = fl_kustomize::Options {
        load_restrictor: LoadRestrictor::None,
        reorder: Reorder::None,
        boundary: Some(tree.root().to_owned()),
        fetcher: bases.as_ref().map(|bases| bases as &dyn fl_kustomize::Fetcher),
        ..fl_kustomize::Options::default()
    };
    let output = match &bases {
        Some(bases) => fl_kustomize::build(&WithBases { own: view, bases }, directory, &options),
        None => fl_kustomize::build(view, directory, &options),
    };
    let output = output.map_err(|error| build_text(&error, generated, tree, view))?;
    let remote = bases.is_some_and(|bases| bases.used());
    Ok((Made { objects: output.objects, reads: output.reads }, remote))
}

/// Decrypts and substitutes one object.
fn finish(mut node: Node, request: &Request<'_>, decryptor: Option<&Decryptor<'_>>) -> Result<Node, String> {
    let text = |path: &[&str]| node.at(path).and_then(Node::as_text).unwrap_or_default().to_owned();
    let (api_version, kind, name) = (text(&["apiVersion"]), text(&["kind"]), text(&["metadata", "name"]));
    if api_version.is_empty() || kind.is_empty() || name.is_empty() {
        let shown = fl_yaml::to_json(&node, Dialect::V3, JsonStyle::GO).unwrap_or_default();
        return Err(format!("failed to decode Kubernetes apiVersion, kind and name from: {shown}"));
    }
    let subject = || format!("{}/{name}", gvk(&api_version, &kind));
    if let Some(decryptor) = decryptor {
        node = decrypt::object(node, decryptor)
            .map_err(|e| format!("decryption failed for '{}': {e}", subject()))?;
    }
    if let Some(post_build) = &request.object.spec.post_build {
        let always = post_build.substitute_strategy == Some(SubstituteStrategy::Always);
        let settings = substitute::Settings { strict: request.strict, always };
        let variables = request.variables.as_ref().map(Secret::expose).map_err(Clone::clone);
        node = substitute::object(node, variables, &settings)
            .map_err(|e| format!("post build failed for '{}': {e}", subject()))?;
    }
    Ok(node)
}

/// `Kind.version.group` as kustomize prints it.
fn gvk(api_version: &str, kind: &str) -> String {
    let (group, version) = fl_types::split_api_version(api_version);
    let or = |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
    format!("{}.{}.{}", or(kind, "[noKind]"), or(version, "[noVer]"), or(group, "[noGrp]"))
}

fn to_json(node: &Node) -> Result<Value, String> {
    let text = fl_yaml::to_json(node, Dialect::V3, JsonStyle::default())
        .map_err(|e| format!("kustomize build failed: {e}"))?;
    serde_json::from_str(&text).map_err(|e| format!("kustomize build failed: {e}"))
}

/// Lists are taken apart; kustomizations and what is no object stay behind.
fn collect(object: Value, into: &mut Vec<Value>) {
    if let Some(items) = object.get("items").and_then(Value::as_array) {
        into.extend(items.iter().cloned());
        return;
    }
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let kustomization = api_version.starts_with("kustomize.config.k8s.io/")
        && object["kind"].as_str().is_some_and(|k| k.eq_ignore_ascii_case("kustomization"));
    if !kustomization {
        into.push(object);
    }
}

/// Flux reads every file of a directory without kustomization before it builds; what it cannot read has words of its own.
fn build_text(
    error: &fl_kustomize::Error,
    generated: &generate::Generated,
    tree: &Tree,
    view: &View,
) -> String {
    if let ErrorKind::RemoteOff(url) = &*error.kind {
        // Flux fetches it all the same, and then finds it to be outside of the artifact.
        let (place, root) = (&error.place, tree.root().display());
        return format!(
            "kustomize build failed: {place}: fs-security-constraint abs {url}: path '{url}' is not in or below '{root}'; remote bases are switched off by --no-remote-bases"
        );
    }
    // A key that is there twice is no obstacle to that first reading.
    let twice = matches!(&*error.kind, ErrorKind::Yaml(text) if text.contains("already defined at line"));
    let unreadable = !twice
        && matches!(
            *error.kind,
            ErrorKind::Yaml(_) | ErrorKind::Object(_) | ErrorKind::Entry { .. } | ErrorKind::Read { .. }
        );
    let culprit = generated.files.iter().find(|file| {
        error.place.file == file.as_str()
            || matches!(&*error.kind, ErrorKind::Entry { path, .. } if file.ends_with(path.trim_start_matches("./")))
    });
    match culprit.filter(|_| unreadable) {
        Some(file) => {
            if let Some(lack) = view.file(Path::new(file)).and_then(lack) {
                return format!("failed to decode Kubernetes YAML from {file}: {lack}");
            }
            let place = format!("line {}", error.place.line);
            format!(
                "failed to decode Kubernetes YAML from {file}: MalformedYAMLError: {place}: {} in File: {file}",
                error.kind
            )
        }
        None => format!("kustomize build failed: {error}"),
    }
}

/// What the first object of a file lacks that is none of Kubernetes', as Flux's reader says it.
fn lack(bytes: &[u8]) -> Option<String> {
    let documents = fl_yaml::parse_all(bytes, &fl_yaml::Options::sigs()).ok()?;
    documents.iter().find_map(|node| {
        let object = to_json(node).ok().filter(|object| !object.is_null())?;
        if ["apiVersion", "kind", "metadata"].iter().all(|field| object.get(field).is_none()) {
            return Some("missing Resource metadata".to_owned());
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pairs = |field: &str| {
            let map = object["metadata"][field].as_object().into_iter().flatten();
            let mut pairs: Vec<String> = map.map(|(k, v)| format!("{k}:{}", text(v))).collect();
            pairs.sort();
            pairs.join(" ")
        };
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        let what = match (kind.is_empty(), name.is_empty()) {
            (true, _) => "kind",
            (_, true) if !kind.ends_with("List") => "metadata.name",
            _ => return None,
        };
        Some(format!(
            "missing {what} in object {{{{{} {kind}}} {{{{{name} {}}} map[{}] map[{}]}}}}",
            text(&object["apiVersion"]),
            text(&object["metadata"]["namespace"]),
            pairs("labels"),
            pairs("annotations")
        ))
    })
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

#[cfg(test)]
mod key_tests;
#[cfg(test)]
mod tests;
