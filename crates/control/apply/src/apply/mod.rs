//! From wanted objects to applied ones.

mod dry_run;
mod options;
mod plan;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::Value;

pub use options::{Force, Options, Owner};

use crate::order::{self, rank};
use crate::wait::{WaitOptions, Waiter};
use crate::{
    Action, Change, ChangeSet, Cluster, Error, Fingerprint, HealthRules, Inventory, LiveVersions, ObjectRef,
    Remembered, Sight, Stage, Write, drop_invalid_metadata, mask_secret, merge_metadata, normalize,
};
use plan::{Planned, Verdict};

/// A version that no object has: the versions of a store begin with its own first write.
const NO_VERSION: &str = "1";

/// What became of an object: the change, and the object as the server has it now.
type Done = (Change, Option<Sight>);
type Written = Result<Done, String>;

/// Applies objects for one owner.
#[derive(Clone)]
pub struct Applier {
    /// The cluster, under the identity that applies.
    pub cluster: Cluster,
    /// For whom.
    pub owner: Owner,
    /// How.
    pub options: Options,
    /// What the owner applied before: those objects are expected to exist.
    pub before: Inventory,
    /// What is known to be current.
    pub remembered: Option<Arc<Remembered>>,
    /// Knows versions without a request.
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

/// Objects in the form and order in which they will be applied. Only [`Applier::prepare`] makes it.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    objects: Vec<Item>,
    dropped: Vec<DroppedMetadata>,
}

/// Labels or annotations of an object that are not applied because a value among them is no string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedMetadata {
    /// The object.
    pub target: ObjectRef,
    /// `labels` or `annotations`.
    pub field: &'static str,
}

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) target: ObjectRef,
    pub(crate) object: Value,
    stage: Stage,
    text: OnceLock<Bytes>,
}

impl Item {
    /// The object as it is sent: in the dry-run, in the write, and as the key of what is known to be current.
    fn text(&self) -> &Bytes {
        self.text.get_or_init(|| Bytes::from(self.object.to_string()))
    }

    /// Whether both are written at the same time.
    fn is_same_kind(&self, other: &Item) -> bool {
        let (own, other) = (&self.target.id, &other.target.id);
        rank(&own.kind) == rank(&other.kind) && own.group == other.group && own.kind == other.kind
    }
}

/// Objects that reached the cluster. Only [`Applier::apply`] makes it.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    changes: ChangeSet,
    live: Vec<Sight>,
}

/// An apply that did not end; what was done until then stays done.
#[derive(Debug)]
pub struct ApplyFailure {
    /// Everything that is wrong, the first in the order of apply first.
    pub errors: Vec<String>,
    /// What had been applied.
    pub changes: ChangeSet,
    /// Objects whose write was begun: some of them may exist now.
    pub attempted: Vec<ObjectRef>,
}

/// Why a stage ended early.
struct StageFailure {
    errors: Vec<String>,
    attempted: Vec<ObjectRef>,
}

impl From<Vec<String>> for StageFailure {
    /// Nothing of the stage was written.
    fn from(errors: Vec<String>) -> Self {
        StageFailure { errors, attempted: Vec::new() }
    }
}

