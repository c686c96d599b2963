//! The service account `default` of every namespace.

use serde_json::json;

use super::client::Client;
use crate::object;

const TABLE: &str = "/serviceaccounts";

pub(super) async fn run(client: &mut Client<'_>) {
    for namespace in client.list("/namespaces", "") {
        let name = object::name(&namespace);
        let missing = client.inner.store.latest(TABLE, &object::key(name, "default")).is_none();
        if missing && !object::is_deleting(&namespace) {
            let metadata = json!({"name": "default", "namespace": name});
            let account = json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": metadata});
            client.create_as_client("", "v1", "serviceaccounts", account).await;
        }
    }
}
