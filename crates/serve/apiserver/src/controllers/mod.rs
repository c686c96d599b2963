//! Controllers that every server needs: garbage collection and namespace deletion.

mod gc;
mod namespaces;
mod owner_graph;

use std::sync::Arc;

use serde_json::Value;

use crate::object;
use crate::server::{Inner, rfc3339};
use crate::store::{Change, Entry, Precondition, StoreError};

/// Starts the controllers.
pub(crate) fn start(inner: &Arc<Inner>) -> Vec<tokio::task::JoinHandle<()>> {
    vec![tokio::spawn(gc::run(Arc::downgrade(inner))), tokio::spawn(namespaces::run(Arc::downgrade(inner)))]
}

/// Updates a stored object, with retries after conflicts. An object with a `deletionTimestamp` and no
/// finalizers left is deleted. Returns false if the object does not exist.
pub(crate) async fn modify(
    inner: &Arc<Inner>,
    table: &str,
    key: &str,
    change: impl Fn(&mut Value) + Send,
) -> bool {
    loop {
        let Some(entry) = inner.store.latest(table, key) else { return false };
        let old = entry.value();
        let mut new = old.clone();
        change(&mut new);
        if new == old {
            return true;
        }
        let gone = object::is_deleting(&new)
            && object::finalizers(&new).is_empty()
            && new.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) == 0
            && !(table == "/namespaces"
                && new.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|l| !l.is_empty()));
        match write(inner, table, key, &entry, new, gone).await {
            Some(()) => return !gone,
            None => continue,
        }
    }
}

async fn write(
    inner: &Arc<Inner>,
    table: &str,
    key: &str,
    entry: &Entry,
    new: Value,
    gone: bool,
) -> Option<()> {
    let change = if gone { Change::Delete(entry.value()) } else { Change::Put(new.clone()) };
    match inner.store.commit_when_writable(table, key, Precondition::Revision(entry.revision), change).await {
        Ok(_) => {
            if gone {
                after_delete(inner, table, &new).await;
            }
            Some(())
        }
        Err(StoreError::Conflict) => None,
        // The store is closed, or the object too large: a retry would not help.
        Err(_) => Some(()),
    }
}

async fn after_delete(inner: &Arc<Inner>, table: &str, object: &Value) {
    match table {
        "/services" => inner.addresses.free(object),
        crate::crd::TABLE => crate::crd::removed(inner, object).await,
        _ => {}
    }
}

/// Deletes one object with background propagation: an object with finalizers gets a `deletionTimestamp`,
/// others are removed.
pub(crate) async fn delete_instance(inner: &Arc<Inner>, table: &str, key: &str) {
    delete_with(inner, table, key, None, |_| {}).await;
}

/// Deletes one object if its UID is still `uid`; `prepare` may add finalizers first.
pub(crate) async fn delete_with(
    inner: &Arc<Inner>,
    table: &str,
    key: &str,
    uid: Option<&str>,
    prepare: impl Fn(&mut Value) + Send,
) {
    loop {
        let Some(entry) = inner.store.latest(table, key) else { return };
        let old = entry.value();
        if uid.is_some_and(|uid| uid != object::uid(&old)) {
            return;
        }
        let mut new = old.clone();
        prepare(&mut new);
        let is_definition = table == crate::crd::TABLE;
        if is_definition && !object::is_deleting(&new) {
            crate::crd::mark_deleted(&mut new, &rfc3339(inner.now()));
        }
        let held = !object::finalizers(&new).is_empty();
        if held && !object::is_deleting(&new) {
            object::set_meta(&mut new, "deletionTimestamp", rfc3339(inner.now()));
            object::set_meta(&mut new, "deletionGracePeriodSeconds", 0);
            let generation = object::generation(&new);
            if generation > 0 {
                object::set_meta(&mut new, "generation", generation + 1);
            }
        }
        if held && new == old {
            return;
        }
        if write(inner, table, key, &entry, new.clone(), !held).await.is_some() {
            if is_definition && held {
                crate::crd::changed(inner, &new).await;
            }
            return;
        }
    }
}
