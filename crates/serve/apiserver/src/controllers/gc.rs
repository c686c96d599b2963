//! The garbage collector: dependents follow their owners.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;

use super::graph::{self, Graph, Node, Place};
use super::{delete_with, modify};
use crate::object;
use crate::server::Inner;
use crate::store::EventKind;

struct Collector {
    graph: Graph,
    /// How far each table was read.
    seen: HashMap<Arc<str>, u64>,
    queue: VecDeque<Place>,
    queued: HashSet<Place>,
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
        // Writes come in bursts: look once per burst, not once per write.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Collector {
    fn new() -> Self {
        Self { graph: Graph::default(), seen: HashMap::new(), queue: VecDeque::new(), queued: HashSet::new() }
    }

    fn push(&mut self, place: &Place) {
        if self.queued.insert(place.clone()) {
            self.queue.push_back(place.clone());
        }
    }

    /// Brings the graph up to date with the tables that changed.
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
                        let place = (table.clone(), event.key.clone());
                        let node = Node::read(&event.object.bytes);
                        if event.kind == EventKind::Deleted {
                            self.gone(&place, &node);
                        } else {
                            self.put(&place, node);
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

    /// Replaces what the graph knows of a table by its content. An object that the graph knows and the table does not have
    /// was deleted while the events were not read, and its dependents are looked at as after a deletion.
    fn relist(&mut self, inner: &Inner, table: &Arc<str>) -> u64 {
        let (_, items, _) = inner.store.list(table, "", None, 0);
        let mut last = 0;
        let mut nodes = Vec::with_capacity(items.len());
        for (key, entry) in items {
            last = last.max(entry.revision);
            nodes.push(((table.clone(), key), Node::read(&entry.bytes)));
        }
        let there: HashSet<&str> = nodes.iter().map(|(_, node)| node.uid.as_str()).collect();
        for (place, node) in self.graph.missing(table, &there) {
            self.gone(&place, &node);
        }
        for (place, node) in nodes {
            self.put(&place, node);
        }
        last
    }

    fn put(&mut self, place: &Place, node: Node) {
        let interesting = !node.owners.is_empty() || node.deleting;
        // An owner that waited for this one may have been let go.
        let former = self.graph.node(place).filter(|old| old.owners != node.owners);
        let former: Vec<Place> = former
            .into_iter()
            .flat_map(|old| &old.owners)
            .filter_map(|owner| self.graph.place_of(&owner.uid).cloned())
            .collect();
        self.graph.put(place, node);
        for owner in former {
            self.push(&owner);
        }
        if interesting {
            self.push(place);
        }
    }

    fn gone(&mut self, place: &Place, node: &Node) {
        let owners: Vec<Place> =
            node.owners.iter().filter_map(|owner| self.graph.place_of(&owner.uid).cloned()).collect();
        self.graph.remove(place, &node.uid);
        for dependent in self.graph.dependents(&node.uid) {
            self.push(&dependent);
        }
        // An owner in foreground deletion may have waited for this one.
        for owner in owners {
            self.push(&owner);
        }
    }

    async fn work(&mut self, inner: &Arc<Inner>) {
        while let Some(place) = self.queue.pop_front() {
            self.queued.remove(&place);
            // A long queue leaves room for those who are waited for.
            tokio::task::yield_now().await;
            let Some(node) = self.graph.node(&place).cloned() else { continue };
            if node.orphan {
                self.release(inner, &place, &node.uid).await;
            } else if node.foreground {
                self.foreground(inner, &place, &node.uid).await;
            } else if !node.deleting && !node.owners.is_empty() {
                self.dependent(inner, &place, &node).await;
            }
        }
    }

    /// Takes the reference off all dependents, then the finalizer off the owner.
    async fn release(&mut self, inner: &Arc<Inner>, place: &Place, uid: &str) {
        for (table, key) in self.graph.dependents(uid) {
            modify(inner, &table, &key, |object| drop_owner(object, &[uid.to_owned()])).await;
        }
        drop_finalizer(inner, place, "orphan").await;
    }

    async fn foreground(&mut self, inner: &Arc<Inner>, place: &Place, uid: &str) {
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
            drop_finalizer(inner, place, "foregroundDeletion").await;
        }
    }