impl std::fmt::Display for ApplyFailure {
    /// The errors, then what changed, each on a line: the text of Flux's condition.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.errors.join("\n"))?;
        for change in self.changes.changed().entries {
            writeln!(f, "{change}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ApplyFailure {}

impl Prepared {
    /// The objects.
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.objects.iter().map(|item| &item.object)
    }

    /// Their names.
    pub fn targets(&self) -> impl Iterator<Item = &ObjectRef> {
        self.objects.iter().map(|item| &item.target)
    }

    /// Whether there is nothing to apply.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Labels and annotations that were left out because a value among them is no string.
    #[must_use]
    pub fn dropped_metadata(&self) -> &[DroppedMetadata] {
        &self.dropped
    }
}

impl Applied {
    /// What happened to each object, in the order of apply.
    #[must_use]
    pub fn changes(&self) -> &ChangeSet {
        &self.changes
    }

    /// The live objects as far as they were seen, to begin a wait with.
    #[must_use]
    pub fn into_live(self) -> Vec<Sight> {
        self.live
    }
}

impl Applier {
    /// Applies for an owner, without memory.
    #[must_use]
    pub fn new(cluster: Cluster, owner: Owner, options: Options) -> Self {
        Applier { cluster, owner, options, before: Inventory::default(), remembered: None, versions: None }
    }

    /// Gives objects the labels of their owner, their normal form, the common labels and annotations, and their order.
    ///
    /// # Errors
    /// An object without apiVersion, kind or name.
    pub fn prepare(
        &self,
        objects: Vec<Value>,
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Prepared, Error> {
        let owner_labels = self.owner.labels();
        let mut items = Vec::with_capacity(objects.len());
        let mut dropped = Vec::new();
        for mut object in objects {
            let fields = drop_invalid_metadata(&mut object);
            merge_metadata(&mut object, &owner_labels, &BTreeMap::new());
            normalize(&mut object);
            merge_metadata(&mut object, labels, annotations);
            let target = ObjectRef::of(&object)?;
            dropped.extend(fields.into_iter().map(|field| DroppedMetadata { target: target.clone(), field }));
            let stage = order::stage(&target, &self.options.custom_stages);
            items.push(Item { target, object, stage, text: OnceLock::new() });
        }
        items.sort_by(|a, b| a.stage.cmp(&b.stage).then_with(|| order::compare(&a.target.id, &b.target.id)));
        Ok(Prepared { objects: items, dropped })
    }

    /// Applies stage by stage. Within a stage every changed object passes a server-side dry-run first, and nothing is written unless
    /// all of them pass.
    ///
    /// # Errors
    /// Everything that is wrong in the first stage that fails; earlier stages stay applied.
    pub async fn apply(&self, prepared: &Prepared) -> Result<Applied, ApplyFailure> {
        let mut done = Applied::default();
        let mut rest = prepared.objects.as_slice();
        while let Some(first) = rest.first() {
            let stage = first.stage;
            let end = rest.iter().position(|item| item.stage != stage).unwrap_or(rest.len());
            let (items, later) = rest.split_at(end);
            rest = later;
            if let Err(StageFailure { errors, attempted }) = self.stage(stage, items, &mut done).await {
                return Err(ApplyFailure { errors, changes: done.changes, attempted });
            }
        }
        Ok(done)
    }

    /// Says what an apply would do, and writes nothing. With the live objects and what they would become.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub async fn diff(
        &self,
        prepared: &Prepared,
    ) -> Result<Vec<(Change, Option<Value>, Option<Value>)>, ApplyFailure> {
        let planned = self.plan_all(&prepared.objects, plan::Mode::Diff).await;
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
            Err(ApplyFailure { errors, changes: ChangeSet::default(), attempted: Vec::new() })
        }
    }

    /// Whether an apply would write nothing. What could not be found out is no proof.
    pub async fn is_unchanged(&self, prepared: &Prepared) -> bool {
        let planned = self.plan_all(&prepared.objects, plan::Mode::Check).await;
        let mut unchanged = true;
        for (item, planned) in prepared.objects.iter().zip(planned) {
            match planned {
                Ok(Planned { target, verdict: Verdict::Unchanged, live }) => {
                    self.remember(&target, item, live.as_ref());
                }
                Ok(Planned { verdict: Verdict::Skip, .. }) => {}
                Ok(Planned { verdict: Verdict::Write { .. }, .. }) | Err(_) => unchanged = false,
            }
        }
        unchanged
    }

    async fn stage(&self, stage: Stage, items: &[Item], done: &mut Applied) -> Result<(), StageFailure> {
        let (changes, live): (Vec<Change>, Vec<Option<Sight>>) =
            self.validate_and_write(items).await?.into_iter().unzip();
        let live: Vec<Sight> = live.into_iter().flatten().collect();
        let waited: Vec<ObjectRef> = changes.iter().map(|c| c.object.clone()).collect();
        let fresh = changes.iter().any(|c| c.action.is_change());
        done.changes.entries.extend(changes);
        if matches!(stage, Stage::Definitions | Stage::Classes) {
            if fresh {
                self.forget_kinds(items);
            }
            let waiter = Waiter::new(self.cluster.clone(), HealthRules::default());
            let options = WaitOptions { timeout: self.options.stage_timeout, ..WaitOptions::default() };
            // What was current when it was remembered has no live form here; it needs no second look.
            let unseen =
                |t: &ObjectRef| !live.iter().any(|l| ObjectRef::of(l.object()).is_ok_and(|r| r.id == t.id));
            let targets: Vec<ObjectRef> =
                waited.into_iter().filter(|t| !(unseen(t) && self.is_remembered(t))).collect();
            waiter
                .wait(&targets, live.clone(), &options)
                .await
                .map_err(|e| StageFailure::from(vec![e.to_string()]))?;
        }
        done.live.extend(live);
        Ok(())
    }

    /// Validates all with dry-runs, then writes all. The first one needs no dry-run when it is new: it is written first, and when
    /// that fails nothing has been written.
    async fn validate_and_write(&self, items: &[Item]) -> Result<Vec<Done>, StageFailure> {
        let mut planned = Vec::with_capacity(items.len());
        let mut errors = Vec::new();
        let first = match items.first() {
            Some(first) => self.new_target(first).await,
            None => None,
        };
        let (first_item, others) = items.split_at(usize::from(first.is_some()));
        for result in self.plan_all(others, plan::Mode::Apply).await {
            match result {
                Ok(plan) => planned.push(plan),
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            // Whoever mends the others wants to know about the first one too.
            let more = self.plan_all(first_item, plan::Mode::Apply).await.into_iter().filter_map(Result::err);
            return Err(more.chain(errors).collect::<Vec<_>>().into());
        }
        let mut work: VecDeque<(&Item, Planned)> = others.iter().zip(planned).collect();
        let mut done = Vec::with_capacity(items.len());
        let targets = || items.iter().map(|item| item.target.clone()).collect();
        let attempted = |errors: Vec<String>| StageFailure { errors, attempted: targets() };
        if let (Some(target), Some(item)) = (first, first_item.first()) {
            match self.create(item, target).await {
                Ok(Some((change, object))) => done.push((change, Some(object))),
                // Nothing is written yet, so it is validated like the others. Without an answer to the creation the object may exist.
                created => {
                    let refused = created.as_ref().err().is_none_or(|error| !error.is_transient());
                    let maybe = |errors| if refused { StageFailure::from(errors) } else { attempted(errors) };
                    for planned in self.plan_all(first_item, plan::Mode::Apply).await {
                        work.push_front((item, planned.map_err(|e| maybe(vec![e]))?));
                    }
                }
            }
        }
        self.write_all(work, &mut done).await.map_err(attempted)?;
        Ok(done)
    }

    fn is_remembered(&self, target: &ObjectRef) -> bool {
        self.remembered.as_ref().is_some_and(|r| r.seen(&target.id).is_some())
    }

    fn forget_kinds(&self, items: &[Item]) {
        for item in items {
            if order::is_custom_resource_definition(&item.target.id)
                && let Some(group) = item.object.pointer("/spec/group").and_then(Value::as_str)
            {
                self.cluster.client().invalidate_discovery(group);
            }
        }
    }

    async fn plan_all(&self, items: &[Item], mode: plan::Mode) -> Vec<Result<Planned, String>> {
        let mut plans: Vec<BoxFuture<'_, Result<Planned, String>>> = Vec::with_capacity(items.len());
        for item in items {
            let plan = async move {
                self.plan(item, mode).await.map_err(|text| mask_secret(&item.object, &text).to_string())
            };
            plans.push(plan.boxed());
        }
        futures::stream::iter(plans).buffered(self.options.concurrency.max(1)).collect().await
    }

    /// Writes kind by kind in order; objects of one kind at the same time.
    async fn write_all(
        &self,
        mut work: VecDeque<(&Item, Planned)>,
        done: &mut Vec<Done>,
    ) -> Result<(), Vec<String>> {
        while let Some((first, _)) = work.front() {
            let first = *first;
            let end = work.iter().position(|(item, _)| !item.is_same_kind(first)).unwrap_or(work.len());
            let mut writes: Vec<BoxFuture<'_, Written>> = Vec::new();
            for (item, planned) in work.drain(..end) {
                writes.push(self.write(item, planned).boxed());
            }
            let results: Vec<_> =
                futures::stream::iter(writes).buffered(self.options.concurrency.max(1)).collect().await;
            let mut errors = Vec::new();
            for result in results {
                match result {
                    Ok(written) => done.push(written),
                    Err(error) => errors.push(error),
                }
            }
            if !errors.is_empty() {
                return Err(errors);
            }
        }
        Ok(())
    }

    async fn write(&self, item: &Item, planned: Planned) -> Written {
        let Planned { target, verdict, live } = planned;
        let (payload, action) = match verdict {
            Verdict::Skip => return Ok((change(target, Action::Skipped), live.map(Sight::from))),
            Verdict::Unchanged => {
                self.remember(&target, item, live.as_ref());
                return Ok((change(target, Action::Unchanged), live.map(Sight::from)));
            }
            Verdict::Write { payload, action, .. } => (payload, action),
        };
        let write = self.as_owner(false);
        let text = payload.map_or_else(|| item.text().clone(), |payload| Bytes::from(payload.to_string()));
        match self.cluster.apply_text(&item.target, text, &write).await {
            Ok((written, _)) => {
                self.remember(&target, item, Some(written.object()));
                let fought_by = live.as_ref().and_then(|l| last_other_manager(l, &self.owner.field_manager));
                Ok((Change { fought_by, ..change(target, action) }, Some(written)))
            }
            Err(error) => {
                self.forget(&target);
                let text = format!("{} apply failed: {error}", item.target);
                Err(mask_secret(&item.object, &text).to_string())
            }
        }
    }

    /// Applies an object that does not exist; one that does is a conflict. None when the server says that it was there.
    async fn create(&self, item: &Item, target: ObjectRef) -> Result<Option<(Change, Sight)>, Error> {
        let mut payload = item.object.clone();
        // An apply that names a version meets no object of that version: it creates, or it is in conflict with what is there.
        payload["metadata"]["resourceVersion"] = Value::from(NO_VERSION);
        let write = self.as_owner(false);
        let text = Bytes::from(payload.to_string());
        let (live, new) = self.cluster.apply_text(&item.target, text, &write).await?;
        if !new {
            return Ok(None);
        }
        self.remember(&target, item, Some(live.object()));
        Ok(Some((change(target, Action::Created), live)))
    }

    /// How objects are applied. What Git holds was read and written anew, so the server need not look for doubled fields in it; the
    /// fields a kind does not have are refused or dropped all the same.
    fn as_owner(&self, dry_run: bool) -> Write<'_> {
        let manager = &self.owner.field_manager;
        Write { manager, force: true, dry_run, field_validation: "Ignore", ..Write::default() }
    }

    fn remember(&self, target: &ObjectRef, item: &Item, live: Option<&Value>) {
        if let (Some(remembered), Some(seen)) = (&self.remembered, live.and_then(Fingerprint::of)) {
            remembered.note(&target.id, item.text(), seen);
        }
    }

    fn forget(&self, target: &ObjectRef) {
        if let Some(remembered) = &self.remembered {
            remembered.forget(&target.id);
        }
    }
}

fn change(object: ObjectRef, action: Action) -> Change {
    Change { object, action, fought_by: None }
}

/// Who wrote the object last, when it was not us: the name for a fight over its fields.
fn last_other_manager(live: &Value, manager: &str) -> Option<String> {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array)?;
    let others = entries.iter().filter(|e| {
        e["manager"].as_str().is_some_and(|m| m != manager)
            && e["subresource"].as_str().unwrap_or_default().is_empty()
    });
    others
        .max_by_key(|e| e["time"].as_str().unwrap_or_default())
        .and_then(|e| e["manager"].as_str())
        .map(str::to_owned)
}
