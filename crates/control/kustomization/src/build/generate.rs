//! The kustomization of a directory: its own with the overrides of the spec, or one made of the files below it.

use std::path::{Path, PathBuf};

use fl_api::kustomize::KustomizationSpec;
use fl_yaml::{Dialect, JsonStyle};
use serde_json::{Map, Value, json};

use super::known_fields::drop_unknown;
use super::overrides::add_overrides;
use super::tree::{View, clean};

/// Names kustomize knows, in the order in which they are looked for.
pub const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// What was found on the way.
#[derive(Debug, Default)]
pub(super) struct Generated {
    /// Files that became resources of a generated kustomization.
    pub(super) files: Vec<String>,
    /// Paths whose change may change the outcome.
    pub(super) looked_at: Vec<PathBuf>,
}

/// Puts the kustomization that is to be built before the directory's own files.
pub(super) fn generate(
    view: &mut View,
    directory: &Path,
    spec: &KustomizationSpec,
) -> Result<Generated, String> {
    if !view.is_directory(directory) {
        let file = directory.join(NAMES[0]);
        return Err(format!("open {}: not a directory", file.display()));
    }
    let mut generated = Generated { looked_at: vec![directory.to_owned()], ..Generated::default() };
    let (path, mut kustomization, mut changed) = match own(view, directory) {
        Some(path) => {
            let mut kustomization = read(&path, view.file(&path).unwrap_or_default())?;
            let mut changed = drop_unknown(&mut kustomization);
            if kustomization.get("resources").is_none_or(is_empty) {
                kustomization.insert("buildMetadata".to_owned(), json!(["originAnnotations"]));
                changed = true;
            }
            (path, kustomization, changed)
        }
        None => {
            let kustomization = scan(view, directory, &mut generated);
            (directory.join(NAMES[0]), kustomization, true)
        }
    };
    let spec = serde_json::to_value(spec).map_err(|e| e.to_string())?;
    let exists = |component: &str| {
        let path = clean(&directory.join(component));
        view.file(&path).is_some() || view.is_directory(&path)
    };
    changed |= add_overrides(&mut kustomization, &spec, &exists)?;
    if changed {
        kustomization.entry("apiVersion").or_insert_with(|| json!("kustomize.config.k8s.io/v1beta1"));
        kustomization.entry("kind").or_insert_with(|| json!("Kustomization"));
        // JSON is YAML.
        view.put(path, Value::Object(kustomization).to_string().into_bytes());
    }
    Ok(generated)
}

fn own(view: &View, directory: &Path) -> Option<PathBuf> {
    NAMES.iter().map(|name| directory.join(name)).find(|path| view.file(path).is_some())
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// The file as a map. What is wrong with it is told with its place, which Flux leaves out.
pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let options = fl_yaml::Options::sigs();
    let bad = |e: fl_yaml::Error| {
        let fl_yaml::Error { line, column, message, .. } = e;
        format!("error converting YAML to JSON: {}:{line}:{column}: {message}", path.display())
    };
    let Some(node) = fl_yaml::parse_first(bytes, &options).map_err(bad)? else {
        return Ok(Map::new());
    };
    let text = fl_yaml::to_json(&node, Dialect::Sigs, JsonStyle::default()).map_err(bad)?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        _ => Err(format!("error unmarshaling JSON: {}: a kustomization must be a map", path.display())),
    }
}

/// A kustomization of everything below a directory.
fn scan(view: &View, directory: &Path, generated: &mut Generated) -> Map<String, Value> {
    let mut resources = Vec::new();
    walk(view, directory, directory, &mut resources, generated);
    let mut kustomization = Map::new();
    if resources.is_empty() {
        // An empty kustomization is refused by kustomize; this one applies nothing.
        kustomization.insert("namespace".to_owned(), json!("_placeholder"));
    } else {
        kustomization.insert("resources".to_owned(), json!(resources));
    }
    kustomization
}

fn walk(view: &View, base: &Path, directory: &Path, resources: &mut Vec<String>, generated: &mut Generated) {
    for name in view.names(directory) {
        let path = directory.join(name);
        let listed = || format!("./{}", path.strip_prefix(base).unwrap_or(&path).display());
        if view.is_directory(&path) {
            generated.looked_at.push(path.clone());
            if own(view, &path).is_some() {
                resources.push(listed());
            } else {
                walk(view, base, &path, resources, generated);
            }
        } else if matches!(path.extension().and_then(|e| e.to_str()), Some("yaml" | "yml")) {
            generated.files.push(path.display().to_string());
            resources.push(listed());
        }
    }
}
