//! `tree`: what an object delivers, from inventories and Helm's storage.

use std::collections::HashSet;
use std::io::Read;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;

use crate::args::{Call, CommandResult, action};
use crate::cluster::{Cluster, Resource, Select, name_of, namespace_of, text_at};
use crate::command::{Node, Plain};
use crate::discovery::Discovery;
use crate::flag::{Flag, switch, text};
use crate::resource_kinds;
use crate::{format as view, logger};

const OUTPUT: Flag = text("output", "Print as json or yaml instead of a drawing").short('o');

pub(crate) fn node() -> Node {
    Node::group(
        "tree",
        "Show what an object delivers",
        vec![
            Node::leaf(
                "kustomization",
                "Show what a Kustomization delivers",
                action(|call: Call| async move { kustomization(&call).await }),
            )
            .alias(&["ks"])
            .takes("NAME")
            .flags(&[switch("compact", "Only objects of flux itself"), OUTPUT])
            .example("Everything below a Kustomization", "tree kustomization flux-system")
            .example("Only flux objects, as JSON", "tree ks flux-system --compact -o json"),
            Node::group(
                "artifact",
                "Show what artifact objects make",
                vec![
                    Node::leaf(
                        "generator",
                        "Show what an ArtifactGenerator makes",
                        action(|call: Call| async move { generator(&call).await }),
                    )
                    .takes("NAME")
                    .plain(Plain::Exactly(1))
                    .flags(&[OUTPUT]),
                ],
            ),
        ],
    )
}

/// An object's identity, as inventories write it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Id {
    namespace: String,
    name: String,
    group_kind: GroupKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "PascalCase")]
struct GroupKind {
    group: String,
    kind: String,
}

impl Id {
    fn new(namespace: &str, name: &str, group: &str, kind: &str) -> Id {
        let group_kind = GroupKind { group: group.to_owned(), kind: kind.to_owned() };
        Id { namespace: namespace.to_owned(), name: name.to_owned(), group_kind }
    }

    /// `namespace_name_group_kind`; two underscores in a name stand for a colon.
    fn parse(text: &str) -> anyhow::Result<Id> {
        let broken = || format!("unable to parse stored object metadata: {text}");
        let (namespace, rest) = text.split_once('_').with_context(broken)?;
        let (rest, kind) = rest.rsplit_once('_').with_context(broken)?;
        let (name, group) = rest.rsplit_once('_').with_context(broken)?;
        Ok(Id::new(namespace, &name.replace("__", ":"), group, kind))
    }

    fn text(&self) -> String {
        let kind = &self.group_kind.kind;
        if self.namespace.is_empty() {
            format!("{kind}/{}", self.name)
        } else {
            format!("{kind}/{}/{}", self.namespace, self.name)
        }
    }

    fn is(&self, kind: &resource_kinds::Kind) -> bool {
        self.group_kind.group == kind.group && self.group_kind.kind == kind.kind
    }
}

#[derive(Clone, Debug, Serialize)]
struct Tree {
    resource: Id,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<Tree>,
}

impl Tree {
    fn new(resource: Id) -> Tree {
        Tree { resource, resources: Vec::new() }
    }

    fn drawing(&self) -> String {
        let mut out = format!("{}\n", self.resource.text());
        self.draw_children(&mut out, "");
        out
    }

    fn draw_children(&self, out: &mut String, indent: &str) {
        for (i, child) in self.resources.iter().enumerate() {
            let last = i + 1 == self.resources.len();
            out.push_str(&format!(
                "{indent}{}{}\n",
                if last { "└── " } else { "├── " },
                child.resource.text()
            ));
            child.draw_children(out, &format!("{indent}{}", if last { "    " } else { "│   " }));
        }
    }

    fn print(&self, output: &str) -> CommandResult {
        let text = match output {
            "json" => serde_json::to_string_pretty(self)?,
            "yaml" => view::yaml(&serde_json::to_value(self)?),
            _ => self.drawing(),
        };
        logger::data_line(&text);
        Ok(())
    }
}

