//! Apply, prune, health: the only step that writes to the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use fl_api::condition::{reasons, types};
use fl_api::kustomize::Kustomization;
use fl_api::meta::inventory::ResourceInventory;
use fl_apply::{
    Action, Applied, Applier, ChangeSet, Force, Inventory, ObjectRef, Owner, Propagation, Pruner,
    WaitOptions, Waiter, is_custom_resource_definition, jobs_with_ttl,
};
use fl_runtime::{Conditions as _, EventKind, Pass, Reconciled as _};
use tokio::time::Instant;

use crate::annotations;
use crate::build::{Built, is_encrypted_secret};
use crate::controller::{KustomizationController, NAMES};
use crate::dereference;
use crate::status::{Record, Revision, event, go, progressing, record};
use crate::target::Target;
use crate::validate::{self, Plan};

/// Approves deletions beyond the budget, by the revision that asks for them.
const APPROVE: &str = "kustomize.fluorite.dev/approve-deletions";

/// Why the objects are not as wanted.
#[derive(Debug)]
pub(crate) enum Failure {
    Error {
        reason: &'static str,
        message: String,
    },
    /// A newer revision is there.
    Canceled(String),
}

fn error(reason: &'static str, message: impl Into<String>) -> Failure {
    Failure::Error { reason, message: message.into() }
}

impl KustomizationController {
    /// The owner of what a Kustomization applies.
    pub(crate) fn owner(object: &Kustomization) -> Owner {
        Owner {
            field_manager: NAMES.component.to_owned(),
            group: "kustomize.toolkit.fluxcd.io".to_owned(),
            name: object.name().to_owned(),
            namespace: object.namespace().to_owned(),
        }
    }

    fn applier(&self, pass: &Pass<Kustomization>, plan: &Plan, target: &Target) -> Applier {
        let object = &pass.object;
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
        if target.local {
            applier.remembered = Some(self.drift.remembered(&pass.key()));
            applier.versions = Some(self.drift.clone());
        }
        applier
    }

    /// Whether all objects are known or found to be as wanted. Writes nothing.
    pub(crate) async fn is_unchanged(
        &self,
        pass: &Pass<Kustomization>,
        plan: &Plan,
        target: &Target,
        built: &Built,
    ) -> bool {
        let applier = self.applier(pass, plan, target);
        let Ok(prepared) = prepare(&applier, &pass.object, built) else { return false };
        applier.is_unchanged(&prepared).await
    }

    /// Applies what was built, removes what is no longer in it, and waits for health.
    pub(crate) async fn push(
        &self,
        pass: &mut Pass<Kustomization>,
        plan: &Plan,
        revision: &Revision,
        target: &Target,
        built: &Built,
    ) -> Result<(), Failure> {
        let started = Instant::now();
        let result = self.push_all(pass, plan, revision, target, built).await;
        let status = match &result {
            Ok(()) => Some(reasons::RECONCILIATION_SUCCEEDED),
            Err(Failure::Error { reason, .. }) => Some(*reason),
            Err(Failure::Canceled(_)) => None,
        };
        if let Some(status) = status {
            let entry = Record { digest: &built.digest, duration: started.elapsed(), status, revision };
            record(&mut pass.object, &entry);
        }
        if result.is_ok() {
            let object = &mut pass.object;
            let status = object.status.get_or_insert_default();
            status.last_applied_revision = Some(revision.revision.clone());
            status.last_applied_origin_revision =
                Some(revision.origin.clone()).filter(|origin| !origin.is_empty());
            let message = format!("Applied revision: {}", revision.revision);
            object.mark_true(types::READY, reasons::RECONCILIATION_SUCCEEDED, &message);
            self.drift.passed(&pass.key());
        }
        result
    }

