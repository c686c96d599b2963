//! `export`: objects as the YAML one would keep in Git.

use anyhow::bail;
use serde_json::{Value, json};

use crate::args::{Call, CommandResult, action};
use crate::cluster::{Cluster, Resource, Select, namespace_of, text_at};
use crate::command::Node;
use crate::commands::resource_commands;
use crate::flag::switch;
use crate::go_shape;
use crate::resource_kinds::{self, Kind};
use crate::{format, logger};

pub(crate) fn node() -> Node {
    let one = |name, kind: &'static Kind| {
        let about = format!("Print a {} as YAML", kind.kind);
        Node::leaf(name, &about, action(move |call: Call| async move { run(&call, kind).await }))
            .takes("NAME")
    };
    let mut children = resource_commands::tree("Print", &one);
    if let Some(sources) = children.iter_mut().find(|c| c.name == "source") {
        sources.children.push(one("external", &resource_kinds::EXTERNAL));
        sources.shared.push(switch("with-credentials", "Print the secrets they name, too"));
    }
    children.push(Node::group(
        "artifact",
        "Print artifact objects",
        vec![one("generator", &resource_kinds::GENERATOR)],
    ));
    Node::group("export", "Print objects as YAML", children)
        .child_examples(
            "kustomization",
            &[("All of a namespace", "export kustomization --all > kustomizations.yaml")],
        )
        .shared(&[switch("all", "All objects of the namespace")])
}

async fn run(call: &Call, kind: &'static Kind) -> CommandResult {
    if !call.on("all") && call.args.is_empty() {
        bail!("name is required");
    }
    let cluster = Cluster::connect(call).await?;
    let (resource, namespace) = (kind.resource(), call.namespace());
    let objects = if call.on("all") {
        let all = cluster.list(&resource, &Select::in_namespace(namespace)).await?;
        if all.is_empty() {
            bail!("no objects found in {namespace} namespace");
        }
        all
    } else {
        vec![cluster.get(&resource, namespace, &call.args[0]).await?]
    };
    let credentials = call.has("with-credentials")
        && call.on("with-credentials")
        && ["GitRepository", "OCIRepository", "HelmRepository", "Bucket"].contains(&kind.kind);
    for object in &objects {
        logger::data(&format::exported(&go_shape::export(object)));
        let secret = text_at(object, "/spec/secretRef/name");
        if credentials && !secret.is_empty() {
            // flux stops after the first secret of a list; so do we.
            return print_secret(&cluster, namespace_of(object), secret).await;
        }
    }
    Ok(())
}

async fn print_secret(cluster: &Cluster, namespace: &str, name: &str) -> CommandResult {
    let secrets = Resource::new("v1", "Secret", "secrets", true);
    let found = match cluster.get(&secrets, namespace, name).await {
        Ok(secret) => secret,
        Err(error) => bail!("failed to retrieve secret {name}, error: {error}"),
    };
    let mut secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}});
    for key in ["data", "type"] {
        if let Some(value) = found.get(key).filter(|v: &&Value| !v.is_null()) {
            secret[key] = value.clone();
        }
    }
    logger::data(&format::exported(&secret));
    Ok(())
}
