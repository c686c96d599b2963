//! Deletion of a Kustomization, with or without its objects.

use fl_api::kustomize::Kustomization;
use fl_api::kustomize::kustomization::DeletionPolicy;
use fl_apply::{HealthRules, ObjectRef, PruneFailure, Waiter, sort};
use fl_runtime::{ClientError, Context, EventKind, Kind, ReconcileError, Reconciled as _};

use crate::apply::inventory;
use crate::controller::KustomizationController;
use crate::status::{Revision, event};
use crate::target::NoTarget;
use crate::validate::{deletes_objects, timeout};

/// Why the objects of a Kustomization were not deleted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeleteError {
    #[error("{0}")]
    Inventory(String),
    #[error(transparent)]
    ServiceAccount(#[from] ClientError),
    #[error(transparent)]
    Target(#[from] NoTarget),
    #[error(transparent)]
    Prune(#[from] PruneFailure),
}

impl From<DeleteError> for ReconcileError {
    /// The deletion is retried with backoff; conditions stay as they are.
    fn from(error: DeleteError) -> Self {
        ReconcileError::backoff("", error.to_string()).without_event().conditions_set()
    }
}

/// Deletes the objects as the deletion policy says. The finalizer is kept when that fails.
pub(crate) async fn delete(
    controller: &KustomizationController,
    cx: &mut Context<Kustomization>,
) -> Result<(), DeleteError> {
    if !deletes_objects(&cx.object) {
        return Ok(());
    }
    let revision = Revision::last_applied(&cx.object);
    // An inventory that cannot be read must not lead to a partial deletion.
    let stored = inventory(&cx.object).map_err(DeleteError::Inventory)?;
    let mut objects: Vec<ObjectRef> = stored.objects().to_vec();
    sort(&mut objects);
    if !can_impersonate(controller, &cx.object).await? {
        let list: Vec<String> = objects.iter().map(ToString::to_string).collect();
        let message = format!("unable to prune objects: \n{}", list.join("\n"));
        cx.log.error("skipping pruning, failed to find account to impersonate", &message);
        event(cx, EventKind::Warning, &message, &revision);
        return Ok(());
    }
    let target = controller.target(&cx.object).await?;
    objects.retain(|o| !controller.is_engine_object(o));
    let changes = match controller.pruner(&cx.object, &target).prune(&objects).await {
        Ok(changes) => changes,
        Err(failure) => {
            event(cx, EventKind::Warning, "pruning for deleted resource failed", &revision);
            return Err(failure.into());
        }
    };
    if changes.is_empty() {
        return Ok(());
    }
    event(cx, EventKind::Normal, &changes.to_string(), &revision);
    if cx.object.spec.deletion_policy == Some(DeletionPolicy::WaitForTermination) {
        let waiter = Waiter::new(target.cluster, HealthRules::default());
        let gone = waiter.wait_for_termination(&changes, timeout(&cx.object));
        if let Err(problem) = fl_runtime::without_permit(gone).await {
            let message = "failed to wait for resources termination";
            cx.log.error(&problem, message);
            event(cx, EventKind::Warning, message, &revision);
        }
    }
    Ok(())
}

/// Whether the service account that applied the objects still exists. An error leaves it unknown.
async fn can_impersonate(
    controller: &KustomizationController,
    object: &Kustomization,
) -> Result<bool, ClientError> {
    let identity = controller.identity(object);
    let Some(account) = identity.account() else { return Ok(true) };
    let cluster = controller.runtime.cluster();
    match cluster.get(&Kind::service_account(), Some(object.namespace()), account).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}
