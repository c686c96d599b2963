//! The kustomization of a directory: its own with the overrides of the spec, or one made of the files below it.

use std::path::{Path, PathBuf};

use fl_api::kustomize::KustomizationSpec;
use fl_api::kustomize::kustomization::BuildMetadata;
use fl_api::meta::kustomize::{Image, PatchTarget};
use fl_yaml::{Dialect, JsonStyle};
use serde_json::{Map, Value, json};

use super::known_fields::drop_unknown;
use super::tree::{View, clean};

/// Names kustomize knows, in the order in which they are looked for.
pub(super) const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

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
            let mut kustomization = read(view.file(&path).unwrap_or_default())?;
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
    changed |= overrides(view, directory, spec, &mut kustomization)?;
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

/// The file as a map.
pub(super) fn read(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let options = fl_yaml::Options::sigs();
    let bad = |text: String| format!("error converting YAML to JSON: {text}");
    let Some(node) = fl_yaml::parse_first(bytes, &options).map_err(|e| bad(e.to_string()))? else {
        return Ok(Map::new());
    };
    let text =
        fl_yaml::to_json(&node, Dialect::Sigs, JsonStyle::default()).map_err(|e| bad(e.to_string()))?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        _ => Err("error unmarshaling JSON: a kustomization must be a map".to_owned()),
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

/// What the spec changes. Answers whether it changes anything.
fn overrides(
    view: &View,
    directory: &Path,
    spec: &KustomizationSpec,
    kustomization: &mut Map<String, Value>,
) -> Result<bool, String> {
    let mut changed = false;
    let texts = [
        ("namespace", &spec.target_namespace),
        ("namePrefix", &spec.name_prefix),
        ("nameSuffix", &spec.name_suffix),
    ];
    for (field, value) in texts {
        if let Some(value) = value {
            kustomization.insert(field.to_owned(), json!(value));
            changed = true;
        }
    }
    for patch in spec.patches.iter().flatten() {
        push(
            kustomization,
            "patches",
            json!({"patch": patch.patch, "target": patch.target.as_ref().map(target)}),
        );
        changed = true;
    }
    for component in spec.components.iter().flatten() {
        if !is_local(component) {
            return Err(format!("component path '{component}' must be local and relative"));
        }
        let path = clean(&directory.join(component));
        let missing = view.file(&path).is_none() && !view.is_directory(&path);
        if !(missing && spec.ignore_missing_components.unwrap_or_default()) {
            push(kustomization, "components", json!(component));
            changed = true;
        }
    }
    for patch in spec.patches_strategic_merge.iter().flatten() {
        push(
            kustomization,
            "patchesStrategicMerge",
            json!(serde_json::to_value(patch).unwrap_or_default().to_string()),
        );
        changed = true;
    }
    for patch in spec.patches_json6902.iter().flatten() {
        let text = serde_json::to_string(&patch.patch).unwrap_or_default();
        push(kustomization, "patchesJson6902", json!({"patch": text, "target": target(&patch.target)}));
        changed = true;
    }
    for image in spec.images.iter().flatten() {
        merge_image(kustomization, image);
        changed = true;
    }
    let metadata: Vec<&str> = spec
        .build_metadata
        .iter()
        .flatten()
        .map(|m| match m {
            BuildMetadata::OriginAnnotations => "originAnnotations",
            BuildMetadata::TransformerAnnotations => "transformerAnnotations",
        })
        .collect();
    if !metadata.is_empty() {
        kustomization.insert("buildMetadata".to_owned(), json!(metadata));
        changed = true;
    }
    Ok(changed)
}

fn push(kustomization: &mut Map<String, Value>, field: &str, mut value: Value) {
    if let Value::Object(map) = &mut value {
        map.retain(|_, v| !v.is_null());
    }
    let list = kustomization.entry(field).or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    if let Value::Array(items) = list {
        items.push(value);
    }
}

fn target(target: &PatchTarget) -> Value {
    serde_json::to_value(target).unwrap_or_default()
}

/// A tag and a digest name the version together: setting one clears the other.
fn merge_image(kustomization: &mut Map<String, Value>, image: &Image) {
    let filled = |text: &Option<String>| text.as_deref().is_some_and(|t| !t.is_empty());
    let known = kustomization
        .get_mut("images")
        .and_then(Value::as_array_mut)
        .and_then(|images| images.iter_mut().find(|i| i["name"] == image.name.as_str()))
        .and_then(Value::as_object_mut);
    let Some(known) = known else {
        push(kustomization, "images", serde_json::to_value(image).unwrap_or_default());
        return;
    };
    if filled(&image.new_name) {
        known.insert("newName".to_owned(), json!(image.new_name));
    }
    if filled(&image.new_tag) || filled(&image.digest) {
        for (field, value) in [("newTag", &image.new_tag), ("digest", &image.digest)] {
            known.remove(field);
            if filled(value) {
                known.insert(field.to_owned(), json!(value));
            }
        }
    }
}

fn is_local(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let remote = ["git::", "gh:", "ssh://", "https://", "http://", "git@", "github.com:", "github.com/"];
    !remote.iter().any(|prefix| lower.len() > prefix.len() && lower.starts_with(prefix))
        && !path.starts_with('/')
        && !lower.trim_start_matches("file://").starts_with('/')
}
