//! Health checks of applied objects.

use std::collections::HashSet;

use fl_api::condition::{reasons, types};
use fl_api::kustomize::Kustomization;
use fl_apply::{Action, Applied, ChangeSet, ObjectId, ObjectRef, WaitOptions, Waiter};
use fl_runtime::{Conditions as _, Context, EventKind, Reconciled as _};
use tokio::time::Instant;

use super::ApplyError;
use crate::controller::KustomizationController;
use crate::dereference;
use crate::status::{Revision, event, go, progressing};
use crate::target::Target;
use crate::validate::{self, Plan};

/// What a health check depends on.
pub(super) struct HealthCheck<'a> {
    pub(super) plan: &'a Plan,
    pub(super) revision: &'a Revision,
    pub(super) target: &'a Target,
    /// Jobs that are deleted after they finish: their absence is not a failure.
    pub(super) jobs: HashSet<ObjectId>,
    /// Whether the apply changed an object.
    pub(super) drifted: bool,
}

impl KustomizationController {
    pub(super) async fn check_health(
        &self,
        cx: &mut Context<Kustomization>,
        check: HealthCheck<'_>,
        applied: Applied,
    ) -> Result<(), ApplyError> {
        let HealthCheck { plan, revision, target, jobs, drifted } = check;
        let targets = health_targets(&cx.object, applied.changes());
        if targets.is_empty() {
            cx.object.remove_condition(types::HEALTHY);
            return Ok(());
        }
        let started = Instant::now();
        let was_healthy = cx.object.is_true(types::HEALTHY);
        let applied_before = cx.object.status.as_ref().and_then(|s| s.last_applied_revision.clone());
        let is_new = applied_before.as_deref() != Some(revision.revision.as_str());
        let message = format!(
            "Running health checks for revision {} with a timeout of {}",
            revision.revision,
            go(plan.timeout)
        );
        cx.object.mark_unknown(types::HEALTHY, reasons::PROGRESSING, &message);
        progressing(cx, "Running health checks", &revision.revision, plan.timeout);
        let gates = &self.runtime.options().gates;
        let options = WaitOptions {
            timeout: plan.timeout,
            fail_fast: !gates.enabled("DisableFailFastBehavior"),
            jobs_with_ttl: jobs,
        };
        let waiter = Waiter::new(target.cluster.clone(), plan.health.clone());
        if let Some(problem) = waiter.unplaced(&targets).await {
            return Err(unhealthy(cx, problem, started));
        }
        let wait = waiter.wait(&targets, applied.into_live(), &options);
        let cancels = gates.enabled("CancelHealthCheckOnNewRevision");
        let result = fl_runtime::without_permit(async {
            tokio::select! {
                result = wait => Ok(result),
                trigger = self.newer_revision(&cx.object, revision), if cancels => {
                    Err(ApplyError::Superseded { trigger })
                }
            }
        });
        if let Err(found) = result.await? {
            let text = found.to_string();
            cx.log.error(&text, &format!("{} of {} objects are healthy", found.ready, found.total));
            return Err(unhealthy(cx, text, started));
        }
        let message = format!("Health check passed in {}", go(started.elapsed()));
        if !was_healthy || (is_new && drifted) {
            event(cx, EventKind::Normal, &message, revision);
        }
        cx.object.mark_true(types::HEALTHY, reasons::SUCCEEDED, &message);
        Ok(())
    }

    /// Completes when the source has another revision; returns what triggered it.
    async fn newer_revision(&self, object: &Kustomization, revision: &Revision) -> String {
        let reference = validate::source_reference(object);
        let mut changes = self.resolver.news(&reference, object.namespace());
        loop {
            let newest = dereference::source(object, &self.resolver).await;
            if newest.is_ok_and(|artifact| artifact.revision != revision.revision) {
                let source = &object.spec.source_ref;
                let namespace = source.namespace.as_deref().unwrap_or(object.namespace());
                return format!("triggered by {}/{namespace}/{}", source.kind, source.name);
            }
            changes.heard().await;
        }
    }
}

/// Sets the Healthy condition of a failed check.
fn unhealthy(cx: &mut Context<Kustomization>, message: String, started: Instant) -> ApplyError {
    cx.object.mark_false(types::HEALTHY, reasons::HEALTH_CHECK_FAILED, &message);
    ApplyError::Unhealthy { elapsed: started.elapsed(), message }
}

/// The objects to wait for: all that were applied, or those of `spec.healthChecks`; never the Kustomization itself.
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
