//! The types that are served at this moment: the built-in ones and those of CustomResourceDefinitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::resource::ResourceType;

/// A snapshot of all types; replaced as a whole when a definition changes.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    /// Group, version and plural.
    types: BTreeMap<(String, String, String), Arc<ResourceType>>,
    /// Group and plural of the built-in resources. Types of definitions neither replace nor remove these.
    builtin: Arc<BTreeSet<(String, String)>>,
}

impl Registry {
    /// A registry of the built-in types.
    #[must_use]
    pub fn new(types: Vec<ResourceType>) -> Self {
        let builtin = types.iter().map(|rt| (rt.group.clone(), rt.plural.clone())).collect();
        let mut registry = Self { types: BTreeMap::new(), builtin: Arc::new(builtin) };
        for rt in types {
            registry.insert(rt);
        }
        registry
    }

    fn insert(&mut self, rt: ResourceType) {
        self.types.insert((rt.group.clone(), rt.version.clone(), rt.plural.clone()), Arc::new(rt));
    }

    /// Serves the types of a definition in place of those it had before. Returns false, and changes nothing, for the
    /// resource of a built-in type.
    pub fn serve_custom(&mut self, group: &str, plural: &str, types: Vec<ResourceType>) -> bool {
        if self.is_builtin(group, plural) {
            return false;
        }
        self.remove_custom(group, plural);
        types
            .into_iter()
            .filter(|rt| rt.group == group && rt.plural == plural)
            .for_each(|rt| self.insert(rt));
        true
    }

    /// Removes every version of the resource of a definition.
    pub fn remove_custom(&mut self, group: &str, plural: &str) {
        if !self.is_builtin(group, plural) {
            self.types.retain(|(g, _, p), _| !(g == group && p == plural));
        }
    }

    /// Whether a resource is one of the built-in ones, in any version.
    #[must_use]
    pub fn is_builtin(&self, group: &str, plural: &str) -> bool {
        self.builtin.contains(&(group.to_owned(), plural.to_owned()))
    }

    #[must_use]
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<ResourceType>> {
        self.types.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// The type that serves a kind, any version if none is named.
    #[must_use]
    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<ResourceType>> {
        self.types
            .values()
            .find(|t| t.group == group && t.kind == kind && (version.is_empty() || t.version == version))
    }

    /// Every type, ordered by group, version and plural.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ResourceType>> {
        self.types.values()
    }

    #[must_use]
    pub fn has_group(&self, group: &str) -> bool {
        self.types.keys().any(|(g, _, _)| g == group)
    }

    #[must_use]
    pub fn has_group_version(&self, group: &str, version: &str) -> bool {
        self.types.keys().any(|(g, v, _)| g == group && v == version)
    }

    /// One type per place in the store: what garbage collection and namespace deletion walk over.
    #[must_use]
    pub fn stored(&self) -> Vec<Arc<ResourceType>> {
        let mut seen = std::collections::HashSet::new();
        let mut out: Vec<Arc<ResourceType>> = Vec::new();
        // The storage version first, so that no conversion is needed.
        let (native, other): (Vec<_>, Vec<_>) =
            self.types.values().partition(|t| t.api_version() == t.storage.api_version);
        for rt in native.into_iter().chain(other) {
            if rt.has_verb("list") && seen.insert(rt.storage.prefix.clone()) {
                out.push(rt.clone());
            }
        }
        out
    }
}
