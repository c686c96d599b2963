//! Built-in transformers and generators, configured by fields of a kustomization or by plugin objects.

use fl_yaml::{Dialect, Node, SmolStr};

use super::charts;
use super::origin::{self, Origin};
use super::session::Session;
use super::target::Target;
use crate::config::{Config, FieldSpec, merge_all, merge_one};
use crate::decode::{Decoder, Located, Mode};
use crate::error::{Error, ErrorKind, Result};
use crate::generate::{self, IamArgs, Kind};
use crate::input::{Purpose, read_objects};
use crate::kustomization::{self, HelmChart, Image, Patch, Replacement, Replica};
use crate::resmap::ResMap;
use crate::resource::Resource;
use crate::schema::Schemas;
use crate::selector::Selector;
use crate::transform::json_patch::JsonPatch;
use crate::transform::name::End;
use crate::transform::namespace::{Settings, Subjects};
use crate::transform::{self, TransformResult, value_add};

/// A transformation with its configuration.
#[derive(Debug)]
enum Step {
    /// `patchesStrategicMerge`: each finds its target by name.
    Merge(Vec<Resource>),
    /// An entry of `patches`.
    Patch {
        patch: PatchFormat,
        target: Option<Selector>,
        source: String,
    },
    /// An entry of `patchesJson6902`.
    Json {
        patch: JsonPatch,
        target: Selector,
    },
    Namespace(Settings),
    Name {
        end: End,
        affix: String,
        specs: Vec<FieldSpec>,
    },
    Pairs {
        name: &'static str,
        pairs: Vec<(SmolStr, SmolStr)>,
        specs: Vec<FieldSpec>,
    },
    Replica(Replica, Vec<FieldSpec>),
    Image(Image, Vec<FieldSpec>),
    Replacement(Vec<Replacement>),
    ValueAdd {
        value: String,
        targets: Vec<value_add::Target>,
    },
    Hash,
}

/// The format of a patch.
#[derive(Debug)]
enum PatchFormat {
    Merges(Vec<Resource>),
    Json(JsonPatch),
}

/// A configured transformer.
#[derive(Debug)]
pub(super) struct Transformer {
    step: Step,
    /// Position of the field or entry that configures it.
    pub(super) at: (u32, u32),
    pub(super) origin: Option<Origin>,
}

impl Transformer {
    /// The transformers of a kustomization's fields, in kustomize's order.
    pub(super) fn of_kustomization(
        target: &Target,
        session: &mut Session<'_>,
        config: &Config,
    ) -> Result<Vec<Self>> {
        let k = &target.kustomization;
        let mut steps = Vec::new();
        let mut push = |name: &str, step: Step, at: (u32, u32)| {
            let origin = target.origin.as_ref().map(|o| o.builtin(&target.file, name));
            steps.push(Transformer { step, at, origin });
        };
        if let Some(first) = k.patches_strategic_merge.first() {
            let patches = load_merges(target, session, &k.patches_strategic_merge, first.at)?;
            push("PatchStrategicMergeTransformer", Step::Merge(patches), first.at);
        }
        for patch in &k.patches {
            push("PatchTransformer", load_patch(target, session, patch)?, patch.at);
        }
        if !k.namespace.is_empty() {
            let settings = Settings {
                namespace: k.namespace.as_str().into(),
                specs: config.namespace.clone(),
                ..Settings::default()
            };
            push("NamespaceTransformer", Step::Namespace(settings), (0, 0));
        }
        for (name, end, affix, specs) in [
            ("PrefixTransformer", End::Prefix, &k.name_prefix, &config.name_prefix),
            ("SuffixTransformer", End::Suffix, &k.name_suffix, &config.name_suffix),
        ] {
            if !affix.is_empty() {
                push(name, Step::Name { end, affix: affix.clone(), specs: specs.clone() }, (0, 0));
            }
        }
        for (pairs, specs) in labels(k, config).map_err(|e| Error::new(target.place.clone(), e))? {
            push("LabelTransformer", Step::Pairs { name: "LabelTransformer", pairs, specs }, (0, 0));
        }
        if !k.common_annotations.is_empty() {
            let (pairs, specs) = (k.common_annotations.clone(), config.common_annotations.clone());
            push(
                "AnnotationsTransformer",
                Step::Pairs { name: "AnnotationsTransformer", pairs, specs },
                (0, 0),
            );
        }
        for patch in &k.patches_json6902 {
            push("PatchJson6902Transformer", load_json(target, session, patch)?, patch.at);
        }
        for replica in &k.replicas {
            push(
                "ReplicaCountTransformer",
                Step::Replica(replica.clone(), config.replicas.clone()),
                replica.at,
            );
        }
        for image in &k.images {
            push("ImageTagTransformer", Step::Image(image.clone(), config.images.clone()), (0, 0));
        }
        if !k.replacements.is_empty() {
            let all = load_replacements(target, session, &k.replacements)?;
            let at = k.replacements[0].1.at;
            push("ReplacementTransformer", Step::Replacement(all), at);
        }
        Ok(steps)
    }

