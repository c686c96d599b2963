//! A Kustomization built from a local folder, as its controller would build it.
//!
//! The folder is never written to: the generated kustomization.yaml exists in memory only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fl_ignore::{IGNORE_FILE, Rules};
use fl_kustomize::{Disk, Fetcher, Files, Repository};
use fl_kustomize_build::{
    BuildError, EntryFilter, GenerateError, KUSTOMIZATION_FILES, RemoteBases, Rendered, Request, SourceFiles,
    finish, render,
};
use fl_remote_bases::Limits;
use fl_yaml::{Dialect, JsonStyle, Node};
use serde_json::{Value, json};

use crate::cluster::{Cluster, name_of, namespace_of, text_at};
use crate::commands::variables;
use crate::format::{self, go_io_error};
use crate::logger;
use crate::resource_kinds::KUSTOMIZATION;

const MASK: &str = "**SOPS**";

/// What to build and how.
#[derive(Clone)]
pub(crate) struct Builder {
    /// None in a dry run, which asks no cluster.
    pub(crate) cluster: Option<Cluster>,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) folder: PathBuf,
    /// The Kustomization in a file instead of the cluster's.
    pub(crate) file: Option<String>,
    /// Used when the cluster has none of this name.
    pub(crate) fallback: Option<Value>,
    pub(crate) ignore_not_found: bool,
    pub(crate) ignore: Vec<String>,
    pub(crate) strict: bool,
    pub(crate) recursive: bool,
    pub(crate) local_sources: BTreeMap<String, String>,
}

/// What came out: the Kustomization that was used and the objects in build order.
pub(crate) struct Built {
    pub(crate) kustomization: Value,
    pub(crate) objects: Vec<Value>,
}

/// Fields of a Kustomization's spec that decide how it is built; a file, unlike the API server, has not checked them.
fn check_types(spec: &Value) -> anyhow::Result<()> {
    let bools = ["prune", "wait", "force", "suspend", "ignoreMissingComponents"];
    let texts = ["path", "targetNamespace", "namePrefix", "nameSuffix", "serviceAccountName"];
    let fields = bools.iter().map(|f| (f, "bool")).chain(texts.iter().map(|f| (f, "string")));
    for (field, wanted) in fields {
        let Some(value) = spec.get(*field).filter(|v| !v.is_null()) else { continue };
        let found = format::go_kind(value);
        if found != wanted {
            bail!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go struct field \
                 KustomizationSpec.spec.{field} of type {wanted}"
            );
        }
    }
    Ok(())
}

pub(crate) fn is_kustomization(object: &Value) -> bool {
    fl_types::api_group(text_at(object, "/apiVersion")) == KUSTOMIZATION.group
        && object["kind"] == KUSTOMIZATION.kind
}

pub(crate) fn same_object(a: &Value, b: &Value) -> bool {
    name_of(a) == name_of(b) && namespace_of(a) == namespace_of(b)
}

impl Builder {
    /// Builds this Kustomization alone.
    ///
    /// # Errors
    /// The Kustomization cannot be found, or the folder cannot be built.
    pub(crate) async fn build(&self) -> anyhow::Result<Built> {
        let kustomization = self.kustomization().await.context("failed to get kustomization object")?;
        let nodes = self.render(&kustomization)?;
        let mut objects = Vec::new();
        let variables = self.variables(&kustomization).await;
        for node in nodes {
            let mut object = self.finish(&kustomization, &variables, node)?;
            own(&mut object, &kustomization);
            mask(&mut object)?;
            objects.extend(listed(object));
        }
        if let Some(common) = kustomization.pointer("/spec/commonMetadata") {
            for object in &mut objects {
                for part in ["labels", "annotations"] {
                    for (key, value) in common[part].as_object().into_iter().flatten() {
                        // `y` and `on` are booleans to YAML and texts to the API.
                        object["metadata"][part][key] = match value {
                            Value::String(_) => value.clone(),
                            other => json!(other.to_string()),
                        };
                    }
                }
            }
        }
        Ok(Built { kustomization, objects })
    }

