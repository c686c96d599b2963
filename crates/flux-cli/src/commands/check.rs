//! `flux check`: prerequisites, controllers and CRDs of an installation.

use anyhow::bail;
use fl_semver::{Constraints, Version};
use serde_json::Value;

use crate::args::{Call, CommandResult, ExitError, action};
use crate::cluster::{ApiError, Cluster, Resource, Select, name_of, text_at};
use crate::command::{Node, Plain};
use crate::flag::{duration, list, switch};
use crate::logger;
use crate::resource_kinds;

/// The oldest Kubernetes that is supported.
const KUBERNETES: &str = ">=1.33.0-0";
const UP: &str = "fluorite up";
pub(crate) const PART_OF: &str = "app.kubernetes.io/part-of=flux";

pub(crate) fn check_node() -> Node {
    Node::leaf(
        "check",
        "Check the cluster and what is installed on it",
        action(|call: Call| async move { check(&call).await }),
    )
    .plain(Plain::None)
    .flags(&[
        switch("pre", "Only what an installation needs"),
        list("components", "Accepted for compatibility: every controller that is found is checked")
            .or("source-controller,kustomize-controller,helm-controller,notification-controller")
            .constant("flux checks every controller it finds, whatever the flag says"),
        list("components-extra", "Accepted for compatibility: every controller that is found is checked")
            .constant("flux checks every controller it finds, whatever the flag says"),
        duration("poll-interval", "5s", "How often to look while waiting"),
    ])
    .example("Before an installation", "check --pre")
    .example("After it", "check")
}

pub(super) fn deployments() -> Resource {
    Resource::new("apps/v1", "Deployment", "deployments", true)
}

pub(crate) fn crds() -> Resource {
    Resource::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false)
}

/// The installation, from the labels of a CRD.
#[derive(Default)]
pub(crate) struct Installed {
    pub(crate) bootstrapped: bool,
    pub(crate) managed_by: String,
    pub(super) distribution: String,
    pub(crate) version: String,
}

impl Installed {
    /// Whether the engine is a `fluorite up` process outside the cluster, which has no Deployments.
    pub(super) fn is_delivered_by_up(&self) -> bool {
        self.managed_by == fl_install::UP_MANAGER
    }
}

/// # Errors
/// The CRD does not exist, or cannot be read.
pub(crate) async fn installed(cluster: &Cluster) -> Result<Installed, ApiError> {
    let crd = cluster.get(&crds(), "", "gitrepositories.source.toolkit.fluxcd.io").await?;
    let label = |key: &str| text_at(&crd, &format!("/metadata/labels/{}", key.replace('/', "~1"))).to_owned();
    let version = label("app.kubernetes.io/version");
    let part_of = label("app.kubernetes.io/part-of");
    Ok(Installed {
        bootstrapped: !label("kustomize.toolkit.fluxcd.io/namespace").is_empty(),
        managed_by: label("app.kubernetes.io/managed-by"),
        distribution: if part_of.is_empty() { version.clone() } else { format!("{part_of}-{version}") },
        version,
    })
}

async fn check(call: &Call) -> CommandResult {
    logger::action("checking prerequisites");
    let cluster = match Cluster::connect(call).await {
        Ok(cluster) => cluster,
        Err(error) => {
            bail!("Kubernetes client initialization failed: kubernetes configuration load failed: {error:#}")
        }
    };
    let mut good = check_kubernetes(&cluster).await;
    if call.on("pre") {
        if !good {
            return Err(ExitError::Silent(1).into());
        }
        logger::success("prerequisites checks passed");
        return Ok(());
    }
    logger::action("checking version in cluster");
    let installed = installed(&cluster).await;
    match &installed {
        Ok(info) => {
            if !info.distribution.is_empty() {
                logger::success(format!("distribution: {}", info.distribution));
            }
            logger::success(format!("bootstrapped: {}", info.bootstrapped));
        }
        Err(error) => {
            logger::failure(format!("checking failed: {error}"));
            good = false;
        }
    }
    logger::action("checking controllers");
    let is_external = installed.is_ok_and(|info| info.is_delivered_by_up());
    good &= check_controllers(call, &cluster, is_external).await;
    logger::action("checking crds");
    good &= check_crds(&cluster).await;
    if !good {
        return Err(ExitError::Failure { code: 1, message: "check failed".to_owned() }.into());
    }
    logger::success("all checks passed");
    Ok(())
}

