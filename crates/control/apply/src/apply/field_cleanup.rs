//! Fields of earlier field managers and API versions on live objects.

use serde_json::Value;

use super::diff::{Live, text};
use super::{Applier, Item};
use crate::field_managers::{migrate, take_over};
use crate::{Error, ObjectRef, Patch, Write, any_in_metadata};

impl Applier {
    /// Whether fields or annotations of earlier field managers are still on a live object that is not merged with them.
    pub(super) fn owes_clean_up(&self, item: &Item, live: &Value) -> bool {
        let merge = &self.options.merge;
        !any_in_metadata(&item.object, merge)
            && !any_in_metadata(live, merge)
            && !self.left_behind(live).is_ok_and(|patch| patch.is_empty())
    }

    pub(super) async fn migrate_managed_fields(
        &self,
        live: &mut Live,
        target: &ObjectRef,
    ) -> Result<bool, String> {
        let Live::Found(there) = live else { return Ok(false) };
        let Some(operation) = migrate(there, &target.api_version()) else { return Ok(false) };
        let write = Write { manager: &self.owner.field_manager, ..Write::default() };
        match self.cluster.patch(target, Patch::Json, &Value::Array(vec![operation]), &write).await {
            Ok(answer) => {
                *there = answer.body;
                Ok(true)
            }
            Err(error) => Err(format!("{target} failed to migrate API version: {error}")),
        }
    }

    /// Takes fields over from earlier managers, so that the apply removes what Git does not have.
    pub(super) async fn clean_up(
        &self,
        item: &Item,
        target: &ObjectRef,
        live: &mut Value,
    ) -> Result<bool, String> {
        let options = &self.options;
        if any_in_metadata(&item.object, &options.merge) || any_in_metadata(live, &options.merge) {
            return Ok(false);
        }
        let failed = |error: &Error| format!("{target} metadata.managedFields cleanup failed: {error}");
        for attempt in 0..3 {
            match self.clean_up_once(target, live).await {
                Ok(patched) => return Ok(patched),
                // Another writer was faster: read again.
                Err(error)
                    if attempt < 2 && error.api().is_some_and(|e| e.is_invalid() || e.is_conflict()) =>
                {
                    match self.cluster.get(target).await {
                        Ok(Some(again)) => *live = again,
                        Ok(None) => return Ok(true),
                        Err(error) => return Err(failed(&error)),
                    }
                }
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(false)
    }

    /// The patch that takes over what earlier managers left behind; empty when there is nothing.
    fn left_behind(&self, live: &Value) -> Result<Vec<Value>, Error> {
        let options = &self.options;
        let annotations: Vec<&str> = options.drop_annotations.iter().map(String::as_str).collect();
        let labels: Vec<&str> = options.drop_labels.iter().map(String::as_str).collect();
        take_over(live, &options.take_over, &self.owner.field_manager, &annotations, &labels)
    }

    async fn clean_up_once(&self, target: &ObjectRef, live: &mut Value) -> Result<bool, Error> {
        let mut patch = self.left_behind(live)?;
        let manager = &self.owner.field_manager;
        if patch.is_empty() {
            return Ok(false);
        }
        // The patch is for the entries that were read; entries of another writer in between must not get lost.
        if let Some(version) = text(live, "/metadata/resourceVersion") {
            patch.insert(
                0,
                serde_json::json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}),
            );
        }
        let write = Write { manager, ..Write::default() };
        *live = self.cluster.patch(target, Patch::Json, &Value::Array(patch), &write).await?.body;
        Ok(true)
    }
}
