//! `suspend` and `resume`.

use anyhow::bail;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::args::{Call, CommandResult, action};
use crate::cluster::{Cluster, Select, name_of};
use crate::command::Node;
use crate::commands::resource_commands;
use crate::flag::switch;
use crate::logger;
use crate::resource_kinds::{self, Kind};

pub(crate) fn suspend_node() -> Node {
    let one = |name, kind: &'static Kind| {
        let about = format!("Stop the reconciliation of a {}", kind.kind);
        Node::leaf(name, &about, action(move |call: Call| async move { suspend(&call, kind).await }))
            .takes("NAME")
    };
    Node::group("suspend", "Stop the reconciliation of objects", resource_commands::tree("Suspend", &one))
        .child_examples(
            "kustomization",
            &[
                ("One or more by name", "suspend kustomization apps infra"),
                ("All of a namespace", "suspend ks --all -n team-a"),
            ],
        )
        .shared(&[switch("all", "All objects of the namespace")])
}

pub(crate) fn resume_node() -> Node {
    let one = |name, kind: &'static Kind| {
        let about = format!("Go on with the reconciliation of a {}", kind.kind);
        Node::leaf(name, &about, action(move |call: Call| async move { resume(&call, kind).await }))
            .takes("NAME")
    };
    let examples = [
        ("One or more by name", "resume kustomization apps infra"),
        ("All of a namespace", "resume ks --all -n team-a"),
    ];
    Node::group("resume", "Go on with the reconciliation of objects", resource_commands::tree("Resume", &one))
        .child_examples("kustomization", &examples)
        .shared(&[
            switch("all", "All objects of the namespace"),
            switch("wait", "Wait until each is reconciled"),
        ])
}

/// The names once each, in the order given.
fn names(call: &Call) -> Vec<&String> {
    let mut seen = Vec::new();
    for name in &call.args {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

async fn suspend(call: &Call, kind: &'static Kind) -> CommandResult {
    if call.args.is_empty() && !call.on("all") {
        bail!("{} name is required", kind.human);
    }
    let cluster = Cluster::connect(call).await?;
    let namespace = call.namespace();
    if call.args.is_empty() {
        if suspend_selected(&cluster, kind, &Select::in_namespace(namespace)).await? == 0 {
            bail!("no objects found");
        }
        return Ok(());
    }
    for name in names(call) {
        let select = Select { name: Some(name.clone()), ..Select::in_namespace(namespace) };
        match suspend_selected(&cluster, kind, &select).await {
            Ok(0) => logger::failure(format!("{} {name} not found in {namespace} namespace", kind.kind)),
            Ok(_) => {}
            Err(error) => {
                logger::failure(format!(
                    "failed suspending {} {name} in {namespace} namespace: {error:#}",
                    kind.kind
                ));
            }
        }
    }
    Ok(())
}

async fn suspend_selected(cluster: &Cluster, kind: &Kind, select: &Select) -> anyhow::Result<usize> {
    let objects = cluster.list(&kind.resource(), select).await?;
    for object in &objects {
        set(cluster, kind, object, "suspending", true).await?;
        logger::success(format!("{} suspended", kind.human));
    }
    Ok(objects.len())
}

async fn set(
    cluster: &Cluster,
    kind: &Kind,
    object: &Value,
    verb: &str,
    suspended: bool,
) -> anyhow::Result<()> {
    let (namespace, name) = (crate::cluster::namespace_of(object), name_of(object));
    logger::action(format!("{verb} {} {name} in {namespace} namespace", kind.human));
    if kind.suspended(object) != suspended {
        // `false` is what an absent field means: resuming takes the field away again.
        let value = if suspended { json!(true) } else { Value::Null };
        let patch = json!({"spec": {"suspend": value}});
        cluster.merge_patch(&kind.resource(), namespace, name, &patch).await?;
    }
    Ok(())
}

async fn resume(call: &Call, kind: &'static Kind) -> CommandResult {
    if call.args.is_empty() && !call.on("all") {
        bail!("{} name is required", kind.human);
    }
    let cluster = Cluster::connect(call).await?;
    let wait = if call.changed("wait") { call.on("wait") } else { call.args.len() == 1 };
    let mut resumed = Vec::new();
    if call.args.is_empty() {
        resumed = resume_selected(call, &cluster, kind, None)
            .await
            .map_err(|e| e.context("failed patching objects"))?;
    } else {
        for name in names(call) {
            resumed.extend(resume_selected(call, &cluster, kind, Some(name)).await?);
        }
    }
    if !wait {
        return Ok(());
    }
    let mut results = join_all(resumed.iter().map(|object| finish(call, &cluster, kind, object))).await;
    results.sort_by(|a, b| a.0.cmp(&b.0));
    let mut failed = 0;
    for (name, result) in results {
        match result {
            Ok(object) => {
                logger::success(format!("{} {name} reconciliation completed", kind.kind));
                logger::success(kind.success(&object));
            }
            Err(error) => {
                failed += 1;
                logger::failure(format!("{} {name} reconciliation failed: {error:#}", kind.kind));
            }
        }
    }
    if failed > 0 {
        bail!("reconciliation failed for {failed} {}(s)", kind.kind);
    }
    Ok(())
}

async fn resume_selected(
    call: &Call,
    cluster: &Cluster,
    kind: &Kind,
    name: Option<&String>,
) -> anyhow::Result<Vec<Value>> {
    let namespace = call.namespace();
    let select = Select { name: name.cloned(), ..Select::in_namespace(namespace) };
    let objects = cluster.list(&kind.resource(), &select).await?;
    if objects.is_empty() {
        match call.args.first() {
            // flux names the first argument here, whichever one is missing.
            Some(first) => {
                logger::failure(format!("{} object '{first}' not found in {namespace} namespace", kind.kind));
            }
            None => logger::failure(format!("no {} objects found in {namespace} namespace", kind.kind)),
        }
    }
    for object in &objects {
        set(cluster, kind, object, "resuming", false).await?;
        logger::success(format!("{} resumed", kind.human));
    }
    Ok(objects)
}

async fn finish(
    call: &Call,
    cluster: &Cluster,
    kind: &Kind,
    object: &Value,
) -> (String, anyhow::Result<Value>) {
    let name = name_of(object).to_owned();
    let (resource, dynamic) = (kind.resource(), !kind.is_static(object));
    logger::waiting(format!("waiting for {} reconciliation", kind.kind));
    let done = cluster
        .poll(|| async {
            let object = cluster.get(&resource, call.namespace(), &name).await?;
            Ok(resource_kinds::is_ready(&object, dynamic)?.then_some(object))
        })
        .await;
    (name, done)
}
