//! What a run did to the objects, as data.

use std::collections::BTreeMap;
use std::fmt;

use crate::{ObjectId, ObjectRef};

/// What happened to one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// It did not exist.
    Created,
    /// It existed and was written.
    Configured,
    /// It existed as wanted.
    Unchanged,
    /// It was removed, or was gone already.
    Deleted,
    /// It was left alone because a label or annotation, or another owner, asked for it.
    Skipped,
    /// What happened cannot be told.
    Unknown,
}

impl Action {
    /// The word Flux prints.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Created => "created",
            Action::Configured => "configured",
            Action::Unchanged => "unchanged",
            Action::Deleted => "deleted",
            Action::Skipped => "skipped",
            Action::Unknown => "unknown",
        }
    }

    /// Whether the cluster is different from before.
    #[must_use]
    pub fn is_change(self) -> bool {
        matches!(self, Action::Created | Action::Configured | Action::Deleted)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One object and what happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The object.
    pub object: ObjectRef,
    /// What happened.
    pub action: Action,
    /// The manager that had written the object before we did, where it was not us.
    pub fought_by: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.object, self.action)
    }
}

/// Everything a run did, in the order it was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeSet {
    /// One entry per object.
    pub entries: Vec<Change>,
}

impl ChangeSet {
    /// Notes what happened to one more object.
    pub fn add(&mut self, object: ObjectRef, action: Action) {
        self.entries.push(Change { object, action, fought_by: None });
    }

    /// Whether nothing was looked at.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether there are objects, and this happened to all of them.
    #[must_use]
    pub fn are_all(&self, action: Action) -> bool {
        !self.is_empty() && self.entries.iter().all(|e| e.action == action)
    }

    /// Only what changed the cluster; the text of Flux's apply event.
    #[must_use]
    pub fn changed(&self) -> ChangeSet {
        ChangeSet { entries: self.entries.iter().filter(|e| e.action.is_change()).cloned().collect() }
    }

    /// What happened to an object.
    #[must_use]
    pub fn action_of(&self, id: &ObjectId) -> Option<Action> {
        self.entries.iter().find(|e| e.object.id == *id).map(|e| e.action)
    }

    /// Subject to action, as Flux logs it.
    #[must_use]
    pub fn by_subject(&self) -> BTreeMap<String, &'static str> {
        self.entries.iter().map(|e| (e.object.to_string(), e.action.as_str())).collect()
    }

    /// Action to subjects, the grouped form of the log.
    #[must_use]
    pub fn by_action(&self) -> BTreeMap<&'static str, Vec<String>> {
        let mut groups: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for entry in &self.entries {
            groups.entry(entry.action.as_str()).or_default().push(entry.object.to_string());
        }
        groups
    }
}

impl fmt::Display for ChangeSet {
    /// One line per object: `Kind/namespace/name action`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, entry) in self.entries.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            entry.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_as_flux_does() {
        let mut changes = ChangeSet::default();
        changes.add(ObjectRef::new("v1", "Namespace", "", "apps"), Action::Created);
        changes.add(ObjectRef::new("v1", "ConfigMap", "apps", "a"), Action::Unchanged);
        changes.add(ObjectRef::new("v1", "Secret", "apps", "s"), Action::Configured);
        assert_eq!(changes.changed().to_string(), "Namespace/apps created\nSecret/apps/s configured");
        assert_eq!(changes.by_action()["unchanged"], ["ConfigMap/apps/a"]);
    }
}