async fn check_kubernetes(cluster: &Cluster) -> bool {
    let text = match cluster.server_version().await {
        Ok(text) => text,
        Err(error) => {
            logger::failure(format!("Kubernetes API call failed: {error}"));
            return false;
        }
    };
    let Ok(version) = text.trim_start_matches('v').parse::<Version>() else {
        logger::failure("Kubernetes version can't be determined");
        return false;
    };
    let wanted: Constraints = KUBERNETES.parse().expect("a fixed range");
    if !wanted.check(&version) {
        logger::failure(format!("Kubernetes version {text} does not match {KUBERNETES}"));
        return false;
    }
    logger::success(format!("Kubernetes {version} {KUBERNETES}"));
    true
}

/// `is_external`: the engine runs outside the cluster.
async fn check_controllers(call: &Call, cluster: &Cluster, is_external: bool) -> bool {
    let namespace = call.namespace();
    let Ok(found) = cluster.list(&deployments(), &Select::in_namespace(namespace).labelled(PART_OF)).await
    else {
        return true;
    };
    if found.is_empty() && is_external {
        logger::success(format!("the controllers run outside the cluster, in `{UP}`"));
        return true;
    }
    if found.is_empty() {
        logger::failure(format!(
            "no controllers found in the '{namespace}' namespace with the label selector '{PART_OF}'"
        ));
        return false;
    }
    let mut good = true;
    for deployment in &found {
        // Each has the whole time: one that never gets ready must not count against the others.
        let limit = call.duration("timeout").to_std().unwrap_or_default();
        let every = call.duration("poll-interval").to_std().unwrap_or_default();
        good &= wait_for(&cluster.within(limit).polling(every), deployment).await;
        for container in containers(deployment) {
            logger::action(text_at(container, "/image"));
        }
    }
    good
}

/// Waits for a Deployment within the command's time and says how it went.
pub(crate) async fn wait_for(cluster: &Cluster, deployment: &Value) -> bool {
    let (namespace, name) = (crate::cluster::namespace_of(deployment), name_of(deployment));
    let resource = deployments();
    let ready = cluster
        .poll(|| async {
            let found = cluster.find(&resource, namespace, name).await?;
            // A Deployment that failed may still recover: only the time ends the wait.
            Ok(found.filter(|d| resource_kinds::settled(d).unwrap_or(false)))
        })
        .await;
    match ready {
        Ok(_) => logger::success(format!("{name}: deployment ready")),
        Err(_) => logger::failure(format!("{name}: deployment not ready")),
    }
    ready.is_ok()
}

pub(super) fn containers(deployment: &Value) -> impl Iterator<Item = &Value> {
    deployment.pointer("/spec/template/spec/containers").and_then(Value::as_array).into_iter().flatten()
}

async fn check_crds(cluster: &Cluster) -> bool {
    let select = Select { labels: Some(PART_OF.to_owned()), ..Select::default() };
    let Ok(found) = cluster.list(&crds(), &select).await else { return true };
    if found.is_empty() {
        logger::failure(format!("no crds found with the label selector '{PART_OF}'"));
        return false;
    }
    let mut good = true;
    for crd in &found {
        let last = crd.pointer("/status/storedVersions").and_then(Value::as_array).and_then(|v| v.last());
        match last.and_then(Value::as_str) {
            Some(version) => logger::success(format!("{}/{version}", name_of(crd))),
            None => {
                good = false;
                logger::failure(format!("no stored versions for {}", name_of(crd)));
            }
        }
    }
    good
}
