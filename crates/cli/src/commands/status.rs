//! `check` and `version`: what is installed and whether it runs.

use std::collections::BTreeMap;

use anyhow::bail;
use fl_semver::{Constraints, Version};
use serde_json::{Value, json};

use crate::call::{Call, Exit, Outcome, action};
use crate::cluster::{ApiError, Cluster, Resource, Select, name_of, text_at};
use crate::flag::{duration, list, switch, text};
use crate::image::repository;
use crate::kinds;
use crate::node::{Node, Plain};
use crate::{UP_MANAGER, VERSION, say, text as view};

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

pub(crate) fn version_node() -> Node {
    Node::leaf(
        "version",
        "Print the versions of the program and of what is installed",
        action(|call: Call| async move { version(&call).await }),
    )
    .flags(&[
        switch("client", "Only the version of the program"),
        text("output", "json or yaml").or("yaml").short('o'),
    ])
    .example("As JSON", "version -o json")
}

fn deployments() -> Resource {
    Resource::new("apps/v1", "Deployment", "deployments", true)
}

pub(crate) fn crds() -> Resource {
    Resource::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false)
}

/// What the labels of a CRD tell about the installation.
#[derive(Default)]
pub(crate) struct Installed {
    pub(crate) bootstrapped: bool,
    pub(crate) managed_by: String,
    distribution: String,
    pub(crate) version: String,
}

