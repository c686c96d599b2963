//! `create tenant`: namespaces with an account that may do what a role allows, and no more.

use anyhow::bail;
use serde_json::{Value, json};

use super::{labels, metadata, name};
use crate::args::{Call, CommandResult, action};
use crate::cluster::{Cluster, Resource, name_of, namespace_of};
use crate::command::Node;
use crate::flag::{list, switch, text};
use crate::{format as view, logger};

const TENANT_LABEL: &str = "toolkit.fluxcd.io/tenant";

pub(super) fn node() -> Node {
    Node::leaf(
        "tenant",
        "Create or update a tenant: namespaces, accounts and role bindings",
        action(|call: Call| async move { run(&call).await }),
    )
    .takes("NAME")
    .flags(&[
        list("with-namespace", "Namespaces of the tenant"),
        text("cluster-role", "Role of the tenant in its namespaces").or("cluster-admin"),
        text("with-service-account", "Name of the account; by default the tenant's"),
        switch("skip-namespace", "The namespaces exist already"),
    ])
    .example("Two namespaces", "create tenant shop --with-namespace=front --with-namespace=back")
    .example("May edit, no more", "create tenant shop --with-namespace=front --cluster-role=edit --export")
}

fn checked(what: &str, text: &str) -> CommandResult {
    match fl_types::check_qualified_name(text) {
        Ok(()) => Ok(()),
        Err(error) => bail!("invalid {what} '{text}': [{}]", error.messages().join(" ")),
    }
}

async fn run(call: &Call) -> CommandResult {
    let tenant = name(call);
    checked("tenant name", tenant)?;
    if call.text("cluster-role").is_empty() {
        bail!("cluster-role is required");
    }
    if call.list("with-namespace").is_empty() {
        bail!("with-namespace is required");
    }
    let account = match call.text("with-service-account") {
        "" => tenant,
        given => given,
    };
    let mut sets = Vec::new();
    for namespace in call.list("with-namespace") {
        checked("namespace", namespace)?;
        let mut labels = labels(call)?;
        labels.insert(TENANT_LABEL.to_owned(), tenant.to_owned());
        checked("service-account name", account)?;
        sets.push([
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(namespace, "", &labels)}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(account, namespace, &labels)}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": metadata(&format!("{tenant}-reconciler"), namespace, &labels),
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": call.text("cluster-role")},
                "subjects": [
                    {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": format!("gotk:{namespace}:reconciler")},
                    {"kind": "ServiceAccount", "name": account, "namespace": namespace},
                ],
            }),
        ]);
    }
    let skip = usize::from(call.on("skip-namespace"));
    if call.on("export") {
        sets.iter().flat_map(|set| &set[skip..]).for_each(|object| logger::data(&view::exported(object)));
        return Ok(());
    }
    let cluster = Cluster::connect(call).await?;
    for [namespace, account, binding] in &sets {
        if skip == 0 {
            logger::action(format!("applying namespace {}", name_of(namespace)));
            relabel(&cluster, &Resource::new("v1", "Namespace", "namespaces", false), namespace).await?;
        }
        logger::action(format!("applying service account {}", name_of(account)));
        relabel(&cluster, &Resource::new("v1", "ServiceAccount", "serviceaccounts", true), account).await?;
        logger::action(format!("applying role binding {}", name_of(binding)));
        rebind(&cluster, binding).await?;
    }
    logger::success("tenant setup completed");
    Ok(())
}

/// Whether every label wanted is there already.
fn has_labels(existing: &Value, wanted: &Value) -> bool {
    let labels =
        |o: &Value| o.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
    let present = labels(existing);
    labels(wanted).iter().all(|(key, value)| present.get(key) == Some(value))
}

async fn relabel(cluster: &Cluster, resource: &Resource, wanted: &Value) -> anyhow::Result<()> {
    match cluster.find(resource, namespace_of(wanted), name_of(wanted)).await? {
        None => {
            cluster.create(resource, namespace_of(wanted), wanted).await?;
        }
        Some(mut existing) if !has_labels(&existing, wanted) => {
            existing["metadata"]["labels"] = wanted["metadata"]["labels"].clone();
            cluster.update(resource, &existing).await?;
        }
        Some(_) => {}
    }
    Ok(())
}

/// The role of a binding cannot be changed: a different one takes its place.
async fn rebind(cluster: &Cluster, wanted: &Value) -> anyhow::Result<()> {
    let resource = Resource::new("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", true);
    let (namespace, name) = (namespace_of(wanted), name_of(wanted));
    if let Some(existing) = cluster.find(&resource, namespace, name).await? {
        let same = existing["subjects"] == wanted["subjects"] && existing["roleRef"] == wanted["roleRef"];
        if same && has_labels(&existing, wanted) {
            return Ok(());
        }
        cluster.delete(&resource, namespace, name, "Background", false).await?;
    }
    cluster.create(&resource, namespace, wanted).await?;
    Ok(())
}
