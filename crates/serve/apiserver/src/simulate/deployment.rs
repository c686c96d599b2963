//! Deployments: one ReplicaSet per template; the old one is scaled down once the new one is ready.

use serde_json::{Value, json};

use super::client::{Client, condition, controlled_by, hash, number};
use super::replica_set::ready;
use crate::object;

const TABLE: &str = "apps/deployments";
const SETS: &str = "apps/replicasets";
const REVISION: &str = "deployment.kubernetes.io/revision";

pub(super) async fn run(client: &mut Client<'_>) {
    for deployment in client.list(TABLE, "") {
        if !object::is_deleting(&deployment) {
            reconcile(client, &deployment).await;
        }
    }
}

async fn reconcile(client: &mut Client<'_>, deployment: &Value) {
    let desired = number(deployment, "/spec/replicas", 1).max(0);
    let template = &deployment["spec"]["template"];
    let id = hash(template);
    let sets = client.owned(SETS, deployment);
    let current = sets.iter().find(|s| s.pointer("/metadata/labels/pod-template-hash") == Some(&json!(id)));
    let revision =
        |s: &Value| object::annotation(s, REVISION).and_then(|r| r.parse::<i64>().ok()).unwrap_or(0);
    let newest = sets.iter().map(revision).max().unwrap_or(0);
    let Some(current) = current else {
        client.create(SETS, replica_set(deployment, &id, newest + 1, desired)).await;
        client.requeue_after(std::time::Duration::from_millis(5));
        update_status(client, deployment, &sets, None, desired).await;
        return;
    };
    if revision(current) < newest
        || object::annotation(deployment, REVISION) != object::annotation(current, REVISION)
    {
        // A rollback reuses an old ReplicaSet as the newest revision.
        let number = if revision(current) < newest { newest + 1 } else { revision(current) };
        client
            .change(SETS, current, |s| s["metadata"]["annotations"][REVISION] = json!(number.to_string()))
            .await;
        client
            .change(TABLE, deployment, |d| d["metadata"]["annotations"][REVISION] = json!(number.to_string()))
            .await;
    }
    scale(client, current, desired).await;
    if ready(client, current) >= desired {
        for old in sets.iter().filter(|s| object::uid(s) != object::uid(current)) {
            scale(client, old, 0).await;
        }
    }
    update_status(client, deployment, &sets, Some(current), desired).await;
}

async fn scale(client: &Client<'_>, set: &Value, replicas: i64) {
    if number(set, "/spec/replicas", 1) != replicas {
        client
            .change(SETS, set, |s| {
                s["spec"]["replicas"] = json!(replicas);
                let next = object::generation(s) + 1;
                object::set_meta(s, "generation", next);
            })
            .await;
    }
}

fn replica_set(deployment: &Value, id: &str, revision: i64, replicas: i64) -> Value {
    let mut template = deployment["spec"]["template"].clone();
    let mut selector = deployment["spec"]["selector"].clone();
    template["metadata"]["labels"]["pod-template-hash"] = json!(id);
    selector["matchLabels"]["pod-template-hash"] = json!(id);
    json!({
        "kind": "ReplicaSet", "apiVersion": "apps/v1",
        "metadata": {
            "name": format!("{}-{id}", object::name(deployment)), "namespace": object::namespace(deployment),
            "labels": template["metadata"]["labels"], "annotations": {REVISION: revision.to_string()},
            "ownerReferences": controlled_by(deployment, "apps/v1", "Deployment")
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
        "status": {"replicas": 0}
    })
}

async fn update_status(
    client: &mut Client<'_>,
    deployment: &Value,
    sets: &[Value],
    current: Option<&Value>,
    desired: i64,
) {
    let now = client.timestamp();
    let updated = current.map_or(0, |c| number(c, "/status/replicas", 0));
    let up = current.map_or(0, |c| ready(client, c));
    let all_ready: i64 = sets.iter().map(|s| ready(client, s)).sum();
    let replicas: i64 = sets.iter().map(|s| number(s, "/status/replicas", 0)).sum();
    let others: i64 = replicas - updated;
    let complete = current.is_some() && updated == desired && up >= desired && others <= 0;
    let name = current.map_or_else(|| object::name(deployment).to_owned(), |c| object::name(c).to_owned());
    let enough = all_ready >= desired - max_unavailable(deployment, desired);
    let available = if enough {
        condition(
            deployment,
            "Available",
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
            &now,
        )
    } else {
        condition(
            deployment,
            "Available",
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
            &now,
        )
    };
    let progressing = if complete {
        let text = format!("ReplicaSet \"{name}\" has successfully progressed.");
        condition(deployment, "Progressing", "True", "NewReplicaSetAvailable", &text, &now)
    } else if is_progress_deadline_exceeded(client, deployment) {
        let text = format!("ReplicaSet \"{name}\" has timed out progressing.");
        condition(deployment, "Progressing", "False", "ProgressDeadlineExceeded", &text, &now)
    } else {
        let text = format!("ReplicaSet \"{name}\" is progressing.");
        condition(deployment, "Progressing", "True", "ReplicaSetUpdated", &text, &now)
    };
    let mut status =
        json!({"observedGeneration": object::generation(deployment), "conditions": [available, progressing]});
    for (field, n) in [
        ("replicas", replicas),
        ("updatedReplicas", updated),
        ("readyReplicas", all_ready),
        ("availableReplicas", all_ready),
        ("unavailableReplicas", (desired.max(replicas) - all_ready).max(0)),
    ] {
        if n > 0 {
            status[field] = json!(n);
        }
    }
    client.set_status(TABLE, deployment, status).await;
}

/// Whether a rollout made no progress within `progressDeadlineSeconds`.
fn is_progress_deadline_exceeded(client: &mut Client<'_>, deployment: &Value) -> bool {
    let limit = number(deployment, "/spec/progressDeadlineSeconds", 600);
    let list = deployment.pointer("/status/conditions").and_then(Value::as_array);
    let Some(progressing) = list.and_then(|l| l.iter().find(|c| c["type"] == "Progressing")) else {
        return false;
    };
    if progressing["reason"] == "ProgressDeadlineExceeded" {
        return progressing["status"] == "False"
            && deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"];
    }
    let since: Option<jiff::Timestamp> = progressing["lastUpdateTime"].as_str().and_then(|t| t.parse().ok());
    let Some(since) = since.filter(|_| progressing["reason"] == "ReplicaSetUpdated") else { return false };
    let left = limit - (client.now.as_second() - since.as_second());
    if left > 0 {
        client.requeue_after(std::time::Duration::from_secs(left.unsigned_abs()));
    }
    left <= 0
}

fn max_unavailable(deployment: &Value, desired: i64) -> i64 {
    match deployment.pointer("/spec/strategy/rollingUpdate/maxUnavailable") {
        Some(Value::Number(n)) => n.as_i64().unwrap_or(0),
        Some(Value::String(s)) => {
            s.strip_suffix('%').and_then(|p| p.parse::<i64>().ok()).map_or(0, |p| desired * p / 100)
        }
        _ => 0,
    }
}
