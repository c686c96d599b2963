//! Garbage collection of objects that left the inventory.

use fl_api::kustomize::Kustomization;
use fl_apply::{
    Action, ChangeSet, Inventory, ObjectRef, PreparedObjects, Propagation, Pruner,
    is_custom_resource_definition,
};
use fl_runtime::{Context, EventKind, Reconciled as _};
use tokio::time::Instant;

use super::ApplyError;
use crate::controller::KustomizationController;
use crate::status::{Revision, event};
use crate::target::Target;
use crate::validate;

/// The annotation that approves deletions beyond the budget; its value is the revision that deletes.
pub(super) const APPROVE: &str = "kustomize.fluorite.dev/approve-deletions";

impl KustomizationController {
    /// Rejects a revision that would delete more objects than the budget, unless an annotation approves it.
    pub(super) fn check_deletion_budget(
        &self,
        object: &Kustomization,
        revision: &Revision,
        old: &Inventory,
        prepared: &PreparedObjects,
    ) -> Result<(), ApplyError> {
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
        Err(ApplyError::DeletionBudget {
            revision: revision.revision.clone(),
            deletions,
            total: old.objects().len(),
            budget,
        })
    }

    pub(super) async fn prune(
        &self,
        cx: &mut Context<Kustomization>,
        revision: &Revision,
        target: &Target,
        mut inventory: Inventory,
        stale: &[ObjectRef],
    ) -> Result<(), ApplyError> {
        if !cx.object.spec.prune || stale.is_empty() {
            return Ok(());
        }
        let stale: Vec<ObjectRef> = stale.iter().filter(|o| !self.is_engine_object(o)).cloned().collect();
        let pruner = self.pruner(&cx.object, target);
        let deadline = Instant::now() + validate::timeout(&cx.object);
        match fl_client::within(deadline, Box::pin(pruner.prune(&stale))).await {
            Ok(changes) => {
                if !changes.is_empty() {
                    cx.log.info(&format!("garbage collection completed: {changes}"));
                    event(cx, EventKind::Normal, &changes.to_string(), revision);
                }
                Ok(())
            }
            Err(failure) => {
                inventory.keep(failure.survivors.iter().cloned());
                self.store_inventory(cx, &inventory, target);
                Err(failure.into())
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

    /// Whether an object is the engine's own namespace or a CRD of a group it serves. The engine never deletes those: with a
    /// CRD all its objects are deleted.
    pub(crate) fn is_engine_object(&self, object: &ObjectRef) -> bool {
        let id = &object.id;
        let own_namespace = id.group.is_empty()
            && id.kind == "Namespace"
            && id.name == self.runtime.options().runtime_namespace;
        own_namespace || (is_custom_resource_definition(id) && is_engine_crd(&id.name))
    }
}

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
    fn prune_keeps_the_crds_of_the_engine() {
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
