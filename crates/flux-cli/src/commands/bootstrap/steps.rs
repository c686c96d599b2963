//! The steps every bootstrap takes once its repository is there.

use std::path::PathBuf;

use anyhow::{Context, bail};
use fl_install::Options;
use serde_json::{Value, json};

use super::clone::Clone;
use crate::args::{Call, CommandResult};
use crate::cluster::{Cluster, Resource, text_at};
use crate::commands::check::wait_for;
use crate::commands::create::{Content, upsert_secret};
use crate::commands::install;
use crate::resource_kinds::{self, Kind};
use crate::{format as view, logger};

/// One installation that is to deliver itself.
pub(super) struct Delivery<'a> {
    call: &'a Call,
    cluster: Cluster,
    options: Options,
    objects: Vec<Value>,
    /// The cluster's folder in the repository, without `./`.
    path: String,
}

impl<'a> Delivery<'a> {
    /// # Errors
    /// Options that give no installation.
    pub(super) fn new(call: &'a Call, cluster: Cluster, options: Options) -> anyhow::Result<Self> {
        let objects = fl_install::manifests(&options).context("component manifest generation failed")?;
        let path = call.text("path").trim_start_matches("./").to_owned();
        Ok(Delivery { call, cluster, options, objects, path })
    }

    fn folder(&self) -> PathBuf {
        PathBuf::from(&self.path).join(self.call.namespace())
    }

    /// A cluster that delivers another folder must not be moved by accident.
    pub(super) async fn check_path(&self) -> CommandResult {
        let (namespace, path) = (self.call.namespace(), &self.path);
        let found = match self
            .cluster
            .find(&resource_kinds::KUSTOMIZATION.resource(), namespace, namespace)
            .await
        {
            Ok(found) => found,
            Err(error) if error.is_no_match() => None,
            Err(error) => {
                bail!(
                    "failed to determine if sync configuration would overwrite existing Kustomization: {error}"
                )
            }
        };
        let plain = |text: &str| text.trim_start_matches("./").trim_end_matches('/').to_owned();
        if let Some(found) = found {
            let current = text_at(&found, "/spec/path");
            if plain(current) != plain(path) {
                bail!(
                    "sync path configuration ({path:?}) would overwrite path ({current:?}) of existing Kustomization"
                );
            }
        }
        Ok(())
    }

    /// Clones, commits the components and installs them.
    pub(super) async fn components(&self, clone: &Clone) -> CommandResult {
        clone.start()?;
        logger::action("generating component manifests");
        let text = install::manifest_text(&self.options, &self.objects)?;
        clone.write(&self.folder().join("gotk-components.yaml"), &text)?;
        logger::success("generated component manifests");
        let message = format!("Add Flux {} component manifests", self.options.version);
        clone.publish(self.call, &message, "component manifests")?;
        logger::action(format!("installing components in {:?} namespace", self.call.namespace()));
        install::apply(&self.cluster, &self.objects).await?;
        logger::success("installed components");
        install::pull_secret(self.call, &self.cluster, &self.options).await?;
        logger::success("reconciled components");
        Ok(())
    }

    /// Whether the cluster has the secret with credentials already.
    pub(super) async fn has_secret(&self) -> anyhow::Result<bool> {
        let (name, namespace) = (self.call.text("secret-name"), self.call.namespace());
        logger::action(format!("determining if source secret {:?} exists", format!("{namespace}/{name}")));
        let secrets = Resource::new("v1", "Secret", "secrets", true);
        Ok(self.cluster.find(&secrets, namespace, name).await?.is_some())
    }

    pub(super) async fn apply_secret(&self, content: &Content) -> CommandResult {
        let (name, namespace) = (self.call.text("secret-name"), self.call.namespace());
        logger::action(format!("applying source secret {:?}", format!("{namespace}/{name}")));
        upsert_secret(&self.cluster, &content.secret(name, namespace, &Default::default(), "")).await?;
        logger::success("reconciled source secret");
        Ok(())
    }

