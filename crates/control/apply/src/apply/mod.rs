//! Server-side apply of a set of objects.

mod diff;
mod dry_run;
mod field_cleanup;
mod options;
mod prepared;
mod result;
mod write;

use std::collections::VecDeque;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::Value;

pub use options::{Force, Options, Owner};
pub(crate) use prepared::Item;
pub use prepared::{DroppedMetadata, PreparedObjects};
pub use result::{Applied, ApplyFailure};
pub use write::WriteAhead;

use crate::apply_order;
use crate::wait::{WaitOptions, Waiter};
use crate::{
    Change, ChangeSet, Cluster, Fingerprint, HealthRules, Inventory, LastApplied, LiveObject, LiveVersions,
    ObjectRef, Stage, Write, mask_secret,
};
use diff::{PlannedChange, PlannedObject};
use result::StageFailure;

/// The change of an object, and the live object.
type AppliedObject = (Change, Option<LiveObject>);

/// Applies objects for one owner.
#[derive(Clone)]
pub struct Applier {
    /// The cluster, under the identity that applies.
    pub cluster: Cluster,
    /// The owner of the objects.
    pub owner: Owner,
    /// How objects are applied.
    pub options: Options,
    /// The inventory of the last apply: those objects are expected to exist.
    pub before: Inventory,
    /// The last-applied state of the objects.
    pub last_applied: Option<Arc<LastApplied>>,
    /// Looks up versions of live objects without a request.
    pub versions: Option<Arc<dyn LiveVersions>>,
}

impl std::fmt::Debug for Applier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Applier")
            .field("cluster", &self.cluster)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

impl Applier {
    /// An applier without last-applied state.
    #[must_use]
    pub fn new(cluster: Cluster, owner: Owner, options: Options) -> Self {
        Applier { cluster, owner, options, before: Inventory::default(), last_applied: None, versions: None }
    }

    /// Applies stage by stage. Within a stage every changed object passes a server-side dry-run first; nothing is written unless
    /// all of them pass, and not before `write_ahead` has recorded what will be written.
    ///
    /// # Errors
    /// Everything that is wrong in the first stage that fails; earlier stages stay applied.
    pub async fn apply(
        &self,
        prepared: &PreparedObjects,
        write_ahead: &mut dyn WriteAhead,
    ) -> Result<Applied, ApplyFailure> {
        let mut done = Applied::default();
        let mut rest = prepared.objects.as_slice();
        while let Some(first) = rest.first() {
            let stage = first.stage;
            let end = rest.iter().position(|item| item.stage != stage).unwrap_or(rest.len());
            let (items, later) = rest.split_at(end);
            rest = later;
            let applied = self.stage(stage, items, &mut done, write_ahead).await;
            if let Err(StageFailure { errors, attempted, write_ahead }) = applied {
                return Err(ApplyFailure { errors, changes: done.changes, attempted, write_ahead });
            }
        }
        Ok(done)
    }