async fn kustomization(call: &Call) -> CommandResult {
    let Some(name) = call.args.first() else { bail!("kustomization name is required") };
    let cluster = Cluster::connect(call).await?;
    let object = cluster.get(&resource_kinds::KUSTOMIZATION.resource(), call.namespace(), name).await?;
    let mut walk =
        Walk { cluster: &cluster, compact: call.on("compact"), seen: HashSet::new(), discovery: None };
    let mut tree = Tree::new(Id::new(
        namespace_of(&object),
        name_of(&object),
        resource_kinds::KUSTOMIZATION.group,
        "Kustomization",
    ));
    walk.kustomization(&mut tree, &object).await?;
    tree.print(call.text("output"))
}

async fn generator(call: &Call) -> CommandResult {
    let Some(name) = call.args.first() else { bail!("generator name is required") };
    let cluster = Cluster::connect(call).await?;
    let object = cluster.get(&resource_kinds::GENERATOR.resource(), call.namespace(), name).await?;
    let mut tree = Tree::new(Id::new(
        namespace_of(&object),
        name_of(&object),
        resource_kinds::GENERATOR.group,
        resource_kinds::GENERATOR.kind,
    ));
    for made in object.pointer("/status/inventory").and_then(Value::as_array).into_iter().flatten() {
        let id = Id::new(
            text_at(made, "/namespace"),
            text_at(made, "/name"),
            resource_kinds::EXTERNAL.group,
            resource_kinds::EXTERNAL.kind,
        );
        tree.resources.push(Tree::new(id));
    }
    tree.print(call.text("output"))
}

struct Walk<'a> {
    cluster: &'a Cluster,
    compact: bool,
    /// Kustomizations on the way down: one that delivers itself through others must not be walked for ever.
    seen: HashSet<Id>,
    discovery: Option<Discovery>,
}

