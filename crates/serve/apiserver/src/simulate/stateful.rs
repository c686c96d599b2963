//! StatefulSets: numbered pods with claims of their own.

use serde_json::{Value, json};

use super::world::{World, controlled_by, hash, is_ready, number, pod};
use crate::object;

const TABLE: &str = "apps/statefulsets";

pub(super) async fn run(world: &mut World<'_>) {
    for set in world.list(TABLE, "") {
        if !object::is_deleting(&set) {
            step(world, &set).await;
        }
    }
}

async fn step(world: &mut World<'_>, set: &Value) {
    let wanted = number(set, "/spec/replicas", 1).max(0);
    let name = object::name(set);
    let revision = format!("{name}-{}", hash(&set["spec"]["template"]));
    let parallel = set.pointer("/spec/podManagementPolicy") == Some(&json!("Parallel"));
    let on_delete = set.pointer("/spec/updateStrategy/type") == Some(&json!("OnDelete"));
    let partition = number(set, "/spec/updateStrategy/rollingUpdate/partition", 0);
    let first = number(set, "/spec/ordinals/start", 0);
    let pods = world.owned("/pods", set);
    let of = |i: i64| pods.iter().find(|p| object::name(p) == format!("{name}-{i}"));
    let is_new = |p: &Value| p.pointer("/metadata/labels/controller-revision-hash") == Some(&json!(revision));
    let mut blocked = false;
    for i in first..first + wanted {
        match of(i) {
            Some(p) if is_ready(p) => {}
            Some(_) => blocked = true,
            None if blocked && !parallel => break,
            None => {
                claims(world, set, i).await;
                let owner = controlled_by(set, "apps/v1", "StatefulSet");
                let pod_name = format!("{name}-{i}");
                let mut made = pod(&set["spec"]["template"], object::namespace(set), &pod_name, owner);
                made["metadata"]["labels"]["controller-revision-hash"] = json!(revision);
                made["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(pod_name);
                made["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = json!(i.to_string());
                made["spec"]["hostname"] = json!(pod_name);
                world.create("/pods", made).await;
                blocked = true;
            }
        }
    }
    for extra in pods.iter().filter(|p| ordinal(p, name).is_none_or(|i| i >= first + wanted || i < first)) {
        if !object::is_deleting(extra) {
            world.delete("/pods", extra).await;
        }
    }
    // Updates go from the last to the first, one at a time, each waiting for the one before.
    if !blocked
        && !on_delete
        && let Some(old) = (first + partition..first + wanted)
            .rev()
            .filter_map(of)
            .find(|p| !is_new(p) && !object::is_deleting(p))
    {
        world.delete("/pods", old).await;
        world.look_again_in(std::time::Duration::from_millis(10));
    }
    let count = |check: &dyn Fn(&Value) -> bool| {
        pods.iter().filter(|p| !object::is_deleting(p) && check(p)).count() as i64
    };
    let (replicas, ready, updated) = (count(&|_| true), count(&is_ready), count(&is_new));
    let done = updated >= wanted && ready >= wanted;
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
    world.set_status(TABLE, set, status).await;
}

fn ordinal(pod: &Value, set: &str) -> Option<i64> {
    object::name(pod).strip_prefix(set)?.strip_prefix('-')?.parse().ok()
}

async fn claims(world: &World<'_>, set: &Value, ordinal: i64) {
    for template in set.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array).into_iter().flatten()
    {
        let name = format!("{}-{}-{ordinal}", object::name(template), object::name(set));
        let claim = json!({
            "kind": "PersistentVolumeClaim", "apiVersion": "v1",
            "metadata": {"name": name, "namespace": object::namespace(set), "labels": set.pointer("/spec/selector/matchLabels").cloned().unwrap_or_else(|| json!({}))},
            "spec": template["spec"], "status": {"phase": "Pending"}
        });
        world.create("/persistentvolumeclaims", claim).await;
    }
}