    /// Runs the transformer.
    pub(super) fn run(&self, map: &mut ResMap, schemas: &mut Schemas) -> TransformResult {
        match &self.step {
            Step::Merge(patches) => {
                patches.iter().try_for_each(|p| transform::patch::merge_into_named(map, p, false, schemas))
            }
            Step::Patch { patch: PatchFormat::Merges(patches), target, source } => {
                match (target, patches.as_slice()) {
                    (_, []) => Ok(()),
                    (None, all) => {
                        all.iter().try_for_each(|p| transform::patch::merge_into_named(map, p, true, schemas))
                    }
                    (Some(target), [patch]) => {
                        transform::patch::merge_into_selected(map, patch, target, schemas)
                    }
                    (Some(_), _) => Err(ErrorKind::Invalid {
                        what: "patch".to_owned(),
                        reason: format!(
                            "several strategic merge patches in one entry cannot have a target: {source}"
                        ),
                    }),
                }
            }
            Step::Patch { patch: PatchFormat::Json(patch), target, source } => match target {
                None => Err(ErrorKind::Invalid {
                    what: "patch".to_owned(),
                    reason: format!("must specify a target for JSON patch {source}"),
                }),
                Some(target) => transform::patch::json_into_selected(map, patch, target, true, schemas),
            },
            Step::Json { patch, target } => {
                transform::patch::json_into_selected(map, patch, target, false, schemas)
            }
            Step::Namespace(settings) => transform::namespace::set(map, settings, schemas),
            Step::Name { end, affix, specs } => transform::name::add(map, *end, affix, specs, schemas),
            Step::Pairs { name, pairs, specs } => transform::labels::set(map, name, pairs, specs),
            Step::Replica(replica, specs) => transform::replica::set(map, replica, specs),
            Step::Image(image, specs) => transform::image::set(map, image, specs),
            Step::Replacement(all) => {
                all.iter().try_for_each(|r| transform::replacement::replace(map, r, schemas))
            }
            Step::ValueAdd { value, targets } => value_add::add(map, value, targets, schemas),
            Step::Hash => transform::hash::add(map, schemas),
        }
    }
}

type LabelSet = (Vec<(SmolStr, SmolStr)>, Vec<FieldSpec>);

/// The labels of `labels` and `commonLabels`, with the fields they are added to.
fn labels(
    k: &kustomization::Kustomization,
    config: &Config,
) -> std::result::Result<Vec<LabelSet>, ErrorKind> {
    let mut all = Vec::new();
    for label in &k.labels {
        let mut specs = label.fields.clone();
        merge_all(&mut specs, &config.labels, "labels")?;
        if label.include_selectors {
            merge_all(&mut specs, &config.common_labels, "labels")?;
        } else {
            if label.include_templates {
                merge_all(&mut specs, &config.template_labels, "labels")?;
            }
            merge_one(&mut specs, &FieldSpec::everywhere("metadata/labels", true), "labels")?;
        }
        all.push((label.pairs.clone(), specs));
    }
    if !k.common_labels.is_empty() || !all.is_empty() {
        all.push((k.common_labels.clone(), config.common_labels.clone()));
    }
    Ok(all)
}

fn invalid(target: &Target, at: (u32, u32), what: &str, reason: impl Into<String>) -> Error {
    let kind = ErrorKind::Invalid { what: what.to_owned(), reason: reason.into() };
    Error::new(target.place.at(at), kind)
}

