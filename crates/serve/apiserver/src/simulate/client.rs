//! Reads and writes objects directly in the store, as the controllers of a cluster would through the API.

use std::sync::Arc;
use std::time::Duration;

use fl_builtin::StrategyContext;
use serde_json::{Value, json};

use crate::controllers::{delete_with, modify};
use crate::object;
use crate::server::{Inner, SimulateOptions, rfc3339};
use crate::store::{Change, Precondition};

/// The store and the clock during one run of the controllers.
pub(super) struct Client<'a> {
    pub(super) inner: &'a Arc<Inner>,
    pub(super) options: &'a SimulateOptions,
    pub(super) now: jiff::Timestamp,
    /// When the next run is needed if nothing changes.
    pub(super) requeue_after: Option<Duration>,
}

impl<'a> Client<'a> {
    pub(super) fn new(inner: &'a Arc<Inner>, options: &'a SimulateOptions) -> Self {
        Self { inner, options, now: inner.now(), requeue_after: None }
    }

    pub(super) fn timestamp(&self) -> String {
        rfc3339(self.now)
    }

    /// Asks for another run after `wait`. The shortest delay of a run wins.
    pub(super) fn requeue_after(&mut self, wait: Duration) {
        let wait = wait.max(Duration::from_millis(5));
        self.requeue_after = Some(self.requeue_after.map_or(wait, |earlier| earlier.min(wait)));
    }

    pub(super) fn list(&self, table: &str, namespace: &str) -> Vec<Value> {
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        self.inner.store.list(table, &prefix, None, 0).1.iter().map(|(_, e)| e.value()).collect()
    }

    /// The objects whose controller is `owner`.
    pub(super) fn owned(&self, table: &str, owner: &Value) -> Vec<Value> {
        let uid = object::uid(owner);
        let mut all = self.list(table, object::namespace(owner));
        all.retain(|o| {
            object::owner_references(o).iter().any(|r| r["uid"] == uid && r["controller"] == true)
        });
        all
    }

    pub(super) async fn create(&self, table: &str, mut object: Value) {
        object::set_meta(&mut object, "uid", uuid::Uuid::new_v4().to_string());
        object::set_meta(&mut object, "creationTimestamp", self.timestamp());
        object::set_meta(&mut object, "generation", 1);
        if matches!(table, "/nodes" | "/endpoints" | "/persistentvolumeclaims") {
            object::remove_meta(&mut object, "generation");
        }
        // A pod that admission rejects is created again by a later run.
        if table == "/pods" && crate::admission::plugins::admit_pod(self.inner, &mut object).await.is_err() {
            return;
        }
        let key = object::key(object::namespace(&object), object::name(&object));
        // The object may exist by now; the next run finds it.
        let _ = self.inner.store.commit(table, &key, Precondition::Absent, Change::Put(object)).await;
    }

    /// Creates an object with the defaults and the strategy of its type.
    pub(super) async fn create_as_client(
        &self,
        group: &str,
        version: &str,
        plural: &str,
        mut object: Value,
    ) -> Option<Value> {
        let rt = self.inner.registry().find(group, version, plural)?.clone();
        let now = self.timestamp();
        let context = StrategyContext { has_status: rt.has_status(), subresource: "", now: &now };
        rt.strategy.default(&mut object);
        rt.strategy.normalize(&mut object);
        object::set_meta(&mut object, "uid", uuid::Uuid::new_v4().to_string());
        object::set_meta(&mut object, "creationTimestamp", now.as_str());
        if rt.strategy.has_generation() {
            object::set_meta(&mut object, "generation", 1);
        }
        rt.strategy.prepare_for_create(context, &mut object);
        rt.strategy.normalize(&mut object);
        let key = object::key(object::namespace(&object), object::name(&object));
        let table = &rt.storage.prefix;
        let made =
            self.inner.store.commit(table, &key, Precondition::Absent, Change::Put(object)).await.ok()?;
        Some(made.value())
    }

    pub(super) async fn delete(&self, table: &str, object: &Value) {
        let key = object::key(object::namespace(object), object::name(object));
        delete_with(self.inner, table, &key, Some(object::uid(object)), |_| {}).await;
    }

    pub(super) async fn change(&self, table: &str, object: &Value, change: impl Fn(&mut Value) + Send) {
        let key = object::key(object::namespace(object), object::name(object));
        modify(self.inner, table, &key, change).await;
    }

    /// Replaces the status, if it differs.
    pub(super) async fn set_status(&self, table: &str, object: &Value, status: Value) {
        if object.get("status") != Some(&status) {
            self.change(table, object, |o| o["status"] = status.clone()).await;
        }
    }
}

/// The `ownerReferences` of an object controlled by `owner`.
pub(super) fn controlled_by(owner: &Value, api_version: &str, kind: &str) -> Value {
    json!([{"apiVersion": api_version, "kind": kind, "name": object::name(owner), "uid": object::uid(owner),
        "controller": true, "blockOwnerDeletion": true}])
}

pub(super) fn number(object: &Value, pointer: &str, default: i64) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(default)
}

/// A pod made from a pod template.
pub(super) fn pod(template: &Value, namespace: &str, name: &str, owner: Value) -> Value {
    let mut metadata =
        template.get("metadata").cloned().filter(Value::is_object).unwrap_or_else(|| json!({}));
    metadata["name"] = json!(name);
    metadata["namespace"] = json!(namespace);
    metadata["ownerReferences"] = owner;
    if let Some(map) = metadata.as_object_mut() {
        map.remove("creationTimestamp");
    }
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": template["spec"], "status": {"phase": "Pending"}})
}

pub(super) fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    !object::is_deleting(pod)
        && conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

/// A condition; its times stay those of `old` where it did not change.
pub(super) fn condition(
    old: &Value,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: &str,
) -> Value {
    let list = old.pointer("/status/conditions").and_then(Value::as_array);
    let before = list.and_then(|l| l.iter().find(|c| c["type"] == kind));
    let since = match before {
        Some(c) if c["status"] == status => c["lastTransitionTime"].clone(),
        _ => json!(now),
    };
    let updated = match before {
        Some(c) if c["status"] == status && c["reason"] == reason && c["message"] == message => {
            c["lastUpdateTime"].clone()
        }
        _ => json!(now),
    };
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since, "lastUpdateTime": updated})
}

/// A hash of a pod template for names and labels: ten of the characters that Kubernetes uses in generated
/// names.
pub(super) fn hash(value: &Value) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let digest = ring::digest::digest(&ring::digest::SHA256, value.to_string().as_bytes());
    digest.as_ref().iter().take(10).map(|b| LETTERS[*b as usize % LETTERS.len()] as char).collect()
}
