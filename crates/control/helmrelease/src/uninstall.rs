//! Uninstall of a release: because its target changed, or because its HelmRelease is deleted.

use fl_api::condition::types;
use fl_api::helm::HelmRelease;
use fl_api::helm::helm_release::ReleaseSnapshot;
use fl_runtime::{Conditions, Context, EventKind};

use crate::action::interrupt::Interrupt;
use crate::action::log::ActionLog;
use crate::action::post_render::owner_labels;
use crate::action::storage::Storage;
use crate::action::wait::Health;
use crate::action::{ActionError, Configuration};
use crate::controller::HelmReleaseController;
use crate::history::{ReleaseHistory, full_name, is_of, versioned_chart};
use crate::release::{record_changes, snapshot_data, summarize};
use crate::spec::ReleaseSpec;
use crate::target::Target;

impl HelmReleaseController {
    /// Uninstalls the release that the status names, and reports it with the condition `Released`.
    pub(crate) async fn uninstall(
        &self,
        cx: &mut Context<HelmRelease>,
        target: &Target,
        health: &Health,
    ) -> Result<(), ActionError> {
        let status = cx.object.status.clone().unwrap_or_default();
        let (Some(current), Some(namespace)) = (status.latest().cloned(), status.storage_namespace) else {
            return Ok(());
        };
        let object = cx.object.clone();
        let log = ActionLog::default();
        let mut storage = Storage::new(target.cluster.clone(), &namespace, &current.name);
        let mut helm = Configuration {
            cluster: &target.cluster,
            cluster_key: target.key.clone(),
            storage: &mut storage,
            log: &log,
            health: health.clone(),
            capabilities: &self.shared.capabilities,
            object: &object,
            defaults: self.shared.defaults,
            // The namespace of the current spec, as in Helm: of a release that moved, objects that name no namespace are
            // looked for there, and those of the old namespace are left behind.
            namespace: object.release_namespace(),
            owner: owner_labels(&object),
            interrupt: &Interrupt::default(),
            on_progress: &|_: &str| {},
        };
        let mut result = helm.uninstall().await;
        // A partial uninstall leaves records in another state than the history says.
        record_changes(&mut cx.object, &storage.observed, Some("uninstall"), false);
        let name = full_name(&current);
        let keep = object.uninstall().keep_history.unwrap_or(false);
        match &result {
            Err(ActionError::NotFound) => {
                let message = format!("Release {name} was not found, assuming it is uninstalled");
                cx.object.mark_false(types::RELEASED, "UninstallSucceeded", &message);
                summarize(&mut cx.object);
                return Ok(());
            }
            Err(error) if keep && error.to_string().contains("is already deleted") => {
                let message = format!("Release {name} was already uninstalled");
                cx.object.mark_false(types::RELEASED, "UninstallSucceeded", &message);
                summarize(&mut cx.object);
                return Ok(());
            }
            Ok(release) if !is_of(&current, release) => {
                // Another client had stored a newer revision; it was uninstalled instead.
                result = Err(ActionError::failed(format!(
                    "release mismatch: uninstalled release {}/{}.v{} != current release {name}",
                    release.namespace, release.name, release.version
                )));
            }
            // Helm ignores errors of its storage; without the update the release is not known to have ended.
            Ok(_) if current.status != "uninstalled" && is_unchanged(&cx.object, &current) => {
                result = Err(ActionError::failed(
                    "uninstall completed with error: release not updated in Helm storage",
                ));
            }
            _ => {}
        }
        let chart = versioned_chart(&current);
        let data = snapshot_data(&current);
        let outcome = match result {
            Ok(_) => {
                let message = format!("Helm uninstall succeeded for release {name} with chart {chart}");
                cx.object.status.get_or_insert_default().inventory = None;
                cx.object.mark_false(types::RELEASED, "UninstallSucceeded", &message);
                cx.event_with(EventKind::Normal, "UninstallSucceeded", &message, data);
                Ok(())
            }
            Err(error) => {
                let text = error.to_string();
                let message =
                    format!("Helm uninstall failed for release {name} with chart {chart}: {}", text.trim());
                let status = cx.object.status.get_or_insert_default();
                status.failures = Some(status.failures.unwrap_or(0) + 1);
                cx.object.mark_false(types::RELEASED, "UninstallFailed", &message);
                cx.event_with(EventKind::Warning, "UninstallFailed", &log.append_to(&message), data);
                Err(error)
            }
        };
        summarize(&mut cx.object);
        outcome
    }
}

/// Which part of the release target changed, if one did: the release is uninstalled and installed again.
pub(crate) fn target_changed(object: &HelmRelease, chart: &str) -> Option<&'static str> {
    use fl_api::helm::actions::ChartNameChangeStrategy::InPlaceUpdate;
    let status = object.status.as_ref()?;
    let (latest, storage) = (status.latest()?, status.storage_namespace.as_deref()?);
    if object.storage_namespace() != storage {
        return Some("storage namespace");
    }
    if object.release_namespace() != latest.namespace {
        return Some("release namespace");
    }
    if object.helm_name() != latest.name {
        return Some("release name");
    }
    let in_place = object.upgrade().chart_name_change_strategy == Some(InPlaceUpdate);
    (chart != latest.chart_name && !in_place).then_some("chart name")
}

/// Whether the history still has the same snapshot of the latest release.
fn is_unchanged(object: &HelmRelease, known: &ReleaseSnapshot) -> bool {
    let latest = object.status.as_ref().and_then(|status| status.latest());
    latest.is_some_and(|latest| latest.digest == known.digest)
}