fn as_resources(nodes: Vec<Node>, session: &mut Session<'_>) -> Vec<Resource> {
    nodes.into_iter().map(|node| Resource::new(node, &mut session.schemas)).collect()
}

/// Loads strategic merge patches: each entry is the patch itself or the path of a file.
fn load_merges(
    target: &Target,
    session: &mut Session<'_>,
    entries: &[Located<String>],
    at: (u32, u32),
) -> Result<Vec<Resource>> {
    let mut patches = Vec::new();
    for entry in entries {
        let nodes = match read_objects(entry.value.as_bytes(), Purpose::Patches) {
            Ok(nodes) => nodes,
            Err(_) => {
                let (path, content) = session.load_entry(target, entry)?;
                read_objects(&content, Purpose::Patches).map_err(|e| {
                    let place = crate::error::Place::file(path.display().to_string()).at(e.at());
                    Error::new(place, ErrorKind::Yaml(e.message().to_owned()))
                        .through(target.place.at(entry.at))
                })?
            }
        };
        patches.extend(as_resources(nodes, session));
    }
    if patches.is_empty() {
        return Err(invalid(target, at, "patchesStrategicMerge", "patch appears to be empty"));
    }
    Ok(patches)
}

/// Loads an entry of `patches`: a strategic merge or JSON patch, inline or in a file.
fn load_patch(target: &Target, session: &mut Session<'_>, patch: &Patch) -> Result<Step> {
    let inline = patch.patch.trim();
    let (text, source) = match (inline.is_empty(), patch.path.is_empty()) {
        (true, true) => return Err(invalid(target, patch.at, "patch", "must specify one of patch and path")),
        (false, false) => {
            return Err(invalid(target, patch.at, "patch", "patch and path can't be set at the same time"));
        }
        (false, true) => (inline.to_owned(), "of this entry".to_owned()),
        (true, false) => {
            let entry = Located { value: patch.path.clone(), at: patch.at };
            let (_, content) = session.load_entry(target, &entry)?;
            (String::from_utf8_lossy(&content).into_owned(), format!("in {}", patch.path))
        }
    };
    let merges = read_objects(text.as_bytes(), Purpose::Patches);
    let json = if text.is_empty() { None } else { JsonPatch::parse(&text).ok() };
    let patch_kind = match (merges, json) {
        (Ok(nodes), _) => {
            let mut patches = as_resources(nodes, session);
            for p in &mut patches {
                p.notes.allow_name_change |= patch.allow_name_change;
                p.notes.allow_kind_change |= patch.allow_kind_change;
            }
            PatchFormat::Merges(patches)
        }
        (Err(_), Some(json)) => PatchFormat::Json(json),
        (Err(merge), None) => {
            let line = if patch.path.is_empty() { patch.patch_line + merge.at().0 } else { patch.at.0 };
            let reason = match JsonPatch::parse(&text) {
                Err(json) if text.trim_start().starts_with(['-', '[']) => json.to_string(),
                _ => merge.to_string(),
            };
            let reason = format!("unable to parse SM or JSON patch {source}: {reason}");
            return Err(invalid(target, (line.max(patch.at.0), 0), "patch", reason));
        }
    };
    Ok(Step::Patch { patch: patch_kind, target: patch.target.clone(), source })
}

/// Loads an entry of `patchesJson6902`.
fn load_json(target: &Target, session: &mut Session<'_>, patch: &Patch) -> Result<Step> {
    const WHAT: &str = "patchesJson6902";
    let Some(selector) = patch.target.clone().filter(|t| !t.name.is_empty()) else {
        return Err(invalid(target, patch.at, WHAT, "must specify the target name"));
    };
    let text = match (patch.path.is_empty(), patch.patch.is_empty()) {
        (true, true) => return Err(invalid(target, patch.at, WHAT, "empty file path and empty jsonOp")),
        (false, false) => {
            return Err(invalid(target, patch.at, WHAT, "must specify a file path or jsonOp, not both"));
        }
        (true, false) => patch.patch.clone(),
        (false, true) => {
            let entry = Located { value: patch.path.clone(), at: patch.at };
            let (_, content) = session.load_entry(target, &entry)?;
            String::from_utf8_lossy(&content).into_owned()
        }
    };
    let json = JsonPatch::parse(&text).map_err(|e| invalid(target, patch.at, WHAT, e.to_string()))?;
    if json.is_empty() {
        return Err(invalid(target, patch.at, WHAT, "patch appears to be empty"));
    }
    Ok(Step::Json { patch: json, target: selector })
}

