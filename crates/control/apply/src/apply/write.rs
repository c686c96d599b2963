//! Writes of an apply, and what is recorded before them.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::Value;

use super::diff::{PlannedChange, PlannedObject};
use super::prepared::Item;
use super::{AppliedObject, Applier};
use crate::{Action, Change, Error, LiveObject, ObjectRef, mask_secret};

/// A resourceVersion that no object has: versions start with the first write to the store.
const NO_VERSION: &str = "1";

type WriteResult = Result<AppliedObject, String>;

/// Records objects before they are written, so that a crash during an apply leaves none that its owner does not know.
pub trait WriteAhead: Send {
    /// Called in each stage between the dry-runs and the first write, with the objects that will be written. Nothing of the
    /// stage is written when it fails.
    fn record<'a>(&'a mut self, objects: &'a [ObjectRef]) -> BoxFuture<'a, Result<(), fl_client::Error>>;
}

/// For callers without an inventory.
impl WriteAhead for () {
    fn record<'a>(&'a mut self, _objects: &'a [ObjectRef]) -> BoxFuture<'a, Result<(), fl_client::Error>> {
        futures::future::ready(Ok(())).boxed()
    }
}

impl Applier {
    /// Writes kind by kind in order; objects of one kind at the same time.
    pub(super) async fn write_all(
        &self,
        mut work: VecDeque<(&Item, PlannedObject)>,
        done: &mut Vec<AppliedObject>,
    ) -> Result<(), Vec<String>> {
        while let Some((first, _)) = work.front() {
            let first = *first;
            let end = work.iter().position(|(item, _)| !item.is_same_kind(first)).unwrap_or(work.len());
            let mut writes: Vec<BoxFuture<'_, WriteResult>> = Vec::new();
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

    async fn write(&self, item: &Item, planned: PlannedObject) -> WriteResult {
        let PlannedObject { target, change: planned, live } = planned;
        let (payload, action) = match planned {
            PlannedChange::Skip => return Ok((change(target, Action::Skipped), live.map(LiveObject::from))),
            PlannedChange::Unchanged => {
                self.remember(&target, item, live.as_ref());
                return Ok((change(target, Action::Unchanged), live.map(LiveObject::from)));
            }
            PlannedChange::Write { payload, action, .. } => (payload, action),
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

    /// Applies an object that does not exist; an existing one is a conflict. None when the server reports that it existed.
    pub(super) async fn create(
        &self,
        item: &Item,
        target: ObjectRef,
    ) -> Result<Option<(Change, LiveObject)>, Error> {
        let mut payload = item.object.clone();
        // No object has this version: the apply creates the object or conflicts with an existing one.
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
}

fn change(object: ObjectRef, action: Action) -> Change {
    Change { object, action, fought_by: None }
}

/// The field manager that wrote the object last, if it is another one.
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
