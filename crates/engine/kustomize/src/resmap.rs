//! The objects of a build in order, with indexes by name.

use std::collections::HashMap;

use fl_yaml::SmolStr;
use rustc_hash::FxBuildHasher;

use crate::resid::ResId;
use crate::resource::Resource;
use crate::selector::Matcher;

/// Objects by current and former names. An entry may be stale, so users check the object.
type Names = HashMap<SmolStr, Vec<u32>, FxBuildHasher>;

/// The objects of one accumulator.
#[derive(Debug, Default)]
pub(crate) struct ResMap {
    list: Vec<Resource>,
    /// Valid for the first `indexed` objects; rebuilt when objects are removed.
    names: Names,
    kinds: Names,
    indexed: usize,
}

impl ResMap {
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn list(&self) -> &[Resource] {
        &self.list
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Resource> {
        self.list.iter_mut()
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> &mut Resource {
        &mut self.list[at]
    }

    /// The objects in order.
    pub(crate) fn into_list(self) -> Vec<Resource> {
        self.list
    }

    /// Replaces all objects.
    pub(crate) fn replace_all(&mut self, list: Vec<Resource>) {
        self.list = list;
        self.reindex();
    }

    /// Discards the indexes after names or kinds changed without [`ResMap::renamed`].
    pub(crate) fn reindex(&mut self) {
        self.names.clear();
        self.kinds.clear();
        self.indexed = 0;
    }

    /// Records that an object has a new name or kind.
    pub(crate) fn renamed(&mut self, at: usize) {
        if at < self.indexed {
            let resource = &self.list[at];
            note(&mut self.names, &resource.id.name, at);
            note(&mut self.kinds, &resource.id.gvk.kind, at);
        }
    }

    fn index(&mut self) {
        for at in self.indexed..self.list.len() {
            let resource = &self.list[at];
            note(&mut self.names, &resource.id.name, at);
            note(&mut self.kinds, &resource.id.gvk.kind, at);
            for former in &resource.notes.former {
                note(&mut self.names, &former.name, at);
                if former.kind != resource.id.gvk.kind {
                    note(&mut self.kinds, &former.kind, at);
                }
            }
        }
        self.indexed = self.list.len();
    }

    fn named(&mut self, name: &str) -> &[u32] {
        self.index();
        self.names.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Position of the object with this current identity.
    pub(crate) fn position(&mut self, id: &ResId) -> Option<usize> {
        self.index();
        let candidates = self.names.get(&id.name)?;
        candidates.iter().map(|i| *i as usize).find(|i| self.list[*i].id.same_object(id))
    }

    /// Adds an object; its identity must be unique.
    pub(crate) fn append(&mut self, resource: Resource) -> Result<(), Box<DuplicateId>> {
        if let Some(at) = self.position(&resource.id) {
            return Err(Box::new(DuplicateId {
                id: resource.id.clone(),
                first: self.list[at].source.as_deref().map(str::to_owned),
            }));
        }
        self.list.push(resource);
        Ok(())
    }

    /// Adds all objects of another map.
    pub(crate) fn append_all(&mut self, other: ResMap) -> Result<(), Box<DuplicateId>> {
        if self.list.is_empty() {
            // The identities of the other map are distinct, so its indexes stay valid.
            *self = other;
            return Ok(());
        }
        other.list.into_iter().try_for_each(|resource| self.append(resource))
    }

    /// The objects that have or had this identity, in order.
    pub(crate) fn with_any_id(&mut self, id: &ResId) -> Vec<usize> {
        let mut found: Vec<usize> = self.named(&id.name).iter().map(|i| *i as usize).collect();
        found.sort_unstable();
        found.dedup();
        found.retain(|i| !self.list[*i].is_deleted() && self.list[*i].was(id));
        found
    }

    /// The objects that have or had this name, in order.
    pub(crate) fn with_any_name(&mut self, name: &str) -> Vec<usize> {
        let mut found: Vec<usize> = self.named(name).iter().map(|i| *i as usize).collect();
        found.sort_unstable();
        found.dedup();
        found.retain(|i| !self.list[*i].is_deleted());
        found
    }

    /// The objects that a patch selects, in order.
    pub(crate) fn select(&mut self, matcher: &Matcher) -> Vec<usize> {
        let mut found = self.candidates(matcher);
        found.retain(|i| matcher.selects(&self.list[*i]));
        found
    }

    /// The objects that have or had the literal name or kind of a selector, in order: no other can match.
    pub(crate) fn candidates(&mut self, matcher: &Matcher) -> Vec<usize> {
        self.index();
        let few = match (matcher.exact_name(), matcher.exact_kind()) {
            (Some(name), _) => Some(self.names.get(name)),
            (None, Some(kind)) => Some(self.kinds.get(kind)),
            (None, None) => None,
        };
        let mut found: Vec<usize> = match few {
            Some(few) => few.into_iter().flatten().map(|i| *i as usize).collect(),
            None => (0..self.list.len()).collect(),
        };
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Removes the objects that patches deleted.
    pub(crate) fn remove_deleted(&mut self) {
        if self.list.iter().any(Resource::is_deleted) {
            self.list.retain(|resource| !resource.is_deleted());
            self.reindex();
        }
    }

    /// Keeps the objects for which `keep` returns true.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Resource) -> bool) {
        self.list.retain(keep);
        self.reindex();
    }

    /// The first identity that two objects share.
    pub(crate) fn first_duplicate(&mut self) -> Option<DuplicateId> {
        self.reindex();
        self.index();
        let at = (0..self.list.len()).find(|i| {
            let id = &self.list[*i].id;
            self.names.get(&id.name).is_some_and(|same| {
                same.iter().any(|j| (*j as usize) < *i && self.list[*j as usize].id.same_object(id))
            })
        })?;
        Some(DuplicateId { id: self.list[at].id.clone(), first: None })
    }
}

fn note(names: &mut Names, name: &SmolStr, at: usize) {
    let at = u32::try_from(at).unwrap_or(u32::MAX);
    let entry = names.entry(name.clone()).or_default();
    if entry.last() != Some(&at) {
        entry.push(at);
    }
}

/// Two objects with one identity.
#[derive(Debug)]
pub(crate) struct DuplicateId {
    pub(crate) id: ResId,
    pub(crate) first: Option<String>,
}
