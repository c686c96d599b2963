//! The resource types that are served: built-in ones and those of CustomResourceDefinitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::resource_type::ResourceType;

/// A snapshot of all types; replaced as a whole when a CRD changes.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    /// Group, version and plural.
    types: BTreeMap<(String, String, String), Arc<ResourceType>>,
    /// Group and plural of the built-in resources. CRDs can neither replace nor remove these.
    builtin: Arc<BTreeSet<(String, String)>>,
    /// Group and version of the built-in types. CRDs are not served in these.
    builtin_versions: Arc<BTreeSet<(String, String)>>,
}

impl Registry {
    /// A registry of the built-in types.
    #[must_use]
    pub fn new(types: Vec<ResourceType>) -> Self {
        let builtin = types.iter().map(|rt| (rt.group.clone(), rt.plural.clone())).collect();
        let versions = types.iter().map(|rt| (rt.group.clone(), rt.version.clone())).collect();
        let mut registry =
            Self { types: BTreeMap::new(), builtin: Arc::new(builtin), builtin_versions: Arc::new(versions) };
        for rt in types {
            registry.insert(rt);
        }
        registry
    }

    fn insert(&mut self, rt: ResourceType) {
        self.types.insert((rt.group.clone(), rt.version.clone(), rt.plural.clone()), Arc::new(rt));
    }

    /// Registers the types of a CRD in place of its previous ones. Returns false, and changes nothing, for a
    /// built-in resource.
    ///
    /// A version of a built-in group is left out: upstream routes all requests under such a group version to
    /// the built-in types, and they never reach the handler of custom resources.
    pub fn serve_custom(&mut self, group: &str, plural: &str, types: Vec<ResourceType>) -> bool {
        if self.is_builtin(group, plural) {
            return false;
        }
        self.remove_custom(group, plural);
        for rt in types {
            if rt.group == group && rt.plural == plural && !self.is_builtin_version(group, &rt.version) {
                self.insert(rt);
            }
        }
        true
    }

    /// Removes every version of the resource of a CRD.
    pub fn remove_custom(&mut self, group: &str, plural: &str) {
        if !self.is_builtin(group, plural) {
            self.types.retain(|(g, _, p), _| !(g == group && p == plural));
        }
    }

    /// Whether a resource is built in, in any version.
    #[must_use]
    pub fn is_builtin(&self, group: &str, plural: &str) -> bool {
        self.builtin.contains(&(group.to_owned(), plural.to_owned()))
    }

    fn is_builtin_version(&self, group: &str, version: &str) -> bool {
        self.builtin_versions.contains(&(group.to_owned(), version.to_owned()))
    }

    #[must_use]
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<ResourceType>> {
        self.types.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// The type of a kind, in any version if none is given.
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

    /// One type per table of the store, for garbage collection and namespace deletion.
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