impl Walk<'_> {
    fn shows(&self, id: &Id) -> bool {
        !self.compact || id.group_kind.group.contains("toolkit.fluxcd.io")
    }

    async fn kustomization(&mut self, tree: &mut Tree, object: &Value) -> anyhow::Result<()> {
        self.seen.insert(tree.resource.clone());
        for entry in
            object.pointer("/status/inventory/entries").and_then(Value::as_array).into_iter().flatten()
        {
            let id = Id::parse(text_at(entry, "/id"))?;
            if !self.shows(&id) || id == tree.resource {
                continue;
            }
            let mut child = Tree::new(id.clone());
            if id.is(&resource_kinds::HELM_RELEASE) {
                let delivered = self.release(&id).await?;
                child.resources = delivered.into_iter().filter(|id| self.shows(id)).map(Tree::new).collect();
            }
            let remote = object.pointer("/spec/kubeConfig").is_some();
            if id.is(&resource_kinds::KUSTOMIZATION) && !remote && !self.seen.contains(&id) {
                let next = self
                    .cluster
                    .get(&resource_kinds::KUSTOMIZATION.resource(), &id.namespace, &id.name)
                    .await
                    .map_err(|e| anyhow::Error::from(e).context("failed to find object"))?;
                Box::pin(self.kustomization(&mut child, &next)).await?;
            }
            tree.resources.push(child);
        }
        self.seen.remove(&tree.resource);
        Ok(())
    }

    /// What a release holds, from the manifest in Helm's storage; nothing when it is elsewhere or not there yet.
    async fn release(&mut self, id: &Id) -> anyhow::Result<Vec<Id>> {
        let release =
            self.cluster.get(&resource_kinds::HELM_RELEASE.resource(), &id.namespace, &id.name).await?;
        let storage_namespace = text_at(&release, "/status/storageNamespace");
        let Some(latest) = release.pointer("/status/history/0") else { return Ok(Vec::new()) };
        if release.pointer("/spec/kubeConfig").is_some() || storage_namespace.is_empty() {
            return Ok(Vec::new());
        }
        let whose = format!("{}/{}", id.namespace, id.name);
        let name = format!("sh.helm.release.v1.{}.v{}", text_at(latest, "/name"), latest["version"]);
        let secrets = Resource::new("v1", "Secret", "secrets", true);
        let Some(secret) =
            self.cluster.find(&secrets, storage_namespace, &name).await.with_context(|| {
                format!("failed to find the Helm storage object for HelmRelease '{whose}'")
            })?
        else {
            return Ok(Vec::new());
        };
        let manifest = stored_manifest(text_at(&secret, "/data/release"))
            .with_context(|| format!("failed to decode the Helm storage object for HelmRelease '{whose}'"))?;
        let objects = view::documents(manifest.as_bytes())
            .with_context(|| format!("failed to read the Helm storage object for HelmRelease '{whose}'"))?;
        let mut found = Vec::new();
        for object in objects.iter().filter(|o| !name_of(o).is_empty()) {
            let (group, kind) =
                (fl_types::api_group(text_at(object, "/apiVersion")), text_at(object, "/kind"));
            let namespace = match namespace_of(object) {
                "" if self.namespaced(group, kind).await? => text_at(latest, "/namespace"),
                written => written,
            };
            found.push(Id::new(namespace, name_of(object), group, kind));
        }
        let takes_crds = ["/spec/install/crds", "/spec/upgrade/crds"]
            .iter()
            .any(|at| !matches!(text_at(&release, at), "" | "Skip"));
        if takes_crds {
            self.add_crds(id, &mut found).await;
        }
        Ok(found)
    }

    async fn namespaced(&mut self, group: &str, kind: &str) -> anyhow::Result<bool> {
        if self.discovery.is_none() {
            self.discovery = Some(Discovery::read(self.cluster).await?);
        }
        let discovery = self.discovery.as_ref().expect("read above");
        Ok(discovery.kind(group, kind).is_some_and(|r| r.namespaced))
    }

    /// CRDs that Helm installs are not in the manifest; their labels name the release.
    async fn add_crds(&self, release: &Id, found: &mut Vec<Id>) {
        let group = resource_kinds::HELM_RELEASE.group;
        let labels = format!("{group}/name={},{group}/namespace={}", release.name, release.namespace);
        let crds = Resource::new(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            false,
        );
        let select = Select { labels: Some(labels), ..Select::default() };
        for crd in self.cluster.list(&crds, &select).await.unwrap_or_default() {
            let id = Id::new("", name_of(&crd), &crds.group, &crds.kind);
            if !found.iter().any(|f| f.name == id.name && f.group_kind.kind == id.group_kind.kind) {
                found.push(id);
            }
        }
    }
}

/// The manifest inside Helm's storage: base64 of the secret, base64 of Helm, gzip, JSON.
fn stored_manifest(data: &str) -> anyhow::Result<String> {
    const LIMIT: u64 = 64 << 20;
    let helm = STANDARD.decode(data)?;
    let packed = STANDARD.decode(helm)?;
    let mut json = Vec::new();
    if packed.starts_with(&[0x1f, 0x8b, 0x08]) {
        flate2::read::GzDecoder::new(packed.as_slice()).take(LIMIT).read_to_end(&mut json)?;
    } else {
        json = packed;
    }
    let release: Value = serde_json::from_slice(&json)?;
    Ok(text_at(&release, "/manifest").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inventory_entries_are_read_from_both_ends() {
        let id = Id::parse("prod_web_apps_Deployment").unwrap();
        assert_eq!(id.text(), "Deployment/prod/web");
        let id = Id::parse("_system__node_rbac.authorization.k8s.io_ClusterRole").unwrap();
        assert_eq!((id.name.as_str(), id.text()), ("system:node", "ClusterRole/system:node".to_owned()));
        assert!(Id::parse("nothing").is_err());
    }

    #[test]
    fn last_child_ends_its_branch() {
        let id = |name: &str| Id::new("a", name, "", "K");
        let inner = Tree { resource: id("x"), resources: vec![Tree::new(id("y"))] };
        let tree = Tree { resource: id("r"), resources: vec![inner, Tree::new(id("z"))] };
        assert_eq!(tree.drawing(), "K/a/r\n├── K/a/x\n│   └── K/a/y\n└── K/a/z\n");
    }
}
