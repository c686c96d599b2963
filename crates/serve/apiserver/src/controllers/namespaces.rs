//! The namespace controller: deletes the content of a terminating namespace, then the namespace.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};

use super::{delete_instance, modify};
use crate::object;
use crate::server::{Inner, rfc3339};

const TABLE: &str = "/namespaces";

pub(super) async fn run(inner: Weak<Inner>) {
    let Some(strong) = inner.upgrade() else { return };
    let mut changed = strong.store.subscribe(TABLE);
    drop(strong);
    loop {
        let Some(inner) = inner.upgrade() else { return };
        changed.borrow_and_update();
        let mut waiting = false;
        for (key, entry) in inner.store.list(TABLE, "", None, 0).1 {
            // Most namespaces are not terminating: search the bytes before parsing.
            if entry.bytes.windows(17).any(|w| w == b"deletionTimestamp")
                && object::is_deleting(&entry.value())
            {
                waiting |= !empty(&inner, &key, object::name(&entry.value())).await;
            }
        }
        drop(inner);
        if waiting {
            tokio::select! {
                r = changed.changed() => if r.is_err() { return },
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
            }
        } else if changed.changed().await.is_err() {
            return;
        }
    }
}

/// Deletes the content of a namespace; true if the namespace itself may have been deleted.
async fn empty(inner: &Arc<Inner>, key: &str, name: &str) -> bool {
    let prefix = format!("{name}/");
    let (mut left, mut held) = (Vec::new(), Vec::new());
    for rt in inner.registry().stored().iter().filter(|t| t.namespaced && t.has_verb("delete")) {
        let table = &rt.storage.prefix;
        for (object_key, entry) in inner.store.list(table, &prefix, None, 0).1 {
            if table == "/pods" {
                // There is no kubelet to confirm the end of a pod: pods are deleted without a grace period.
                modify(inner, table, &object_key, |pod| {
                    if object::is_deleting(pod) {
                        object::set_meta(pod, "deletionGracePeriodSeconds", 0);
                    }
                })
                .await;
            }
            delete_instance(inner, table, &object_key).await;
            if let Some(entry) = inner.store.latest(table, &object_key) {
                left.push(rt.group_resource());
                held.extend(object::finalizers(&entry.value()).into_iter().map(str::to_owned));
            }
            drop(entry);
        }
    }
    if !left.is_empty() {
        report(inner, key, &left, &held).await;
        return false;
    }
    modify(inner, TABLE, key, |namespace| {
        if let Some(list) = namespace.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut) {
            list.retain(|f| f != "kubernetes");
        }
        let none = namespace.pointer("/spec/finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty);
        if none && let Some(spec) = namespace.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove("finalizers");
        }
    })
    .await;
    true
}

/// Sets the conditions that report what remains in a namespace.
async fn report(inner: &Arc<Inner>, key: &str, left: &[String], held: &[String]) {
    let now = rfc3339(inner.now());
    let count = |list: &[String]| -> Vec<String> {
        let mut names: Vec<&String> = list.iter().collect();
        names.sort();
        names.dedup();
        names
            .iter()
            .map(|n| {
                // Resource and group are joined by a dot, even if the group is empty.
                let point = if n.contains('.') { "" } else { "." };
                format!("{n}{point} has {} resource instances", list.iter().filter(|l| l == n).count())
            })
            .collect()
    };
    let mut finalizers: Vec<&String> = held.iter().collect();
    finalizers.sort();
    finalizers.dedup();
    let in_finalizers: Vec<String> = finalizers
        .iter()
        .map(|f| format!("{f} in {} resource instances", held.iter().filter(|h| h == f).count()))
        .collect();
    let conditions = [
        (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered".to_owned(),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".to_owned(),
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization".to_owned(),
        ),
        (
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            format!("Some resources are remaining: {}", count(left).join(", ")),
        ),
        (
            "NamespaceFinalizersRemaining",
            if held.is_empty() { "False" } else { "True" },
            "SomeFinalizersRemain",
            format!("Some content in the namespace has finalizers remaining: {}", in_finalizers.join(", ")),
        ),
    ];
    modify(inner, TABLE, key, |namespace| {
        let old = namespace.pointer("/status/conditions").cloned().unwrap_or(Value::Null);
        let fresh: Vec<Value> = conditions
            .iter()
            .map(|(kind, status, reason, message)| {
                let before = old.as_array().and_then(|l| l.iter().find(|c| c["type"] == *kind && c["status"] == *status));
                let since = before.map_or_else(|| json!(now), |c| c["lastTransitionTime"].clone());
                json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
            })
            .collect();
        namespace["status"]["conditions"] = json!(fresh);
    })
    .await;
}
