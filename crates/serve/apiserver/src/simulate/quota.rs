//! The status of resource quotas: their limits as the spec says them, and what the objects of the namespace take.
//!
//! Requests that create something are charged when they are admitted. What this adds is the first count of a new quota, and
//! everything no request is charged for: deletions, pods that end, and those the simulation makes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use serde_json::{Value, json};

use super::BURST;
use crate::object;
use crate::plugins::quota::{TABLE, tables, total};
use crate::server::Inner;
use crate::store::{Change, Expect, StoreError};

/// The last change of each table that counts for some quota.
type Seen = BTreeMap<String, u64>;

pub(super) async fn run(inner: Weak<Inner>) {
    let Some(strong) = inner.upgrade() else { return };
    let mut quotas = strong.store.subscribe(TABLE);
    let mut anything = strong.store.subscribe_all();
    let mut ending = strong.ending.subscribe();
    drop(strong);
    let mut seen = Seen::new();
    loop {
        let watched = {
            let Some(inner) = inner.upgrade() else { return };
            quotas.borrow_and_update();
            anything.borrow_and_update();
            let now = changes(&inner);
            if now != seen {
                seen = now;
                pass(&inner).await;
            }
            seen.len() > 1
        };
        // Without a quota nothing else matters.
        let changed = async { if watched { anything.changed().await } else { quotas.changed().await } };
        tokio::select! {
            r = changed => if r.is_err() { return },
            _ = ending.changed() => return,
        }
        tokio::time::sleep(BURST).await;
    }
}

fn changes(inner: &Inner) -> Seen {
    let mut names = BTreeSet::from([TABLE.to_owned()]);
    for (_, entry) in inner.store.list(TABLE, "", None, 0).1 {
        names.extend(tables(inner, &entry.value()));
    }
    names
        .into_iter()
        .map(|name| (inner.store.last_change(&name), name))
        .map(|(at, name)| (name, at))
        .collect()
}

async fn pass(inner: &Arc<Inner>) {
    for (key, _) in inner.store.list(TABLE, "", None, 0).1 {
        // Whoever charges the quota meanwhile knows of an object that is not there yet: count again.
        while let Some(entry) = inner.store.latest(TABLE, &key) {
            let quota = entry.value();
            let Some(status) = outdated(inner, &quota) else { break };
            let mut new = quota.clone();
            new["status"] = status;
            let expect = Expect::Revision(entry.revision);
            match inner.store.commit_when_writable(TABLE, &key, expect, Change::Put(new)).await {
                Err(StoreError::Conflict) => {}
                _ => break,
            }
        }
    }
}

/// The status a quota should have, if it has another one.
fn outdated(inner: &Inner, quota: &Value) -> Option<Value> {
    if object::is_deleting(quota) {
        return None;
    }
    let hard = quota["spec"].get("hard").filter(|hard| hard.as_object().is_some_and(|map| !map.is_empty()));
    let used = total(inner, quota);
    let mut status = json!({});
    if let Some(hard) = hard {
        status["hard"] = hard.clone();
    }
    if !used.is_empty() {
        status["used"] = json!(used);
    }
    (quota["status"] != status).then_some(status)
}