impl Installed {
    /// Whether the engine is a `fluorite up` beside the cluster, which has no Deployments to look for.
    fn is_delivered_by_up(&self) -> bool {
        self.managed_by == UP_MANAGER
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

async fn check(call: &Call) -> Outcome {
    say::action("checking prerequisites");
    let cluster = match Cluster::connect(call).await {
        Ok(cluster) => cluster,
        Err(error) => {
            bail!("Kubernetes client initialization failed: kubernetes configuration load failed: {error:#}")
        }
    };
    let mut good = check_kubernetes(&cluster).await;
    if call.on("pre") {
        if !good {
            return Err(Exit::Silent(1).into());
        }
        say::success("prerequisites checks passed");
        return Ok(());
    }
    say::action("checking version in cluster");
    let installed = installed(&cluster).await;
    match &installed {
        Ok(info) => {
            if !info.distribution.is_empty() {
                say::success(format!("distribution: {}", info.distribution));
            }
            say::success(format!("bootstrapped: {}", info.bootstrapped));
        }
        Err(error) => {
            say::failure(format!("checking failed: {error}"));
            good = false;
        }
    }
    say::action("checking controllers");
    let beside = installed.is_ok_and(|info| info.is_delivered_by_up());
    good &= check_controllers(call, &cluster, beside).await;
    say::action("checking crds");
    good &= check_crds(&cluster).await;
    if !good {
        return Err(Exit::Failure { code: 1, message: "check failed".to_owned() }.into());
    }
    say::success("all checks passed");
    Ok(())
}

async fn check_kubernetes(cluster: &Cluster) -> bool {
    let text = match cluster.server_version().await {
        Ok(text) => text,
        Err(error) => {
            say::failure(format!("Kubernetes API call failed: {error}"));
            return false;
        }
    };
    let Ok(version) = text.trim_start_matches('v').parse::<Version>() else {
        say::failure("Kubernetes version can't be determined");
        return false;
    };
    let wanted: Constraints = KUBERNETES.parse().expect("a fixed range");
    if !wanted.check(&version) {
        say::failure(format!("Kubernetes version {text} does not match {KUBERNETES}"));
        return false;
    }
    say::success(format!("Kubernetes {version} {KUBERNETES}"));
    true
}

/// `beside`: the engine runs outside the cluster.
async fn check_controllers(call: &Call, cluster: &Cluster, beside: bool) -> bool {
    let namespace = call.namespace();
    let Ok(found) = cluster.list(&deployments(), &Select::in_namespace(namespace).labelled(PART_OF)).await
    else {
        return true;
    };
    if found.is_empty() && beside {
        say::success(format!("the controllers run outside the cluster, in `{UP}`"));
        return true;
    }
    if found.is_empty() {
        say::failure(format!(
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
            say::action(text_at(container, "/image"));
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
            Ok(found.filter(|d| kinds::settled(d).unwrap_or(false)))
        })
        .await;
    match ready {
        Ok(_) => say::success(format!("{name}: deployment ready")),
        Err(_) => say::failure(format!("{name}: deployment not ready")),
    }
    ready.is_ok()
}

fn containers(deployment: &Value) -> impl Iterator<Item = &Value> {
    deployment.pointer("/spec/template/spec/containers").and_then(Value::as_array).into_iter().flatten()
}

async fn check_crds(cluster: &Cluster) -> bool {
    let select = Select { labels: Some(PART_OF.to_owned()), ..Select::default() };
    let Ok(found) = cluster.list(&crds(), &select).await else { return true };
    if found.is_empty() {
        say::failure(format!("no crds found with the label selector '{PART_OF}'"));
        return false;
    }
    let mut good = true;
    for crd in &found {
        let last = crd.pointer("/status/storedVersions").and_then(Value::as_array).and_then(|v| v.last());
        match last.and_then(Value::as_str) {
            Some(version) => say::success(format!("{}/{version}", name_of(crd))),
            None => {
                good = false;
                say::failure(format!("no stored versions for {}", name_of(crd)));
            }
        }
    }
    good
}

async fn version(call: &Call) -> Outcome {
    let output = call.text("output");
    if !["yaml", "json"].contains(&output) {
        bail!("--output must be json or yaml, not {output}");
    }
    let (mut distribution, mut controllers) = (String::new(), BTreeMap::new());
    if !call.on("client") {
        let cluster = Cluster::connect(call).await?;
        let installed = match installed(&cluster).await {
            Ok(info) => info,
            Err(error) if error.is_not_found() || error.is_no_match() => Installed::default(),
            Err(error) => return Err(error.into()),
        };
        let found =
            cluster.list(&deployments(), &Select::in_namespace(call.namespace()).labelled(PART_OF)).await?;
        if found.is_empty() && !installed.is_delivered_by_up() {
            bail!("no deployments found in {} namespace", call.namespace());
        }
        distribution = installed.distribution;
        for container in found.iter().flat_map(containers) {
            let (name, tag) = name_and_tag(text_at(container, "/image"))?;
            controllers.insert(name, tag);
        }
    }
    if output == "json" {
        let mut map: BTreeMap<&str, &str> =
            controllers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        map.insert("flux", VERSION);
        if !distribution.is_empty() {
            map.insert("distribution", &distribution);
        }
        say::data_line(&view::pretty_json(&json!(map)));
        return Ok(());
    }
    let mut text = line("flux", VERSION);
    if !distribution.is_empty() {
        text.push_str(&line("distribution", &distribution));
    }
    controllers.iter().for_each(|(name, tag)| text.push_str(&line(name, tag)));
    say::data(&text);
    Ok(())
}

fn line(key: &str, value: &str) -> String {
    view::yaml(&json!({key: value}))
}

/// The last word of an image's name and its tag.
fn name_and_tag(image: &str) -> anyhow::Result<(String, String)> {
    crate::image::check_reference(image)
        .map_err(|why| anyhow::anyhow!("parsing image '{image}' failed: {why}"))?;
    let (registry, _) = repository(image);
    let path = image.strip_prefix(&registry).unwrap_or(image);
    let Some((name, tag)) = path.split_once(':') else { bail!("missing image tag in image {image}") };
    Ok((name.rsplit('/').next().unwrap_or(name).to_owned(), tag.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_split_behind_the_registry() {
        let split = |image| name_and_tag(image).unwrap();
        assert_eq!(
            split("registry.example.com:5000/fluxcd/source-controller:v1.9.4"),
            ("source-controller".into(), "v1.9.4".into())
        );
        assert_eq!(
            split("ghcr.io/x/y:v1@sha256:9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f1e0d9c8b7a6f5e4d3c2b1a0f9e8d").1,
            "v1@sha256:9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f1e0d9c8b7a6f5e4d3c2b1a0f9e8d"
        );
        assert!(name_and_tag("ghcr.io/x/y").is_err());
    }
}