fn load_replacements(
    target: &Target,
    session: &mut Session<'_>,
    entries: &[(Option<Located<String>>, Replacement)],
) -> Result<Vec<Replacement>> {
    let mut all = Vec::new();
    for (path, inline) in entries {
        let Some(entry) = path else {
            all.push(inline.clone());
            continue;
        };
        let (path, content) = session.load_entry(target, entry)?;
        let (node, place) = target.parse_one(&path, &content, entry)?;
        let decoder =
            Decoder { place, what: "replacement".to_owned(), mode: Mode::Lenient, dialect: Dialect::Sigs };
        all.extend(
            kustomization::replacements(&decoder, &node).map_err(|e| e.through(target.place.at(entry.at)))?,
        );
    }
    Ok(all)
}

/// A plugin that is configured by an object.
pub(super) struct Plugin {
    pub(super) config: Resource,
    /// Position of the entry that refers to it.
    pub(super) at: (u32, u32),
}

impl Plugin {
    /// The kind of the plugin, for messages.
    pub(super) fn kind(&self) -> String {
        self.config.id.gvk.kind.to_string()
    }

    /// Only built-in plugins run; all others would start a process or a container.
    fn check(&self, target: &Target) -> Result<&str> {
        let gvk = &self.config.id.gvk;
        if gvk.group.is_empty() && gvk.version == "builtin" {
            return Ok(&gvk.kind);
        }
        let what = format!(
            "plugin {} is not built in: exec, container and other functions never run here",
            self.config.id
        );
        Err(Error::new(target.place.at(self.at), ErrorKind::Denied(what)))
    }

    fn decoder(&self, target: &Target) -> Decoder {
        let place = match &self.config.source {
            Some(file) => crate::error::Place::file(file.to_string()),
            None => target.place.at(self.at),
        };
        Decoder { place, what: self.kind(), mode: Mode::Lenient, dialect: Dialect::V3 }
    }

    /// Runs the plugin as a generator.
    pub(super) fn generate(&self, session: &mut Session<'_>, target: &Target) -> Result<Vec<Resource>> {
        let kind = self.check(target)?;
        let d = self.decoder(target);
        let node = &self.config.node;
        let mut objects = match kind {
            "ConfigMapGenerator" | "SecretGenerator" => {
                let what = if kind == "SecretGenerator" { Kind::Secret } else { Kind::ConfigMap };
                let mut args = kustomization::generator_args(&d, node, what == Kind::Secret)?;
                args.at = self.at;
                for list in [&mut args.literals, &mut args.files, &mut args.envs] {
                    list.iter_mut().for_each(|entry| entry.at = self.at);
                }
                if args.name.is_empty() {
                    args.name = self.config.id.name.to_string();
                }
                if args.namespace.is_empty() {
                    args.namespace = self.config.id.namespace.to_string();
                }
                vec![target.generate_one(session, what, &args)?]
            }
            "IAMPolicyGenerator" => {
                let node = generate::service_account(&iam_args(&d, node)?)
                    .map_err(|error| invalid(target, self.at, kind, error.to_string()))?;
                as_resources(vec![node], session)
            }
            "HelmChartInflationGenerator" => {
                let chart = HelmChart { at: self.at, ..kustomization::chart_plugin(&d, node)? };
                charts::inflate(session, target, &chart)?
            }
            other => {
                let reason = format!("unable to load builtin {other} as a generator");
                return Err(invalid(target, self.at, "generator", reason));
            }
        };
        if let Some(origin) = Origin::of_plugin(&self.config) {
            objects.iter_mut().filter(|o| !origin::has(o)).for_each(|o| origin::set(o, &origin));
        }
        Ok(objects)
    }

    /// The transformers that the plugin configures.
    pub(super) fn transformers(
        &self,
        session: &mut Session<'_>,
        target: &Target,
    ) -> Result<Vec<Transformer>> {
        let kind = self.check(target)?;
        let steps = self.steps(kind, session, target)?;
        let origin = Origin::of_plugin(&self.config);
        let with = |step| Transformer { step, at: self.at, origin: None };
        let mut all: Vec<Transformer> = steps.into_iter().map(with).collect();
        if let Some(last) = all.last_mut() {
            last.origin = origin;
        }
        Ok(all)
    }