    async fn push_all(
        &self,
        pass: &mut Pass<Kustomization>,
        plan: &Plan,
        revision: &Revision,
        target: &Target,
        built: &Built,
    ) -> Result<(), Failure> {
        let old = inventory(&pass.object).map_err(|e| error(reasons::RECONCILIATION_FAILED, e))?;
        if let Err(problem) = &plan.ignore {
            let message = format!("failed to create ignore rule selector: {problem}\n");
            return Err(error(reasons::RECONCILIATION_FAILED, message));
        }
        let (applied, jobs) = {
            let applier = self.applier(pass, plan, target);
            let prepared = prepare(&applier, &pass.object, built)?;
            self.guard_deletions(&pass.object, revision, &old, &prepared)?;
            self.warn_of_dropped_metadata(pass, built, &prepared);
            // The deadline of the whole apply: a server that is slow at every request must not hold the pass for longer.
            let deadline = Instant::now() + plan.timeout;
            let names = fl_client::within(deadline, applier.inventory_names(&prepared)).await;
            Box::pin(self.write_ahead(pass, &old, names)).await?;
            let applied = match fl_client::within(deadline, Box::pin(applier.apply(&prepared))).await {
                Ok(applied) => applied,
                Err(failure) => {
                    let mut kept = old.clone();
                    let applied = failure.changes.entries.iter().map(|change| change.object.clone());
                    kept.keep(applied.chain(failure.attempted.iter().cloned()));
                    pass.object.status.get_or_insert_default().inventory = stored_inventory(&kept);
                    return Err(error(reasons::RECONCILIATION_FAILED, failure.to_string()));
                }
            };
            self.tell_ignored(pass, built, &prepared);
            (applied, jobs_with_ttl(prepared.objects()))
        };
        let changes = applied.changes();
        self.log_changes(pass, changes, revision);
        let changed = changes.changed();
        if !changed.is_empty() {
            event(pass, EventKind::Normal, &changed.to_string(), revision);
        }
        self.drift.corrected(&pass.key(), &changed, pass);
        let new = Inventory::of(changes);
        let stale = old.stale(&new);
        self.store_inventory(pass, &new, target);
        self.prune(pass, revision, target, new, &stale).await?;
        self.check_health(pass, plan, revision, target, applied, jobs, !changed.is_empty()).await
    }

    /// Writes the inventory ahead of the apply: after a crash in the middle of it, the objects created so far are still pruned.
    async fn write_ahead(
        &self,
        pass: &mut Pass<Kustomization>,
        old: &Inventory,
        objects: Vec<ObjectRef>,
    ) -> Result<(), Failure> {
        let mut planned = old.clone();
        planned.keep(objects);
        if planned.objects().len() == old.objects().len() {
            return Ok(());
        }
        let before = pass.object.status.as_ref().and_then(|status| status.inventory.clone());
        pass.object.status.get_or_insert_default().inventory = stored_inventory(&planned);
        let saved = pass.save().await;
        pass.object.status.get_or_insert_default().inventory = before;
        saved.map_err(|e| {
            error(reasons::RECONCILIATION_FAILED, format!("cannot store the inventory before the apply: {e}"))
        })
    }

    /// Emits one Warning event per build for labels and annotations that are not applied because a value is no string.
    fn warn_of_dropped_metadata(
        &self,
        pass: &Pass<Kustomization>,
        built: &Built,
        prepared: &fl_apply::Prepared,
    ) {
        if is_known_build(&pass.object, built) {
            return;
        }
        if let Some(text) = annotations::dropped(prepared.dropped_metadata()) {
            pass.event(EventKind::Warning, "MetadataDropped", &text);
        }
    }

    /// Says once per build which labels and annotations mean nothing.
    fn tell_ignored(&self, pass: &Pass<Kustomization>, built: &Built, prepared: &fl_apply::Prepared) {
        if is_known_build(&pass.object, built) {
            return;
        }
        if let Some(text) = annotations::ignored(prepared.objects()) {
            pass.event(EventKind::Normal, "AnnotationIgnored", &text);
        }
    }

