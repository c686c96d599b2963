//! Applies a created object and waits for its controller.

use anyhow::bail;
use serde_json::{Value, json};

use super::name;
use crate::args::{Call, CommandResult};
use crate::cluster::{Cluster, Resource, name_of, namespace_of, text_at};
use crate::logger;
use crate::resource_kinds::{self, Kind};

/// What became of the object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UpsertResult {
    Created,
    Updated,
    Unchanged,
}

impl UpsertResult {
    pub(super) fn word(self) -> &'static str {
        match self {
            UpsertResult::Created => "created",
            UpsertResult::Updated | UpsertResult::Unchanged => "updated",
        }
    }
}

/// Creates the object, or gives an existing one this spec and these labels.
pub(super) async fn upsert(cluster: &Cluster, kind: &Kind, object: &Value) -> anyhow::Result<UpsertResult> {
    let resource = kind.resource();
    let Some(mut existing) = cluster.find(&resource, namespace_of(object), name_of(object)).await? else {
        cluster.create(&resource, namespace_of(object), object).await?;
        return Ok(UpsertResult::Created);
    };
    let before = existing.clone();
    existing["spec"] = object["spec"].clone();
    match object.pointer("/metadata/labels") {
        Some(labels) => existing["metadata"]["labels"] = labels.clone(),
        None => {
            if let Some(metadata) = existing["metadata"].as_object_mut() {
                metadata.remove("labels");
            }
        }
    }
    if existing == before {
        return Ok(UpsertResult::Unchanged);
    }
    cluster.update(&resource, &existing).await?;
    Ok(UpsertResult::Updated)
}

/// Waits until the object is ready and gives it back.
pub(super) async fn wait(cluster: &Cluster, kind: &Kind, object: &Value) -> anyhow::Result<Value> {
    let (resource, dynamic) = (kind.resource(), !kind.is_static(object));
    cluster
        .poll(|| async {
            let object = cluster.get(&resource, namespace_of(object), name_of(object)).await?;
            Ok(resource_kinds::is_ready(&object, dynamic)?.then_some(object))
        })
        .await
}

/// A source: `what` is how its lines name it, `made` what was created, `no_artifact` the complaint about an empty one.
pub(super) async fn source(
    cluster: &Cluster,
    kind: &Kind,
    object: &Value,
    what: &str,
    made: &str,
    no_artifact: &str,
) -> CommandResult {
    logger::action(format!("applying {what}"));
    let word = upsert(cluster, kind, object).await?.word();
    logger::success(format!("{made} {word}"));
    logger::waiting(format!("waiting for {what} reconciliation"));
    let done = wait(cluster, kind, object).await?;
    logger::success(format!("{what} reconciliation completed"));
    if kind.is_static(&done) {
        return Ok(());
    }
    if done.pointer("/status/artifact").is_none() {
        bail!("{no_artifact}");
    }
    logger::success(format!("fetched revision: {}", text_at(&done, "/status/artifact/revision")));
    Ok(())
}

/// Any other object: it is ready, and `report` may add a line.
pub(super) async fn ready(
    call: &Call,
    kind: &Kind,
    object: &Value,
    report: fn(&Kind, &Value) -> Option<String>,
) -> CommandResult {
    let cluster = Cluster::connect(call).await?;
    logger::action(format!("applying {}", kind.kind));
    let word = upsert(&cluster, kind, object).await?.word();
    logger::success(format!("{} {word}", kind.kind));
    logger::waiting(format!("waiting for {} reconciliation", kind.kind));
    let done = wait(&cluster, kind, object).await?;
    logger::success(format!("{} {} is ready", kind.kind, name(call)));
    if let Some(line) = report(kind, &done) {
        logger::success(line);
    }
    Ok(())
}

/// Image automation objects: they are announced here and say nothing when nothing changed.
pub(super) async fn automation(call: &Call, kind: &Kind, object: &Value) -> CommandResult {
    let cluster = Cluster::connect(call).await?;
    logger::generate(format!("generating {}", kind.kind));
    logger::action(format!("applying {}", kind.kind));
    match upsert(&cluster, kind, object).await? {
        UpsertResult::Unchanged => {}
        made => logger::success(format!("{} {}", kind.kind, made.word())),
    }
    logger::waiting(format!("waiting for {} reconciliation", kind.kind));
    wait(&cluster, kind, object).await?;
    logger::success(format!("{} reconciliation completed", kind.kind));
    Ok(())
}

/// Creates a secret, or gives an existing one this content; its other labels and annotations stay.
pub(crate) async fn secret(cluster: &Cluster, secret: &Value) -> anyhow::Result<()> {
    let resource = Resource::new("v1", "Secret", "secrets", true);
    let Some(mut existing) = cluster.find(&resource, namespace_of(secret), name_of(secret)).await? else {
        cluster.create(&resource, namespace_of(secret), secret).await?;
        return Ok(());
    };
    existing["stringData"] = secret.get("stringData").cloned().unwrap_or_else(|| json!({}));
    for part in ["annotations", "labels"] {
        for (key, value) in
            secret.pointer(&format!("/metadata/{part}")).and_then(Value::as_object).into_iter().flatten()
        {
            existing["metadata"][part][key] = value.clone();
        }
    }
    cluster.update(&resource, &existing).await?;
    Ok(())
}
