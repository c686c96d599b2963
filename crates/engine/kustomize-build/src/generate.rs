//! The kustomization.yaml of a directory: its own with the overrides of the spec, or one that lists the manifests below it.

use std::path::{Path, PathBuf};

use fl_kustomize::Files as _;
use fl_yaml::{Dialect, JsonStyle};
use serde_json::{Map, Value, json};

use crate::error::GenerateError;
use crate::files::Overlay;
use crate::kustomization_fields::drop_unknown;
use crate::spec_overrides::add_overrides;

/// The names of a kustomization file, in the order in which kustomize looks for them.
pub const KUSTOMIZATION_FILES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Leaves entries out of a directory whose files no source has filtered. The files of an artifact need none.
pub trait EntryFilter {
    /// Whether a manifest that was found in the directory becomes a resource; `relative` is its path below the directory.
    ///
    /// # Errors
    /// It cannot be read or is not a manifest.
    fn keeps_manifest(&self, path: &Path, relative: &str) -> Result<bool, String>;

    /// Whether an entry of `resources`, `components` or `crds` stays.
    ///
    /// # Errors
    /// It does not exist.
    fn keeps_entry(&self, directory: &Path, field: &str, entry: &str) -> Result<bool, String>;
}

/// What the generation found.
#[derive(Debug, Default)]
pub(crate) struct Generated {
    /// Manifests that became resources of a generated kustomization.yaml.
    pub(crate) manifests: Vec<String>,
    /// Directories whose change may change the result.
    pub(crate) directories: Vec<PathBuf>,
}

/// Puts the kustomization.yaml that is to be built in front of the directory's own files. With a filter it is rewritten in any
/// case, as the `flux` command line does; else only when the spec or Flux changes it, so that errors name the lines of the
/// user's file.
pub(crate) fn generate(
    files: &mut Overlay<'_>,
    directory: &Path,
    spec: &Value,
    filter: Option<&dyn EntryFilter>,
) -> Result<Generated, GenerateError> {
    if !files.is_directory(directory) {
        let file = directory.join(KUSTOMIZATION_FILES[0]);
        return Err(GenerateError::NotADirectory(file.display().to_string()));
    }
    let mut generated = Generated { directories: vec![directory.to_owned()], ..Generated::default() };
    let (path, mut kustomization, mut changed) = match kustomization_file(files, directory) {
        Some(path) => {
            let mut kustomization = read(files, &path)?;
            let mut changed = drop_unknown(&mut kustomization);
            if kustomization.get("resources").is_none_or(is_empty) {
                kustomization.insert("buildMetadata".to_owned(), json!(["originAnnotations"]));
                changed = true;
            }
            (path, kustomization, changed)
        }
        None => {
            let kustomization = scan(files, directory, filter, &mut generated)?;
            (directory.join(KUSTOMIZATION_FILES[0]), kustomization, true)
        }
    };
    if let Some(filter) = filter {
        for field in ["resources", "components", "crds"] {
            filter_entries(&mut kustomization, directory, field, filter)?;
        }
        changed = true;
    }
    let exists = |component: &str| files.resolve(&directory.join(component)).is_ok();
    changed |= add_overrides(&mut kustomization, spec, &exists)?;
    if changed {
        kustomization.entry("apiVersion").or_insert_with(|| json!("kustomize.config.k8s.io/v1beta1"));
        kustomization.entry("kind").or_insert_with(|| json!("Kustomization"));
        // JSON is YAML.
        files.put(path, Value::Object(kustomization).to_string().into_bytes());
    }
    Ok(generated)
}

/// The kustomization file of a directory.
pub(crate) fn kustomization_file(files: &Overlay<'_>, directory: &Path) -> Option<PathBuf> {
    KUSTOMIZATION_FILES.iter().map(|name| directory.join(name)).find(|path| files.is_file(path))
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// A kustomization file as a map.
pub(crate) fn read(files: &Overlay<'_>, path: &Path) -> Result<Map<String, Value>, GenerateError> {
    let bytes = files.read(path)?;
    let invalid = |error: fl_yaml::Error| GenerateError::Yaml { path: path.to_owned(), error };
    let Some(node) = fl_yaml::parse_first(&bytes, &fl_yaml::Options::sigs()).map_err(invalid)? else {
        return Ok(Map::new());
    };
    let text = fl_yaml::to_json(&node, Dialect::Sigs, JsonStyle::default()).map_err(invalid)?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        found => Err(GenerateError::NotAMap { path: path.to_owned(), found: found.unwrap_or(Value::Null) }),
    }
}

/// A kustomization of everything below a directory.
fn scan(
    files: &Overlay<'_>,
    directory: &Path,
    filter: Option<&dyn EntryFilter>,
    generated: &mut Generated,
) -> Result<Map<String, Value>, GenerateError> {
    let mut resources = Vec::new();
    let mut scan = Scan { files, filter, resources: &mut resources, generated };
    scan.walk(directory, "")?;
    let mut kustomization = Map::new();
    if resources.is_empty() {
        // kustomize rejects an empty kustomization; this one has no objects.
        kustomization.insert("namespace".to_owned(), json!("_placeholder"));
    } else {
        kustomization.insert("resources".to_owned(), json!(resources));
    }
    Ok(kustomization)
}

struct Scan<'a> {
    files: &'a Overlay<'a>,
    filter: Option<&'a dyn EntryFilter>,
    resources: &'a mut Vec<String>,
    generated: &'a mut Generated,
}

impl Scan<'_> {
    /// Adds the manifests of a directory; a directory with a kustomization.yaml is one entry.
    fn walk(&mut self, directory: &Path, below: &str) -> Result<(), GenerateError> {
        for (name, is_directory) in self.files.base.list(directory) {
            let path = directory.join(&name);
            let relative = if below.is_empty() { name } else { format!("{below}/{name}") };
            if is_directory {
                self.generated.directories.push(path.clone());
                if kustomization_file(self.files, &path).is_some() {
                    self.resources.push(format!("./{relative}"));
                } else {
                    self.walk(&path, &relative)?;
                }
            } else if [".yaml", ".yml"].iter().any(|extension| relative.ends_with(extension)) {
                if let Some(filter) = self.filter
                    && !filter.keeps_manifest(&path, &relative).map_err(GenerateError::Entry)?
                {
                    continue;
                }
                self.generated.manifests.push(path.display().to_string());
                self.resources.push(format!("./{relative}"));
            }
        }
        Ok(())
    }
}

fn filter_entries(
    kustomization: &mut Map<String, Value>,
    directory: &Path,
    field: &str,
    filter: &dyn EntryFilter,
) -> Result<(), GenerateError> {
    let Some(entries) = kustomization.get_mut(field).and_then(Value::as_array_mut) else { return Ok(()) };
    let mut kept = Vec::new();
    for entry in entries.drain(..) {
        let text = entry.as_str().unwrap_or_default();
        if filter.keeps_entry(directory, field, text).map_err(GenerateError::Entry)? {
            kept.push(entry);
        }
    }
    *entries = kept;
    Ok(())
}
