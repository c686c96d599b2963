//! Annotations with the origin and transformations of objects (`buildMetadata`).

use std::fmt::Write as _;

use fl_yaml::{Node, SmolStr};

use super::remote::{self, Repository};
use crate::files::clean;
use crate::resmap::ResMap;
use crate::resource::Resource;
use crate::tree;

pub(super) const ORIGIN: &str = "config.kubernetes.io/origin";
pub(super) const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations";

/// Origin of an object or plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) path: String,
    /// The URL of another repository, and the requested reference.
    repository: String,
    reference: String,
    pub(super) configured_in: String,
    /// apiVersion, kind, name, namespace.
    pub(super) configured_by: Option<[String; 4]>,
}

impl Origin {
    /// The origin of a path below.
    pub(super) fn append(&self, path: &str) -> Self {
        let Some(repository) = Repository::parse(path) else {
            return Self { path: join(&self.path, path), ..self.clone() };
        };
        // Without a directory, kustomize exposes its name for a checkout that does not exist yet.
        let root = if repository.directory.is_empty() { "notCloned" } else { "" };
        Self {
            path: join(root, &repository.directory),
            repository: remote::redacted(&repository.url),
            reference: repository.reference,
            ..self.clone()
        }
    }

    /// Origin of an object that was created or changed by a field of the kustomization.
    pub(super) fn builtin(&self, file: &str, kind: &str) -> Self {
        Self {
            path: String::new(),
            configured_in: join(&self.path, file),
            configured_by: Some(["builtin".to_owned(), kind.to_owned(), String::new(), String::new()]),
            ..self.clone()
        }
    }

    /// Origin of an object that was created or changed by a plugin from a file.
    pub(super) fn of_plugin(plugin: &Resource) -> Option<Self> {
        let text = tree::metadata_pair(&plugin.node, "annotations", ORIGIN)?;
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
        let id = &plugin.id;
        Some(Self {
            path: String::new(),
            repository: field("repo: "),
            reference: field("ref: "),
            configured_in: field("path: "),
            configured_by: Some([
                id.gvk.api_version().to_string(),
                id.gvk.kind.to_string(),
                id.name.to_string(),
                id.namespace.to_string(),
            ]),
        })
    }

    fn write(&self, indent: &str) -> String {
        let mut lines = Vec::new();
        let fields = [
            ("path", &self.path),
            ("repo", &self.repository),
            ("ref", &self.reference),
            ("configuredIn", &self.configured_in),
        ];
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            lines.push(format!("{name}: {value}"));
        }
        if let Some(by) = &self.configured_by {
            lines.push("configuredBy:".to_owned());
            for (name, value) in ["apiVersion", "kind", "name", "namespace"].iter().zip(by) {
                if !value.is_empty() {
                    lines.push(format!("  {name}: {value}"));
                }
            }
        }
        let mut out = String::new();
        for (i, line) in lines.iter().enumerate() {
            let prefix = if i == 0 { "" } else { indent };
            let _ = writeln!(out, "{prefix}{line}");
        }
        if out.is_empty() { "{}\n".to_owned() } else { out }
    }
}

fn join(base: &str, path: &str) -> String {
    let joined = std::path::Path::new(base).join(path.trim_start_matches('/'));
    clean(&joined).display().to_string()
}

/// Sets the origin of an object.
pub(super) fn set(resource: &mut Resource, origin: &Origin) {
    annotate(&mut resource.node, ORIGIN, origin.write(""));
}

/// Whether an object has an origin.
pub(super) fn has(resource: &Resource) -> bool {
    tree::metadata_pair(&resource.node, "annotations", ORIGIN).is_some()
}

/// Adds a transformation to every object; one without origin was created by it.
pub(super) fn note_transformation(map: &mut ResMap, origin: &Origin) {
    for resource in map.iter_mut().filter(|r| !r.is_deleted()) {
        if !has(resource) {
            set(resource, origin);
            continue;
        }
        let before = tree::metadata_pair(&resource.node, "annotations", TRANSFORMATIONS).unwrap_or_default();
        let text = format!("{before}- {}", origin.write("  "));
        annotate(&mut resource.node, TRANSFORMATIONS, text);
    }
}

fn annotate(node: &mut Node, key: &str, value: String) {
    let mut pairs: Vec<(SmolStr, SmolStr)> = tree::metadata_pairs(node, "annotations")
        .filter(|(k, _)| *k != key)
        .map(|(k, v)| (k.into(), v.into()))
        .collect();
    pairs.push((key.into(), value.into()));
    tree::set_metadata_pairs(node, "annotations", pairs);
}
