//! The status of resource quotas: the limits of the spec and the usage of the namespace.
//!
//! Requests are charged at admission. This controller adds the first count of a new quota and what no request
//! is charged for: deletions, pods that end, and pods that the simulation creates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use serde_json::{Value, json};

use super::QUIET_PERIOD;
use crate::admission::plugins::resource_quota::{TABLE, tables, total};
use crate::object;
use crate::server::Inner;
use crate::store::{Change, Precondition, StoreError};

/// The last change of each table that is counted by some quota.
type LastChanges = BTreeMap<String, u64>;

pub(super) async fn run(inner: Weak<Inner>) {
    let Some(strong) = inner.upgrade() else { return };
    let mut quotas = strong.store.subscribe(TABLE);
    let mut all_tables = strong.store.subscribe_all();
    let mut ending = strong.ending.subscribe();
    drop(strong);
    let mut seen = LastChanges::new();
    loop {
        let watched = {
            let Some(inner) = inner.upgrade() else { return };
            quotas.borrow_and_update();
            all_tables.borrow_and_update();
            let now = changes(&inner);
            if now != seen {
                seen = now;
                recount(&inner).await;
            }
            seen.len() > 1
        };
        // Without a quota, only changes of quotas matter.
        let changed = async { if watched { all_tables.changed().await } else { quotas.changed().await } };
        tokio::select! {
            r = changed => if r.is_err() { return },
            _ = ending.changed() => return,
        }
        tokio::time::sleep(QUIET_PERIOD).await;
    }
}

fn changes(inner: &Inner) -> LastChanges {
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

async fn recount(inner: &Arc<Inner>) {
    for (key, _) in inner.store.list(TABLE, "", None, 0).1 {
        // A request that charged the quota meanwhile counts an object that is not stored yet: count again.
        while let Some(entry) = inner.store.latest(TABLE, &key) {
            let quota = entry.value();
            let Some(status) = new_status(inner, &quota) else { break };
            let mut new = quota.clone();
            new["status"] = status;
            let expect = Precondition::Revision(entry.revision);
            match inner.store.commit_when_writable(TABLE, &key, expect, Change::Put(new)).await {
                Err(StoreError::Conflict) => {}
                _ => break,
            }
        }
    }
}

/// The status a quota should have, if it differs from the one it has.
fn new_status(inner: &Inner, quota: &Value) -> Option<Value> {
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
