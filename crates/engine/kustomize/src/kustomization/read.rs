//! Decodes a kustomization file.

use fl_yaml::{Dialect, Node};

use super::{
    GeneratorArgs, GeneratorOptions, Image, Kustomization, Label, OpenApi, Pairs, Patch, Replica,
    SortOptions, Variable, plain_id, replacement_entry,
};
use crate::config::{Config, FieldSpec, NameReference};
use crate::decode::{Decoder, Fields, Mode, gvk};
use crate::error::{Error, ErrorKind, Place};
use crate::resid::Gvk;
use crate::selector::Selector;

type Result<T> = std::result::Result<T, Error>;

const FIELDS: &[&str] = &[
    "kind",
    "apiVersion",
    "metadata",
    "openapi",
    "namePrefix",
    "nameSuffix",
    "namespace",
    "commonLabels",
    "labels",
    "commonAnnotations",
    "patchesStrategicMerge",
    "patchesJson6902",
    "patches",
    "images",
    "imageTags",
    "replacements",
    "replicas",
    "vars",
    "sortOptions",
    "resources",
    "components",
    "crds",
    "bases",
    "configMapGenerator",
    "secretGenerator",
    "helmGlobals",
    "helmCharts",
    "helmChartInflationGenerator",
    "generatorOptions",
    "configurations",
    "generators",
    "transformers",
    "validators",
    "buildMetadata",
];

const VERSION: &str = "kustomize.config.k8s.io/v1beta1";
const COMPONENT_VERSION: &str = "kustomize.config.k8s.io/v1alpha1";

/// Decodes and validates a kustomization.
pub(crate) fn read(root: &Node, place: &Place) -> Result<Kustomization> {
    let d = Decoder {
        place: place.clone(),
        what: "Kustomization".to_owned(),
        mode: Mode::Strict,
        dialect: Dialect::Sigs,
    };
    let f = d.fields(root, FIELDS)?;
    if let Some(node) = f.get("metadata") {
        let meta = d.fields(node, &["name", "namespace", "labels", "annotations"])?;
        for name in ["name", "namespace"] {
            meta.text(name)?;
        }
        meta.pairs("labels")?;
        meta.pairs("annotations")?;
    }
    let mut resources = f.texts("resources")?;
    resources.extend(f.texts("bases")?);
    let mut images = f.list("images", |n| image(&d, n))?;
    images.extend(f.list("imageTags", |n| image(&d, n))?);
    let k = Kustomization {
        kind: f.text("kind")?,
        open_api: open_api(&d, &f)?,
        name_prefix: f.text("namePrefix")?,
        name_suffix: f.text("nameSuffix")?,
        namespace: f.text("namespace")?,
        common_labels: f.pairs("commonLabels")?,
        labels: f.list("labels", |n| label(&d, n))?,
        common_annotations: f.pairs("commonAnnotations")?,
        patches_strategic_merge: f.texts("patchesStrategicMerge")?,
        patches_json6902: f.list("patchesJson6902", |n| patch(&d, n))?,
        patches: f.list("patches", |n| patch(&d, n))?,
        images,
        replacements: f.list("replacements", |n| replacement_entry(&d, n))?,
        replicas: f.list("replicas", |n| replica(&d, n))?,
        vars: f.list("vars", |n| variable(&d, n))?,
        sort_options: f.part("sortOptions", |n| sort_options(&d, n))?,
        resources,
        components: f.texts("components")?,
        crds: f.texts("crds")?,
        config_map_generator: f.list("configMapGenerator", |n| generator_args(&d, n, false))?,
        secret_generator: f.list("secretGenerator", |n| generator_args(&d, n, true))?,
        helm_charts: super::helm::charts(&d, &f)?,
        generator_options: f.part("generatorOptions", |n| generator_options(&d, n))?,
        configurations: f.texts("configurations")?,
        generators: f.texts("generators")?,
        transformers: f.texts("transformers")?,
        validators: f.texts("validators")?,
        build_metadata: f.texts("buildMetadata")?.into_iter().map(|l| l.value).collect(),
        warnings: warnings(&f),
    };
    check(k, root, &f, place)
}

fn check(mut k: Kustomization, root: &Node, f: &Fields<'_>, place: &Place) -> Result<Kustomization> {
    let error_at = |node: &Node, reason: String| {
        let kind = ErrorKind::Invalid { what: "Kustomization".to_owned(), reason };
        Err(Error::new(place.at((node.line(), node.column())), kind))
    };
    if is_empty(f)? {
        return error_at(root, "kustomization.yaml is empty".to_owned());
    }
    if k.kind.is_empty() {
        k.kind = "Kustomization".to_owned();
    }
    if k.kind != "Kustomization" && k.kind != "Component" {
        let node = f.get("kind").unwrap_or(root);
        return error_at(node, "kind should be Kustomization or Component".to_owned());
    }
    let wanted = if k.kind == "Component" { COMPONENT_VERSION } else { VERSION };
    let version = f.text("apiVersion")?;
    if !version.is_empty() && version != wanted {
        let node = f.get("apiVersion").unwrap_or(root);
        return error_at(node, format!("apiVersion for {} should be {wanted}", k.kind));
    }
    Ok(k)
}

