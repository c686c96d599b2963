//! Conflicts of an apply with other field managers.

use std::fmt;

use crate::managed::Identity;
use crate::path::print_path;
use crate::set::Set;

/// A field that another manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The name in quotes, with the subresource and, for updaters, the version.
    pub manager: String,
    /// For example `.spec.replicas`.
    pub field: String,
}

/// All conflicts of an apply, in the order of the message.
#[derive(Debug, Clone)]
pub struct ConflictError {
    found: Vec<(Identity, Set)>,
}

impl ConflictError {
    pub(super) fn new(mut found: Vec<(Identity, Set)>) -> Self {
        found.sort_by_key(|(identity, _)| identity.sort_key());
        Self { found }
    }

    pub(super) fn without(&self, allowed: &Set) -> Self {
        let found = self
            .found
            .iter()
            .map(|(identity, set)| (identity.clone(), set.difference(allowed)))
            .filter(|(_, set)| !set.is_empty())
            .collect();
        Self { found }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The causes of the Status: type `FieldManagerConflict`, message `conflict with …`.
    pub fn conflicts(&self) -> Vec<Conflict> {
        self.found
            .iter()
            .flat_map(|(identity, set)| {
                set.paths()
                    .into_iter()
                    .map(|path| Conflict { manager: identity.print(), field: print_path(&path) })
            })
            .collect()
    }
}

impl fmt::Display for ConflictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.conflicts();
        if let [one] = all.as_slice() {
            return write!(f, "Apply failed with 1 conflict: conflict with {}: {}", one.manager, one.field);
        }
        write!(f, "Apply failed with {} conflicts: ", all.len())?;
        let mut lines = Vec::new();
        let mut last = None;
        for conflict in &all {
            if last != Some(&conflict.manager) {
                lines.push(format!("conflicts with {}:", conflict.manager));
                last = Some(&conflict.manager);
            }
            lines.push(format!("- {}", conflict.field));
        }
        f.write_str(&lines.join("\n"))
    }
}