    fn steps(&self, kind: &str, session: &mut Session<'_>, target: &Target) -> Result<Vec<Step>> {
        let d = self.decoder(target);
        let node = &self.config.node;
        let with_specs = |known: &[&'static str]| {
            let mut names = known.to_vec();
            names.push("fieldSpecs");
            let f = d.fields(node, &names)?;
            Ok::<_, Error>((f.field_specs("fieldSpecs")?, f))
        };
        Ok(match kind {
            "AnnotationsTransformer" => {
                let (specs, f) = with_specs(&["annotations"])?;
                vec![Step::Pairs { name: "AnnotationsTransformer", pairs: f.pairs("annotations")?, specs }]
            }
            "LabelTransformer" => {
                let (specs, f) = with_specs(&["labels"])?;
                vec![Step::Pairs { name: "LabelTransformer", pairs: f.pairs("labels")?, specs }]
            }
            "NamespaceTransformer" => vec![Step::Namespace(self.namespace_settings(&d)?)],
            "PrefixTransformer" | "SuffixTransformer" | "PrefixSuffixTransformer" => {
                let (specs, f) = with_specs(&["prefix", "suffix"])?;
                if !f.has("fieldSpecs") {
                    return Err(d.error_at(node, "fieldSpecs is not expected to be nil"));
                }
                let mut steps = Vec::new();
                for (end, field, name) in [
                    (End::Prefix, "prefix", "PrefixTransformer"),
                    (End::Suffix, "suffix", "SuffixTransformer"),
                ] {
                    if kind == name || kind == "PrefixSuffixTransformer" {
                        steps.push(Step::Name { end, affix: f.text(field)?, specs: specs.clone() });
                    }
                }
                steps
            }
            "ImageTagTransformer" => {
                let (specs, f) = with_specs(&["imageTag"])?;
                let image = f.part("imageTag", |n| kustomization::image(&d, n))?.unwrap_or_default();
                vec![Step::Image(image, specs)]
            }
            "ReplicaCountTransformer" => {
                let (specs, f) = with_specs(&["replica"])?;
                let replica = f.part("replica", |n| kustomization::replica(&d, n))?.unwrap_or_default();
                vec![Step::Replica(replica, specs)]
            }
            "HashTransformer" => vec![Step::Hash],
            "PatchTransformer" => vec![load_patch(target, session, &self.patch(&d, "patch")?)?],
            "PatchJson6902Transformer" => vec![load_json(target, session, &self.patch(&d, "jsonOp")?)?],
            "PatchStrategicMergeTransformer" => vec![self.merges(&d, session, target)?],
            "ReplacementTransformer" => {
                let f = d.fields(node, &["replacements"])?;
                let mut entries = f.list("replacements", |n| kustomization::replacement_entry(&d, n))?;
                entries.iter_mut().filter_map(|(path, _)| path.as_mut()).for_each(|path| path.at = self.at);
                vec![Step::Replacement(load_replacements(target, session, &entries)?)]
            }
            "ValueAddTransformer" => vec![self.value_add(&d, session, target)?],
            other => {
                let reason = format!("unable to load builtin {other} as a transformer");
                return Err(invalid(target, self.at, "transformer", reason));
            }
        })
    }

    fn namespace_settings(&self, d: &Decoder) -> Result<Settings> {
        let node = &self.config.node;
        let f = d.fields(node, &["metadata", "fieldSpecs", "unsetOnly", "setRoleBindingSubjects"])?;
        let namespace = match f.get("metadata") {
            Some(meta) => d.fields(meta, &["namespace"])?.text("namespace")?,
            None => String::new(),
        };
        let subjects = match f.text("setRoleBindingSubjects")?.as_str() {
            "" | "defaultOnly" => Subjects::Default,
            "allServiceAccounts" => Subjects::ServiceAccounts,
            "none" => Subjects::None,
            other => {
                let reason = format!(
                    "invalid value \"{other}\" for setRoleBindingSubjects: must be one of \"defaultOnly\", \"none\" or \"allServiceAccounts\""
                );
                return Err(d.error_at(node, reason));
            }
        };
        Ok(Settings {
            namespace: namespace.into(),
            specs: f.field_specs("fieldSpecs")?,
            unset_only: f.bool("unsetOnly")?,
            subjects,
        })
    }

