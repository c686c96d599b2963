//! The reference graph: the only thing that enqueues objects because of changes of other objects.
//!
//! Objects are nodes, references are edges. When a node changes in the way an edge is interested in, the
//! referring object is enqueued at once, whatever its kind.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use fl_client::Key;

/// The kind of change that enqueues the referring object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trigger {
    /// Its artifact: a new revision, or the same revision published again; for Open Flux also its deletion.
    Artifact,
    /// It became ready, or is ready with another revision; for `dependsOn`.
    Ready,
    /// Any change.
    Change,
}

/// A reference from an object to another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    pub to: Key,
    pub on: Trigger,
}

impl Edge {
    pub fn artifact(to: Key) -> Self {
        Edge { to, on: Trigger::Artifact }
    }

    pub fn ready(to: Key) -> Self {
        Edge { to, on: Trigger::Ready }
    }

    pub fn change(to: Key) -> Self {
        Edge { to, on: Trigger::Change }
    }
}

/// Enqueues an object.
pub type EnqueueFn = Arc<dyn Fn(&Key) + Send + Sync>;

/// The edges of all objects.
#[derive(Default)]
pub struct Graph {
    edges: Mutex<Edges>,
    /// The queue of each kind, by group and kind.
    enqueue_fns: RwLock<HashMap<(String, String), EnqueueFn>>,
}

#[derive(Debug, Default)]
struct Edges {
    out: HashMap<Key, Vec<Edge>>,
    /// The referring objects of a node, and their triggers.
    into: HashMap<Key, HashMap<Key, HashSet<Trigger>>>,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let edges = self.edges.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Graph").field("nodes", &edges.out.len()).finish_non_exhaustive()
    }
}

impl Graph {
    /// Registers how objects of a kind are enqueued.
    pub fn register(&self, group: &str, kind: &str, enqueue: EnqueueFn) {
        let mut enqueue_fns = self.enqueue_fns.write().unwrap_or_else(PoisonError::into_inner);
        enqueue_fns.insert((group.to_owned(), kind.to_owned()), enqueue);
    }

    /// Replaces the edges of an object; an empty list removes it.
    pub fn set_edges(&self, from: &Key, mut edges: Vec<Edge>) {
        edges.sort();
        edges.dedup();
        let mut all = self.edges.lock().unwrap_or_else(PoisonError::into_inner);
        if all.out.get(from).is_some_and(|known| *known == edges) {
            return;
        }
        for old in all.out.remove(from).unwrap_or_default() {
            if let Some(sources) = all.into.get_mut(&old.to) {
                sources.remove(from);
                if sources.is_empty() {
                    all.into.remove(&old.to);
                }
            }
        }
        for edge in &edges {
            let sources = all.into.entry(edge.to.clone()).or_default();
            sources.entry(from.clone()).or_default().insert(edge.on);
        }
        if !edges.is_empty() {
            all.out.insert(from.clone(), edges);
        }
    }

    /// Whether any object refers to a node.
    pub fn has_dependents(&self, node: &Key) -> bool {
        self.edges.lock().unwrap_or_else(PoisonError::into_inner).into.contains_key(node)
    }

    /// The objects that refer to a node with one of these triggers.
    pub fn dependents(&self, node: &Key, on: &[Trigger]) -> Vec<Key> {
        let all = self.edges.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sources) = all.into.get(node) else { return Vec::new() };
        sources.iter().filter(|(_, ons)| on.iter().any(|o| ons.contains(o))).map(|(k, _)| k.clone()).collect()
    }

    /// The edges of an object.
    pub fn edges_of(&self, from: &Key) -> Vec<Edge> {
        let all = self.edges.lock().unwrap_or_else(PoisonError::into_inner);
        all.out.get(from).cloned().unwrap_or_default()
    }

    /// Enqueues the objects that refer to a node with one of these triggers; returns their number.
    pub fn wake_dependents(&self, node: &Key, on: &[Trigger]) -> usize {
        let dependents = self.dependents(node, on);
        for dependent in &dependents {
            self.trigger(dependent);
        }
        dependents.len()
    }

    /// Enqueues one object.
    pub fn trigger(&self, key: &Key) {
        let enqueue_fns = self.enqueue_fns.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(enqueue) = enqueue_fns.get(&(key.group().to_owned(), key.kind().to_owned())) {
            enqueue(key);
        }
    }

    /// The `dependsOn` cycle that an object is part of, beginning and ending with it. Objects that only lead
    /// to a cycle are not part of it.
    pub fn cycle(&self, start: &Key) -> Option<Vec<Key>> {
        let all = self.edges.lock().unwrap_or_else(PoisonError::into_inner);
        let mut came_from: HashMap<&Key, &Key> = HashMap::new();
        let mut todo = VecDeque::from([start]);
        while let Some(node) = todo.pop_front() {
            let edges = all.out.get_key_value(node).map_or(&[][..], |(_, e)| e);
            for edge in edges.iter().filter(|e| e.on == Trigger::Ready) {
                if edge.to == *start {
                    let mut path = vec![start.clone()];
                    let mut at = node;
                    while at != start {
                        path.push(at.clone());
                        at = came_from[at];
                    }
                    path.push(start.clone());
                    path.reverse();
                    return Some(path);
                }
                if !came_from.contains_key(&edge.to) {
                    came_from.insert(&edge.to, node);
                    todo.push_back(&edge.to);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new("g", "K", "ns", name)
    }

    #[test]
    fn wakes_along_edges() {
        let graph = Graph::default();
        let woken = Arc::new(Mutex::new(Vec::new()));
        let seen = woken.clone();
        graph.register("g", "K", Arc::new(move |k| seen.lock().unwrap().push(k.name().to_owned())));
        graph.set_edges(&key("app"), vec![Edge::artifact(key("source")), Edge::ready(key("base"))]);
        assert_eq!(graph.wake_dependents(&key("source"), &[Trigger::Artifact]), 1);
        assert_eq!(graph.wake_dependents(&key("source"), &[Trigger::Ready]), 0);
        graph.set_edges(&key("app"), vec![Edge::ready(key("base"))]);
        assert_eq!(graph.wake_dependents(&key("source"), &[Trigger::Artifact]), 0);
        assert!(!graph.has_dependents(&key("source")));
        assert_eq!(*woken.lock().unwrap(), ["app"]);
    }

    #[test]
    fn cycle_contains_only_its_members() {
        let graph = Graph::default();
        for i in 0..100 {
            graph.set_edges(&key(&i.to_string()), vec![Edge::ready(key(&((i + 1) % 100).to_string()))]);
        }
        graph.set_edges(&key("outside"), vec![Edge::ready(key("5"))]);
        assert_eq!(graph.cycle(&key("7")).unwrap().len(), 101);
        assert!(graph.cycle(&key("outside")).is_none());
        graph.set_edges(&key("self"), vec![Edge::ready(key("self"))]);
        assert_eq!(graph.cycle(&key("self")).unwrap(), [key("self"), key("self")]);
    }
}