    fn log_changes(&self, pass: &Pass<Kustomization>, changes: &ChangeSet, revision: &Revision) {
        if changes.is_empty() {
            return;
        }
        let output = if self.runtime.options().gates.enabled("GroupChangeLog") {
            serde_json::json!(changes.by_action())
        } else {
            serde_json::json!(changes.by_subject())
        };
        let log = pass.log.with([("output", output), ("revision", revision.revision.clone().into())]);
        log.info("server-side apply completed");
    }

    fn store_inventory(&self, pass: &mut Pass<Kustomization>, inventory: &Inventory, target: &Target) {
        pass.object.status.get_or_insert_default().inventory = Some(inventory.write());
        if target.local {
            self.drift.watch(&pass.key(), inventory, &target.cluster);
        }
    }

    /// With a budget, a revision that would delete more than it is held until somebody approves it.
    fn guard_deletions(
        &self,
        object: &Kustomization,
        revision: &Revision,
        old: &Inventory,
        prepared: &fl_apply::Prepared,
    ) -> Result<(), Failure> {
        let Some(budget) = self.options.deletion_budget.filter(|_| object.spec.prune) else { return Ok(()) };
        let mut kept = ChangeSet::default();
        for wanted in prepared.targets() {
            kept.add(wanted.clone(), Action::Unchanged);
        }
        let deletions = old.stale(&Inventory::of(&kept)).len();
        let approved = object.annotation(APPROVE) == Some(revision.revision.as_str());
        let empties = prepared.is_empty() && !old.is_empty();
        if approved || (deletions <= budget && !empties) {
            return Ok(());
        }
        Err(error(
            reasons::PRUNE_FAILED,
            format!(
                "revision {} would delete {deletions} of {} objects, more than the budget of {budget}; nothing was changed. To approve it, set the annotation {APPROVE} to this revision",
                revision.revision,
                old.objects().len()
            ),
        ))
    }

    async fn prune(
        &self,
        pass: &mut Pass<Kustomization>,
        revision: &Revision,
        target: &Target,
        mut inventory: Inventory,
        stale: &[ObjectRef],
    ) -> Result<(), Failure> {
        if !pass.object.spec.prune || stale.is_empty() {
            return Ok(());
        }
        let stale: Vec<ObjectRef> = stale.iter().filter(|o| !self.is_engine_object(o)).cloned().collect();
        let pruner = self.pruner(&pass.object, target);
        let deadline = Instant::now() + validate::timeout(&pass.object);
        match fl_client::within(deadline, Box::pin(pruner.prune(&stale))).await {
            Ok(changes) => {
                if !changes.is_empty() {
                    pass.log.info(&format!("garbage collection completed: {changes}"));
                    event(pass, EventKind::Normal, &changes.to_string(), revision);
                }
                Ok(())
            }
            Err(failure) => {
                inventory.keep(failure.survivors.iter().cloned());
                self.store_inventory(pass, &inventory, target);
                Err(error(reasons::PRUNE_FAILED, failure.to_string()))
            }
        }
    }

    pub(crate) fn pruner(&self, object: &Kustomization, target: &Target) -> Pruner {
        let owner = Self::owner(object);
        Pruner {
            cluster: target.cluster.clone(),
            owner_labels: owner.labels(),
            keep: owner.keep(),
            propagation: Propagation::Background,
        }
    }

    /// The engine's own namespace and the CRDs of every group it serves are never deleted by the engine itself: with a CRD go all its objects.
    pub(crate) fn is_engine_object(&self, object: &ObjectRef) -> bool {
        let id = &object.id;
        let own_namespace = id.group.is_empty()
            && id.kind == "Namespace"
            && id.name == self.runtime.options().runtime_namespace;
        own_namespace || (is_custom_resource_definition(id) && is_engine_crd(&id.name))
    }

