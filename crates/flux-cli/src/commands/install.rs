//! `install`: the manifests that put Fluorite on a cluster, printed or applied.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context, bail};
use fl_install::{Component, Layout, LogLevel, NetworkPolicy, Options, Watch};
use serde_json::{Value, json};

use crate::args::{Call, CommandResult, action};
use crate::cluster::{Cluster, name_of, namespace_of, text_at};
use crate::command::{Node, Plain};
use crate::commands::check::{Installed, installed, wait_for};
use crate::commands::create::{Content, upsert_secret};
use crate::discovery::Discovery;
use crate::flag::{Flag, checked, list, switch, text};
use crate::resource_kinds;
use crate::{logger, prompt};

/// The image's tag and the labels of what is installed.
const RELEASE: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// Flags that choose what is installed; `bootstrap` has them too.
pub(crate) const COMPONENT_FLAGS: &[Flag] = &[
    text("version", "Release to install; by default this one").short('v'),
    list("components", "Controllers to install")
        .or("source-controller,kustomize-controller,helm-controller,notification-controller"),
    list(
        "components-extra",
        "Further controllers: image-reflector-controller, image-automation-controller, source-watcher, flux-operator, open-flux, open-mcp, flagger",
    ),
    text("registry", "Registry with the image").or("ghcr.io/fluorite-gitops"),
    text("registry-creds", "Credentials for the registry, user:password; needs --image-pull-secret"),
    text("image-pull-secret", "Secret with credentials for the registry"),
    switch("watch-all-namespaces", "Watch all namespaces, not only the own one").or("true"),
    switch("network-policy", "Deny access to the pods from other namespaces").or("true"),
    checked("log-level", log_level, "debug, info or error").or("info"),
    text("cluster-domain", "Internal domain of the cluster").or("cluster.local"),
    list("toleration-keys", "Taints the pods tolerate"),
    switch("split", "One Deployment per controller, named like Flux's, instead of one for all"),
    switch("force", "Replace an installation that another tool manages"),
    text("manifests", "Folder with the manifests to install")
        .hidden()
        .refused("the manifests are part of this program; install others with kubectl"),
];

fn log_level(text: &str) -> Result<String, String> {
    match text {
        "debug" | "info" | "error" => Ok(text.to_owned()),
        _ => Err(format!("unsupported log level '{text}', must be one of: debug, info, error")),
    }
}

pub(crate) fn node() -> Node {
    Node::leaf(
        "install",
        "Install the controllers or print their manifests",
        action(|call: Call| async move { run(&call).await }),
    )
    .plain(Plain::None)
    .flags(COMPONENT_FLAGS)
    .flags(&[
        switch("export", "Print the manifests as YAML instead of applying them"),
        switch("crds-only", "Only the custom resource definitions, with --export"),
    ])
    .example("Into the cluster of the current context", "install")
    .example("As a file", "install --export > flux-system.yaml")
    .example(
        "With image automation",
        "install --components-extra=image-reflector-controller,image-automation-controller",
    )
}

/// Which components the flags name.
fn components(call: &Call) -> anyhow::Result<BTreeSet<Component>> {
    let mut chosen = BTreeSet::new();
    for name in call.list("components").iter().chain(call.list("components-extra")) {
        match name.parse::<Component>() {
            Ok(component) => chosen.insert(component),
            Err(_) => bail!("component {name} is not available"),
        };
    }
    Ok(chosen)
}

/// What to install, from the flags.
///
/// # Errors
/// An unknown component, another version, or one of two flags that need each other.
pub(crate) fn options(call: &Call) -> anyhow::Result<Options> {
    let components = components(call)?;
    let credentials = call.text("registry-creds");
    if !credentials.is_empty() && call.text("image-pull-secret").is_empty() {
        bail!("--registry-creds requires --image-pull-secret to be set");
    }
    if !credentials.is_empty() && credentials.split(':').count() != 2 {
        bail!("invalid --registry-creds format, expected 'user:password'");
    }
    match call.text("version") {
        "" | RELEASE => {}
        other if !other.starts_with('v') => bail!("targeted version '{other}' must be prefixed with 'v'"),
        other => bail!(
            "targeted version '{other}' is not this release; this program installs {RELEASE}, use the program of that release"
        ),
    }
    let secret = call.text("image-pull-secret");
    Ok(Options {
        components,
        namespace: call.namespace().to_owned(),
        registry: call.text("registry").to_owned(),
        image_pull_secret: (!secret.is_empty()).then(|| secret.to_owned()),
        layout: if call.on("split") { Layout::Split } else { Layout::Single },
        network_policy: if call.on("network-policy") { NetworkPolicy::Install } else { NetworkPolicy::Omit },
        watch: if call.on("watch-all-namespaces") { Watch::AllNamespaces } else { Watch::OwnNamespace },
        log_level: match call.text("log-level") {
            "debug" => LogLevel::Debug,
            "error" => LogLevel::Error,
            _ => LogLevel::Info,
        },
        cluster_domain: call.text("cluster-domain").to_owned(),
        toleration_keys: call.list("toleration-keys").to_vec(),
        ..Options::new(RELEASE)
    })
}

/// The manifests with the lines that say where they come from.
///
/// # Errors
/// An option the API server would refuse.
pub(crate) fn manifest_text(options: &Options, objects: &[Value]) -> anyhow::Result<String> {
    let names = options.running().map(fl_install::Component::name).collect::<Vec<_>>().join(",");
    let mut out = String::from("---\n# This manifest was generated by fluorite. DO NOT EDIT.\n");
    let _ = writeln!(out, "# Fluorite Version: {}\n# Components: {names}", options.version);
    out.push_str(&fl_install::to_yaml(objects)?);
    Ok(out)
}

