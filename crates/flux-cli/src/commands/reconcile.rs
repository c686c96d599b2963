//! `reconcile`: ask a controller to look now, and wait until it has.

use anyhow::bail;
use serde_json::{Value, json};

use crate::args::{Call, CommandResult, action};
use crate::cluster::{Cluster, name_of, namespace_of, text_at};
use crate::command::Node;
use crate::flag::switch;
use crate::resource_kinds::{self, Kind};
use crate::{format, logger};

pub(crate) fn node() -> Node {
    let one = |name, kind: &'static Kind| {
        let about = format!("Reconcile a {}", kind.kind);
        Node::leaf(name, &about, action(move |call: Call| async move { run(&call, kind, false).await }))
            .takes("NAME")
    };
    let with_source = [switch("with-source", "Reconcile the source first")];
    let force = [
        switch("force", "Install or upgrade once, even if nothing changed"),
        switch("reset", "Forget earlier failures"),
    ];
    Node::group(
        "reconcile",
        "Ask for a reconciliation and wait for it",
        vec![
            one("kustomization", &resource_kinds::KUSTOMIZATION)
                .alias(&["ks"])
                .flags(&with_source)
                .example("Apply now what is in the artifact", "reconcile kustomization apps")
                .example("Fetch first, then apply", "reconcile ks apps --with-source"),
            one("helmrelease", &resource_kinds::HELM_RELEASE)
                .alias(&["hr"])
                .flags(&with_source)
                .flags(&force)
                .example("Upgrade although nothing changed", "reconcile hr web -n shop --force"),
            one("receiver", &resource_kinds::RECEIVER),
            Node::group(
                "source",
                "Reconcile a source",
                vec![
                    one("git", &resource_kinds::GIT)
                        .example("Fetch a repository now", "reconcile source git flux-system"),
                    one("oci", &resource_kinds::OCI),
                    one("helm", &resource_kinds::HELM),
                    one("chart", &resource_kinds::CHART).flags(&with_source),
                    one("bucket", &resource_kinds::BUCKET),
                ],
            ),
            Node::group(
                "image",
                "Reconcile image automation objects",
                vec![
                    one("repository", &resource_kinds::IMAGE_REPOSITORY),
                    one("policy", &resource_kinds::IMAGE_POLICY),
                    one("update", &resource_kinds::IMAGE_UPDATE),
                ],
            ),
        ],
    )
}

/// Kinds that are built from another one, which can be reconciled before them.
fn has_source(kind: &Kind) -> bool {
    matches!(kind.kind, "Kustomization" | "HelmRelease" | "HelmChart")
}

/// The source of an object: its kind, name and namespace (empty: where the command looks).
fn source(kind: &Kind, object: &Value) -> anyhow::Result<(&'static Kind, String, String)> {
    let reference = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    let own = namespace_of(object).to_owned();
    let or_own = |ns: &str| if ns.is_empty() { own.clone() } else { ns.to_owned() };
    let (source, allowed, namespace): (Value, &[&str], String) = match kind.kind {
        "Kustomization" => {
            let r = reference("/spec/sourceRef");
            let ns = text_at(&r, "/namespace").to_owned();
            (r, &["OCIRepository", "GitRepository", "Bucket"], ns)
        }
        "HelmChart" => (reference("/spec/sourceRef"), &["HelmRepository", "GitRepository", "Bucket"], own),
        _ => match object.pointer("/spec/chartRef") {
            Some(r) => (r.clone(), &["HelmChart", "OCIRepository"], or_own(text_at(r, "/namespace"))),
            None => {
                let ns = or_own(text_at(object, "/spec/chart/spec/sourceRef/namespace"));
                let name = format!("{}-{}", namespace_of(object), name_of(object));
                (json!({"kind": "HelmChart", "name": name}), &["HelmChart"], ns)
            }
        },
    };
    let wanted = text_at(&source, "/kind");
    match resource_kinds::by_name(wanted).filter(|_| allowed.contains(&wanted)) {
        Some(kind) => Ok((kind, text_at(&source, "/name").to_owned(), namespace)),
        None => bail!("cannot reconcile source of kind {wanted}"),
    }
}

