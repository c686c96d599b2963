//! The kustomization file: its fields, typed, with the lines they stand on.

mod read;
mod replacement;

use smol_str::SmolStr;

pub(crate) use read::{
    configuration, generator_args, image, patch_options, read, replica, selector, variable,
};
pub use replacement::{FieldOptions, Replacement, Source, Target};
pub(crate) use replacement::{replacement, replacement_entry, replacements};

use crate::config::FieldSpec;
use crate::decode::Located;
use crate::ident::{Gvk, ResId};
use crate::selector::Selector;

/// Pairs of texts, sorted by key.
pub type Pairs = Vec<(SmolStr, SmolStr)>;

/// The `openapi` field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenApi {
    /// A document with own schemas.
    pub path: Option<Located<String>>,
    /// A built-in version.
    pub version: Option<String>,
}

/// One entry of `labels`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Label {
    /// The labels.
    pub pairs: Pairs,
    /// Whether selectors get them too.
    pub include_selectors: bool,
    /// Whether templates get them too.
    pub include_templates: bool,
    /// More fields that get them.
    pub fields: Vec<FieldSpec>,
}

/// One entry of `patches`, `patchesJson6902`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patch {
    /// A file with the patch.
    pub path: String,
    /// The patch itself.
    pub patch: String,
    /// What it applies to.
    pub target: Option<Selector>,
    /// Whether a merge may change the name.
    pub allow_name_change: bool,
    /// Whether a merge may change the kind.
    pub allow_kind_change: bool,
    /// Where the entry stands.
    pub at: (u32, u32),
    /// The line before the first line of an inline patch.
    pub patch_line: u32,
}

/// One entry of `images`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// The image to change.
    pub name: String,
    /// Its new name.
    pub new_name: String,
    /// What its tag is extended by.
    pub tag_suffix: String,
    /// Its new tag.
    pub new_tag: String,
    /// Its new digest.
    pub digest: String,
}

/// One entry of `replicas`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replica {
    /// The object's name.
    pub name: String,
    /// How many.
    pub count: i64,
    /// Where the entry stands.
    pub at: (u32, u32),
}

/// One entry of `vars`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variable {
    /// The name in `$(…)`.
    pub name: SmolStr,
    /// The object it reads from.
    pub object: ResId,
    /// The field it reads.
    pub field_path: String,
    /// Where the entry stands.
    pub at: (u32, u32),
}

/// Options of generators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GeneratorOptions {
    /// Labels of the generated objects.
    pub labels: Option<Pairs>,
    /// Annotations of the generated objects.
    pub annotations: Option<Pairs>,
    /// Whether the names get no hash.
    pub disable_name_suffix_hash: bool,
    /// Whether the objects are immutable.
    pub immutable: bool,
}

/// One entry of `configMapGenerator` or `secretGenerator`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GeneratorArgs {
    /// Namespace of the generated object.
    pub namespace: String,
    /// Name of the generated object.
    pub name: String,
    /// `create`, `merge` or `replace`.
    pub behavior: String,
    /// `key=value`
    pub literals: Vec<Located<String>>,
    /// `file` or `key=file`
    pub files: Vec<Located<String>>,
    /// Files of `key=value` lines.
    pub envs: Vec<Located<String>>,
    /// Options of this generator.
    pub options: Option<GeneratorOptions>,
    /// Type of a generated secret.
    pub kind: String,
    /// Where the entry stands.
    pub at: (u32, u32),
}

/// The `sortOptions` field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SortOptions {
    /// `legacy` or `fifo`
    pub order: String,
    /// Kinds that come first and last in the legacy order.
    pub legacy: Option<(Vec<String>, Vec<String>)>,
    /// Where the field stands.
    pub at: (u32, u32),
}

/// A kustomization or component.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are those of the file
pub struct Kustomization {
    pub kind: String,
    pub open_api: OpenApi,
    pub name_prefix: String,
    pub name_suffix: String,
    pub namespace: String,
    pub common_labels: Pairs,
    pub labels: Vec<Label>,
    pub common_annotations: Pairs,
    pub patches_strategic_merge: Vec<Located<String>>,
    pub patches_json6902: Vec<Patch>,
    pub patches: Vec<Patch>,
    pub images: Vec<Image>,
    pub replacements: Vec<(Option<Located<String>>, Replacement)>,
    pub replicas: Vec<Replica>,
    pub vars: Vec<Variable>,
    pub sort_options: Option<SortOptions>,
    pub resources: Vec<Located<String>>,
    pub components: Vec<Located<String>>,
    pub crds: Vec<Located<String>>,
    pub config_map_generator: Vec<GeneratorArgs>,
    pub secret_generator: Vec<GeneratorArgs>,
    pub helm_charts: Option<(u32, u32)>,
    pub generator_options: Option<GeneratorOptions>,
    pub configurations: Vec<Located<String>>,
    pub generators: Vec<Located<String>>,
    pub transformers: Vec<Located<String>>,
    pub validators: Vec<Located<String>>,
    pub build_metadata: Vec<String>,
    /// Fields that kustomize calls deprecated, with their advice.
    pub warnings: Vec<String>,
}

/// The identity in a selector without expressions.
pub(crate) fn plain_id(gvk: Gvk, name: String, namespace: String) -> ResId {
    ResId { gvk, name: name.into(), namespace: namespace.into(), cluster_scoped: false }
}
