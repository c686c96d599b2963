//! The garbage collector: deletes dependents after their owners.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;

use super::owner_graph::{self, Graph, Node, ObjectKey};
use super::{delete_with, modify};
use crate::object;
use crate::server::Inner;
use crate::store::EventKind;

struct Collector {
    graph: Graph,
    /// The revision up to which each table was read.
    seen: HashMap<Arc<str>, u64>,
    queue: VecDeque<ObjectKey>,
    queued: HashSet<ObjectKey>,
}

pub(super) async fn run(inner: Weak<Inner>) {
    let mut collector = Collector::new();
    let Some(strong) = inner.upgrade() else { return };
    let mut changes = strong.store.subscribe_all();
    let mut ending = strong.ending.subscribe();
    drop(strong);
    loop {
        {
            let Some(inner) = inner.upgrade() else { return };
            changes.borrow_and_update();
            collector.read(&inner);
            collector.work(&inner).await;
        }
        tokio::select! {
            r = changes.changed() => if r.is_err() { return },
            _ = ending.changed() => return,
        }
        // Writes come in bursts: run once per burst, not once per write.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Collector {
    fn new() -> Self {
        Self { graph: Graph::default(), seen: HashMap::new(), queue: VecDeque::new(), queued: HashSet::new() }
    }

    fn push(&mut self, key: &ObjectKey) {
        if self.queued.insert(key.clone()) {
            self.queue.push_back(key.clone());
        }
    }

    /// Updates the graph from the tables that changed.
    fn read(&mut self, inner: &Inner) {
        for (table, newest) in inner.store.table_revisions() {
            let seen = self.seen.get(&table).copied();
            if seen == Some(newest) {
                continue;
            }
            match seen.map(|seen| inner.store.events(&table, seen, usize::MAX)) {
                Some(Ok((_, events))) => {
                    let mut last = newest;
                    for event in events {
                        last = last.max(event.revision);
                        let key = (table.clone(), event.key.clone());
                        let node = Node::read(&event.object.bytes);
                        if event.kind == EventKind::Deleted {
                            self.gone(&key, &node);
                        } else {
                            self.put(&key, node);
                        }
                    }
                    self.seen.insert(table, last);
                }
                // The first read, or the history does not reach back far enough: list the table.
                _ => {
                    let last = self.relist(inner, &table).max(newest);
                    self.seen.insert(table, last);
                }
            }
        }
    }

    /// Replaces the nodes of a table in the graph by the table's content. An object that is in the graph but
    /// not in the table was deleted while the events were not read; its dependents are handled as after a
    /// deletion.
    fn relist(&mut self, inner: &Inner, table: &Arc<str>) -> u64 {
        let (_, items, _) = inner.store.list(table, "", None, 0);
        let mut last = 0;
        let mut nodes = Vec::with_capacity(items.len());
        for (key, entry) in items {
            last = last.max(entry.revision);
            nodes.push(((table.clone(), key), Node::read(&entry.bytes)));
        }
        let there: HashSet<&str> = nodes.iter().map(|(_, node)| node.uid.as_str()).collect();
        for (key, node) in self.graph.missing(table, &there) {
            self.gone(&key, &node);
        }
        for (key, node) in nodes {
            self.put(&key, node);
        }
        last
    }

    fn put(&mut self, key: &ObjectKey, node: Node) {
        let interesting = !node.owners.is_empty() || node.deleting;
        // An owner that waited for this dependent may no longer be referenced by it.
        let former = self.graph.node(key).filter(|old| old.owners != node.owners);
        let former: Vec<ObjectKey> = former
            .into_iter()
            .flat_map(|old| &old.owners)
            .filter_map(|owner| self.graph.key_of(&owner.uid).cloned())
            .collect();
        self.graph.put(key, node);
        for owner in former {
            self.push(&owner);
        }
        if interesting {
            self.push(key);
        }
    }

    fn gone(&mut self, key: &ObjectKey, node: &Node) {
        let owners: Vec<ObjectKey> =
            node.owners.iter().filter_map(|owner| self.graph.key_of(&owner.uid).cloned()).collect();
        self.graph.remove(key, &node.uid);
        for dependent in self.graph.dependents(&node.uid) {
            self.push(&dependent);
        }
        // An owner in foreground deletion may have waited for this dependent.
        for owner in owners {
            self.push(&owner);
        }
    }

    async fn work(&mut self, inner: &Arc<Inner>) {
        while let Some(key) = self.queue.pop_front() {
            self.queued.remove(&key);
            // Yields to requests while the queue is long.
            tokio::task::yield_now().await;
            let Some(node) = self.graph.node(&key).cloned() else { continue };
            if node.orphan {
                self.release(inner, &key, &node.uid).await;
            } else if node.foreground {
                self.foreground(inner, &key, &node.uid).await;
            } else if !node.deleting && !node.owners.is_empty() {
                self.dependent(inner, &key, &node).await;
            }
        }
    }

    /// Orphans the dependents: removes their owner references, then the finalizer of the owner.
    async fn release(&mut self, inner: &Arc<Inner>, key: &ObjectKey, uid: &str) {
        for (table, key) in self.graph.dependents(uid) {
            modify(inner, &table, &key, |object| drop_owner(object, &[uid.to_owned()])).await;
        }
        drop_finalizer(inner, key, "orphan").await;
    }

    async fn foreground(&mut self, inner: &Arc<Inner>, key: &ObjectKey, uid: &str) {
        let mut blocked = false;
        for dependent in self.graph.dependents(uid) {
            let Some(node) = self.graph.node(&dependent).cloned() else { continue };
            let blocks = node.owners.iter().any(|o| o.uid == uid && o.blocks == Some(true));
            blocked |= blocks;
            if !node.deleting {
                self.push(&dependent);
            }
        }
        if !blocked {
            drop_finalizer(inner, key, "foregroundDeletion").await;
        }
    }

    /// Deletes a dependent without a remaining owner.
    async fn dependent(&mut self, inner: &Arc<Inner>, key: &ObjectKey, node: &Node) {
        let (mut solid, mut dangling, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
        for owner in &node.owners {
            match self.owner_state(inner, key, owner) {
                Owner::Present => solid.push(owner.uid.clone()),
                Owner::Waiting => waiting.push(owner.uid.clone()),
                Owner::Gone => dangling.push(owner.uid.clone()),
                // Whether the owner exists is unknown: keep the dependent.
                Owner::Unknown => solid.push(owner.uid.clone()),
            }
        }
        if !solid.is_empty() {
            if !dangling.is_empty() || !waiting.is_empty() {
                let gone: Vec<String> = dangling.into_iter().chain(waiting).collect();
                modify(inner, &key.0, &key.1, |object| drop_owner(object, &gone)).await;
            }
            return;
        }
        if dangling.is_empty() && waiting.is_empty() {
            return;
        }
        // A dependent that has blocking dependents itself is deleted in the foreground, too.
        let foreground = !waiting.is_empty() && !self.graph.dependents(&node.uid).is_empty();
        delete_with(inner, &key.0, &key.1, Some(&node.uid), |object| {
            if foreground && !object::finalizers(object).contains(&"foregroundDeletion") {
                let mut list: Vec<String> =
                    object::finalizers(object).into_iter().map(str::to_owned).collect();
                list.push("foregroundDeletion".to_owned());
                object::set_finalizers(object, &list);
            }
        })
        .await;
        if inner.store.latest(&key.0, &key.1).is_none() {
            // Its event comes with the next read; until then a waiting owner must not find it.
            self.gone(key, node);
        }
    }

    fn owner_state(&self, inner: &Inner, dependent: &ObjectKey, owner: &owner_graph::Reference) -> Owner {
        if let Some(key) = self.graph.key_of(&owner.uid) {
            // An owner in another namespace is not an owner.
            let (own, theirs) = (namespace_of(&dependent.1), namespace_of(&key.1));
            if !theirs.is_empty() && own != theirs {
                return Owner::Gone;
            }
            return match self.graph.node(key) {
                Some(node) if node.foreground => Owner::Waiting,
                _ => Owner::Present,
            };
        }
        let (group, version) = object::split_api_version(&owner.api_version);
        let registry = inner.registry();
        let Some(rt) = registry.by_kind(group, version, &owner.kind) else { return Owner::Unknown };
        // The events may be behind; the store decides.
        let key = object::key(if rt.namespaced { namespace_of(&dependent.1) } else { "" }, &owner.name);
        match inner.store.latest(&rt.storage.prefix, &key) {
            Some(entry) if object::uid(&entry.value()) == owner.uid => Owner::Present,
            _ => Owner::Gone,
        }
    }
}

enum Owner {
    Present,
    /// In foreground deletion, waiting for this dependent.
    Waiting,
    Gone,
    Unknown,
}

fn namespace_of(key: &str) -> &str {
    key.split_once('/').map_or("", |(namespace, _)| namespace)
}

fn drop_owner(object: &mut Value, uids: &[String]) {
    let left: Vec<Value> = object::owner_references(object)
        .iter()
        .filter(|r| !r.get("uid").and_then(Value::as_str).is_some_and(|u| uids.iter().any(|x| x == u)))
        .cloned()
        .collect();
    if left.is_empty() {
        object::remove_meta(object, "ownerReferences");
    } else {
        object::set_meta(object, "ownerReferences", left);
    }
}

async fn drop_finalizer(inner: &Arc<Inner>, key: &ObjectKey, name: &str) {
    modify(inner, &key.0, &key.1, |object| {
        let left: Vec<String> =
            object::finalizers(object).into_iter().filter(|f| *f != name).map(str::to_owned).collect();
        object::set_finalizers(object, &left);
    })
    .await;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::ApiServer;
    use crate::store::{Change, Precondition};

    const TABLE: &str = "/configmaps";

    fn map(name: &str, uid: &str, owner: Option<(&str, &str)>) -> Value {
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default", "uid": uid}});
        if let Some((name, uid)) = owner {
            object["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}]);
        }
        object
    }

    async fn put(inner: &Inner, object: Value) {
        let key = object::key("default", object::name(&object));
        inner.store.commit(TABLE, &key, Precondition::Absent, Change::Put(object)).await.expect("written");
    }

    async fn delete(inner: &Inner, name: &str) {
        let key = object::key("default", name);
        let entry = inner.store.latest(TABLE, &key).expect("there");
        let change = Change::Delete(entry.value());
        inner
            .store
            .commit(TABLE, &key, Precondition::Revision(entry.revision), change)
            .await
            .expect("deleted");
    }

    /// A server whose own collector has ended, and a collector that the test runs step by step.
    async fn start() -> (ApiServer, Collector) {
        let server = ApiServer::in_memory().await.expect("the server starts");
        server.inner.ending.send_replace(true);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        (server, Collector::new())
    }

    #[tokio::test]
    async fn deletion_after_a_gap_in_history_is_noticed() {
        let (server, mut collector) = start().await;
        let inner = &server.inner;
        put(inner, map("owner", "o", None)).await;
        put(inner, map("replaced", "r", None)).await;
        put(inner, map("kept", "k", None)).await;
        for (name, owner) in [("a", ("owner", "o")), ("b", ("replaced", "r")), ("c", ("kept", "k"))] {
            put(inner, map(name, name, Some(owner))).await;
        }
        collector.read(inner);
        collector.work(inner).await;
        delete(inner, "owner").await;
        delete(inner, "replaced").await;
        put(inner, map("replaced", "another", None)).await;
        inner.store.compact(inner.store.revision());
        collector.read(inner);
        collector.work(inner).await;
        let there = |name: &str| inner.store.latest(TABLE, &object::key("default", name)).is_some();
        assert!(!there("a"), "its owner was deleted");
        assert!(!there("b"), "another object has the name of its owner");
        assert!(there("c") && there("kept") && there("replaced"));
    }
}
