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
    let mut collector = Collector {
        graph: Graph::default(),
        seen: HashMap::new(),
        queue: VecDeque::new(),
        queued: HashSet::new(),
    };
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
                // First sight, or too far behind: read the table as it is.
                _ => {
                    let (_, items, _) = inner.store.list(&table, "", None, 0);
                    let mut last = newest;
                    for (key, entry) in items {
                        last = last.max(entry.revision);
                        self.put(&(table.clone(), key), Node::read(&entry.bytes));
                    }
                    self.seen.insert(table, last);
                }
            }
        }
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
