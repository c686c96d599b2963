//! The service account every namespace has.

use serde_json::json;

use super::world::World;
use crate::object;

const TABLE: &str = "/serviceaccounts";

pub(super) async fn run(world: &mut World<'_>) {
    for namespace in world.list("/namespaces", "") {
        let name = object::name(&namespace);
        let missing = world.inner.store.latest(TABLE, &object::key(name, "default")).is_none();
        if missing && !object::is_deleting(&namespace) {
            let metadata = json!({"name": "default", "namespace": name});
            let account = json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": metadata});
            world.create_as_client("", "v1", "serviceaccounts", account).await;
        }
    }
}
