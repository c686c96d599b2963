//! StatefulSets: numbered pods, each with claims of its own.

use serde_json::{Value, json};

use super::client::{Client, controlled_by, hash, is_ready, number, pod};
use crate::object;

const TABLE: &str = "apps/statefulsets";

pub(super) async fn run(client: &mut Client<'_>) {
    for set in client.list(TABLE, "") {
        if !object::is_deleting(&set) {
            reconcile(client, &set).await;
        }
    }
}

async fn reconcile(client: &mut Client<'_>, set: &Value) {
    let desired = number(set, "/spec/replicas", 1).max(0);
    let name = object::name(set);
    let revision = format!("{name}-{}", hash(&set["spec"]["template"]));
    let parallel = set.pointer("/spec/podManagementPolicy") == Some(&json!("Parallel"));
    let on_delete = set.pointer("/spec/updateStrategy/type") == Some(&json!("OnDelete"));
    let partition = number(set, "/spec/updateStrategy/rollingUpdate/partition", 0);
    let first = number(set, "/spec/ordinals/start", 0);
    let pods = client.owned("/pods", set);
    let of = |i: i64| pods.iter().find(|p| object::name(p) == format!("{name}-{i}"));
    let is_new = |p: &Value| p.pointer("/metadata/labels/controller-revision-hash") == Some(&json!(revision));
    let mut blocked = false;
    for i in first..first + desired {
        match of(i) {
            Some(p) if is_ready(p) => {}
            Some(_) => blocked = true,
            None if blocked && !parallel => break,
            None => {
                create_claims(client, set, i).await;
                let owner = controlled_by(set, "apps/v1", "StatefulSet");
                let pod_name = format!("{name}-{i}");
                let mut made = pod(&set["spec"]["template"], object::namespace(set), &pod_name, owner);
                made["metadata"]["labels"]["controller-revision-hash"] = json!(revision);
                made["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(pod_name);
                made["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = json!(i.to_string());
                made["spec"]["hostname"] = json!(pod_name);
                client.create("/pods", made).await;
                blocked = true;
            }
        }
    }
    for extra in pods.iter().filter(|p| ordinal(p, name).is_none_or(|i| i >= first + desired || i < first)) {
        if !object::is_deleting(extra) {
            client.delete("/pods", extra).await;
        }
    }
    // Pods are updated from the last to the first, each after the one before it is ready.
    if !blocked
        && !on_delete
        && let Some(old) = (first + partition..first + desired)
            .rev()
            .filter_map(of)
            .find(|p| !is_new(p) && !object::is_deleting(p))
    {
        client.delete("/pods", old).await;
        client.requeue_after(std::time::Duration::from_millis(10));
    }
    let count = |check: &dyn Fn(&Value) -> bool| {
        pods.iter().filter(|p| !object::is_deleting(p) && check(p)).count() as i64
    };
    let (replicas, ready, updated) = (count(&|_| true), count(&is_ready), count(&is_new));
    let done = updated >= desired && ready >= desired;
    let before =
        set.pointer("/status/currentRevision").and_then(Value::as_str).unwrap_or(&revision).to_owned();
    let current = if done { revision.clone() } else { before };
    let mut status = json!({
        "observedGeneration": object::generation(set), "replicas": replicas, "availableReplicas": ready,
        "currentRevision": current, "updateRevision": revision, "collisionCount": 0
    });
    let on_current = if done { updated } else { replicas - updated };
    for (field, n) in
        [("readyReplicas", ready), ("updatedReplicas", updated), ("currentReplicas", on_current)]
    {
        if n > 0 {
            status[field] = json!(n);
        }
    }
    client.set_status(TABLE, set, status).await;
}

fn ordinal(pod: &Value, set: &str) -> Option<i64> {
    object::name(pod).strip_prefix(set)?.strip_prefix('-')?.parse().ok()
}

async fn create_claims(client: &Client<'_>, set: &Value, ordinal: i64) {
    for template in set.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array).into_iter().flatten()
    {
        let name = format!("{}-{}-{ordinal}", object::name(template), object::name(set));
        let claim = json!({
            "kind": "PersistentVolumeClaim", "apiVersion": "v1",
            "metadata": {"name": name, "namespace": object::namespace(set), "labels": set.pointer("/spec/selector/matchLabels").cloned().unwrap_or_else(|| json!({}))},
            "spec": template["spec"], "status": {"phase": "Pending"}
        });
        client.create("/persistentvolumeclaims", claim).await;
    }
}
