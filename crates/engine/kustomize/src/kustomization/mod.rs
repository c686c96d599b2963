//! The kustomization file: its fields with their positions.

mod helm;
mod read;
mod replacement;

use fl_yaml::SmolStr;

pub(crate) use helm::{HelmChart, plugin as chart_plugin};
pub(crate) use read::{configuration, generator_args, image, patch_options, read, replica, selector};
pub(crate) use replacement::{FieldOptions, Replacement, Source, Target};
pub(crate) use replacement::{replacement_entry, replacements};

use crate::config::FieldSpec;
use crate::decode::Located;
use crate::resid::{Gvk, ResId};
use crate::selector::Selector;

/// Keys and values, sorted by key.
pub(crate) type Pairs = Vec<(SmolStr, SmolStr)>;

/// The `openapi` field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OpenApi {
    /// The path of an OpenAPI document.
    pub(crate) path: Option<Located<String>>,
    /// A built-in version.
    pub(crate) version: Option<String>,
}

/// One entry of `labels`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Label {
    /// The labels.
    pub(crate) pairs: Pairs,
    /// Whether they are added to selectors, too.
    pub(crate) include_selectors: bool,
    /// Whether they are added to templates, too.
    pub(crate) include_templates: bool,
    /// Additional fields.
    pub(crate) fields: Vec<FieldSpec>,
}

/// One entry of `patches`, `patchesJson6902`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Patch {
    /// A file with the patch.
    pub(crate) path: String,
    /// The patch itself.
    pub(crate) patch: String,
    /// The targets.
    pub(crate) target: Option<Selector>,
    /// Whether a merge may change the name.
    pub(crate) allow_name_change: bool,
    /// Whether a merge may change the kind.
    pub(crate) allow_kind_change: bool,
    /// Position of the entry.
    pub(crate) at: (u32, u32),
    /// The line before the first line of an inline patch.
    pub(crate) patch_line: u32,
}

/// One entry of `images`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Image {
    /// The image to change.
    pub(crate) name: String,
    /// Its new name.
    pub(crate) new_name: String,
    /// Suffix for the tag.
    pub(crate) tag_suffix: String,
    /// Its new tag.
    pub(crate) new_tag: String,
    /// Its new digest.
    pub(crate) digest: String,
}

/// One entry of `replicas`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Replica {
    /// The object's name.
    pub(crate) name: String,
    /// The number of replicas.
    pub(crate) count: i64,
    /// Position of the entry.
    pub(crate) at: (u32, u32),
}

/// One entry of `vars`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Variable {
    /// The name in `$(…)`.
    pub(crate) name: SmolStr,
    /// The object it reads from.
    pub(crate) object: ResId,
    /// The field it reads.
    pub(crate) field_path: String,
    /// Position of the entry.
    pub(crate) at: (u32, u32),
}

/// Options of generators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GeneratorOptions {
    /// Labels of the generated objects.
    pub(crate) labels: Option<Pairs>,
    /// Annotations of the generated objects.
    pub(crate) annotations: Option<Pairs>,
    /// Whether names get no hash.
    pub(crate) disable_name_suffix_hash: bool,
    /// Whether the objects are immutable.
    pub(crate) immutable: bool,
}

/// One entry of `configMapGenerator` or `secretGenerator`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GeneratorArgs {
    /// Namespace of the generated object.
    pub(crate) namespace: String,
    /// Name of the generated object.
    pub(crate) name: String,
    /// `create`, `merge` or `replace`.
    pub(crate) behavior: String,
    /// `key=value`
    pub(crate) literals: Vec<Located<String>>,
    /// `file` or `key=file`
    pub(crate) files: Vec<Located<String>>,
    /// Files of `key=value` lines.
    pub(crate) envs: Vec<Located<String>>,
    /// Options of this generator.
    pub(crate) options: Option<GeneratorOptions>,
    /// Type of a generated secret.
    pub(crate) kind: String,
    /// Position of the entry.
    pub(crate) at: (u32, u32),
}

/// The `sortOptions` field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SortOptions {
    /// `legacy` or `fifo`
    pub(crate) order: String,
    /// Kinds that come first and last in the legacy order.
    pub(crate) legacy: Option<(Vec<String>, Vec<String>)>,
    /// Position of the field.
    pub(crate) at: (u32, u32),
}

/// A kustomization or component.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs)] // the fields are those of the file
pub(crate) struct Kustomization {
    pub(crate) kind: String,
    pub(crate) open_api: OpenApi,
    pub(crate) name_prefix: String,
    pub(crate) name_suffix: String,
    pub(crate) namespace: String,
    pub(crate) common_labels: Pairs,
    pub(crate) labels: Vec<Label>,
    pub(crate) common_annotations: Pairs,
    pub(crate) patches_strategic_merge: Vec<Located<String>>,
    pub(crate) patches_json6902: Vec<Patch>,
    pub(crate) patches: Vec<Patch>,
    pub(crate) images: Vec<Image>,
    pub(crate) replacements: Vec<(Option<Located<String>>, Replacement)>,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) vars: Vec<Variable>,
    pub(crate) sort_options: Option<SortOptions>,
    pub(crate) resources: Vec<Located<String>>,
    pub(crate) components: Vec<Located<String>>,
    pub(crate) crds: Vec<Located<String>>,
    pub(crate) config_map_generator: Vec<GeneratorArgs>,
    pub(crate) secret_generator: Vec<GeneratorArgs>,
    pub(crate) helm_charts: Vec<HelmChart>,
    pub(crate) generator_options: Option<GeneratorOptions>,
    pub(crate) configurations: Vec<Located<String>>,
    pub(crate) generators: Vec<Located<String>>,
    pub(crate) transformers: Vec<Located<String>>,
    pub(crate) validators: Vec<Located<String>>,
    pub(crate) build_metadata: Vec<String>,
    /// Deprecated fields, with kustomize's advice.
    pub(crate) warnings: Vec<String>,
}

/// The identity of a selector without regular expressions.
pub(crate) fn plain_id(gvk: Gvk, name: String, namespace: String) -> ResId {
    ResId { gvk, name: name.into(), namespace: namespace.into(), cluster_scoped: false }
}
