//! DaemonSets: one pod per node.

use serde_json::{Value, json};

use super::client::{Client, controlled_by, hash, is_ready, pod};
use crate::object;
use crate::verbs::create::generate_name;

const TABLE: &str = "apps/daemonsets";

pub(super) async fn run(client: &mut Client<'_>) {
    let nodes: Vec<String> = client.list("/nodes", "").iter().map(|n| object::name(n).to_owned()).collect();
    for set in client.list(TABLE, "") {
        if !object::is_deleting(&set) {
            reconcile(client, &set, &nodes).await;
        }
    }
}

async fn reconcile(client: &mut Client<'_>, set: &Value, nodes: &[String]) {
    let revision = hash(&set["spec"]["template"]);
    let pods = client.owned("/pods", set);
    let on = |node: &str| {
        pods.iter().find(|p| p.pointer("/spec/nodeName") == Some(&json!(node)) && !object::is_deleting(p))
    };
    let is_new = |p: &Value| p.pointer("/metadata/labels/controller-revision-hash") == Some(&json!(revision));
    let mut replaced = false;
    for node in nodes {
        match on(node) {
            Some(old) if !is_new(old) && !replaced => {
                client.delete("/pods", old).await;
                replaced = true;
                client.requeue_after(std::time::Duration::from_millis(10));
            }
            Some(_) => {}
            None => {
                let name = generate_name(&format!("{}-", object::name(set)));
                let owner = controlled_by(set, "apps/v1", "DaemonSet");
                let mut made = pod(&set["spec"]["template"], object::namespace(set), &name, owner);
                made["metadata"]["labels"]["controller-revision-hash"] = json!(revision);
                made["spec"]["nodeName"] = json!(node);
                client.create("/pods", made).await;
            }
        }
    }
    let count =
        |check: &dyn Fn(&Value) -> bool| nodes.iter().filter_map(|n| on(n)).filter(|p| check(p)).count();
    let (ready, updated) = (count(&is_ready), count(&is_new));
    let mut status = json!({
        "observedGeneration": object::generation(set), "desiredNumberScheduled": nodes.len(),
        "currentNumberScheduled": count(&|_| true), "numberMisscheduled": 0, "numberReady": ready
    });
    for (field, n) in [
        ("numberAvailable", ready),
        ("updatedNumberScheduled", updated),
        ("numberUnavailable", nodes.len() - ready),
    ] {
        if n > 0 {
            status[field] = json!(n);
        }
    }
    client.set_status(TABLE, set, status).await;
}
