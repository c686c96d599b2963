//! ReplicaSets: as many pods as asked for.

use serde_json::{Value, json};

use super::world::{World, controlled_by, is_ready, number, pod};
use crate::object;
use crate::verbs::create::generate_name;

const TABLE: &str = "apps/replicasets";

pub(super) async fn run(world: &mut World<'_>) {
    for set in world.list(TABLE, "") {
        if object::is_deleting(&set) {
            continue;
        }
        let wanted = number(&set, "/spec/replicas", 1).max(0) as usize;
        let mut pods = world.owned("/pods", &set);
        pods.retain(|p| !object::is_deleting(p));
        for _ in pods.len()..wanted {
            let name = generate_name(&format!("{}-", object::name(&set)));
            let owner = controlled_by(&set, "apps/v1", "ReplicaSet");
            world.create("/pods", pod(&set["spec"]["template"], object::namespace(&set), &name, owner)).await;
        }
        // Pods that are not ready go first.
        pods.sort_by_key(is_ready);
        for extra in pods.iter().take(pods.len().saturating_sub(wanted)) {
            world.delete("/pods", extra).await;
        }
        let ready = pods.iter().rev().take(wanted).filter(|p| is_ready(p)).count();
        let mut status = json!({"replicas": wanted, "observedGeneration": object::generation(&set)});
        if wanted > 0 {
            status["fullyLabeledReplicas"] = json!(wanted);
        }
        if ready > 0 {
            status["readyReplicas"] = json!(ready);
            status["availableReplicas"] = json!(ready);
        }
        world.set_status(TABLE, &set, status).await;
    }
}

/// How many pods of a set are ready.
pub(super) fn ready(world: &World<'_>, set: &Value) -> i64 {
    world.owned("/pods", set).iter().filter(|p| is_ready(p)).count() as i64
}
