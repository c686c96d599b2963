//! Drift of applied objects, and the report of correction loops.

use std::time::Duration;

use fl_api::Resource as _;
use fl_api::kustomize::Kustomization;
use fl_apply::ChangeSet;
use fl_runtime::{Context, EventKind};
use fl_targets::OwnerKind;

use crate::controller::KustomizationController;

/// Kustomizations as owners of applied objects.
pub(crate) const OWNER: OwnerKind = OwnerKind {
    group: Kustomization::GROUP,
    kind: Kustomization::KIND,
    name_label: "kustomize.toolkit.fluxcd.io/name",
    namespace_label: "kustomize.toolkit.fluxcd.io/namespace",
    // The apply engine records what it wrote before the watch event can count as drift.
    confirm_after: Duration::ZERO,
};

impl KustomizationController {
    /// Counts drift corrections, and reports objects that another field manager keeps changing back.
    pub(crate) fn record_corrections(&self, cx: &Context<Kustomization>, changed: &ChangeSet) {
        for correction in self.owned_objects.corrected(&cx.key(), changed) {
            let message = format!(
                "{} is changed again and again by '{}'; its drift is corrected only at the interval for the next {}. Leave the field to one of the two, for example with spec.ignore",
                correction.object,
                correction.manager,
                crate::status::go(correction.backoff)
            );
            cx.log.error(&message, "correction loop between two field managers");
            cx.event(EventKind::Warning, "DriftFight", &message);
        }
    }
}