    /// Computes what an apply would do without writing: the changes, the live objects and the results.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub async fn diff(
        &self,
        prepared: &PreparedObjects,
    ) -> Result<Vec<(Change, Option<Value>, Option<Value>)>, ApplyFailure> {
        let planned = self.plan_all(&prepared.objects, diff::Mode::Diff).await;
        let mut changes = Vec::new();
        let mut errors = Vec::new();
        for planned in planned {
            match planned {
                Ok(planned) => changes.push(planned.into_diff()),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Ok(changes)
        } else {
            Err(ApplyFailure {
                errors,
                changes: ChangeSet::default(),
                attempted: Vec::new(),
                write_ahead: None,
            })
        }
    }

    /// Whether an apply would write nothing. False when that is unknown.
    pub async fn is_unchanged(&self, prepared: &PreparedObjects) -> bool {
        let planned = self.plan_all(&prepared.objects, diff::Mode::Check).await;
        let mut unchanged = true;
        for (item, planned) in prepared.objects.iter().zip(planned) {
            match planned {
                Ok(PlannedObject { target, change: PlannedChange::Unchanged, live }) => {
                    self.remember(&target, item, live.as_ref());
                }
                Ok(PlannedObject { change: PlannedChange::Skip, .. }) => {}
                Ok(PlannedObject { change: PlannedChange::Write { .. }, .. }) | Err(_) => unchanged = false,
            }
        }
        unchanged
    }

    async fn stage(
        &self,
        stage: Stage,
        items: &[Item],
        done: &mut Applied,
        write_ahead: &mut dyn WriteAhead,
    ) -> Result<(), StageFailure> {
        let (changes, live): (Vec<Change>, Vec<Option<LiveObject>>) =
            self.validate_and_write(items, write_ahead).await?.into_iter().unzip();
        let live: Vec<LiveObject> = live.into_iter().flatten().collect();
        let waited: Vec<ObjectRef> = changes.iter().map(|c| c.object.clone()).collect();
        let fresh = changes.iter().any(|c| c.action.is_change());
        done.changes.entries.extend(changes);
        if matches!(stage, Stage::Definitions | Stage::Classes) {
            if fresh {
                self.forget_kinds(items);
            }
            let waiter = Waiter::new(self.cluster.clone(), HealthRules::default());
            let options = WaitOptions { timeout: self.options.stage_timeout, ..WaitOptions::default() };
            // An unchanged object has no live form here, and it was ready when it was applied.
            let unseen =
                |t: &ObjectRef| !live.iter().any(|l| ObjectRef::of(l.object()).is_ok_and(|r| r.id == t.id));
            let targets: Vec<ObjectRef> =
                waited.into_iter().filter(|t| !(unseen(t) && self.has_last_applied(t))).collect();
            waiter
                .wait(&targets, live.clone(), &options)
                .await
                .map_err(|e| StageFailure::from(vec![e.to_string()]))?;
        }
        done.live.extend(live);
        Ok(())
    }

    /// Validates all objects with dry-runs, then writes all. The first one needs no dry-run when it is new: it is written first,
    /// and when that fails nothing has been written.
    async fn validate_and_write(
        &self,
        items: &[Item],
        write_ahead: &mut dyn WriteAhead,
    ) -> Result<Vec<AppliedObject>, StageFailure> {
        let mut planned = Vec::with_capacity(items.len());
        let mut errors = Vec::new();
        let first = match items.first() {
            Some(first) => self.new_target(first).await,
            None => None,
        };
        let (first_item, others) = items.split_at(usize::from(first.is_some()));
        for result in self.plan_all(others, diff::Mode::Apply).await {
            match result {
                Ok(plan) => planned.push(plan),
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            // All errors are reported at once, also that of the first object.
            let more = self.plan_all(first_item, diff::Mode::Apply).await.into_iter().filter_map(Result::err);
            return Err(more.chain(errors).collect::<Vec<_>>().into());
        }
        let writes = planned.iter().filter(|plan| matches!(plan.change, PlannedChange::Write { .. }));
        let names: Vec<ObjectRef> = first.iter().chain(writes.map(|plan| &plan.target)).cloned().collect();
        if !names.is_empty() {
            write_ahead.record(&names).await.map_err(|error| StageFailure {
                errors: vec![error.to_string()],
                attempted: Vec::new(),
                write_ahead: Some(error),
            })?;
        }
        let mut work: VecDeque<(&Item, PlannedObject)> = others.iter().zip(planned).collect();
        let mut done = Vec::with_capacity(items.len());
        let targets = || items.iter().map(|item| item.target.clone()).collect();
        let attempted =
            |errors: Vec<String>| StageFailure { errors, attempted: targets(), write_ahead: None };
        if let (Some(target), Some(item)) = (first, first_item.first()) {
            match self.create(item, target).await {
                Ok(Some((change, object))) => done.push((change, Some(object))),
                // Nothing is written yet, so it is validated like the others. Without an answer to the creation the object may exist.
                created => {
                    let refused = created.as_ref().err().is_none_or(|error| !error.is_transient());
                    let maybe = |errors| if refused { StageFailure::from(errors) } else { attempted(errors) };
                    for planned in self.plan_all(first_item, diff::Mode::Apply).await {
                        work.push_front((item, planned.map_err(|e| maybe(vec![e]))?));
                    }
                }
            }
        }
        self.write_all(work, &mut done).await.map_err(attempted)?;
        Ok(done)
    }

    fn has_last_applied(&self, target: &ObjectRef) -> bool {
        self.last_applied.as_ref().is_some_and(|r| r.seen(&target.id).is_some())
    }

    fn forget_kinds(&self, items: &[Item]) {
        for item in items {
            if apply_order::is_custom_resource_definition(&item.target.id)
                && let Some(group) = item.object.pointer("/spec/group").and_then(Value::as_str)
            {
                self.cluster.client().invalidate_discovery(group);
            }
        }
    }

    async fn plan_all(&self, items: &[Item], mode: diff::Mode) -> Vec<Result<PlannedObject, String>> {
        let mut plans: Vec<BoxFuture<'_, Result<PlannedObject, String>>> = Vec::with_capacity(items.len());
        for item in items {
            let plan = async move {
                self.plan(item, mode).await.map_err(|text| mask_secret(&item.object, &text).to_string())
            };
            plans.push(plan.boxed());
        }
        futures::stream::iter(plans).buffered(self.options.concurrency.max(1)).collect().await
    }

    /// The options of an apply. Objects were parsed and encoded again, so the server need not look for duplicate fields; unknown
    /// fields are rejected or dropped in any case.
    fn as_owner(&self, dry_run: bool) -> Write<'_> {
        let manager = &self.owner.field_manager;
        Write { manager, force: true, dry_run, field_validation: "Ignore", ..Write::default() }
    }

    fn remember(&self, target: &ObjectRef, item: &Item, live: Option<&Value>) {
        if let (Some(last_applied), Some(seen)) = (&self.last_applied, live.and_then(Fingerprint::of)) {
            last_applied.note(&target.id, item.text(), seen);
        }
    }

    fn forget(&self, target: &ObjectRef) {
        if let Some(last_applied) = &self.last_applied {
            last_applied.forget(&target.id);
        }
    }
}
