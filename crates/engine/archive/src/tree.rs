//! The file tree of an archive.
//!
//! One rule for repeated names, on every platform: the last content wins, the first file decides whether it
//! is executable (as if each was written over the one before), directories may repeat, and a name that is
//! both a file and a directory is an error. Names that differ only in case are different.

use std::collections::HashSet;
use std::ops::Range;

use crate::{ReadError, ReadLimits};

/// Average bytes of a name that an archive may have.
const AVERAGE_NAME_BYTES: usize = 160;

/// Builds a [`Tree`] from entries in the order of the archive.
#[derive(Debug)]
pub struct TreeBuilder<T> {
    names: String,
    nodes: Vec<Node<T>>,
    limit: usize,
}

/// A file with its content, or a directory. Its name is a range of `names`.
#[derive(Debug)]
struct Node<T> {
    start: u32,
    length: u16,
    executable: bool,
    content: Option<T>,
}

impl<T> Node<T> {
    fn range(&self) -> Range<usize> {
        let start = self.start as usize;
        start..start + usize::from(self.length)
    }
}

impl<T> TreeBuilder<T> {
    pub fn new(limits: &ReadLimits) -> Self {
        Self { names: String::new(), nodes: Vec::new(), limit: limits.entries }
    }

    pub fn directory(&mut self, name: &str) -> Result<(), ReadError> {
        // The root always exists.
        if name.is_empty() { Ok(()) } else { self.add(name, false, None) }
    }

    pub fn file(&mut self, name: &str, executable: bool, content: T) -> Result<(), ReadError> {
        if name.is_empty() {
            return Err(ReadError::FileAndDirectory(".".to_owned()));
        }
        self.add(name, executable, Some(content))
    }

    fn add(&mut self, name: &str, executable: bool, content: Option<T>) -> Result<(), ReadError> {
        let start = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let length = u16::try_from(name.len()).map_err(|_| ReadError::Name(name.to_owned()))?;
        self.names.push_str(name);
        self.nodes.push(Node { start, length, executable, content });
        let longest = self.limit.saturating_mul(AVERAGE_NAME_BYTES).min(u32::MAX as usize);
        if self.names.len() > longest {
            return Err(ReadError::Limit { what: "bytes of names", limit: longest as u64 });
        }
        if self.nodes.len() > self.limit {
            return Err(ReadError::Limit { what: "entries", limit: self.limit as u64 });
        }
        Ok(())
    }

    /// The tree, including directories that only occur in the names of other entries.
    pub fn finish(mut self) -> Result<Tree<T>, ReadError> {
        let names = std::mem::take(&mut self.names);
        // Later entries have later ranges.
        self.nodes.sort_unstable_by(|a, b| (&names[a.range()], a.start).cmp(&(&names[b.range()], b.start)));
        let mut clash = None;
        self.nodes.dedup_by(|later, kept| {
            let same = names[later.range()] == names[kept.range()];
            if same {
                match (&mut kept.content, later.content.take()) {
                    (Some(old), Some(new)) => *old = new,
                    (None, None) => {}
                    _ => clash = Some(names[kept.range()].to_owned()),
                }
            }
            same
        });
        let mut tree = Tree { names, nodes: self.nodes };
        let implied = tree.implied(self.limit)?;
        match clash {
            Some(name) => Err(ReadError::FileAndDirectory(name)),
            None => {
                tree.nodes.extend(implied);
                let names = &tree.names;
                tree.nodes.sort_unstable_by(|a, b| names[a.range()].cmp(&names[b.range()]));
                Ok(tree)
            }
        }
    }
}

/// Files and directories by name, sorted by bytes.
#[derive(Debug)]
pub struct Tree<T> {
    names: String,
    nodes: Vec<Node<T>>,
}

impl<T> Tree<T> {
    /// The entry of a name: a file with its content and whether it is executable, or a directory
    /// (`Some(None)`).
    pub fn get(&self, name: &str) -> Option<Option<(&T, bool)>> {
        let found = self.find(name)?;
        Some(found.content.as_ref().map(|content| (content, found.executable)))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<(&T, bool)>)> {
        self.nodes.iter().map(|n| (&self.names[n.range()], n.content.as_ref().map(|c| (c, n.executable))))
    }

    /// All files, sorted by name.
    pub fn into_files(self) -> impl Iterator<Item = (String, T)> {
        let names = self.names;
        self.nodes.into_iter().filter_map(move |n| Some((names[n.range()].to_owned(), n.content?)))
    }

    fn find(&self, name: &str) -> Option<&Node<T>> {
        let at = self.nodes.binary_search_by(|node| self.names[node.range()].cmp(name)).ok()?;
        self.nodes.get(at)
    }

    /// Directories without an entry of their own. Their names are ranges of existing names.
    fn implied(&self, limit: usize) -> Result<Vec<Node<T>>, ReadError> {
        let (mut implied, mut seen) = (Vec::new(), HashSet::new());
        for node in &self.nodes {
            let name = &self.names[node.range()];
            // From the innermost outwards, until one is already known.
            for (at, _) in name.rmatch_indices('/') {
                let parent = &name[..at];
                match self.find(parent) {
                    Some(Node { content: Some(_), .. }) => {
                        return Err(ReadError::FileAndDirectory(name.to_owned()));
                    }
                    Some(_) => break,
                    None if !seen.insert(parent) => break,
                    None => {}
                }
                let length = u16::try_from(at).unwrap_or(u16::MAX);
                implied.push(Node { start: node.start, length, executable: false, content: None });
                if implied.len() > limit {
                    return Err(ReadError::Limit { what: "directories", limit: limit as u64 });
                }
            }
        }
        Ok(implied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: &[(&str, Option<u8>)]) -> Result<Tree<u8>, ReadError> {
        let mut listing = TreeBuilder::new(&ReadLimits::default());
        for (name, content) in entries {
            match content {
                Some(content) => listing.file(name, *content == 7, *content)?,
                None => listing.directory(name)?,
            }
        }
        listing.finish()
    }

    fn shown(tree: &Tree<u8>) -> Vec<String> {
        let file = |(content, executable)| format!("={content}{}", if executable { "x" } else { "" });
        tree.iter().map(|(name, found)| format!("{name}{}", found.map(file).unwrap_or_default())).collect()
    }

    #[test]
    fn implied_directories_are_added() {
        let tree = tree(&[("a/b/c", Some(1)), ("a-b", Some(2)), ("a/b/d", Some(3)), ("e", None)]).unwrap();
        assert_eq!(shown(&tree), ["a", "a-b=2", "a/b", "a/b/c=1", "a/b/d=3", "e"]);
        assert!(tree.get("a/b").unwrap().is_none() && tree.get("a/x").is_none());
        assert_eq!(tree.get("a/b/d").unwrap().unwrap(), (&3, false));
    }

    /// A08: duplicate and case-colliding names.
    #[test]
    fn duplicate_names_follow_one_rule() {
        let twice =
            tree(&[("a", Some(7)), ("d", None), ("a", Some(1)), ("A", Some(2)), ("d", None)]).unwrap();
        assert_eq!(shown(&twice), ["A=2", "a=1x", "d"]);
        for clash in [
            [("a", Some(1)), ("a", None)],
            [("a", None), ("a", Some(1))],
            [("a", Some(1)), ("a/b", Some(2))],
            [("a/b/c", Some(1)), ("a", Some(2))],
            [("a/b", None), ("a", Some(2))],
        ] {
            assert!(matches!(tree(&clash), Err(ReadError::FileAndDirectory(_))), "{clash:?}");
        }
        assert!(tree(&[("", Some(1))]).is_err(), "the root is no file");
    }
}
