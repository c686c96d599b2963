//! Mappings: entries in the order of the text, looked up by the text of their key.

use smol_str::SmolStr;
use thin_vec::ThinVec;

use crate::node::Node;

/// One key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key, nearly always a scalar.
    pub key: Node,
    /// The value.
    pub value: Node,
}

impl Entry {
    /// The text of a scalar key.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.key.as_text()
    }
}

/// A mapping. Lookups compare the text of scalar keys; mappings of manifests are small, so a linear search is
/// fastest.
#[derive(Debug, Clone, Default)]
pub struct Map {
    entries: ThinVec<Entry>,
}

/// Equal if both have the same keys with equal values, in any order.
impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        // Fast path for maps in the same order.
        self.len() == other.len()
            && (self.entries == other.entries
                || self.entries.iter().all(|e| match e.name() {
                    Some(name) => other.get(name) == Some(&e.value),
                    None => other.entries.contains(e),
                }))
    }
}

impl Map {
    /// An empty mapping with room for `n` entries.
    #[must_use]
    pub fn with_capacity(n: usize) -> Self {
        Self { entries: ThinVec::with_capacity(n) }
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Position of a key.
    #[must_use]
    pub fn position(&self, key: &str) -> Option<usize> {
        crate::merge::find(&self.entries, key)
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.position(key).map(|i| &self.entries[i].value)
    }

    /// Mutable access to the value of a key.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.position(key).map(|i| &mut self.entries[i].value)
    }

    /// Whether the key exists.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// The value of a key; if absent, that of `make` is appended.
    pub fn get_or_insert_with(&mut self, key: &str, make: impl FnOnce() -> Node) -> &mut Node {
        let at = self.position(key).unwrap_or_else(|| {
            self.entries.push(Entry { key: Node::string(SmolStr::new(key)), value: make() });
            self.entries.len() - 1
        });
        &mut self.entries[at].value
    }

    /// Sets the value of a key, in place or at the end. Returns the former value.
    pub fn insert(&mut self, key: impl Into<SmolStr> + AsRef<str>, value: Node) -> Option<Node> {
        if let Some(old) = self.get_mut(key.as_ref()) {
            return Some(std::mem::replace(old, value));
        }
        self.entries.push(Entry { key: Node::string(key), value });
        None
    }

    /// Appends an entry without looking for the key.
    pub fn push(&mut self, key: Node, value: Node) {
        self.entries.push(Entry { key, value });
    }

    /// Removes a key; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        self.position(key).map(|i| self.entries.remove(i).value)
    }

    /// Keeps only the entries for which `keep` returns true.
    pub fn retain(&mut self, keep: impl FnMut(&mut Entry) -> bool) {
        self.entries.retain_mut(keep);
    }

    /// The entries in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries in order, mutable.
    pub fn entries_mut(&mut self) -> &mut ThinVec<Entry> {
        &mut self.entries
    }

    /// The entries in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Entry> {
        self.entries.iter()
    }

    /// The entries in order, mutable.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Entry> {
        self.entries.iter_mut()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = &'a Entry;
    type IntoIter = std::slice::Iter<'a, Entry>;
    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

impl IntoIterator for Map {
    type Item = Entry;
    type IntoIter = thin_vec::IntoIter<Entry>;
    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<K: Into<SmolStr>> FromIterator<(K, Node)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, Node)>>(iter: I) -> Self {
        Self { entries: iter.into_iter().map(|(k, value)| Entry { key: Node::string(k), value }).collect() }
    }
}