    /// Builds this Kustomization and all that it delivers.
    ///
    /// # Errors
    /// As [`Builder::build`]; also a source that has no local folder.
    pub(crate) async fn build_all(&self, depth: usize) -> anyhow::Result<Vec<Value>> {
        let built = self.build().await?;
        let mut objects = built.objects;
        if !self.recursive {
            return Ok(objects);
        }
        if depth > 32 {
            bail!("kustomizations nest deeper than 32 levels at {}/{}", self.namespace, self.name);
        }
        let mut below = Vec::new();
        for child in objects.iter().filter(|o| is_kustomization(o) && !same_object(o, &built.kustomization)) {
            let mut builder = self.child(child)?;
            builder.fallback = Some(child.clone());
            below.extend(Box::pin(builder.build_all(depth + 1)).await?);
        }
        objects.extend(below);
        Ok(objects)
    }

    /// The builder of a Kustomization that this one delivers.
    ///
    /// # Errors
    /// Its source has no local folder.
    pub(crate) fn child(&self, child: &Value) -> anyhow::Result<Builder> {
        let namespace = match text_at(child, "/spec/sourceRef/namespace") {
            "" => namespace_of(child),
            written => written,
        };
        let source = format!(
            "{}/{namespace}/{}",
            text_at(child, "/spec/sourceRef/kind"),
            text_at(child, "/spec/sourceRef/name")
        );
        let Some(local) = self.local_sources.get(&source) else {
            bail!("cannot get local path for {source} of kustomization {}", name_of(child));
        };
        Ok(Builder {
            name: name_of(child).to_owned(),
            namespace: namespace_of(child).to_owned(),
            folder: Path::new(local).join(text_at(child, "/spec/path").trim_start_matches('/')),
            file: None,
            fallback: None,
            ignore_not_found: false,
            ..self.clone()
        })
    }