    /// Deletes a dependent that no owner keeps.
    async fn dependent(&mut self, inner: &Arc<Inner>, place: &Place, node: &Node) {
        let (mut solid, mut dangling, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
        for owner in &node.owners {
            match self.owner_state(inner, place, owner) {
                Owner::There => solid.push(owner.uid.clone()),
                Owner::Waiting => waiting.push(owner.uid.clone()),
                Owner::Gone => dangling.push(owner.uid.clone()),
                // Cannot be told: keep the dependent.
                Owner::Unknown => solid.push(owner.uid.clone()),
            }
        }
        if !solid.is_empty() {
            if !dangling.is_empty() || !waiting.is_empty() {
                let gone: Vec<String> = dangling.into_iter().chain(waiting).collect();
                modify(inner, &place.0, &place.1, |object| drop_owner(object, &gone)).await;
            }
            return;
        }
        if dangling.is_empty() && waiting.is_empty() {
            return;
        }
        // A dependent that itself has dependents which block it goes in the foreground too.
        let foreground = !waiting.is_empty() && !self.graph.dependents(&node.uid).is_empty();
        delete_with(inner, &place.0, &place.1, Some(&node.uid), |object| {
            if foreground && !object::finalizers(object).contains(&"foregroundDeletion") {
                let mut list: Vec<String> =
                    object::finalizers(object).into_iter().map(str::to_owned).collect();
                list.push("foregroundDeletion".to_owned());
                object::set_finalizers(object, &list);
            }
        })
        .await;
        if inner.store.latest(&place.0, &place.1).is_none() {
            // Its event comes with the next read; an owner that waited must not find it until then.
            self.gone(place, node);
        }
    }

    fn owner_state(&self, inner: &Inner, dependent: &Place, owner: &graph::Reference) -> Owner {
        if let Some(place) = self.graph.place_of(&owner.uid) {
            // An owner in another namespace does not count.
            let (own, theirs) = (namespace_of(&dependent.1), namespace_of(&place.1));
            if !theirs.is_empty() && own != theirs {
                return Owner::Gone;
            }
            return match self.graph.node(place) {
                Some(node) if node.foreground => Owner::Waiting,
                _ => Owner::There,
            };
        }
        let (group, version) = object::split_api_version(&owner.api_version);
        let registry = inner.registry();
        let Some(rt) = registry.by_kind(group, version, &owner.kind) else { return Owner::Unknown };
        // The events may be behind: the store has the last word.
        let key = object::key(if rt.namespaced { namespace_of(&dependent.1) } else { "" }, &owner.name);
        match inner.store.latest(&rt.storage.prefix, &key) {
            Some(entry) if object::uid(&entry.value()) == owner.uid => Owner::There,
            _ => Owner::Gone,
        }
    }
}

enum Owner {
    There,
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

async fn drop_finalizer(inner: &Arc<Inner>, place: &Place, name: &str) {
    modify(inner, &place.0, &place.1, |object| {
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
    use crate::store::{Change, Expect};

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
        inner.store.commit(TABLE, &key, Expect::Absent, Change::Put(object)).await.expect("written");
    }

    async fn delete(inner: &Inner, name: &str) {
        let key = object::key("default", name);
        let entry = inner.store.latest(TABLE, &key).expect("there");
        let change = Change::Delete(entry.value());
        inner.store.commit(TABLE, &key, Expect::Revision(entry.revision), change).await.expect("deleted");
    }

    /// A server whose own collector has ended, and one that the test runs step by step.
    async fn start() -> (ApiServer, Collector) {
        let server = ApiServer::in_memory().await.expect("the server starts");
        server.inner.ending.send_replace(true);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        (server, Collector::new())
    }

    #[tokio::test]
    async fn a_deletion_that_the_history_no_longer_holds_is_noticed() {
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
