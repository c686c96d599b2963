//! `uninstall`: takes the controllers away, and leaves what they delivered.

use anyhow::{Context, bail};
use http::Method;
use serde_json::json;

use crate::args::{Call, CommandResult, action};
use crate::cluster::{Cluster, Resource, Select, name_of, namespace_of};
use crate::command::{Node, Plain};
use crate::commands::check::{Installed, PART_OF, crds, installed};
use crate::flag::switch;
use crate::resource_kinds::{self, Kind};
use crate::{logger, prompt};

pub(crate) fn node() -> Node {
    Node::leaf(
        "uninstall",
        "Remove the controllers and their custom resource definitions",
        action(|call: Call| async move { run(&call).await }),
    )
    .plain(Plain::None)
    .flags(&[
        switch("keep-namespace", "Keep the namespace"),
        switch("dry-run", "Only say what would be deleted"),
        switch("silent", "Do not ask for confirmation").short('s'),
    ])
    .example("Look first", "uninstall --dry-run")
}

/// Order in which finalizers are taken off.
const KINDS: [&Kind; 14] = [
    &resource_kinds::GIT,
    &resource_kinds::OCI,
    &resource_kinds::HELM,
    &resource_kinds::CHART,
    &resource_kinds::BUCKET,
    &resource_kinds::KUSTOMIZATION,
    &resource_kinds::HELM_RELEASE,
    &resource_kinds::ALERT,
    &resource_kinds::PROVIDER,
    &resource_kinds::RECEIVER,
    &resource_kinds::IMAGE_POLICY,
    &resource_kinds::IMAGE_REPOSITORY,
    &resource_kinds::IMAGE_UPDATE,
    &resource_kinds::GENERATOR,
];

async fn run(call: &Call) -> CommandResult {
    let cluster = Cluster::connect(call).await?;
    let dry = call.on("dry-run");
    if !dry && !call.on("silent") {
        let info = match installed(&cluster).await {
            Ok(info) => info,
            Err(error) if error.is_not_found() => Installed::default(),
            Err(error) => bail!("cluster info unavailable: {error}"),
        };
        prompt::confirm(&match info.managed_by.as_str() {
            "" | "flux" => {
                "Are you sure you want to delete Flux and its custom resource definitions".to_owned()
            }
            manager => format!(
                "Flux is managed by {manager}! Are you sure you want to delete Flux and its CRDs using Flux CLI"
            ),
        })?;
    }
    let namespace = call.namespace();
    logger::action(format!("deleting components in {namespace} namespace"));
    let rbac = "rbac.authorization.k8s.io/v1";
    for resource in [
        Resource::new("apps/v1", "Deployment", "deployments", true),
        Resource::new("v1", "Service", "services", true),
        Resource::new("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", true),
        Resource::new("v1", "ServiceAccount", "serviceaccounts", true),
        Resource::new(rbac, "ClusterRole", "clusterroles", false),
        Resource::new(rbac, "ClusterRoleBinding", "clusterrolebindings", false),
    ] {
        delete_all(&cluster, &resource, namespace, dry).await;
    }
    logger::action("deleting toolkit.fluxcd.io finalizers in all namespaces");
    for kind in KINDS {
        remove_finalizers(&cluster, kind, dry).await;
    }
    logger::action("deleting toolkit.fluxcd.io custom resource definitions");
    delete_all(&cluster, &crds(), "", dry).await;
    if !call.on("keep-namespace") {
        let namespaces = Resource::new("v1", "Namespace", "namespaces", false);
        delete_one(&cluster, &namespaces, "", namespace, dry).await;
    }
    logger::success("uninstall finished");
    Ok(())
}

fn dry_run(dry: bool) -> &'static str {
    if dry { "(dry run)" } else { "" }
}

/// A list that cannot be read is skipped, as flux skips it; a failed delete is reported and does not stop the others.
async fn delete_all(cluster: &Cluster, resource: &Resource, namespace: &str, dry: bool) {
    let select = Select::in_namespace(namespace).labelled(PART_OF);
    for object in cluster.list(resource, &select).await.unwrap_or_default() {
        delete_one(cluster, resource, namespace_of(&object), name_of(&object), dry).await;
    }
}

async fn delete_one(cluster: &Cluster, resource: &Resource, namespace: &str, name: &str, dry: bool) {
    let id = match namespace {
        "" => format!("{}/{name}", resource.kind),
        namespace => format!("{}/{namespace}/{name}", resource.kind),
    };
    match cluster.delete(resource, namespace, name, "Background", dry).await {
        Ok(_) => logger::success(format!("{id} deleted {}", dry_run(dry))),
        Err(error) => logger::failure(format!("{id} deletion failed: {error}")),
    }
}

async fn remove_finalizers(cluster: &Cluster, kind: &Kind, dry: bool) {
    let resource = kind.resource();
    for object in cluster.list(&resource, &Select::default()).await.unwrap_or_default() {
        let (namespace, name) = (namespace_of(&object), name_of(&object));
        let id = format!("{}/{namespace}/{name}", kind.kind);
        let mut query = vec![("fieldManager", "flux".to_owned())];
        if dry {
            query.push(("dryRun", "All".to_owned()));
        }
        let patch = json!({"metadata": {"finalizers": null}}).to_string().into_bytes();
        let path = resource.path(Some(namespace), Some(name));
        let done =
            cluster.json(Method::PATCH, &path, &query, Some(("application/merge-patch+json", patch))).await;
        match done.context("patch") {
            Ok(_) => logger::success(format!("{id} finalizers deleted {}", dry_run(dry))),
            Err(error) => logger::failure(format!("{id} removing finalizers failed: {}", error.root_cause())),
        }
    }
}
