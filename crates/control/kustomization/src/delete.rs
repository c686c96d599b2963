//! Letting a Kustomization go, with or without its objects.

use fl_api::kustomize::Kustomization;
use fl_api::kustomize::kustomization::DeletionPolicy;
use fl_apply::{HealthRules, ObjectRef, Waiter, sort};
use fl_runtime::{EventKind, Kind, Outcome, Pass, Reconciled as _};

use crate::apply::inventory;
use crate::controller::KustomizationController;
use crate::status::{Revision, event};
use crate::validate::{deletes_objects, timeout};

pub(crate) async fn delete(
    controller: &KustomizationController,
    pass: &mut Pass<Kustomization>,
) -> Result<(), Outcome> {
    if !deletes_objects(&pass.object) {
        return Ok(());
    }
    let revision = last_revision(&pass.object);
    // An inventory that cannot be read must not lead to half a deletion.
    let mut objects: Vec<ObjectRef> = inventory(&pass.object).map_err(Outcome::backoff)?.objects().to_vec();
    sort(&mut objects);
    if !can_impersonate(controller, &pass.object).await? {
        let list: Vec<String> = objects.iter().map(ToString::to_string).collect();
        let message = format!("unable to prune objects: \n{}", list.join("\n"));
        pass.log.error("skipping pruning, failed to find account to impersonate", &message);
        event(pass, EventKind::Warning, &message, &revision);
        return Ok(());
    }
    let target = controller.targets.of(&pass.object, &controller.options).await.map_err(Outcome::backoff)?;
    objects.retain(|o| !controller.is_engine_object(o));
    let changes = match controller.pruner(&pass.object, &target).prune(&objects).await {
        Ok(changes) => changes,
        Err(failure) => {
            event(pass, EventKind::Warning, "pruning for deleted resource failed", &revision);
            return Err(Outcome::backoff(failure.to_string()));
        }
    };
    if changes.is_empty() {
        return Ok(());
    }
    event(pass, EventKind::Normal, &changes.to_string(), &revision);
    if pass.object.spec.deletion_policy == Some(DeletionPolicy::WaitForTermination) {
        let waiter = Waiter::new(target.cluster, HealthRules::default());
        let gone = waiter.wait_for_termination(&changes, timeout(&pass.object));
        if let Err(problem) = fl_runtime::idle(gone).await {
            let message = "failed to wait for resources termination";
            pass.log.error(&problem, message);
            event(pass, EventKind::Warning, message, &revision);
        }
    }
    Ok(())
}

/// Whether the account that applied the objects still exists. Not knowing is no answer: the deletion is tried again.
async fn can_impersonate(
    controller: &KustomizationController,
    object: &Kustomization,
) -> Result<bool, Outcome> {
    let identity = controller.targets.identity(object);
    let Some(account) = identity.account() else { return Ok(true) };
    let cluster = controller.runtime.cluster();
    match cluster.get(&Kind::service_account(), Some(object.namespace()), account).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(Outcome::backoff(error.to_string())),
    }
}

fn last_revision(object: &Kustomization) -> Revision {
    let status = object.status.as_ref();
    let text = |field: Option<&String>| field.cloned().unwrap_or_default();
    Revision {
        revision: text(status.and_then(|s| s.last_applied_revision.as_ref())),
        origin: text(status.and_then(|s| s.last_applied_origin_revision.as_ref())),
    }
}
