//! A Kustomization built from a local folder, as its controller would build it.
//!
//! The folder is never written to: the kustomization file that the controller would generate lies over it in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fl_bases::{Limits, RemoteBases};
use fl_ignore::{IGNORE_FILE, Rules};
use fl_kustomization::{KUSTOMIZATION_FILES, SubstituteSettings, substitute_object};
use fl_kustomize::{Disk, Files, LoadRestrictor, Reorder};
use fl_yaml::{Dialect, JsonStyle, Node};
use serde_json::{Map, Value, json};

use crate::cluster::{Cluster, name_of, namespace_of, text_at};
use crate::commands::variables;
use crate::kinds::KUSTOMIZATION;
use crate::say;
use crate::text::{self, go_io_error};

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
        let found = text::go_kind(value);
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
        let nodes = self.kustomize(&kustomization)?;
        let mut objects = Vec::new();
        let variables = self.variables(&kustomization).await;
        for node in nodes {
            let mut object = self.substituted(&kustomization, &variables, node)?;
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
        let documents = text::documents(&bytes)
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

    fn kustomize(&self, kustomization: &Value) -> anyhow::Result<Vec<Node>> {
        let folder = std::fs::canonicalize(&self.folder)
            .with_context(|| format!("invalid resource path {:?}", self.folder))?;
        let (file, manifest) = match self.generate(&folder, kustomization) {
            Ok(generated) => generated,
            // The stray words are flux's: the result of a clean-up that had nothing to do.
            Err(error) => {
                let own = KUSTOMIZATION_FILES.iter().any(|f| folder.join(f).is_file());
                let cleaned = if !own && format!("{error}").starts_with("component path") {
                    let file = self.folder.join(KUSTOMIZATION_FILES[0]);
                    format!("remove {}: no such file or directory", file.display())
                } else {
                    "<nil>".to_owned()
                };
                bail!("failed to generate kustomization.yaml: {error:#} {cleaned}")
            }
        };
        let files = Overlay { path: folder.join(file), content: manifest.to_string().into_bytes() };
        match with_bases(&files, &folder) {
            Ok(output) => {
                output.warnings.iter().filter_map(|w| deprecation(w)).for_each(|w| say::note(&w));
                Ok(output.objects)
            }
            Err(error) => bail!("kustomize build failed: {error}"),
        }
    }

    /// The kustomization file's name and content: the folder's own or one that lists its manifests, with what the spec adds.
    fn generate(&self, folder: &Path, kustomization: &Value) -> anyhow::Result<(&'static str, Value)> {
        let ignore_files = ignore_files(folder, "");
        let extra = self.ignore.join("\n");
        let texts = || ignore_files.iter().map(|(dir, text)| (dir.as_str(), text.as_str()));
        let rules = Rules::for_source(texts(), Some(&extra));
        let any = ignore_files.iter().any(|(_, t)| !t.trim().is_empty()) || !extra.trim().is_empty();
        let own = KUSTOMIZATION_FILES.into_iter().find(|f| folder.join(f).is_file());
        let mut content = match own {
            Some(file) => {
                let path = folder.join(file);
                let bytes = std::fs::read(&path)?;
                first_document(&bytes)?
            }
            None => {
                let mut found = Vec::new();
                manifests(folder, "", any.then_some(&rules), &mut found)?;
                if found.is_empty() {
                    json!({"namespace": "_placeholder"})
                } else {
                    json!({"resources": found})
                }
            }
        };
        if !content.is_object() {
            let found = text::go_kind(&content);
            bail!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type types.Kustomization"
            );
        }
        let map = content.as_object_mut().expect("checked above");
        fl_kustomization::drop_unknown(map);
        map.entry("apiVersion").or_insert_with(|| json!("kustomize.config.k8s.io/v1beta1"));
        map.entry("kind").or_insert_with(|| json!("Kustomization"));
        if own.is_some() && map.get("resources").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            map.insert("buildMetadata".to_owned(), json!(["originAnnotations"]));
        }
        for key in ["resources", "components", "crds"] {
            filter_entries(map, key, folder, &rules)?;
        }
        let exists = |component: &str| folder.join(component).exists();
        fl_kustomization::add_overrides(map, &kustomization["spec"], &exists).map_err(anyhow::Error::msg)?;
        Ok((own.unwrap_or(KUSTOMIZATION_FILES[0]), content))
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

    fn substituted(
        &self,
        kustomization: &Value,
        variables: &anyhow::Result<BTreeMap<String, String>>,
        node: Node,
    ) -> anyhow::Result<Value> {
        let name = node.at(&["metadata", "name"]).and_then(Node::as_text).unwrap_or_default().to_owned();
        let node = match kustomization.pointer("/spec/postBuild") {
            None => node,
            Some(post_build) => {
                let always = text_at(post_build, "/substituteStrategy") == "Always";
                let settings = SubstituteSettings { strict: self.strict, always };
                let variables = variables.as_ref().map_err(|e| format!("{e:#}"));
                substitute_object(node, variables, &settings)
                    .map_err(|why| anyhow::anyhow!("var substitution failed for '{name}': {why}"))?
            }
        };
        let json = fl_yaml::to_json(&node, Dialect::V3, JsonStyle::default())?;
        Ok(serde_json::from_str(&json)?)
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

/// A kustomization file as JSON, with Go's words where it is none.
fn first_document(bytes: &[u8]) -> anyhow::Result<Value> {
    let wrong = |e: fl_yaml::Error| {
        anyhow::anyhow!("error converting YAML to JSON: {}", e.go_text(fl_yaml::Dialect::Sigs))
    };
    let Some(node) = fl_yaml::parse_first(bytes, &fl_yaml::Options::sigs()).map_err(wrong)? else {
        return Ok(json!({}));
    };
    let json = fl_yaml::to_json(&node, Dialect::Sigs, JsonStyle::default()).map_err(wrong)?;
    match serde_json::from_str(&json)? {
        Value::Null => Ok(json!({})),
        value => Ok(value),
    }
}

/// One file over the disk.
struct Overlay {
    path: PathBuf,
    content: Vec<u8>,
}

impl Files for Overlay {
    fn resolve(&self, path: &Path) -> std::io::Result<(PathBuf, bool)> {
        if path == self.path { Ok((self.path.clone(), false)) } else { Disk.resolve(path) }
    }

    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        if path == self.path { Ok(self.content.clone()) } else { Disk.read(path) }
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

/// Manifests below a folder as a generated kustomization lists them; a folder with a kustomization of its own is one entry.
fn manifests(root: &Path, below: &str, rules: Option<&Rules>, found: &mut Vec<String>) -> anyhow::Result<()> {
    for (name, is_dir) in entries(&root.join(below)) {
        let relative = joined(below, &name);
        let path = root.join(&relative);
        if is_dir {
            if KUSTOMIZATION_FILES.iter().any(|f| path.join(f).is_file()) {
                found.push(format!("./{relative}"));
            } else {
                manifests(root, &relative, rules, found)?;
            }
            continue;
        }
        let is_manifest = [".yaml", ".yml"].iter().any(|ext| name.ends_with(ext));
        if !is_manifest || rules.is_some_and(|r| r.ignores(&relative, false)) {
            continue;
        }
        let bytes = std::fs::read(&path)?;
        let broken = || format!("failed to decode Kubernetes YAML from {}", path.display());
        for document in text::documents(&bytes).with_context(broken)? {
            if text_at(&document, "/kind").is_empty() {
                bail!("{}: missing Resource metadata", broken());
            }
        }
        found.push(format!("./{relative}"));
    }
    Ok(())
}

/// Takes entries out that are ignored; one that does not exist is an error.
fn filter_entries(
    map: &mut Map<String, Value>,
    key: &str,
    folder: &Path,
    rules: &Rules,
) -> anyhow::Result<()> {
    let Some(entries) = map.get_mut(key).and_then(Value::as_array_mut) else { return Ok(()) };
    let mut kept = Vec::new();
    for entry in entries.drain(..) {
        let text = entry.as_str().unwrap_or_default();
        let remote = text.contains("://") || text.starts_with("git@");
        if !remote || key == "crds" {
            let path = folder.join(text);
            let info = std::fs::symlink_metadata(&path)
                .map_err(|e| anyhow::anyhow!("{}", go_io_error("lstat", &path.display().to_string(), &e)))?;
            let relative = text.trim_start_matches("./").trim_end_matches('/');
            if !relative.starts_with("..") && rules.ignores(relative, info.is_dir()) {
                continue;
            }
        }
        kept.push(entry);
    }
    *entries = kept;
    Ok(())
}

/// A build may wait for other machines, for which it needs a thread of its own.
fn with_bases(files: &Overlay, folder: &Path) -> Result<fl_kustomize::Output, fl_kustomize::Error> {
    let work = || {
        let bases =
            RemoteBases::new(fl_http::Owner::engine(), fl_http::AddressPolicy::default(), Limits::default());
        let options = fl_kustomize::Options {
            load_restrictor: LoadRestrictor::None,
            reorder: Reorder::None,
            fetcher: Some(&bases),
            ..fl_kustomize::Options::default()
        };
        fl_kustomize::build(files, folder, &options)
    };
    let done = std::thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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

/// Hides what SOPS encrypted: it could not be compared, and nobody wants to read it.
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
        write("k/kustomization.yaml", "resources: []\n");
        write("note.txt", "x");
        write(IGNORE_FILE, "skip.yaml\n");
        let mut found = Vec::new();
        let rules = Rules::for_source([("", "skip.yaml\n")], None);
        manifests(folder.path(), "", Some(&rules), &mut found).unwrap();
        assert_eq!(found, ["./a/c.yml", "./b.yaml", "./k"]);
        write("bad.yaml", "a: [b\n");
        assert!(manifests(folder.path(), "", None, &mut Vec::new()).is_err());
    }
}
