//! Who waits for whom. The only thing that wakes anybody.
//!
//! Objects are nodes; a reference from one to another is an edge. When a node changes in a way an edge cares about, the
//! object at the edge's other end is due at once, whatever its kind.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use fl_client::Key;

/// What kind of change passes along an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum On {
    /// The artifact it publishes: a new revision, or the same one anew; of Open Flux also that it is gone.
    Artifact,
    /// It became ready, or is ready with another revision. The edges of `dependsOn`.
    Ready,
    /// Anything about it.
    Change,
}

/// From the object that holds it to what it refers to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    pub to: Key,
    pub on: On,
}

impl Edge {
    pub fn artifact(to: Key) -> Self {
        Edge { to, on: On::Artifact }
    }

    pub fn ready(to: Key) -> Self {
        Edge { to, on: On::Ready }
    }

    pub fn change(to: Key) -> Self {
        Edge { to, on: On::Change }
    }
}

/// Called with an object that is due.
pub type Waker = Arc<dyn Fn(&Key) + Send + Sync>;

/// The edges of all objects.
#[derive(Default)]
pub struct Graph {
    edges: Mutex<Edges>,
    /// By group and kind: whose queue an object is put into.
    wakers: RwLock<HashMap<(String, String), Waker>>,
}

#[derive(Debug, Default)]
struct Edges {
    out: HashMap<Key, Vec<Edge>>,
    /// Who refers to a node, and on what.
    into: HashMap<Key, HashMap<Key, HashSet<On>>>,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let edges = self.edges.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Graph").field("nodes", &edges.out.len()).finish_non_exhaustive()
    }
}

impl Graph {
    /// Objects of this kind are woken through `waker`.
    pub fn register(&self, group: &str, kind: &str, waker: Waker) {
        let mut wakers = self.wakers.write().unwrap_or_else(PoisonError::into_inner);
        wakers.insert((group.to_owned(), kind.to_owned()), waker);
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

    /// Whether anybody refers to a node.
    pub fn has_dependents(&self, node: &Key) -> bool {
        self.edges.lock().unwrap_or_else(PoisonError::into_inner).into.contains_key(node)
    }

    /// Who refers to a node on one of these accounts.
    pub fn dependents(&self, node: &Key, on: &[On]) -> Vec<Key> {
        let all = self.edges.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sources) = all.into.get(node) else { return Vec::new() };
        sources.iter().filter(|(_, ons)| on.iter().any(|o| ons.contains(o))).map(|(k, _)| k.clone()).collect()
    }

    /// What an object refers to.
    pub fn edges_of(&self, from: &Key) -> Vec<Edge> {
        let all = self.edges.lock().unwrap_or_else(PoisonError::into_inner);
        all.out.get(from).cloned().unwrap_or_default()
    }

    /// Makes everybody due who refers to a node on one of these accounts. Answers how many.
    pub fn wake_dependents(&self, node: &Key, on: &[On]) -> usize {
        let dependents = self.dependents(node, on);
        for dependent in &dependents {
            self.wake(dependent);
        }
        dependents.len()
    }

    /// Makes one object due.
    pub fn wake(&self, key: &Key) {
        let wakers = self.wakers.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = wakers.get(&(key.group().to_owned(), key.kind().to_owned())) {
            waker(key);
        }
    }

    /// The cycle of `dependsOn` edges an object is a member of, beginning and ending with it. Objects that merely lead to a
    /// cycle are not its members.
    pub fn cycle(&self, start: &Key) -> Option<Vec<Key>> {
        let all = self.edges.lock().unwrap_or_else(PoisonError::into_inner);
        let mut came_from: HashMap<&Key, &Key> = HashMap::new();
        let mut todo = VecDeque::from([start]);
        while let Some(node) = todo.pop_front() {
            let edges = all.out.get_key_value(node).map_or(&[][..], |(_, e)| e);
            for edge in edges.iter().filter(|e| e.on == On::Ready) {
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
        assert_eq!(graph.wake_dependents(&key("source"), &[On::Artifact]), 1);
        assert_eq!(graph.wake_dependents(&key("source"), &[On::Ready]), 0);
        graph.set_edges(&key("app"), vec![Edge::ready(key("base"))]);
        assert_eq!(graph.wake_dependents(&key("source"), &[On::Artifact]), 0);
        assert!(!graph.has_dependents(&key("source")));
        assert_eq!(*woken.lock().unwrap(), ["app"]);
    }

    #[test]
    fn a_cycle_flags_only_its_members() {
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
