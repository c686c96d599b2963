//! The status of a release: conditions, event metadata, history, inventory.

use std::collections::BTreeMap;

use fl_api::condition::types;
use fl_api::helm::HelmRelease;
use fl_api::helm::helm_release::ReleaseSnapshot;
use fl_api::meta::condition::ConditionStatus;
use fl_api::meta::inventory::{ResourceInventory, ResourceRef};
use fl_apply::{Cluster, Error as ClusterError, ObjectRef, annotation};
use fl_helm_storage::{Observation, Release};
use fl_runtime::Conditions;

use super::state::{common_metadata, post_renderers};
use crate::action::ActionError;
use crate::action::resources::read_manifest;
use crate::history::{ReleaseHistory, is_of};
use crate::spec::ReleaseSpec;

/// Sets `Ready` from the conditions of the actions: the one of the newest generation wins.
pub(crate) fn summarize(object: &mut HelmRelease) {
    let tests = object.tests_enabled();
    let mut kinds = vec![types::REMEDIATED];
    if tests && !object.ignores_test_failures() {
        kinds.push(types::TEST_SUCCESS);
    }
    kinds.push(types::RELEASED);
    if !tests {
        object.remove_condition(types::TEST_SUCCESS);
    }
    let found = kinds.iter().filter_map(|kind| object.condition(kind)).fold(None, |best, next| match best {
        None => Some(next),
        // The earlier in the list wins unless it is about an older generation.
        Some(known) if next.observed_generation > known.observed_generation => Some(next),
        best => best,
    });
    if let Some(found) = found.cloned() {
        let status = if found.r#type == types::REMEDIATED { ConditionStatus::False } else { found.status };
        if status == ConditionStatus::True {
            object.remove_condition(types::STALLED);
        }
        object.set_condition(types::READY, status, &found.reason, &found.message);
    }
    let (renderers, metadata) = (post_renderers(object), common_metadata(object));
    let status = object.status.get_or_insert_default();
    status.observed_post_renderers_digest = renderers;
    status.observed_common_metadata_digest = metadata;
}

/// The metadata of an event.
pub(crate) fn event_data(
    revision: &str,
    token: &str,
    app_version: &str,
    oci_digest: Option<&str>,
) -> BTreeMap<&'static str, String> {
    let all = [
        ("revision", revision),
        ("token", token),
        ("app-version", app_version),
        ("oci-digest", oci_digest.unwrap_or_default()),
    ];
    all.into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (key, value.to_owned()))
        .collect()
}

/// The metadata of an event about a snapshot.
pub(crate) fn snapshot_data(snapshot: &ReleaseSnapshot) -> BTreeMap<&'static str, String> {
    event_data(
        &snapshot.chart_version,
        &snapshot.config_digest,
        snapshot.app_version.as_deref().unwrap_or_default(),
        snapshot.oci_digest.as_deref(),
    )
}

/// Adds the revisions that an install or upgrade stored to the history. Returns whether there were any.
pub(crate) fn record_release(object: &mut HelmRelease, observed: &[Release], action: &str) -> bool {
    let mut last: BTreeMap<i64, &Release> = BTreeMap::new();
    for release in observed {
        last.insert(release.version, release);
    }
    let Some((_, newest)) = last.pop_last() else { return false };
    let status = object.status.get_or_insert_default();
    let digest = status.last_attempted_revision_digest.clone();
    let snapshot = Observation::of(newest).with(digest.as_deref(), Some(action)).snapshot();
    status.list_mut().retain(|known| !is_of(known, newest));
    status.list_mut().insert(0, snapshot);
    // Updates the newest earlier revision whose state changed, and only that, as Flux does.
    for (_, earlier) in last.into_iter().rev() {
        if let Some(known) = status.list_mut().iter_mut().find(|known| is_of(known, earlier)) {
            let observation = Observation::of(earlier).with(known.oci_digest.as_deref(), None);
            let hooks = known.test_hooks.take();
            *known = ReleaseSnapshot { test_hooks: hooks, ..observation.snapshot() };
            break;
        }
    }
    true
}