    async fn kustomization(&self) -> anyhow::Result<Value> {
        let live = match &self.cluster {
            None => self.fallback.clone(),
            Some(cluster) => {
                match cluster.get(&KUSTOMIZATION.resource(), &self.namespace, &self.name).await {
                    Ok(live) => Some(live),
                    Err(error)
                        if error.is_not_found() && (self.fallback.is_some() || self.ignore_not_found) =>
                    {
                        self.fallback.clone()
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let Some(file) = &self.file else { return live.context("no kustomization given") };
        let mut written = self.read_file(file)?;
        if self.cluster.is_some()
            && let Some(status) =
                live.as_ref().and_then(|l| l.get("status")).filter(|s| s.get("inventory").is_some())
        {
            written["status"] = status.clone();
        }
        Ok(written)
    }

    fn read_file(&self, file: &str) -> anyhow::Result<Value> {
        let bytes = std::fs::read(file).map_err(|e| {
            anyhow::anyhow!("failed to read kustomization file {file}: {}", go_io_error("open", file, &e))
        })?;
        let documents = format::documents(&bytes)
            .with_context(|| format!("failed to unmarshall kustomization file {file}"))?;
        let fits = |d: &Value| {
            is_kustomization(d)
                && name_of(d) == self.name
                && (namespace_of(d) == self.namespace || namespace_of(d).is_empty())
        };
        let found = documents.into_iter().find(fits).with_context(|| {
            format!(
                "failed find kustomization with name '{}' and namespace '{}' in file '{file}'",
                self.name, self.namespace
            )
        })?;
        check_types(&found["spec"])
            .with_context(|| format!("failed to unmarshall kustomization file {file}"))?;
        Ok(found)
    }

    /// The objects before substitution. Prints the deprecations that kustomize reports.
    fn render(&self, kustomization: &Value) -> anyhow::Result<Vec<Node>> {
        let folder = std::fs::canonicalize(&self.folder)
            .with_context(|| format!("invalid resource path {:?}", self.folder))?;
        match render_local(&folder, &kustomization["spec"], &self.ignore) {
            Ok(rendered) => {
                rendered.warnings.iter().filter_map(|w| deprecation(w)).for_each(|w| logger::note(&w));
                Ok(rendered.objects)
            }
            Err(BuildError::Generate(error)) => {
                // flux appends the result of removing the file that it would have generated.
                let own = KUSTOMIZATION_FILES.iter().any(|f| folder.join(f).is_file());
                let cleaned = if !own && matches!(error, GenerateError::RemoteComponent(_)) {
                    let file = self.folder.join(KUSTOMIZATION_FILES[0]);
                    format!("remove {}: no such file or directory", file.display())
                } else {
                    "<nil>".to_owned()
                };
                bail!("failed to generate kustomization.yaml: {} {cleaned}", generate_message(&error))
            }
            Err(BuildError::Kustomize(error)) => bail!("kustomize build failed: {}", error.error),
            Err(error) => Err(error.into()),
        }
    }

    async fn variables(&self, kustomization: &Value) -> anyhow::Result<BTreeMap<String, String>> {
        match &self.cluster {
            Some(cluster) => variables(cluster, kustomization).await,
            None => Ok(kustomization
                .pointer("/spec/postBuild/substitute")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(k, v)| (k.clone(), v.as_str().unwrap_or_default().replace('\n', "")))
                .collect()),
        }
    }

    /// Substitutes the variables of an object.
    fn finish(
        &self,
        kustomization: &Value,
        variables: &anyhow::Result<BTreeMap<String, String>>,
        node: Node,
    ) -> anyhow::Result<Value> {
        let variables = variables.as_ref().map_err(|e| format!("{e:#}"));
        let request =
            Request { variables, strict: self.strict, ..request(&self.folder, &kustomization["spec"]) };
        let finished = finish(vec![node], &request).map_err(|error| match error {
            BuildError::Substitute { name, source, .. } => {
                anyhow::anyhow!("var substitution failed for '{name}': {source}")
            }
            other => other.into(),
        })?;
        let node = finished.first().context("one object in, one object out")?;
        Ok(serde_json::from_str(&fl_yaml::to_json(node, Dialect::V3, JsonStyle::default())?)?)
    }
}

/// A build of a local folder without variables.
fn request<'a>(directory: &'a Path, spec: &'a Value) -> Request<'a> {
    static NO_VARIABLES: BTreeMap<String, String> = BTreeMap::new();
    Request {
        files: &LocalFiles,
        directory,
        boundary: None,
        spec,
        variables: Ok(&NO_VARIABLES),
        derived: None,
        strict: false,
        decryptor: None,
        remote: None,
        filter: None,
        shared: None,
        require_names: false,
    }
}

/// Renders a folder. On a thread of its own: fetching remote bases blocks.
fn render_local(folder: &Path, spec: &Value, ignore: &[String]) -> Result<Rendered, BuildError> {
    let work = || {
        let filter = LocalFilter::new(folder, ignore);
        let bases = FetchedBases(fl_remote_bases::RemoteBases::new(
            fl_http::Owner::engine(),
            fl_http::AddressPolicy::default(),
            Limits::default(),
        ));
        render(&Request { remote: Some(&bases), filter: Some(&filter), ..request(folder, spec) })
    };
    let done = std::thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// flux's message for a kustomization.yaml that cannot be generated.
fn generate_message(error: &GenerateError) -> String {
    match error {
        GenerateError::Yaml { error, .. } => {
            format!("error converting YAML to JSON: {}", error.go_text(Dialect::Sigs))
        }
        GenerateError::NotAMap { found, .. } => format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type types.Kustomization",
            format::go_kind(found)
        ),
        other => other.to_string(),
    }
}

/// The notice of a deprecated field as kustomize prints it on the way; other remarks it keeps to itself.
fn deprecation(warning: &str) -> Option<String> {
    let (_, rest) = warning.split_once(": '")?;
    let (old, rest) = rest.split_once("' is deprecated, use '")?;
    let new = rest.strip_suffix("' instead")?;
    let command = match old {
        "vars" => "[EXPERIMENTAL] Run 'kustomize edit fix'",
        _ => "Run 'kustomize edit fix'",
    };
    Some(format!(
        "# Warning: '{old}' is deprecated. Please use '{new}' instead. {command} to update your Kustomization automatically.\n"
    ))
}

/// The files of the machine.
struct LocalFiles;

impl Files for LocalFiles {
    fn resolve(&self, path: &Path) -> std::io::Result<(PathBuf, bool)> {
        Disk.resolve(path)
    }

    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        Disk.read(path)
    }
}

impl SourceFiles for LocalFiles {
    fn list(&self, directory: &Path) -> Vec<(String, bool)> {
        entries(directory)
    }
}

/// Remote bases; their checkouts are files of the machine too.
struct FetchedBases(fl_remote_bases::RemoteBases);

impl Fetcher for FetchedBases {
    fn file(&self, url: &str) -> Result<Vec<u8>, fl_kustomize::HostError> {
        self.0.file(url)
    }

    fn checkout(&self, repository: &Repository) -> Result<PathBuf, fl_kustomize::HostError> {
        self.0.checkout(repository)
    }
}

impl RemoteBases for FetchedBases {
    fn with_checkouts(&self, files: &dyn Files, build: &mut dyn FnMut(&dyn Files)) {
        build(files);
    }

    fn used(&self) -> bool {
        self.0.used()
    }
}

/// The ignore rules of a folder, which a source would have applied.
struct LocalFilter {
    rules: Rules,
    /// Whether there are rules beside the defaults. Only then they apply to manifests that are found.
    any: bool,
}

impl LocalFilter {
    fn new(folder: &Path, ignore: &[String]) -> Self {
        let ignore_files = ignore_files(folder, "");
        let extra = ignore.join("\n");
        let texts = ignore_files.iter().map(|(dir, text)| (dir.as_str(), text.as_str()));
        let rules = Rules::for_source(texts, Some(&extra));
        let any = ignore_files.iter().any(|(_, t)| !t.trim().is_empty()) || !extra.trim().is_empty();
        LocalFilter { rules, any }
    }
}

impl EntryFilter for LocalFilter {
    fn keeps_manifest(&self, path: &Path, relative: &str) -> Result<bool, String> {
        if self.any && self.rules.ignores(relative, false) {
            return Ok(false);
        }
        let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
        let invalid = || format!("failed to decode Kubernetes YAML from {}", path.display());
        let documents = format::documents(&bytes).with_context(invalid).map_err(|e| format!("{e:#}"))?;
        if documents.iter().any(|document| text_at(document, "/kind").is_empty()) {
            return Err(format!("{}: missing Resource metadata", invalid()));
        }
        Ok(true)
    }

    fn keeps_entry(&self, directory: &Path, field: &str, entry: &str) -> Result<bool, String> {
        let remote = entry.contains("://") || entry.starts_with("git@");
        if remote && field != "crds" {
            return Ok(true);
        }
        let path = directory.join(entry);
        let info = std::fs::symlink_metadata(&path)
            .map_err(|e| go_io_error("lstat", &path.display().to_string(), &e))?;
        let relative = entry.trim_start_matches("./").trim_end_matches('/');
        Ok(relative.starts_with("..") || !self.rules.ignores(relative, info.is_dir()))
    }
}

/// Folder (relative) and text of every ignore file, parents before children.
fn ignore_files(root: &Path, below: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let folder = root.join(below);
    if let Ok(text) = std::fs::read_to_string(folder.join(IGNORE_FILE)) {
        found.push((below.to_owned(), text));
    }
    for (name, is_dir) in entries(&folder) {
        if is_dir && name != ".git" {
            found.extend(ignore_files(root, &joined(below, &name)));
        }
    }
    found
}

fn joined(below: &str, name: &str) -> String {
    if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") }
}

/// Names in a folder with whether they are folders, by name.
fn entries(folder: &Path) -> Vec<(String, bool)> {
    let mut names: Vec<(String, bool)> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| (e.file_name().to_string_lossy().into_owned(), e.file_type().is_ok_and(|t| t.is_dir())))
        .collect();
    names.sort();
    names
}

fn own(object: &mut Value, kustomization: &Value) {
    for (key, value) in [("name", name_of(kustomization)), ("namespace", namespace_of(kustomization))] {
        object["metadata"]["labels"][format!("{}/{key}", KUSTOMIZATION.group)] = json!(value);
    }
}

/// The items of a list, or the object itself.
fn listed(object: Value) -> Vec<Value> {
    let is_list =
        text_at(&object, "/kind").ends_with("List") && object.get("items").is_some_and(Value::is_array);
    match is_list {
        true => object["items"].as_array().cloned().unwrap_or_default(),
        false => vec![object],
    }
}

/// Masks values that SOPS encrypted: they differ with every encryption and cannot be compared.
fn mask(object: &mut Value) -> anyhow::Result<()> {
    if object["kind"] != "Secret" {
        return Ok(());
    }
    let name = name_of(object).to_owned();
    let encrypted = object
        .get("sops")
        .and_then(|s| s.get("mac"))
        .and_then(Value::as_str)
        .is_some_and(|m| m.starts_with("ENC["));
    let hidden = STANDARD.encode(MASK);
    if encrypted {
        if let Some(map) = object.as_object_mut() {
            map.remove("sops");
        }
        let docker = object["type"] == "kubernetes.io/dockerconfigjson";
        let plain = if docker { json!({"mask": MASK}).to_string() } else { MASK.to_owned() };
        let replace = |part: &mut Value, with: &str| {
            part.as_object_mut().into_iter().flat_map(|m| m.values_mut()).for_each(|v| *v = json!(with));
        };
        replace(&mut object["data"], &STANDARD.encode(&plain));
        replace(&mut object["stringData"], &plain);
    } else {
        let looks_encrypted = |text: &[u8]| {
            let has = |word: &[u8]| text.windows(word.len()).any(|w| w == word);
            has(b"sops") && has(b"ENC[")
        };
        for value in object["data"].as_object_mut().into_iter().flat_map(|m| m.values_mut()) {
            let text = value.as_str().unwrap_or_default();
            let clean: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
            let broken = |e: base64::DecodeError| go_base64_error(&e, clean.len());
            let bytes = STANDARD
                .decode(&clean)
                .map_err(|e| anyhow::anyhow!("failed to mask secret {name} sops data: {}", broken(e)))?;
            if looks_encrypted(&bytes) {
                *value = json!(hidden);
            }
        }
        for value in object["stringData"].as_object_mut().into_iter().flat_map(|m| m.values_mut()) {
            if looks_encrypted(value.as_str().unwrap_or_default().as_bytes()) {
                *value = json!(hidden);
            }
        }
    }
    // Looking a field up in a mutable value leaves a null behind.
    if let Some(map) = object.as_object_mut() {
        map.retain(|key, value| !(matches!(key.as_str(), "data" | "stringData") && value.is_null()));
    }
    Ok(())
}

/// Go names the first byte that is wrong.
fn go_base64_error(error: &base64::DecodeError, length: usize) -> String {
    let at = match error {
        base64::DecodeError::InvalidByte(at, _) => *at,
        base64::DecodeError::InvalidLastSymbol { offset, .. } => *offset,
        _ => length,
    };
    format!("illegal base64 data at input byte {at}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_held_to_the_types_of_the_api() {
        assert!(check_types(&json!({"prune": true, "path": "./a", "wait": null})).is_ok());
        let refused = check_types(&json!({"prune": "maybe"})).unwrap_err().to_string();
        assert!(refused.ends_with(
            "cannot unmarshal string into Go struct field KustomizationSpec.spec.prune of type bool"
        ));
    }

    #[test]
    fn encrypted_secrets_are_hidden() {
        let mut secret = json!({"kind": "Secret", "metadata": {"name": "a"}, "data": {"k": "eA=="}, "stringData": {"s": "x"},
            "sops": {"mac": "ENC[AES256]"}});
        mask(&mut secret).unwrap();
        assert_eq!(
            secret,
            json!({"kind": "Secret", "metadata": {"name": "a"}, "data": {"k": STANDARD.encode(MASK)}, "stringData": {"s": MASK}})
        );
        let mut plain = json!({"kind": "Secret", "metadata": {"name": "a"}, "data": {"k": "eA=="}});
        mask(&mut plain).unwrap();
        assert_eq!(plain["data"]["k"], "eA==");
        assert!(plain.get("stringData").is_none());
    }

    #[test]
    fn folders_without_a_kustomization_get_one() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
        write("b.yaml", &map("b"));
        write("a/c.yml", &map("c"));
        write("a/skip.yaml", &map("skip"));
        write("k/kustomization.yaml", "namePrefix: k-\nresources: [m.yaml]\n");
        write("k/m.yaml", &map("m"));
        write("note.txt", "x");
        write(IGNORE_FILE, "skip.yaml\n");
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let rendered = render_local(&root, &json!({}), &[]).unwrap();
        let name = |node: &Node| node.at(&["metadata", "name"]).and_then(Node::as_text).map(str::to_owned);
        let names: Vec<_> = rendered.objects.iter().filter_map(name).collect();
        assert_eq!(names, ["c", "b", "k-m"]);
        write("bad.yaml", "a: [b\n");
        assert!(matches!(render_local(&root, &json!({}), &[]), Err(BuildError::Generate(_))));
    }
}