/// Annotates, waits, reports; its source before it when asked or forced.
async fn run(call: &Call, kind: &'static Kind, force_source: bool) -> CommandResult {
    let Some(name) = call.args.first() else { bail!("{} name is required", kind.kind) };
    let namespace = call.namespace();
    let cluster = Cluster::connect(call).await?;
    let resource = kind.resource();
    let object = cluster.get(&resource, namespace, name).await?;
    if kind.is_static(&object) {
        logger::success("reconciliation not supported by the object");
        return Ok(());
    }
    if kind.suspended(&object) {
        bail!("resource is suspended");
    }
    let asked = call.has("with-source") && call.on("with-source");
    if has_source(kind) && (asked || force_source) {
        let (source_kind, source_name, source_namespace) = source(kind, &object)?;
        let mut source_call =
            if source_namespace.is_empty() { call.clone() } else { call.in_namespace(&source_namespace) };
        source_call.args = vec![source_name];
        // A chart named by a release brings its own source along; other sources end the chain.
        Box::pin(run(&source_call, source_kind, source_kind.kind == "HelmChart")).await?;
    }
    let before = text_at(&object, "/status/lastHandledReconcileAt").to_owned();
    logger::action(format!("annotating {} {name} in {namespace} namespace", kind.kind));
    annotate(call, &cluster, kind, name).await?;
    logger::success(format!("{} annotated", kind.kind));
    logger::waiting(format!("waiting for {} reconciliation", kind.kind));
    let done = cluster
        .poll(|| async {
            let object = cluster.get(&resource, namespace, name).await?;
            if text_at(&object, "/status/lastHandledReconcileAt") == before {
                return Ok(None);
            }
            Ok(resource_kinds::settled(&object)?.then_some(object))
        })
        .await?;
    let Some(ready) = resource_kinds::condition(&done, "Ready") else { bail!("status can't be determined") };
    if ready["status"] != "True" {
        let message = text_at(ready, "/message");
        if has_source(kind) {
            bail!("{} reconciliation failed: {message}", kind.kind);
        }
        bail!("{} reconciliation failed: '{message}'", kind.kind);
    }
    logger::success(kind.success(&done));
    Ok(())
}

async fn annotate(call: &Call, cluster: &Cluster, kind: &Kind, name: &str) -> CommandResult {
    let token = format::now_token();
    let mut annotations = json!({"reconcile.fluxcd.io/requestedAt": token});
    if kind.kind == "HelmRelease" {
        for (flag, key) in
            [("force", "reconcile.fluxcd.io/forceAt"), ("reset", "reconcile.fluxcd.io/resetAt")]
        {
            if call.has(flag) && call.on(flag) {
                annotations[key] = json!(token);
            }
        }
    }
    let patch = json!({"metadata": {"annotations": annotations}});
    cluster.merge_patch(&kind.resource(), call.namespace(), name, &patch).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_names_its_chart_and_a_chart_its_repository() {
        let release = json!({"metadata": {"name": "web", "namespace": "shop"},
            "spec": {"chart": {"spec": {"sourceRef": {"kind": "HelmRepository", "name": "charts", "namespace": "infra"}}}}});
        let (kind, name, namespace) = source(&resource_kinds::HELM_RELEASE, &release).unwrap();
        assert_eq!((kind.kind, name.as_str(), namespace.as_str()), ("HelmChart", "shop-web", "infra"));
        let external = json!({"metadata": {"namespace": "a"}, "spec": {"sourceRef": {"kind": "ExternalArtifact", "name": "x"}}});
        let error = source(&resource_kinds::KUSTOMIZATION, &external).err().unwrap();
        assert_eq!(error.to_string(), "cannot reconcile source of kind ExternalArtifact");
    }
}
