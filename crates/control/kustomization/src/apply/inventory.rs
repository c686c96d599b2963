//! The inventory in the status: which objects a Kustomization is responsible for.

use std::pin::Pin;

use fl_api::kustomize::Kustomization;
use fl_api::meta::inventory::ResourceInventory;
use fl_apply::{ApplyFailure, Inventory, ObjectRef, WriteAhead};
use fl_runtime::{ClientError, Context};

use crate::controller::KustomizationController;
use crate::target::Target;

/// The inventory of the last reconcile.
pub(crate) fn inventory(object: &Kustomization) -> Result<Inventory, String> {
    match object.status.as_ref().and_then(|s| s.inventory.as_ref()) {
        Some(stored) => Inventory::read(stored),
        None => Ok(Inventory::default()),
    }
}

/// An inventory as the status has it; none instead of an empty one.
fn stored(inventory: &Inventory) -> Option<ResourceInventory> {
    (!inventory.is_empty()).then(|| inventory.write())
}

impl KustomizationController {
    pub(super) fn store_inventory(
        &self,
        cx: &mut Context<Kustomization>,
        inventory: &Inventory,
        target: &Target,
    ) {
        cx.object.status.get_or_insert_default().inventory = Some(inventory.write());
        if target.is_local() {
            self.owned_objects.watch(&cx.key(), inventory, &target.cluster);
        }
    }

    /// Adds what a failed apply has written, or may have written, to the inventory.
    pub(super) fn keep_attempted(
        &self,
        cx: &mut Context<Kustomization>,
        old: &Inventory,
        failure: &ApplyFailure,
    ) {
        let mut kept = old.clone();
        let applied = failure.changes.entries.iter().map(|change| change.object.clone());
        kept.keep(applied.chain(failure.attempted.iter().cloned()));
        cx.object.status.get_or_insert_default().inventory = stored(&kept);
    }
}

/// Stores objects in the inventory of the status before they are written: after a crash during an apply, the objects created so
/// far are still pruned.
pub(super) struct InventoryWriteAhead<'c> {
    cx: &'c mut Context<Kustomization>,
    planned: Inventory,
}

impl<'c> InventoryWriteAhead<'c> {
    pub(super) fn new(cx: &'c mut Context<Kustomization>, old: &Inventory) -> Self {
        InventoryWriteAhead { cx, planned: old.clone() }
    }

    async fn store(&mut self, objects: &[ObjectRef]) -> Result<(), ClientError> {
        let known = self.planned.objects().len();
        self.planned.keep(objects.iter().cloned());
        if self.planned.objects().len() == known {
            return Ok(());
        }
        let before = self.cx.object.status.as_ref().and_then(|status| status.inventory.clone());
        self.cx.object.status.get_or_insert_default().inventory = stored(&self.planned);
        let saved = self.cx.save().await;
        // The result of the apply decides what stays in the inventory.
        self.cx.object.status.get_or_insert_default().inventory = before;
        saved
    }
}

impl WriteAhead for InventoryWriteAhead<'_> {
    fn record<'a>(
        &'a mut self,
        objects: &'a [ObjectRef],
    ) -> Pin<Box<dyn Future<Output = Result<(), ClientError>> + Send + 'a>> {
        Box::pin(self.store(objects))
    }
}
