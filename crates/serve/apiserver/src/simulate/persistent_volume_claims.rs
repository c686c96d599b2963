//! PersistentVolumeClaims: bound at once.

use serde_json::json;

use super::client::Client;
use crate::object;

const TABLE: &str = "/persistentvolumeclaims";

pub(super) async fn run(client: &mut Client<'_>) {
    for claim in client.list(TABLE, "") {
        if object::is_deleting(&claim) {
            // No container uses the claim: its protection finalizer is removed at once.
            client
                .change(TABLE, &claim, |c| {
                    let left: Vec<String> = object::finalizers(c)
                        .into_iter()
                        .filter(|f| *f != "kubernetes.io/pvc-protection")
                        .map(str::to_owned)
                        .collect();
                    object::set_finalizers(c, &left);
                })
                .await;
            continue;
        }
        if claim.pointer("/status/phase") == Some(&json!("Bound"))
            || object::annotation(&claim, "fluorite.dev/simulate")
                .is_some_and(|s| s == "pending" || s == "fail")
        {
            continue;
        }
        let volume = format!("pvc-{}", object::uid(&claim));
        let capacity = claim.pointer("/spec/resources/requests").cloned().unwrap_or_else(|| json!({}));
        let modes = claim.pointer("/spec/accessModes").cloned().unwrap_or_else(|| json!([]));
        client
            .change(TABLE, &claim, |c| {
                c["spec"]["volumeName"] = json!(volume);
                c["status"] = json!({"phase": "Bound", "accessModes": modes, "capacity": capacity});
            })
            .await;
    }
}
