//! The steps of a build.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fl_kustomize::{ErrorKind, Fetcher, Files as _, LoadRestrictor, Reorder};
use fl_yaml::{Dialect, JsonStyle, Node};
use serde_json::Value;

use crate::decrypt::{self, Decrypt};
use crate::error::{BuildError, KustomizeError};
use crate::files::{Overlay, RemoteBases, Rendered, SharedBuilds, SourceFiles};
use crate::generate::{EntryFilter, Generated, generate};
use crate::substitute::{ReportDerived, Settings, substitute};

/// What is built, and with what.
pub struct Request<'a> {
    /// The files.
    pub files: &'a dyn SourceFiles,
    /// The directory of `spec.path`.
    pub directory: &'a Path,
    /// The directory that no file of the build may be outside of.
    pub boundary: Option<&'a Path>,
    /// `spec` of the Kustomization.
    pub spec: &'a Value,
    /// The variables of `spec.postBuild`, or why they could not be read. The error is reported where they are needed.
    pub variables: Result<&'a BTreeMap<String, String>, String>,
    /// Called with the value of a variable and what an expression such as `${x:0:5}` made of it: as secret as the value.
    pub derived: Option<ReportDerived<'a>>,
    /// A variable without value and default is an error.
    pub strict: bool,
    /// Decrypts files and objects.
    pub decryptor: Option<&'a dyn Decrypt>,
    /// Fetches remote bases; without it they are rejected.
    pub remote: Option<&'a dyn RemoteBases>,
    /// For directories that no source has filtered.
    pub filter: Option<&'a dyn EntryFilter>,
    /// Results of builds of the same files.
    pub shared: Option<&'a dyn SharedBuilds>,
    /// Whether an object without apiVersion, kind or name is an error.
    pub require_names: bool,
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// Generates the kustomization.yaml, decrypts the files that it refers to, and runs `kustomize build`.
///
/// # Errors
/// The first step that fails.
pub fn render(request: &Request<'_>) -> Result<Rendered, BuildError> {
    let mut files = Overlay::new(request.files);
    let generated = generate(&mut files, request.directory, request.spec, request.filter)?;
    if let Some(decryptor) = request.decryptor {
        decrypt::sources(&mut files, request.directory, request.boundary, decryptor)?;
    }
    // Decrypted content is not shared.
    let shared = request.shared.filter(|_| request.decryptor.is_none());
    let shared = shared.and_then(|shared| shared.find(request.directory, &files.files));
    let known = shared.as_ref().and_then(|shared| shared.rendered.get()).cloned();
    let mut rendered = match known {
        Some(rendered) => rendered,
        None => {
            let rendered = kustomize(&files, request, &generated)?;
            if let Some(shared) = shared.filter(|_| !rendered.remote) {
                // A concurrent build may have been first.
                let _ = shared.rendered.set(rendered.clone());
            }
            rendered
        }
    };
    rendered.reads.extend(generated.directories);
    Ok(rendered)
}

/// Decrypts each object and substitutes its variables.
///
/// # Errors
/// The first object that fails.
pub fn finish(objects: Vec<Node>, request: &Request<'_>) -> Result<Vec<Node>, BuildError> {
    objects.into_iter().map(|object| finish_object(object, request)).collect()
}

fn finish_object(mut node: Node, request: &Request<'_>) -> Result<Node, BuildError> {
    let text = |path: &[&str]| node.at(path).and_then(Node::as_text).unwrap_or_default().to_owned();
    let (api_version, kind, name) = (text(&["apiVersion"]), text(&["kind"]), text(&["metadata", "name"]));
    if request.require_names && (api_version.is_empty() || kind.is_empty() || name.is_empty()) {
        let shown = fl_yaml::to_json(&node, Dialect::V3, JsonStyle::GO).unwrap_or_default();
        return Err(BuildError::Unnamed(shown));
    }
    let subject = || format!("{}/{name}", gvk(&api_version, &kind));
    if let Some(decryptor) = request.decryptor {
        node = decrypt::object(node, decryptor)
            .map_err(|source| BuildError::Decrypt { subject: subject(), source })?;
    }
    if let Some(post_build) = request.spec.get("postBuild").filter(|p| !p.is_null()) {
        let always = post_build["substituteStrategy"] == "Always";
        let settings = Settings { strict: request.strict, always };
        node = substitute(node, request.variables.clone(), &settings, request.derived)
            .map_err(|source| BuildError::Substitute { subject: subject(), name: name.clone(), source })?;
    }
    Ok(node)
}