/// Whether kustomize considers the file empty: it compares the decoded struct with one that has only a type.
/// An explicit list or mapping counts even if it is empty; null and an empty string do not. Deprecated lists
/// are moved to others before the comparison, so they need an entry.
fn is_empty(f: &Fields<'_>) -> Result<bool> {
    for name in FIELDS {
        let Some(node) = f.get(name) else { continue };
        let has_content = match *name {
            "kind" | "apiVersion" => false,
            "bases" | "imageTags" | "helmChartInflationGenerator" => {
                node.as_seq().is_some_and(|items| !items.is_empty())
            }
            _ if node.is_scalar() => !f.text(name)?.is_empty(),
            _ => true,
        };
        if has_content {
            return Ok(false);
        }
    }
    Ok(true)
}

fn warnings(f: &Fields<'_>) -> Vec<String> {
    [
        ("bases", "resources"),
        ("commonLabels", "labels"),
        ("imageTags", "images"),
        ("patchesJson6902", "patches"),
        ("patchesStrategicMerge", "patches"),
        ("vars", "replacements"),
    ]
    .iter()
    .filter(|(old, _)| f.has(old))
    .map(|(old, new)| format!("'{old}' is deprecated, use '{new}' instead"))
    .collect()
}

fn open_api(d: &Decoder, f: &Fields<'_>) -> Result<OpenApi> {
    let Some(node) = f.get("openapi") else { return Ok(OpenApi::default()) };
    let pairs = d.pairs(node)?;
    let value = |key: &str| pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v.to_string());
    Ok(OpenApi {
        path: value("path").map(|value| crate::decode::Located {
            value,
            at: node.get("path").map_or((node.line(), node.column()), |n| (n.line(), n.column())),
        }),
        version: value("version"),
    })
}

fn label(d: &Decoder, node: &Node) -> Result<Label> {
    let f = d.fields(node, &["pairs", "includeSelectors", "includeTemplates", "fields"])?;
    Ok(Label {
        pairs: f.pairs("pairs")?,
        include_selectors: f.bool("includeSelectors")?,
        include_templates: f.bool("includeTemplates")?,
        fields: f.field_specs("fields")?,
    })
}

/// A selector: identity, label and annotation selectors.
pub(crate) fn selector(d: &Decoder, node: &Node) -> Result<Selector> {
    let f = d.fields(
        node,
        &["group", "version", "kind", "name", "namespace", "annotationSelector", "labelSelector"],
    )?;
    Ok(Selector {
        gvk: gvk(&f)?,
        name: f.text("name")?.into(),
        namespace: f.text("namespace")?.into(),
        labels: f.text("labelSelector")?,
        annotations: f.text("annotationSelector")?,
    })
}

/// The options of a patch: whether it may change name and kind.
pub(crate) fn patch_options(d: &Decoder, f: &Fields<'_>) -> Result<(bool, bool)> {
    let Some(node) = f.get("options") else { return Ok((false, false)) };
    let f = d.fields(node, &["allowNameChange", "allowKindChange"])?;
    Ok((f.bool("allowNameChange")?, f.bool("allowKindChange")?))
}

fn patch(d: &Decoder, node: &Node) -> Result<Patch> {
    let f = d.fields(node, &["path", "patch", "target", "options"])?;
    let (allow_name_change, allow_kind_change) = patch_options(d, &f)?;
    Ok(Patch {
        path: f.text("path")?,
        patch: f.text("patch")?,
        target: f.part("target", |n| selector(d, n))?,
        allow_name_change,
        allow_kind_change,
        at: (node.line(), node.column()),
        patch_line: f.get("patch").map_or(0, Node::line),
    })
}

pub(crate) fn image(d: &Decoder, node: &Node) -> Result<Image> {
    let f = d.fields(node, &["name", "newName", "tagSuffix", "newTag", "digest"])?;
    Ok(Image {
        name: f.text("name")?,
        new_name: f.text("newName")?,
        tag_suffix: f.text("tagSuffix")?,
        new_tag: f.text("newTag")?,
        digest: f.text("digest")?,
    })
}

pub(crate) fn replica(d: &Decoder, node: &Node) -> Result<Replica> {
    let f = d.fields(node, &["name", "count"])?;
    Ok(Replica { name: f.text("name")?, count: f.int("count")?, at: (node.line(), node.column()) })
}

