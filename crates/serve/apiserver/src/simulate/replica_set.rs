//! ReplicaSets: `spec.replicas` pods.

use serde_json::{Value, json};

use super::client::{Client, controlled_by, is_ready, number, pod};
use crate::object;
use crate::verbs::create::generate_name;

const TABLE: &str = "apps/replicasets";

pub(super) async fn run(client: &mut Client<'_>) {
    for set in client.list(TABLE, "") {
        if object::is_deleting(&set) {
            continue;
        }
        let desired = number(&set, "/spec/replicas", 1).max(0) as usize;
        let mut pods = client.owned("/pods", &set);
        pods.retain(|p| !object::is_deleting(p));
        for _ in pods.len()..desired {
            let name = generate_name(&format!("{}-", object::name(&set)));
            let owner = controlled_by(&set, "apps/v1", "ReplicaSet");
            client
                .create("/pods", pod(&set["spec"]["template"], object::namespace(&set), &name, owner))
                .await;
        }
        // Pods that are not ready are deleted first.
        pods.sort_by_key(is_ready);
        for extra in pods.iter().take(pods.len().saturating_sub(desired)) {
            client.delete("/pods", extra).await;
        }
        let ready = pods.iter().rev().take(desired).filter(|p| is_ready(p)).count();
        let mut status = json!({"replicas": desired, "observedGeneration": object::generation(&set)});
        if desired > 0 {
            status["fullyLabeledReplicas"] = json!(desired);
        }
        if ready > 0 {
            status["readyReplicas"] = json!(ready);
            status["availableReplicas"] = json!(ready);
        }
        client.set_status(TABLE, &set, status).await;
    }
}

/// The number of ready pods of a ReplicaSet.
pub(super) fn ready(client: &Client<'_>, set: &Value) -> i64 {
    client.owned("/pods", set).iter().filter(|p| is_ready(p)).count() as i64
}