/// `Kind.version.group` as kustomize prints it.
fn gvk(api_version: &str, kind: &str) -> String {
    let (group, version) = fl_types::split_api_version(api_version);
    let or = |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
    format!("{}.{}.{}", or(kind, "[noKind]"), or(version, "[noVer]"), or(group, "[noGrp]"))
}

fn kustomize(
    files: &Overlay<'_>,
    request: &Request<'_>,
    generated: &Generated,
) -> Result<Rendered, KustomizeError> {
    let options = fl_kustomize::Options {
        load_restrictor: LoadRestrictor::None,
        reorder: Reorder::None,
        boundary: request.boundary.map(Path::to_owned),
        fetcher: request.remote.map(|remote| remote as &dyn Fetcher),
        ..fl_kustomize::Options::default()
    };
    let mut output = None;
    match request.remote {
        Some(remote) => remote.with_checkouts(files, &mut |files| {
            output = Some(fl_kustomize::build(files, request.directory, &options));
        }),
        None => output = Some(fl_kustomize::build(files, request.directory, &options)),
    }
    let output = output.expect("with_checkouts calls the build");
    let output = output.map_err(|error| {
        let message = flux_message(&error, generated, request, files);
        KustomizeError { error, message }
    })?;
    let remote = request.remote.is_some_and(RemoteBases::used);
    let reads: BTreeSet<PathBuf> = output.reads;
    Ok(Rendered { objects: output.objects, reads, warnings: output.warnings, remote })
}

/// Flux's message for an error, where it is not that of kustomize. Flux reads every manifest of a directory without
/// kustomization.yaml before it builds, and reports what it cannot read.
fn flux_message(
    error: &fl_kustomize::Error,
    generated: &Generated,
    request: &Request<'_>,
    files: &Overlay<'_>,
) -> Option<String> {
    if let ErrorKind::RemoteOff(url) = &*error.kind {
        // Flux fetches it and then finds it to be outside of the artifact.
        let (place, root) = (&error.place, request.boundary.unwrap_or(Path::new("/")).display());
        return Some(format!(
            "kustomize build failed: {place}: fs-security-constraint abs {url}: path '{url}' is not in or below '{root}'; remote bases are switched off by --no-remote-bases"
        ));
    }
    // Flux's first reading accepts duplicate keys.
    let duplicate = matches!(&*error.kind, ErrorKind::Yaml(text) if text.contains("already defined at line"));
    let unreadable = !duplicate
        && matches!(
            *error.kind,
            ErrorKind::Yaml(_) | ErrorKind::Object(_) | ErrorKind::Entry { .. } | ErrorKind::Read { .. }
        );
    let file = generated.manifests.iter().find(|file| {
        error.place.file == file.as_str()
            || matches!(&*error.kind, ErrorKind::Entry { path, .. } if file.ends_with(path.trim_start_matches("./")))
    });
    let file = file.filter(|_| unreadable)?;
    let missing = files.read(Path::new(file)).ok().and_then(|bytes| missing_fields(&bytes));
    Some(match missing {
        Some(missing) => format!("failed to decode Kubernetes YAML from {file}: {missing}"),
        None => format!(
            "failed to decode Kubernetes YAML from {file}: MalformedYAMLError: line {}: {} in File: {file}",
            error.place.line, error.kind
        ),
    })
}

/// What the first invalid object of a manifest lacks, as Flux reports it.
fn missing_fields(bytes: &[u8]) -> Option<String> {
    let documents = fl_yaml::parse_all(bytes, &fl_yaml::Options::sigs()).ok()?;
    documents.iter().find_map(|node| {
        let json = fl_yaml::to_json(node, Dialect::V3, JsonStyle::default()).ok()?;
        let object: Value = serde_json::from_str(&json).ok().filter(|object: &Value| !object.is_null())?;
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
        let missing = match (kind.is_empty(), name.is_empty()) {
            (true, _) => "kind",
            (_, true) if !kind.ends_with("List") => "metadata.name",
            _ => return None,
        };
        Some(format!(
            "missing {missing} in object {{{{{} {kind}}} {{{{{name} {}}} map[{}] map[{}]}}}}",
            text(&object["apiVersion"]),
            text(&object["metadata"]["namespace"]),
            pairs("labels"),
            pairs("annotations")
        ))
    })
}