    fn patch(&self, d: &Decoder, field: &'static str) -> Result<Patch> {
        let f = d.fields(&self.config.node, &["path", field, "target", "options"])?;
        let (allow_name_change, allow_kind_change) =
            if field == "patch" { kustomization::patch_options(d, &f)? } else { (false, false) };
        Ok(Patch {
            path: f.text("path")?,
            patch: f.text(field)?,
            target: f.part("target", |n| kustomization::selector(d, n))?,
            allow_name_change,
            allow_kind_change,
            at: self.at,
            patch_line: 0,
        })
    }

    fn merges(&self, d: &Decoder, session: &mut Session<'_>, target: &Target) -> Result<Step> {
        let f = d.fields(&self.config.node, &["paths", "patches"])?;
        let mut paths = f.texts("paths")?;
        paths.iter_mut().for_each(|entry| entry.at = self.at);
        let inline = f.text("patches")?;
        if paths.is_empty() && inline.is_empty() {
            return Err(d.error_at(&self.config.node, "empty file path and empty patch content"));
        }
        let mut patches =
            if paths.is_empty() { Vec::new() } else { load_merges(target, session, &paths, self.at)? };
        let nodes = read_objects(inline.as_bytes(), Purpose::Patches)
            .map_err(|e| invalid(target, self.at, "patch", e.to_string()))?;
        patches.extend(as_resources(nodes, session));
        if patches.is_empty() {
            return Err(d.error_at(&self.config.node, "patch appears to be empty"));
        }
        Ok(Step::Merge(patches))
    }

    fn value_add(&self, d: &Decoder, session: &mut Session<'_>, target: &Target) -> Result<Step> {
        let f = d.fields(&self.config.node, &["value", "targets", "targetFilePath"])?;
        let mut value = f.text("value")?.trim().to_owned();
        if value.is_empty() {
            let dir = target.root.dir.file_name().unwrap_or_default();
            value = dir.to_string_lossy().into_owned();
        }
        let mut targets = f.list("targets", |n| value_target(d, n))?;
        let path = f.text("targetFilePath")?;
        if !path.is_empty() {
            let entry = Located { value: path, at: self.at };
            let (path, content) = session.load_entry(target, &entry)?;
            let (node, place) = target.parse_one(&path, &content, &entry)?;
            let d = Decoder { place, what: self.kind(), mode: Mode::Lenient, dialect: Dialect::Sigs };
            targets.extend(d.fields(&node, &["targets"])?.list("targets", |n| value_target(&d, n))?);
        }
        if targets.is_empty() {
            return Err(d.error_at(&self.config.node, "must specify at least one target"));
        }
        if targets.iter().any(|t| t.field_path.is_empty()) {
            return Err(d.error_at(&self.config.node, "fieldPath cannot be empty"));
        }
        if targets.iter().any(|t| t.position < 0) {
            return Err(d.error_at(&self.config.node, "filePathPosition cannot be negative"));
        }
        Ok(Step::ValueAdd { value, targets })
    }
}

fn value_target(d: &Decoder, node: &Node) -> Result<value_add::Target> {
    let f = d.fields(node, &["selector", "fieldPath", "filePathPosition"])?;
    Ok(value_add::Target {
        selector: f.part("selector", |n| kustomization::selector(d, n))?,
        field_path: f.text("fieldPath")?,
        position: f.int("filePathPosition")?,
    })
}

fn iam_args(d: &Decoder, node: &Node) -> Result<IamArgs> {
    let f = d.fields(node, &["cloud", "kubernetesService", "serviceAccount"])?;
    let part = |name: &str, field: &'static str| match f.get(name) {
        Some(node) => d.fields(node, &[field])?.text(field),
        None => Ok(String::new()),
    };
    Ok(IamArgs {
        cloud: f.text("cloud")?,
        service_name: part("kubernetesService", "name")?,
        service_namespace: part("kubernetesService", "namespace")?,
        account_name: part("serviceAccount", "name")?,
        project: part("serviceAccount", "projectId")?,
    })
}
