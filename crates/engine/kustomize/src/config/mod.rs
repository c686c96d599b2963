//! kustomize's transformer configuration: the fields of names, namespaces, labels, images and references by
//! kind.

mod defaults;
mod merge;

use std::rc::Rc;

use fl_yaml::SmolStr;

pub use merge::Conflict;
pub(crate) use merge::{merge_all, merge_one};

use crate::resid::Gvk;

/// A row of the built-in tables.
#[derive(Debug)]
struct SpecRow {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    path: &'static str,
    create: bool,
}

/// A field in the objects of some kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSpec {
    /// The objects; empty parts match all.
    pub(crate) gvk: Gvk,
    /// Path separated by slashes. Steps through lists need no index; `name[]` requires a list.
    pub(crate) path: SmolStr,
    /// Whether an absent field is created.
    pub(crate) create: bool,
}

impl FieldSpec {
    /// A field of every kind.
    #[must_use]
    pub(crate) fn everywhere(path: &'static str, create: bool) -> Self {
        Self { gvk: Gvk::default(), path: SmolStr::new_static(path), create }
    }
}

impl From<&SpecRow> for FieldSpec {
    fn from(row: &SpecRow) -> Self {
        Self {
            gvk: Gvk {
                group: SmolStr::new_static(row.group),
                version: SmolStr::new_static(row.version),
                kind: SmolStr::new_static(row.kind),
            },
            path: SmolStr::new_static(row.path),
            create: row.create,
        }
    }
}

/// The fields in which other kinds refer to objects of a kind by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NameReference {
    /// The kind of the referenced objects.
    pub(crate) target: Gvk,
    /// The fields with the name.
    pub(crate) referrers: Vec<FieldSpec>,
}

/// The configuration of all transformers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Config {
    /// Names that get a prefix.
    pub(crate) name_prefix: Vec<FieldSpec>,
    /// Names that get a suffix.
    pub(crate) name_suffix: Vec<FieldSpec>,
    /// Namespaces.
    pub(crate) namespace: Vec<FieldSpec>,
    /// Labels and selectors.
    pub(crate) common_labels: Vec<FieldSpec>,
    /// Additional fields of the `labels` field.
    pub(crate) labels: Vec<FieldSpec>,
    /// Labels without selectors.
    pub(crate) template_labels: Vec<FieldSpec>,
    /// Annotations.
    pub(crate) common_annotations: Vec<FieldSpec>,
    /// Names that refer to other objects.
    pub(crate) name_reference: Vec<NameReference>,
    /// Fields in which `$(VAR)` is replaced.
    pub(crate) var_reference: Vec<FieldSpec>,
    /// Images.
    pub(crate) images: Vec<FieldSpec>,
    /// Replica counts.
    pub(crate) replicas: Vec<FieldSpec>,
}

impl Config {
    /// kustomize's built-in configuration.
    #[must_use]
    pub(crate) fn builtin() -> Rc<Config> {
        thread_local! {
            static BUILTIN: Rc<Config> = Rc::new(Config::from_tables());
        }
        BUILTIN.with(Rc::clone)
    }

    fn from_tables() -> Config {
        let all = |rows: &[SpecRow]| rows.iter().map(FieldSpec::from).collect();
        Config {
            name_prefix: all(defaults::NAME_PREFIX),
            name_suffix: all(defaults::NAME_SUFFIX),
            namespace: all(defaults::NAMESPACE),
            common_labels: all(defaults::COMMON_LABELS),
            labels: Vec::new(),
            template_labels: all(defaults::TEMPLATE_LABELS),
            common_annotations: all(defaults::COMMON_ANNOTATIONS),
            name_reference: defaults::NAME_REFERENCE
                .iter()
                .map(|(target, rows)| NameReference {
                    target: FieldSpec::from(target).gvk,
                    referrers: all(rows),
                })
                .collect(),
            var_reference: all(defaults::VAR_REFERENCE),
            images: all(defaults::IMAGES),
            replicas: all(defaults::REPLICAS),
        }
    }
}

/// Splits a path at its slashes; `\/` is a slash inside of a step.
pub(crate) fn split_path(path: &str, delimiter: char) -> Vec<SmolStr> {
    let mut steps: Vec<String> = Vec::new();
    let mut parts = path.split(delimiter);
    let mut first = parts.next().unwrap_or_default();
    if first.is_empty() && path.starts_with(delimiter) {
        // A leading delimiter does not create an empty step.
        first = parts.next().unwrap_or_default();
    }
    steps.push(first.to_owned());
    for part in parts {
        match steps.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push(delimiter);
                last.push_str(part);
            }
            _ => steps.push(part.to_owned()),
        }
    }
    steps.into_iter().map(SmolStr::from).collect()
}

/// Splits a field path of replacements and variables at its dots; `[name=a.b]` remains one step, `[a.b]`
/// loses its brackets.
pub(crate) fn split_field_path(path: &str) -> Vec<SmolStr> {
    let parts = split_path(path, '.');
    let mut steps = Vec::with_capacity(parts.len());
    let mut at = 0;
    while at < parts.len() {
        let part = &parts[at];
        at += 1;
        if !part.starts_with('[') || part.ends_with(']') {
            steps.push(part.clone());
            continue;
        }
        let mut bracketed = part.to_string();
        while at < parts.len() {
            bracketed.push('.');
            bracketed.push_str(&parts[at]);
            at += 1;
            if parts[at - 1].ends_with(']') {
                break;
            }
        }
        steps.push(if bracketed.contains('=') {
            bracketed.into()
        } else {
            bracketed.trim_matches(['[', ']']).into()
        });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split() {
        assert_eq!(split_path("spec/a", '/'), ["spec", "a"]);
        assert_eq!(split_path("/spec/a", '/'), ["spec", "a"]);
        assert_eq!(split_path(r"metadata/annotations/a.b\/c", '/'), ["metadata", "annotations", "a.b/c"]);
        assert_eq!(split_field_path("a.[name=x.y].b"), ["a", "[name=x.y]", "b"]);
        assert_eq!(split_field_path("metadata.annotations.[a.b/c]"), ["metadata", "annotations", "a.b/c"]);
        assert_eq!(split_field_path(r"metadata.annotations.a\.b"), ["metadata", "annotations", "a.b"]);
    }

    #[test]
    fn builtin_tables_are_sorted() {
        let mut sorted = (*Config::builtin()).clone();
        sorted.sort();
        assert_eq!(sorted, *Config::builtin());
    }
}
