//! The apply step: server-side apply, prune, health checks. The only step that writes to the target cluster.

mod error;
mod health;
mod inventory;
mod prune;

use std::collections::BTreeMap;

use fl_api::condition::{reasons, types};
use fl_api::kustomize::Kustomization;
use fl_apply::{
    Applied, Applier, ChangeSet, Force, Inventory, ObjectId, ObjectRef, Owner, PreparedObjects, jobs_with_ttl,
};
use fl_kustomize_build::is_encrypted_secret;
use fl_runtime::{Conditions as _, Context, EventKind, Reconciled as _};
use tokio::time::Instant;

pub(crate) use error::ApplyError;
use inventory::InventoryWriteAhead;
pub(crate) use inventory::inventory;

use crate::annotations;
use crate::build::Built;
use crate::controller::{KustomizationController, NAMES};
use crate::status::{Record, Revision, event, record};
use crate::target::Target;
use crate::validate::Plan;

impl KustomizationController {
    /// The owner of the objects of a Kustomization.
    pub(crate) fn owner(object: &Kustomization) -> Owner {
        Owner {
            field_manager: NAMES.component.to_owned(),
            group: "kustomize.toolkit.fluxcd.io".to_owned(),
            name: object.name().to_owned(),
            namespace: object.namespace().to_owned(),
        }
    }

    fn applier(&self, cx: &Context<Kustomization>, plan: &Plan, target: &Target) -> Applier {
        let object = &cx.object;
        let owner = Self::owner(object);
        let mut options = fl_apply::Options::flux(&owner);
        options.force = if object.spec.force { Force::Always } else { Force::Asked };
        options.ignore = plan.ignore.clone().unwrap_or_default();
        options.custom_stages = self.options.custom_apply_stage_kinds.clone();
        options.migrate_api_version = self.runtime.options().gates.enabled("MigrateAPIVersion");
        options.concurrency = self.options.concurrent_ssa;
        for manager in &self.options.override_managers {
            options.override_manager(manager);
        }
        let mut applier = Applier::new(target.cluster.clone(), owner, options);
        applier.before = inventory(object).unwrap_or_default();
        if target.is_local() {
            applier.last_applied = Some(self.owned_objects.last_applied(&cx.key()));
            applier.versions = Some(self.owned_objects.clone());
        }
        applier
    }

    /// Whether an apply would change nothing. Sends no writes.
    pub(crate) async fn is_unchanged(
        &self,
        cx: &Context<Kustomization>,
        plan: &Plan,
        target: &Target,
        built: &Built,
    ) -> bool {
        let applier = self.applier(cx, plan, target);
        let Ok(prepared) = prepare(&applier, &cx.object, built) else { return false };
        applier.is_unchanged(&prepared).await
    }

    /// Applies what was built, prunes what is no longer part of it, waits for health, and records the attempt in the
    /// history.
    pub(crate) async fn apply(
        &self,
        cx: &mut Context<Kustomization>,
        plan: &Plan,
        revision: &Revision,
        target: &Target,
        built: &Built,
    ) -> Result<(), ApplyError> {
        let started = Instant::now();
        let result = self.apply_and_wait(cx, plan, revision, target, built).await;
        let status = match &result {
            Ok(()) => reasons::RECONCILIATION_SUCCEEDED,
            Err(ApplyError::Superseded { .. }) => return result,
            Err(error) => error.reason(),
        };
        let entry = Record { digest: &built.digest, duration: started.elapsed(), status, revision };
        record(&mut cx.object, &entry);
        result?;
        let object = &mut cx.object;
        let status = object.status.get_or_insert_default();
        status.last_applied_revision = Some(revision.revision.clone());
        status.last_applied_origin_revision =
            Some(revision.origin.clone()).filter(|origin| !origin.is_empty());
        let message = format!("Applied revision: {}", revision.revision);
        object.mark_true(types::READY, reasons::RECONCILIATION_SUCCEEDED, &message);
        self.owned_objects.compared(&cx.key());
        Ok(())
    }

