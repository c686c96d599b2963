//! Post-rendering as in helm-controller: kustomize patches and images, common metadata, owner labels.

use std::collections::{BTreeMap, HashSet};

use fl_api::helm::HelmRelease;
use fl_api::helm::helm_release::{KustomizePostRenderer, PostRenderStrategy};
use fl_api::meta::kustomize::PatchTarget;
use fl_helm::{Release, RenderedFiles, split_documents};
use fl_kustomize::{LoadRestrictor, Memory, Reorder};
use fl_yaml::{Dialect, Node, Options, parse_all, write_sigs_yaml};
use serde_json::{Map, Value, json};

use super::error::ActionError;
use super::line_folding::unfolded;
use crate::spec::{Defaults, ReleaseSpec};

/// The file that each document came from.
const FILE_ANNOTATION: &str = "postrenderer.helm.sh/postrender-filename";

/// Changes rendered manifests.
#[derive(Debug, Clone)]
pub(crate) struct PostRenderer {
    kustomize: Vec<KustomizePostRenderer>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    owner: [(String, String); 2],
    strategy: PostRenderStrategy,
}

type Documents = Vec<(String, String)>;

impl PostRenderer {
    /// The post-renderer of a HelmRelease.
    pub(crate) fn of(object: &HelmRelease, defaults: Defaults) -> Self {
        let common = object.spec.common_metadata.clone();
        let (labels, annotations) = common.map(|c| (c.labels, c.annotations)).unwrap_or_default();
        let renderers = object.spec.post_renderers.iter().flatten();
        Self {
            kustomize: renderers.filter_map(|renderer| renderer.kustomize.clone()).collect(),
            labels: labels.unwrap_or_default(),
            annotations: annotations.unwrap_or_default(),
            owner: owner_labels(object),
            strategy: object.post_render_strategy(defaults),
        }
    }

    /// Changes rendered files, then sorts them into manifests and hooks.
    pub(crate) fn run(&self, rendered: RenderedFiles) -> Result<Release, ActionError> {
        let RenderedFiles { files, release } = rendered;
        let files = match self.strategy {
            PostRenderStrategy::Combined => self.changed(files, "").map_err(|why| match why {
                PostRenderError::Merge(why) => ActionError::failed(format!("error merging manifests: {why}")),
                PostRenderError::Run(why) => {
                    ActionError::failed(format!("error while running post render on files: {why}"))
                }
            })?,
            PostRenderStrategy::Nohooks | PostRenderStrategy::Separate => self.apart(files)?,
        };
        Ok(RenderedFiles { files, release }.sorted()?)
    }

    /// Hooks and manifests separately; hooks only on request.
    fn apart(&self, files: Documents) -> Result<Documents, ActionError> {
        let sorted = RenderedFiles { files, release: Release::default() }.sorted()?;
        let hooks = sorted.hooks.iter().map(|hook| (hook.path.clone(), hook.manifest.clone()));
        let manifests =
            sorted.manifests.iter().map(|manifest| (manifest.source.clone(), manifest.content.clone()));
        let mut files = Documents::new();
        for (group, list, change) in [
            ("hooks", joined(hooks), self.strategy == PostRenderStrategy::Separate),
            ("manifests", joined(manifests), true),
        ] {
            if list.is_empty() {
                continue;
            }
            let list = if change {
                self.changed(list, group).map_err(|why| match why {
                    PostRenderError::Merge(why) => {
                        ActionError::failed(format!("error merging {group}: {why}"))
                    }
                    PostRenderError::Run(why) => {
                        ActionError::failed(format!("error while running post render on {group}: {why}"))
                    }
                })?
            } else {
                list
            };
            files = joined(files.into_iter().chain(list));
        }
        Ok(files)
    }