    /// The secret with credentials that were given.
    pub(super) async fn source_secret(&self, content: &Content) -> CommandResult {
        if self.has_secret().await? && content.is_empty() {
            logger::success("source secret up to date");
            return Ok(());
        }
        logger::action("generating source secret");
        self.apply_secret(content).await
    }

    /// The objects that make the repository deliver the cluster, and the kustomization that lists them.
    pub(super) async fn sync(&self, clone: &Clone, url: &str) -> CommandResult {
        logger::action("generating sync manifests");
        let objects = sync_objects(self.call, url, &self.path);
        let text = format!(
            "# This manifest was generated by fluorite. DO NOT EDIT.\n---\n{}---\n{}",
            view::yaml(&objects[0]),
            view::yaml(&objects[1])
        );
        clone.write(&self.folder().join("gotk-sync.yaml"), &text)?;
        let kustomization = self.folder().join("kustomization.yaml");
        // A kustomization with patches of the user's stays as it is.
        if !clone.folder.path().join(&kustomization).exists() {
            let list = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- gotk-components.yaml\n- gotk-sync.yaml\n";
            clone.write(&kustomization, list)?;
        }
        logger::success("generated sync manifests");
        clone.publish(self.call, "Add Flux sync manifests", "sync manifests")?;
        logger::action("applying sync manifests");
        install::apply(&self.cluster, &objects).await?;
        logger::success("reconciled sync configuration");
        Ok(())
    }

    /// Waits until the cluster delivers itself.
    pub(super) async fn finish(&self, clone: &Clone) -> CommandResult {
        let revision = format!("{}@sha1:{}", clone.branch, clone.head()?);
        for kind in [&resource_kinds::GIT, &resource_kinds::KUSTOMIZATION] {
            reconciled(&self.cluster, kind, self.call.namespace(), &revision).await?;
        }
        logger::action("confirming components are healthy");
        for deployment in self.objects.iter().filter(|o| o["kind"] == "Deployment") {
            if !wait_for(&self.cluster, deployment).await {
                bail!("timed out waiting for all resources to be ready");
            }
        }
        logger::success("all components are healthy");
        Ok(())
    }
}

fn sync_objects(call: &Call, url: &str, path: &str) -> Vec<Value> {
    let namespace = call.namespace();
    let metadata = json!({"name": namespace, "namespace": namespace});
    let mut spec = json!({
        "interval": call.text("interval"),
        "ref": {"branch": call.text("branch")},
        "secretRef": {"name": call.text("secret-name")},
        "url": url,
    });
    if call.on("recurse-submodules") {
        spec["recurseSubmodules"] = json!(true);
    }
    if !call.list("sparse-checkout").is_empty() {
        spec["sparseCheckout"] = json!(call.list("sparse-checkout"));
    }
    vec![
        json!({"apiVersion": resource_kinds::GIT.api_version(), "kind": "GitRepository", "metadata": metadata, "spec": spec}),
        json!({
            "apiVersion": resource_kinds::KUSTOMIZATION.api_version(),
            "kind": "Kustomization",
            "metadata": metadata,
            "spec": {
                "interval": "10m0s",
                "path": format!("./{path}"),
                "prune": true,
                "sourceRef": {"kind": "GitRepository", "name": namespace},
            },
        }),
    ]
}

async fn reconciled(cluster: &Cluster, kind: &Kind, name: &str, revision: &str) -> CommandResult {
    logger::waiting(format!("waiting for {} \"{name}/{name}\" to be reconciled", kind.kind));
    let resource = kind.resource();
    let done = cluster
        .poll(|| async {
            let object = cluster.get(&resource, name, name).await?;
            Ok((kind.revision(&object) == revision && resource_kinds::is_ready(&object, true)?).then_some(()))
        })
        .await;
    if let Err(error) = done {
        logger::failure(format!("{error:#}"));
        bail!("error while waiting for {} to be ready: '{error:#}'", kind.kind);
    }
    logger::success(format!("{} reconciled successfully", kind.kind));
    Ok(())
}
