//! Deleting what is no longer wanted.

use std::collections::BTreeMap;

use crate::{
    Action, ChangeSet, Cluster, Delete, Error, Lookup, ObjectRef, Owned, Propagation, any_in_metadata,
    apply_order,
};

/// Deletes objects that prove to belong to one owner.
#[derive(Clone, Debug)]
pub struct Pruner {
    /// The cluster.
    pub cluster: Cluster,
    /// Labels that name the owner on a live object.
    pub owner_labels: BTreeMap<String, String>,
    /// Labels or annotations with which a live object asks to be kept.
    pub keep: Vec<(String, String)>,
    /// What becomes of dependents.
    pub propagation: Propagation,
}

/// Deletions that failed; the others were done.
#[derive(Debug)]
pub struct PruneFailure {
    /// What happened to each object.
    pub changes: ChangeSet,
    /// Objects that may still exist: they stay in the inventory.
    pub survivors: Vec<ObjectRef>,
    /// One error per object, with the step that failed: `query` or `delete`.
    pub errors: Vec<(ObjectRef, &'static str, Error)>,
}

impl std::fmt::Display for PruneFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("delete failed, errors: ")?;
        for (object, step, error) in &self.errors {
            write!(f, "{object} {step} failed: {error};")?;
        }
        Ok(())
    }
}

impl std::error::Error for PruneFailure {}

enum PruneDecision {
    Kept,
    Ours(Owned<ObjectRef>),
}

impl Pruner {
    /// Deletes what is ours of the given objects, in the reverse order of apply. All are tried.
    ///
    /// # Errors
    /// What could not be deleted, or of which it is not known whether it is ours.
    pub async fn prune(&self, objects: &[ObjectRef]) -> Result<ChangeSet, PruneFailure> {
        let mut objects = objects.to_vec();
        apply_order::sort(&mut objects);
        objects.reverse();
        let mut changes = ChangeSet::default();
        let (mut survivors, mut errors) = (Vec::new(), Vec::new());
        for object in objects {
            match self.one(&object).await {
                Ok(action) => changes.add(object, action),
                Err((step, error)) => {
                    changes.add(object.clone(), Action::Unknown);
                    survivors.push(object.clone());
                    errors.push((object, step, error));
                }
            }
        }
        if errors.is_empty() { Ok(changes) } else { Err(PruneFailure { changes, survivors, errors }) }
    }

    async fn one(&self, object: &ObjectRef) -> Result<Action, (&'static str, Error)> {
        let owned = match self.judge(object).await {
            Lookup::NotFound => return Ok(Action::Deleted),
            Lookup::Found(PruneDecision::Kept) => return Ok(Action::Skipped),
            Lookup::Found(PruneDecision::Ours(owned)) => owned,
            Lookup::Unknown(error) => return Err(("query", error)),
        };
        let options = Delete { propagation: self.propagation, dry_run: false };
        if self.cluster.delete(&owned, options).await.map_err(|e| ("delete", e))? {
            return Ok(Action::Deleted);
        }
        // Gone or replaced since it was read: look once more, and leave a new one under the name alone unless it is ours too.
        match self.judge(object).await {
            Lookup::NotFound => Ok(Action::Deleted),
            Lookup::Found(PruneDecision::Kept) => Ok(Action::Skipped),
            Lookup::Found(PruneDecision::Ours(owned)) => {
                self.cluster.delete(&owned, options).await.map(|_| Action::Deleted).map_err(|e| ("delete", e))
            }
            Lookup::Unknown(error) => Err(("query", error)),
        }
    }

    async fn judge(&self, object: &ObjectRef) -> Lookup<PruneDecision, Error> {
        let live = match self.cluster.get(object).await {
            Ok(Some(live)) => live,
            Ok(None) => return Lookup::NotFound,
            Err(error) => return Lookup::Unknown(error),
        };
        if any_in_metadata(&live, &self.keep) {
            return Lookup::Found(PruneDecision::Kept);
        }
        match Owned::by_labels(&live, &self.owner_labels) {
            Ok(Some(owned)) => Lookup::Found(PruneDecision::Ours(owned)),
            Ok(None) => Lookup::Found(PruneDecision::Kept),
            Err(error) => Lookup::Unknown(error),
        }
    }
}