    #[expect(clippy::too_many_arguments, reason = "one step of a pass, called once")]
    async fn check_health(
        &self,
        pass: &mut Pass<Kustomization>,
        plan: &Plan,
        revision: &Revision,
        target: &Target,
        applied: Applied,
        jobs: std::collections::HashSet<fl_apply::ObjectId>,
        drifted: bool,
    ) -> Result<(), Failure> {
        let targets = health_targets(&pass.object, applied.changes());
        if targets.is_empty() {
            pass.object.remove_condition(types::HEALTHY);
            return Ok(());
        }
        let started = Instant::now();
        let was_healthy = pass.object.is_true(types::HEALTHY);
        let applied_before = pass.object.status.as_ref().and_then(|s| s.last_applied_revision.clone());
        let is_new = applied_before.as_deref() != Some(revision.revision.as_str());
        let message = format!(
            "Running health checks for revision {} with a timeout of {}",
            revision.revision,
            go(plan.timeout)
        );
        pass.object.mark_unknown(types::HEALTHY, reasons::PROGRESSING, &message);
        progressing(pass, "Running health checks", &revision.revision, plan.timeout);
        let gates = &self.runtime.options().gates;
        let options = WaitOptions {
            timeout: plan.timeout,
            fail_fast: !gates.enabled("DisableFailFastBehavior"),
            jobs_with_ttl: jobs,
        };
        let waiter = Waiter::new(target.cluster.clone(), plan.health.clone());
        if let Some(problem) = waiter.unplaced(&targets).await {
            return Err(unhealthy(pass, &problem, started));
        }
        let wait = waiter.wait(&targets, applied.into_live(), &options);
        let cancels = gates.enabled("CancelHealthCheckOnNewRevision");
        let result = fl_runtime::idle(async {
            tokio::select! {
                result = wait => Ok(result),
                trigger = self.newer_revision(&pass.object, revision), if cancels => Err(Failure::Canceled(trigger)),
            }
        });
        let result = result.await?;
        if let Err(found) = result {
            let text = found.to_string();
            pass.log.error(&text, &format!("{} of {} objects are healthy", found.ready, found.total));
            return Err(unhealthy(pass, &text, started));
        }
        let message = format!("Health check passed in {}", go(started.elapsed()));
        if !was_healthy || (is_new && drifted) {
            event(pass, EventKind::Normal, &message, revision);
        }
        pass.object.mark_true(types::HEALTHY, reasons::SUCCEEDED, &message);
        Ok(())
    }

    /// Ends when the source has another revision; says who triggered it.
    async fn newer_revision(&self, object: &Kustomization, revision: &Revision) -> String {
        let reference = validate::source_reference(object);
        let mut news = self.resolver().news(&reference, object.namespace());
        loop {
            let newest = dereference::source(object, self.resolver()).await;
            if newest.is_ok_and(|artifact| artifact.revision != revision.revision) {
                let source = &object.spec.source_ref;
                let namespace = source.namespace.as_deref().unwrap_or(object.namespace());
                return format!(
                    "New reconciliation triggered by {}/{namespace}/{}",
                    source.kind, source.name
                );
            }
            news.heard().await;
        }
    }
}

/// Says why the objects are not healthy, and gives the failure back.
fn unhealthy(pass: &mut Pass<Kustomization>, problem: &str, started: Instant) -> Failure {
    pass.object.mark_false(types::HEALTHY, reasons::HEALTH_CHECK_FAILED, problem);
    let message = format!("health check failed after {}: {problem}", go(started.elapsed()));
    error(reasons::HEALTH_CHECK_FAILED, message)
}

/// An inventory as the status has it; none rather than an empty one.
fn stored_inventory(inventory: &Inventory) -> Option<ResourceInventory> {
    (!inventory.is_empty()).then(|| inventory.write())
}

/// What the status remembers.
pub(crate) fn inventory(object: &Kustomization) -> Result<Inventory, String> {
    match object.status.as_ref().and_then(|s| s.inventory.as_ref()) {
        Some(stored) => Inventory::read(stored),
        None => Ok(Inventory::default()),
    }
}