    fn changed(&self, mut files: Documents, group: &str) -> Result<Documents, PostRenderError> {
        files.sort();
        let mut nodes = Vec::new();
        for (name, text) in &files {
            if name.rsplit('/').next().is_some_and(|base| base.starts_with('_')) {
                continue;
            }
            for document in split_documents(text) {
                let read = parse_all(document.as_bytes(), &Options::v3());
                let read = read.map_err(|error| {
                    PostRenderError::Merge(format!("parsing {name}: MalformedYAMLError: {error}"))
                })?;
                for node in read {
                    check_table(&node, name)?;
                    take_apart(node, name, &mut nodes);
                }
            }
        }
        for renderer in &self.kustomize {
            nodes = kustomized(renderer, nodes, group)?;
        }
        check_identities(&nodes)?;
        let mut texts: Documents = Vec::new();
        for (file, mut node) in nodes {
            for (key, value) in &self.labels {
                set_text(&mut node, "labels", key, value);
            }
            for (key, value) in &self.annotations {
                set_text(&mut node, "annotations", key, value);
            }
            for (key, value) in &self.owner {
                set_text(&mut node, "labels", key, value);
            }
            drop_empty_annotations(&mut node);
            let mut text = String::new();
            write_sigs_yaml(&mut text, &node, Dialect::V3)
                .map_err(|error| PostRenderError::Run(error.to_string()))?;
            let text = unfolded(&text);
            match texts.iter_mut().find(|(known, _)| *known == file) {
                Some((_, known)) => {
                    known.push_str("---\n");
                    known.push_str(&text);
                }
                None => texts.push((file, text)),
            }
        }
        Ok(texts)
    }
}

/// `helm.toolkit.fluxcd.io/name` and `/namespace`.
pub(crate) fn owner_labels(object: &HelmRelease) -> [(String, String); 2] {
    [
        ("helm.toolkit.fluxcd.io/name".to_owned(), object.metadata.name.clone()),
        ("helm.toolkit.fluxcd.io/namespace".to_owned(), object.own_namespace().to_owned()),
    ]
}

enum PostRenderError {
    Merge(String),
    Run(String),
}

/// Joins files of the same name, as Helm does.
fn joined(files: impl Iterator<Item = (String, String)>) -> Documents {
    let mut all = Documents::new();
    for (name, text) in files {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => {
                known.push_str("\n---\n");
                known.push_str(&text);
            }
            None => all.push((name, text)),
        }
    }
    all
}

fn take_apart(node: Node, file: &str, nodes: &mut Vec<(String, Node)>) {
    let Some(map) = node.as_map() else { return };
    if map.is_empty() {
        return;
    }
    let list =
        node.get("kind").and_then(|kind| kind.as_str(Dialect::V3)).is_some_and(|kind| kind.ends_with("List"));
    if list && let Some(items) = node.get("items").and_then(Node::as_seq) {
        for item in items {
            take_apart(item.clone(), file, nodes);
        }
        return;
    }
    nodes.push((file.to_owned(), node));
}

/// Rejects documents that are not mappings. Empty ones are skipped.
fn check_table(node: &Node, file: &str) -> Result<(), PostRenderError> {
    let kind = if node.as_seq().is_some() {
        "SequenceNode"
    } else if node.as_map().is_none() && !node.is_null(Dialect::V3) {
        "ScalarNode"
    } else {
        return Ok(());
    };
    let mut text = String::new();
    write_sigs_yaml(&mut text, node, Dialect::V3)
        .map_err(|error| PostRenderError::Merge(error.to_string()))?;
    Err(PostRenderError::Merge(format!(
        "parsing {file}: wrong node kind: expected MappingNode but got {kind}: node contents:\n{text}"
    )))
}

/// The names of an object as Go prints them: type, name and namespace, labels, annotations. These include the annotation that
/// Helm sets on every document during post-rendering.
fn described(node: &Node, file: &str) -> String {
    let text = |node: Option<&Node>| node.and_then(|n| n.as_str(Dialect::V3)).unwrap_or_default().to_owned();
    let metadata = node.get("metadata");
    let field = |key: &str| text(metadata.and_then(|metadata| metadata.get(key)));
    let table = |key: &str, more: Option<(&str, &str)>| {
        let found = metadata.and_then(|metadata| metadata.get(key)).and_then(Node::as_map);
        let mut entries: BTreeMap<String, String> = found
            .into_iter()
            .flat_map(fl_yaml::Map::iter)
            .map(|entry| (entry.name().unwrap_or_default().to_owned(), text(Some(&entry.value))))
            .collect();
        entries.extend(more.map(|(key, value)| (key.to_owned(), value.to_owned())));
        let entries: Vec<String> = entries.iter().map(|(key, value)| format!("{key}:{value}")).collect();
        format!("map[{}]", entries.join(" "))
    };
    format!(
        "{{{{{} {}}} {{{{{} {}}} {} {}}}}}",
        text(node.get("apiVersion")),
        text(node.get("kind")),
        field("name"),
        field("namespace"),
        table("labels", None),
        table("annotations", Some((FILE_ANNOTATION, file)))
    )
}