    async fn apply_and_wait(
        &self,
        cx: &mut Context<Kustomization>,
        plan: &Plan,
        revision: &Revision,
        target: &Target,
        built: &Built,
    ) -> Result<(), ApplyError> {
        let old = inventory(&cx.object).map_err(ApplyError::Inventory)?;
        let (applied, jobs) = self.apply_objects(cx, plan, revision, target, built, &old).await?;
        let changes = applied.changes();
        self.log_changes(cx, changes, revision);
        let changed = changes.changed();
        if !changed.is_empty() {
            event(cx, EventKind::Normal, &changed.to_string(), revision);
        }
        self.record_corrections(cx, &changed);
        let new = Inventory::of(changes);
        let stale = old.stale(&new);
        self.store_inventory(cx, &new, target);
        self.prune(cx, revision, target, new, &stale).await?;
        let check = health::HealthCheck { plan, revision, target, jobs, drifted: !changed.is_empty() };
        self.check_health(cx, check, applied).await
    }

    /// Applies the objects. With those Jobs that delete themselves: a health check does not wait for them.
    async fn apply_objects(
        &self,
        cx: &mut Context<Kustomization>,
        plan: &Plan,
        revision: &Revision,
        target: &Target,
        built: &Built,
        old: &Inventory,
    ) -> Result<(Applied, std::collections::HashSet<ObjectId>), ApplyError> {
        if let Err(problem) = &plan.ignore {
            return Err(ApplyError::IgnoreRules(problem.clone()));
        }
        let applier = self.applier(cx, plan, target);
        let prepared = prepare(&applier, &cx.object, built)?;
        self.check_deletion_budget(&cx.object, revision, old, &prepared)?;
        let is_new_build = !is_known_build(&cx.object, built);
        if is_new_build && let Some(text) = annotations::dropped(prepared.dropped_metadata()) {
            cx.event(EventKind::Warning, "MetadataDropped", &text);
        }
        // Bounds the whole apply: a server that is slow at every request must not delay the reconcile for longer.
        let deadline = Instant::now() + plan.timeout;
        let mut write_ahead = InventoryWriteAhead::new(cx, old);
        match fl_client::within(deadline, Box::pin(applier.apply(&prepared, &mut write_ahead))).await {
            Ok(applied) => {
                if is_new_build && let Some(text) = annotations::ignored(prepared.objects()) {
                    cx.event(EventKind::Normal, "AnnotationIgnored", &text);
                }
                Ok((applied, jobs_with_ttl(prepared.objects())))
            }
            Err(mut failure) => {
                self.keep_attempted(cx, old, &failure);
                match failure.write_ahead.take() {
                    Some(error) => Err(ApplyError::StoreInventory(error)),
                    None => Err(failure.into()),
                }
            }
        }
    }

    fn log_changes(&self, cx: &Context<Kustomization>, changes: &ChangeSet, revision: &Revision) {
        if changes.is_empty() {
            return;
        }
        let output = if self.runtime.options().gates.enabled("GroupChangeLog") {
            serde_json::json!(changes.by_action())
        } else {
            serde_json::json!(changes.by_subject())
        };
        let log = cx.log.with([("output", output), ("revision", revision.revision.clone().into())]);
        log.info("server-side apply completed");
    }
}

/// Whether the history has an attempt to apply the same build. Warnings about its content are reported once.
fn is_known_build(object: &Kustomization, built: &Built) -> bool {
    let history = object.status.as_ref().and_then(|s| s.history.as_deref()).unwrap_or_default();
    history.iter().any(|known| known.digest == built.digest)
}

fn prepare(applier: &Applier, object: &Kustomization, built: &Built) -> Result<PreparedObjects, ApplyError> {
    let none = BTreeMap::new();
    let common = object.spec.common_metadata.as_ref();
    let labels = common.and_then(|c| c.labels.as_ref()).unwrap_or(&none);
    let annotations = common.and_then(|c| c.annotations.as_ref()).unwrap_or(&none);
    let prepared = applier.prepare(built.objects.clone(), labels, annotations)?;
    if let Some(secret) = prepared.objects().find(|o| is_encrypted_secret(o)) {
        let subject = ObjectRef::of(secret).map(|r| r.to_string()).unwrap_or_default();
        return Err(ApplyError::EncryptedSecret(subject));
    }
    Ok(prepared)
}