fn variable(d: &Decoder, node: &Node) -> Result<Variable> {
    let f = d.fields(node, &["name", "objref", "fieldref"])?;
    let object = match f.get("objref") {
        None => crate::resid::ResId::default(),
        Some(node) => {
            let f = d.fields(node, &["apiVersion", "group", "version", "kind", "name", "namespace"])?;
            let mut gvk = gvk(&f)?;
            let api_version = f.text("apiVersion")?;
            if !api_version.is_empty() && api_version.matches('/').count() <= 1 {
                let (group, version) = crate::resid::split_api_version(&api_version);
                if api_version.contains('/') {
                    gvk.group = group.into();
                }
                gvk.version = version.into();
            }
            plain_id(gvk, f.text("name")?, f.text("namespace")?)
        }
    };
    let field_path = match f.get("fieldref") {
        Some(node) => d.fields(node, &["fieldPath"])?.text("fieldPath")?,
        None => String::new(),
    };
    Ok(Variable {
        name: f.text("name")?.into(),
        object,
        field_path: if field_path.is_empty() { "metadata.name".to_owned() } else { field_path },
        at: (node.line(), node.column()),
    })
}

fn sort_options(d: &Decoder, node: &Node) -> Result<SortOptions> {
    let f = d.fields(node, &["order", "legacySortOptions"])?;
    let legacy = f.part("legacySortOptions", |n| {
        let f = d.fields(n, &["orderFirst", "orderLast"])?;
        let kinds = |name: &str| Ok::<_, Error>(f.texts(name)?.into_iter().map(|l| l.value).collect());
        Ok((kinds("orderFirst")?, kinds("orderLast")?))
    })?;
    Ok(SortOptions { order: f.text("order")?, legacy, at: (node.line(), node.column()) })
}

fn generator_options(d: &Decoder, node: &Node) -> Result<GeneratorOptions> {
    let f = d.fields(node, &["labels", "annotations", "disableNameSuffixHash", "immutable"])?;
    let pairs = |name: &str| -> Result<Option<Pairs>> { f.part(name, |n| d.pairs(n)) };
    Ok(GeneratorOptions {
        labels: pairs("labels")?,
        annotations: pairs("annotations")?,
        disable_name_suffix_hash: f.bool("disableNameSuffixHash")?,
        immutable: f.bool("immutable")?,
    })
}

/// The arguments of a ConfigMap or Secret generator.
pub(crate) fn generator_args(d: &Decoder, node: &Node, secret: bool) -> Result<GeneratorArgs> {
    let mut known = vec!["namespace", "name", "behavior", "literals", "files", "envs", "env", "options"];
    if secret {
        known.push("type");
    }
    let f = d.fields(node, &known)?;
    let mut envs = f.texts("envs")?;
    if let Some(node) = f.get("env") {
        let value = d.text(node)?;
        if !value.is_empty() {
            envs.push(crate::decode::Located { value, at: (node.line(), node.column()) });
        }
    }
    Ok(GeneratorArgs {
        namespace: f.text("namespace")?,
        name: f.text("name")?,
        behavior: f.text("behavior")?,
        literals: f.texts("literals")?,
        files: f.texts("files")?,
        envs,
        options: f.part("options", |n| generator_options(d, n))?,
        kind: if secret { f.text("type")? } else { String::new() },
        at: (node.line(), node.column()),
    })
}

/// Decodes a transformer configuration (`configurations`).
pub(crate) fn configuration(root: &Node, place: &Place) -> Result<Config> {
    let d = Decoder {
        place: place.clone(),
        what: "configuration".to_owned(),
        mode: Mode::StrictNames,
        dialect: Dialect::Sigs,
    };
    let f = d.fields(
        root,
        &[
            "namePrefix",
            "nameSuffix",
            "namespace",
            "commonLabels",
            "labels",
            "templateLabels",
            "commonAnnotations",
            "nameReference",
            "varReference",
            "images",
            "replicas",
        ],
    )?;
    let mut config = Config {
        name_prefix: f.field_specs("namePrefix")?,
        name_suffix: f.field_specs("nameSuffix")?,
        namespace: f.field_specs("namespace")?,
        common_labels: f.field_specs("commonLabels")?,
        labels: f.field_specs("labels")?,
        template_labels: f.field_specs("templateLabels")?,
        common_annotations: f.field_specs("commonAnnotations")?,
        name_reference: f.list("nameReference", |n| name_reference(&d, n))?,
        var_reference: f.field_specs("varReference")?,
        images: f.field_specs("images")?,
        replicas: f.field_specs("replicas")?,
    };
    config.sort();
    Ok(config)
}

fn name_reference(d: &Decoder, node: &Node) -> Result<NameReference> {
    let f = d.fields(node, &["group", "version", "kind", "fieldSpecs"])?;
    let target: Gvk = gvk(&f)?;
    let referrers: Vec<FieldSpec> = f.field_specs("fieldSpecs")?;
    Ok(NameReference { target, referrers })
}