/// Rejects two documents of the same object.
fn check_identities(nodes: &[(String, Node)]) -> Result<(), PostRenderError> {
    let mut seen = HashSet::new();
    for (file, node) in nodes {
        let text =
            |node: Option<&Node>| node.and_then(|n| n.as_str(Dialect::V3)).unwrap_or_default().to_owned();
        let metadata = |key: &str| text(node.get("metadata").and_then(|metadata| metadata.get(key)));
        let (api_version, kind) = (text(node.get("apiVersion")), text(node.get("kind")));
        let (name, namespace) = (metadata("name"), metadata("namespace"));
        let missing =
            |what: &str| PostRenderError::Run(format!("missing {what} in object {}", described(node, file)));
        if kind.is_empty() {
            return Err(missing("kind"));
        }
        if name.is_empty() && metadata("generateName").is_empty() {
            return Err(missing("metadata.name"));
        }
        if name.is_empty() {
            continue;
        }
        let (group, version) = fl_types::split_api_version(&api_version);
        let or = |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
        let id = format!("{kind}.{version}.{}/{name}.{}", or(group, "[noGrp]"), or(&namespace, "[noNs]"));
        if !seen.insert(id.clone()) {
            return Err(PostRenderError::Run(format!(
                "may not add resource with an already registered id: {id}"
            )));
        }
    }
    Ok(())
}

fn set_text(node: &mut Node, group: &str, key: &str, value: &str) {
    let Some(map) = node.as_map_mut() else { return };
    // A null counts as missing.
    if map.get("metadata").is_some_and(|found| found.as_map().is_none()) {
        map.remove("metadata");
    }
    let metadata = map.get_or_insert_with("metadata", Node::map);
    let Some(metadata) = metadata.as_map_mut() else { return };
    if metadata.get(group).is_some_and(|found| found.as_map().is_none()) {
        metadata.remove(group);
    }
    if let Some(group) = metadata.get_or_insert_with(group, Node::map).as_map_mut() {
        group.insert(key, Node::string(value));
    }
}

/// Helm sets an annotation on every document and removes it again, together with empty maps.
fn drop_empty_annotations(node: &mut Node) {
    let Some(metadata) = node.get_mut("metadata").and_then(Node::as_map_mut) else { return };
    if metadata.get("annotations").is_some_and(|found| found.as_map().is_none_or(fl_yaml::Map::is_empty)) {
        metadata.remove("annotations");
    }
}

fn kustomized(
    renderer: &KustomizePostRenderer,
    nodes: Vec<(String, Node)>,
    group: &str,
) -> Result<Vec<(String, Node)>, PostRenderError> {
    let run = |why: String| PostRenderError::Run(why);
    let mut text = String::new();
    for (file, mut node) in nodes {
        set_text(&mut node, "annotations", FILE_ANNOTATION, &file);
        text.push_str("---\n");
        write_sigs_yaml(&mut text, &node, Dialect::V3).map_err(|error| run(error.to_string()))?;
    }
    let mut files = Memory::new();
    files.add("/kustomization.yaml", kustomization(renderer).to_string());
    files.add("/helm-output.yaml", text);
    let options = fl_kustomize::Options {
        load_restrictor: LoadRestrictor::None,
        reorder: Reorder::None,
        boundary: Some("/".into()),
        ..fl_kustomize::Options::default()
    };
    let output = fl_kustomize::build(&files, "/".as_ref(), &options).map_err(|error| run(refusal(&error)))?;
    let mut changed = Vec::with_capacity(output.objects.len());
    for (i, mut node) in output.objects.into_iter().enumerate() {
        let file = take_annotation(&mut node, FILE_ANNOTATION).unwrap_or_else(|| {
            let group = if group.is_empty() { String::new() } else { format!("{group}-") };
            format!("generated-by-postrender-{group}{i}.yaml")
        });
        changed.push((file, node));
    }
    Ok(changed)
}