async fn run(call: &Call) -> CommandResult {
    if call.on("crds-only") {
        if !call.on("export") {
            bail!("--crds-only needs --export");
        }
        let chosen =
            if call.changed("components") { components(call)? } else { BTreeSet::from(Component::ALL) };
        logger::data(&fl_install::to_yaml(&fl_install::crds(&chosen))?);
        return Ok(());
    }
    let options = options(call)?;
    let export = call.on("export");
    if !export {
        logger::generate("generating manifests");
    }
    let objects = fl_install::manifests(&options).context("install failed")?;
    tell_absent(&options);
    if export || call.on("verbose") {
        logger::data(&manifest_text(&options, &objects)?);
    }
    if export {
        return Ok(());
    }
    logger::success("manifests build completed");
    logger::action(format!("installing components in {} namespace", options.namespace));
    let cluster = Cluster::connect(call).await?;
    check_other(&cluster, call.on("force")).await?;
    let lines = apply(&cluster, &objects).await.context("install failed")?;
    logger::data_line(&lines);
    pull_secret(call, &cluster, &options).await.context("install failed")?;
    logger::waiting("verifying installation");
    let mut ready = true;
    for deployment in objects.iter().filter(|o| o["kind"] == "Deployment") {
        ready &= wait_for(&cluster, deployment).await;
    }
    if !ready {
        bail!("install failed");
    }
    logger::success("install finished");
    Ok(())
}

/// Says which components only bring their definitions.
pub(crate) fn tell_absent(options: &Options) {
    let names = options.absent().map(fl_install::Component::name).collect::<Vec<_>>().join(", ");
    if !names.is_empty() {
        logger::warning(format!(
            "this release has no controller for {names}: the custom resource definitions are installed, nothing acts on their objects"
        ));
    }
}

/// Asks before an installation of another tool is replaced; one that delivers itself is not touched.
pub(crate) async fn check_other(cluster: &Cluster, force: bool) -> CommandResult {
    let info = match installed(cluster).await {
        Ok(info) => info,
        Err(error) if error.is_not_found() || error.is_no_match() => return Ok(()),
        Err(error) => bail!("cluster info unavailable: {error}"),
    };
    let Installed { bootstrapped, managed_by, version, .. } = &info;
    if *bootstrapped {
        bail!(
            "this cluster has already been bootstrapped with Flux {version}! Please use 'flux bootstrap' to upgrade"
        );
    }
    if !force && !["", "flux"].contains(&managed_by.as_str()) {
        logger::note(&format!("Flux {version} has been installed on this cluster with {managed_by}!\n"));
        if prompt::confirm(&format!("Are you sure you want to override the {managed_by} installation? Y/N"))
            .is_err()
        {
            bail!("installation cancelled");
        }
    }
    Ok(())
}

/// Applies namespaces and definitions, waits for them, then the rest. One line for each object says what happened.
///
/// # Errors
/// The server refuses an object, or a definition does not get ready.
pub(crate) async fn apply(cluster: &Cluster, objects: &[Value]) -> anyhow::Result<String> {
    let first = |o: &&Value| ["Namespace", "CustomResourceDefinition"].contains(&text_at(o, "/kind"));
    let mut lines = Vec::new();
    for object in objects.iter().filter(first) {
        lines.push(apply_one(cluster, object).await?);
    }
    for object in objects.iter().filter(first) {
        let resource =
            Discovery::resource(cluster, text_at(object, "/apiVersion"), text_at(object, "/kind")).await?;
        cluster
            .poll(|| async {
                let found = cluster.find(&resource, "", name_of(object)).await?;
                Ok(found.filter(|o| resource_kinds::settled(o).unwrap_or(false)))
            })
            .await
            .with_context(|| format!("waiting for {}/{}", resource.kind, name_of(object)))?;
    }
    for object in objects.iter().filter(|o| !first(o)) {
        lines.push(apply_one(cluster, object).await?);
    }
    Ok(lines.join("\n"))
}

async fn apply_one(cluster: &Cluster, object: &Value) -> anyhow::Result<String> {
    let (kind, namespace, name) = (text_at(object, "/kind"), namespace_of(object), name_of(object));
    let id =
        if namespace.is_empty() { format!("{kind}/{name}") } else { format!("{kind}/{namespace}/{name}") };
    let resource = Discovery::resource(cluster, text_at(object, "/apiVersion"), kind).await?;
    let before = cluster.find(&resource, namespace, name).await?;
    let after = cluster
        .apply(&resource, object, "flux", false)
        .await
        .with_context(|| format!("{id} apply failed"))?;
    let version = |o: &Value| o.pointer("/metadata/resourceVersion").cloned();
    let what = match before {
        None => "created",
        Some(before) if version(&before) == version(&after) => "unchanged",
        Some(_) => "configured",
    };
    Ok(format!("{id} {what}"))
}

/// The secret that lets the pods pull their image, when credentials were given.
pub(crate) async fn pull_secret(call: &Call, cluster: &Cluster, options: &Options) -> anyhow::Result<bool> {
    let (Some(name), Some((user, password))) =
        (&options.image_pull_secret, call.text("registry-creds").split_once(':'))
    else {
        return Ok(false);
    };
    logger::action(format!("generating image pull secret {name}"));
    let auths = json!({"auths": {&options.registry: {"username": user, "password": password}}});
    let content = Content::default().file(".dockerconfigjson", &auths.to_string());
    let secret =
        content.secret(name, &options.namespace, &Default::default(), "kubernetes.io/dockerconfigjson");
    upsert_secret(cluster, &secret).await?;
    Ok(true)
}
