//! The inventory: which objects a Kustomization or release is responsible for, in Flux's format.

use std::collections::HashSet;

use fl_api::meta::inventory::{ResourceInventory, ResourceRef};

use crate::{ChangeSet, ObjectId, ObjectRef, apply_order};

/// Objects in the order of apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    objects: Vec<ObjectRef>,
}

impl Inventory {
    /// Everything a run looked at.
    #[must_use]
    pub fn of(changes: &ChangeSet) -> Self {
        let mut seen = HashSet::new();
        let mut objects = Vec::with_capacity(changes.entries.len());
        for entry in &changes.entries {
            if seen.insert(entry.object.id.clone()) {
                objects.push(entry.object.clone());
            }
        }
        Inventory { objects }
    }

    /// Reads the form of the status.
    ///
    /// # Errors
    /// The first id that is none: an inventory that is not understood must not lead to deletions.
    pub fn read(stored: &ResourceInventory) -> Result<Self, String> {
        let read = |entry: &ResourceRef| {
            let id = ObjectId::parse(&entry.id)
                .ok_or_else(|| format!("unable to parse stored object metadata: {}", entry.id))?;
            Ok(ObjectRef { id, version: entry.v.clone() })
        };
        Ok(Inventory { objects: stored.entries.iter().map(read).collect::<Result<_, String>>()? })
    }

    /// The form of the status.
    #[must_use]
    pub fn write(&self) -> ResourceInventory {
        let entry =
            |object: &ObjectRef| ResourceRef { id: object.id.inventory_id(), v: object.version.clone() };
        ResourceInventory { entries: self.objects.iter().map(entry).collect() }
    }

    /// The objects.
    #[must_use]
    pub fn objects(&self) -> &[ObjectRef] {
        &self.objects
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether it holds an object, in any version.
    #[must_use]
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.objects.iter().any(|o| o.id == *id)
    }

    /// What this one has and `newer` has not, in the order of apply. Versions do not count.
    #[must_use]
    pub fn stale(&self, newer: &Inventory) -> Vec<ObjectRef> {
        let wanted: HashSet<&ObjectId> = newer.objects.iter().map(|o| &o.id).collect();
        let mut seen = HashSet::new();
        let mut stale: Vec<ObjectRef> =
            self.objects.iter().filter(|o| !wanted.contains(&o.id) && seen.insert(&o.id)).cloned().collect();
        apply_order::sort(&mut stale);
        stale
    }

    /// Adds objects that must not be forgotten.
    pub fn keep(&mut self, objects: impl IntoIterator<Item = ObjectRef>) {
        for object in objects {
            if !self.contains(&object.id) {
                self.objects.push(object);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Action;

    fn set(names: &[&str]) -> Inventory {
        let mut changes = ChangeSet::default();
        for name in names {
            changes.add(ObjectRef::new("v1", "ConfigMap", "ns", name), Action::Created);
        }
        Inventory::of(&changes)
    }

    #[test]
    fn stale_objects_and_round_trip() {
        let (old, new) = (set(&["c", "a", "b", "a"]), set(&["b"]));
        let stale: Vec<String> = old.stale(&new).iter().map(|o| o.id.name.clone()).collect();
        assert_eq!(stale, ["a", "c"]);
        assert_eq!(Inventory::read(&old.write()), Ok(old.clone()));
        let mut kept = new;
        kept.keep(old.objects().to_vec());
        assert_eq!(kept.objects().len(), 3);
    }

    #[test]
    fn an_unreadable_inventory_is_refused() {
        let stored =
            ResourceInventory { entries: vec![ResourceRef { id: "broken".to_owned(), v: "v1".to_owned() }] };
        assert!(Inventory::read(&stored).is_err());
    }
}