/// Whether the history has an attempt to apply the same build.
fn is_known_build(object: &Kustomization, built: &Built) -> bool {
    let history = object.status.as_ref().and_then(|s| s.history.as_deref()).unwrap_or_default();
    history.iter().any(|known| known.digest == built.digest)
}

fn prepare(applier: &Applier, object: &Kustomization, built: &Built) -> Result<fl_apply::Prepared, Failure> {
    let none = BTreeMap::new();
    let common = object.spec.common_metadata.as_ref();
    let labels = common.and_then(|c| c.labels.as_ref()).unwrap_or(&none);
    let annotations = common.and_then(|c| c.annotations.as_ref()).unwrap_or(&none);
    let prepared = applier
        .prepare(built.objects.clone(), labels, annotations)
        .map_err(|e| error(reasons::RECONCILIATION_FAILED, e.to_string()))?;
    if let Some(secret) = prepared.objects().find(|o| is_encrypted_secret(o)) {
        let subject = ObjectRef::of(secret).map(|r| r.to_string()).unwrap_or_default();
        let message = format!(
            "{subject} is SOPS encrypted, configuring decryption is required for this secret to be reconciled"
        );
        return Err(error(reasons::RECONCILIATION_FAILED, message));
    }
    Ok(prepared)
}

/// The objects to wait for: all that were applied, or those named; never the Kustomization itself.
fn health_targets(object: &Kustomization, changes: &ChangeSet) -> Vec<ObjectRef> {
    let named = object.spec.health_checks.iter().flatten().map(|check| {
        let api_version = check.api_version.as_deref().filter(|v| !v.is_empty()).unwrap_or("apps/v1");
        ObjectRef::new(api_version, &check.kind, check.namespace.as_deref().unwrap_or_default(), &check.name)
    });
    let applied = changes.entries.iter().filter(|c| c.action != Action::Skipped).map(|c| c.object.clone());
    let all: Vec<ObjectRef> =
        if object.spec.wait.unwrap_or_default() { applied.collect() } else { named.collect() };
    let itself = |o: &ObjectRef| {
        o.id.kind == "Kustomization" && o.id.name == object.name() && o.id.namespace == object.namespace()
    };
    all.into_iter().filter(|o| !itself(o)).collect()
}

/// Shared with the watcher of drift.
pub(crate) type SharedRemembered = Arc<fl_apply::Remembered>;
/// Whether a CRD belongs to a group of Flux or of this engine, by the name `<plural>.<group>`.
fn is_engine_crd(name: &str) -> bool {
    static GROUPS: std::sync::LazyLock<std::collections::BTreeSet<String>> = std::sync::LazyLock::new(|| {
        let all = fl_api::CrdSet::ALL.iter().flat_map(|set| fl_api::definitions(*set));
        all.filter_map(|d| d.to_json()["spec"]["group"].as_str().map(str::to_owned)).collect()
    });
    let Some((_, group)) = name.split_once('.') else { return false };
    GROUPS.contains(group) || group.ends_with(".toolkit.fluxcd.io")
}

#[cfg(test)]
mod tests {
    use super::is_engine_crd;

    #[test]
    fn crds_of_every_group_of_the_engine_are_kept() {
        for own in [
            "kustomizations.kustomize.toolkit.fluxcd.io",
            "gitrepositories.source.toolkit.fluxcd.io",
            "helmreleases.helm.toolkit.fluxcd.io",
            "receivers.notification.toolkit.fluxcd.io",
            "imagepolicies.image.toolkit.fluxcd.io",
            "artifactgenerators.source.extensions.fluxcd.io",
        ] {
            assert!(is_engine_crd(own), "{own}");
        }
        for other in
            ["widgets.example.com", "kustomizations.example.com", "toolkit", "x.nottoolkit.fluxcd.io.example"]
        {
            assert!(!is_engine_crd(other), "{other}");
        }
    }
}