/// The error message of a build. The path of the file exists only in memory, so for a patch it is kustomize's message alone.
fn refusal(error: &fl_kustomize::Error) -> String {
    match &*error.kind {
        fl_kustomize::ErrorKind::JsonPatch { error, .. } => error.upstream(),
        kind @ fl_kustomize::ErrorKind::PatchTarget { .. } => kind.to_string(),
        _ => error.to_string(),
    }
}

fn take_annotation(node: &mut Node, key: &str) -> Option<String> {
    let metadata = node.get_mut("metadata")?.as_map_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_map_mut()?;
    let value = annotations.remove(key)?.as_str(Dialect::V3)?.to_owned();
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    Some(value)
}

fn kustomization(renderer: &KustomizePostRenderer) -> Value {
    let target = |target: &PatchTarget| {
        let fields = [
            ("group", &target.group),
            ("version", &target.version),
            ("kind", &target.kind),
            ("name", &target.name),
            ("namespace", &target.namespace),
            ("labelSelector", &target.label_selector),
            ("annotationSelector", &target.annotation_selector),
        ];
        let given = fields
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value.as_ref()?.as_str().into())));
        Value::Object(given.collect::<Map<String, Value>>())
    };
    let mut patches: Vec<Value> = Vec::new();
    for patch in renderer.patches.iter().flatten() {
        let mut entry = json!({"patch": patch.patch});
        if let Some(selected) = &patch.target {
            entry["target"] = target(selected);
        }
        patches.push(entry);
    }
    for patch in renderer.patches_strategic_merge.iter().flatten() {
        let text = serde_json::to_string(patch).unwrap_or_default();
        patches.push(json!({"patch": text}));
    }
    for patch in renderer.patches_json6902.iter().flatten() {
        let text = serde_json::to_string(&patch.patch).unwrap_or_default();
        patches.push(json!({"patch": text, "target": target(&patch.target)}));
    }
    let images: Vec<Value> = renderer
        .images
        .iter()
        .flatten()
        .map(|image| serde_json::to_value(image).unwrap_or_default())
        .collect();
    let mut file = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["helm-output.yaml"],
    });
    if !patches.is_empty() {
        file["patches"] = patches.into();
    }
    if !images.is_empty() {
        file["images"] = images.into();
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(spec: Value) -> HelmRelease {
        let mut all = json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "app", "namespace": "ns"},
            "spec": {"interval": "1m", "chartRef": {"kind": "OCIRepository", "name": "c"}},
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            all["spec"][key] = value.clone();
        }
        serde_json::from_value(all).expect("a HelmRelease")
    }

    fn rendered(files: &[(&str, &str)]) -> RenderedFiles {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        RenderedFiles { files, release: Release::default() }
    }

    #[test]
    fn owner_labels_and_sorted_keys() {
        let release = PostRenderer::of(&object(json!({})), Defaults::default())
            .run(rendered(&[(
                "c/templates/a.yaml",
                "kind: ConfigMap\napiVersion: v1\ndata: {b: \"1\"}\nmetadata: {name: a} # x\n",
            )]))
            .expect("rendered");
        assert_eq!(
            release.manifest_text(),
            "---\n# Source: c/templates/a.yaml\napiVersion: v1\ndata:\n  b: \"1\"\nkind: ConfigMap\nmetadata:\n  labels:\n    \
             helm.toolkit.fluxcd.io/name: app\n    helm.toolkit.fluxcd.io/namespace: ns\n  name: a\n\n"
        );
    }

    /// Recorded from Flux: its Helm sorts webhooks as a known kind, the helm command as an unknown one.
    #[test]
    fn webhooks_come_before_kinds_that_nobody_knows() {
        let file = |kind: &str| format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: a}}\n");
        let kinds =
            ["Alertmanager", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "Service"];
        let files: Vec<(String, String)> =
            kinds.iter().map(|kind| (format!("{kind}.yaml"), file(kind))).collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let release = PostRenderer::of(&object(json!({})), Defaults::default())
            .run(rendered(&files))
            .expect("rendered");
        let sorted: Vec<&str> = release.manifests.iter().map(|manifest| manifest.kind.as_str()).collect();
        assert_eq!(
            sorted,
            ["Service", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "Alertmanager"]
        );
    }

    /// Recorded from Flux: kustomize's message, without a file name.
    #[test]
    fn patches_that_do_not_fit() {
        let fails = |patch: &str, target: Value| {
            let patches = json!([{"patch": patch, "target": target}]);
            let spec = json!({"postRenderers": [{"kustomize": {"patches": patches}}]});
            let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
            let run = PostRenderer::of(&object(spec), Defaults::default()).run(rendered(&[("f", map)]));
            run.expect_err("refused").to_string()
        };
        let begin = "error while running post render on files: ";
        assert_eq!(
            fails("- {op: add, path: /metadata/labels/p, value: q}", json!({"kind": "ConfigMap"})),
            format!(
                "{begin}add operation does not apply: doc is missing path: \"/metadata/labels/p\": missing value"
            )
        );
        assert_eq!(
            fails("{apiVersion: v1, kind: Secret, metadata: {name: b}, x: y}", Value::Null),
            format!(
                "{begin}no resource matches strategic merge patch \"Secret.v1.[noGrp]/b.[noNs]\": no matches for Id \
                 Secret.v1.[noGrp]/b.[noNs]; failed to find unique target for patch Secret.v1.[noGrp]/b.[noNs]"
            )
        );
    }

    #[test]
    fn documents_that_are_no_objects() {
        let fails = |text: &str| {
            let run = PostRenderer::of(&object(json!({})), Defaults::default()).run(rendered(&[("f", text)]));
            run.expect_err("refused").to_string()
        };
        assert_eq!(
            fails("foo: bar\n"),
            "error while running post render on files: missing kind in object \
             {{ } {{ } map[] map[postrenderer.helm.sh/postrender-filename:f]}}"
        );
        assert_eq!(
            fails("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: n, labels: {b: c, a: d}}\n"),
            "error while running post render on files: missing metadata.name in object \
             {{v1 ConfigMap} {{ n} map[a:d b:c] map[postrenderer.helm.sh/postrender-filename:f]}}"
        );
        assert_eq!(
            fails("1\n"),
            "error merging manifests: parsing f: wrong node kind: expected MappingNode but got ScalarNode: node contents:\n1\n"
        );
        assert!(fails("a: [").starts_with("error merging manifests: parsing f: MalformedYAMLError: "));
    }

    #[test]
    fn patches_images_and_metadata_in_order() {
        let spec = json!({
            "postRenderers": [{"kustomize": {
                "patches": [{"patch": "- {op: add, path: /data/x, value: why}", "target": {"kind": "ConfigMap"}}],
                "images": [{"name": "nginx", "newTag": "2"}]}}],
            "commonMetadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
        });
        let files = [
            (
                "c/templates/a.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: \"1\"}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: m, image: nginx:1}]}\n",
            ),
            (
                "c/templates/h.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: h, annotations: {helm.sh/hook: pre-install}}\ndata: {b: \"2\"}\n",
            ),
        ];
        let release =
            PostRenderer::of(&object(spec), Defaults::default()).run(rendered(&files)).expect("rendered");
        let text = release.manifest_text();
        for part in ["x: why", "image: nginx:2", "team: a", "note: b"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("postrender"), "{text}");
        assert_eq!(release.hooks.len(), 1);
        assert!(release.hooks[0].manifest.contains("team: a"));
    }

    #[test]
    fn hooks_can_be_left_out() {
        let spec = json!({"postRenderStrategy": "nohooks"});
        let files = [
            ("c/templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
            (
                "c/templates/h.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: h, annotations: {helm.sh/hook: pre-install}}\ndata: {b: \"2\"}\n",
            ),
        ];
        let release =
            PostRenderer::of(&object(spec), Defaults::default()).run(rendered(&files)).expect("rendered");
        assert!(!release.hooks[0].manifest.contains("toolkit"));
        assert!(release.manifest_text().contains("toolkit"));
    }

    #[test]
    fn the_same_object_twice_is_refused() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        let twice = PostRenderer::of(&object(json!({})), Defaults::default())
            .run(rendered(&[("c/templates/a.yaml", text), ("c/templates/b.yaml", text)]));
        assert!(
            twice
                .expect_err("refused")
                .to_string()
                .contains("already registered id: ConfigMap.v1.[noGrp]/a.[noNs]")
        );
    }
}