/// Updates the history with revisions that other actions stored. Unknown ones are added if `add` is set.
pub(crate) fn record_changes(
    object: &mut HelmRelease,
    observed: &[Release],
    action: Option<&str>,
    add: bool,
) {
    let status = object.status.get_or_insert_default();
    for release in observed {
        match status.list_mut().iter_mut().find(|known| is_of(known, release)) {
            Some(known) => {
                let action = action.map(str::to_owned).or_else(|| known.action.clone());
                let observation =
                    Observation::of(release).with(known.oci_digest.as_deref(), action.as_deref());
                let hooks = known.test_hooks.take();
                *known = ReleaseSnapshot { test_hooks: hooks, ..observation.snapshot() };
            }
            None if add => status.list_mut().insert(0, Observation::of(release).snapshot()),
            None => {}
        }
    }
    // Not sorted, as in Flux: a record that was deleted for the history limit keeps its position.
}

/// Why the inventory of a release could not be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InventoryError {
    #[error("failed to parse manifest: {0}")]
    Manifest(#[source] ActionError),
    #[error("failed to parse CRD {file}: {error}")]
    Crd { file: String, error: ActionError },
    /// The CRDs of the chart could not be determined.
    #[error(transparent)]
    CrdsOfChart(ActionError),
    #[error(transparent)]
    Read(#[from] std::io::Error),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// The inventory of a release, with warnings for objects whose scope is not known.
pub(crate) async fn inventory(
    cluster: &Cluster,
    release: &Release,
    crds: &[fl_helm::Crd],
) -> Result<(ResourceInventory, Vec<String>), InventoryError> {
    let mut warnings = Vec::new();
    let mut references = Vec::new();
    let objects = read_manifest(&release.manifest).map_err(InventoryError::Manifest)?;
    for object in objects.iter().filter(|object| annotation(object, "helm.sh/hook").is_none()) {
        let Ok(mut reference) = ObjectRef::of(object) else { continue };
        if reference.id.namespace.is_empty() {
            match cluster.resource(&reference).await {
                Ok(resource) if resource.namespaced() => {
                    reference.id.namespace.clone_from(&release.namespace);
                }
                Ok(_) => {}
                Err(error @ ClusterError::Client(fl_client::Error::NoKind { .. })) => warnings.push(format!(
                    "failed to determine if {} is namespace scoped, skipping namespace: {error}",
                    reference.id.kind
                )),
                Err(error) => return Err(InventoryError::Cluster(error)),
            }
        }
        references.push(reference);
    }
    for crd in crds {
        let text = crd.data.read()?;
        let objects = read_manifest(&text.to_text())
            .map_err(|error| InventoryError::Crd { file: crd.source.clone(), error })?;
        references.extend(objects.iter().filter_map(|object| ObjectRef::of(object).ok()));
    }
    let entries = references
        .into_iter()
        .map(|reference| ResourceRef { id: reference.id.inventory_id(), v: reference.version })
        .collect();
    Ok((ResourceInventory { entries }, warnings))
}

/// Counts a failure.
pub(crate) fn count_failure(object: &mut HelmRelease) {
    let status = object.status.get_or_insert_default();
    status.failures = Some(status.failures.unwrap_or(0) + 1);
}

/// Resets the failure counters.
pub(crate) fn clear_failures(object: &mut HelmRelease) {
    let status = object.status.get_or_insert_default();
    (status.failures, status.install_failures, status.upgrade_failures) = (None, None, None);
}

/// Replaces one condition by another that is true.
pub(crate) fn replace_condition(object: &mut HelmRelease, from: &str, to: &str, reason: &str, message: &str) {
    if object.has_condition(from) {
        object.remove_condition(to);
        object.mark_true(to, reason, message);
        object.remove_condition(from);
    }
}
