//! Objects of releases are watched: a change by somebody else makes the release due at once.

use std::sync::Arc;

use fl_api::Resource;
use fl_api::helm::HelmRelease;
use fl_apply::{Cluster, ObjectId, ObjectRef};
use fl_runtime::{Change, Key, Kind, Live, Runtime, WatchSpec};

use crate::spec::Asked;

const NAME: &str = "helm.toolkit.fluxcd.io/name";
const NAMESPACE: &str = "helm.toolkit.fluxcd.io/namespace";

/// Wakes releases whose objects change. Once per process.
pub(crate) fn listen(runtime: &Runtime) {
    let own = runtime.clone();
    runtime.hub().listen(Arc::new(move |change: &Change| {
        if let Some(release) = disturbed(change) {
            own.graph().wake(&release);
        }
    }));
}

/// The release whose object was changed or deleted; changes of status alone do not count.
fn disturbed(change: &Change) -> Option<Key> {
    let old = change.old.as_deref()?;
    if change.kind.group().ends_with(".toolkit.fluxcd.io") {
        return None;
    }
    let (name, namespace) = (old.label(NAME)?, old.label(NAMESPACE)?);
    let touched = match change.new.as_deref() {
        None => true,
        Some(new) => new.uid() != old.uid() || spec_changed(old, new),
    };
    touched.then(|| Key::new(HelmRelease::GROUP, HelmRelease::KIND, namespace, name))
}

fn spec_changed(old: &Live, new: &Live) -> bool {
    let (before, after) = (old.meta(), new.meta());
    if before.labels != after.labels || before.annotations != after.annotations {
        return true;
    }
    match (before.generation, after.generation) {
        (Some(before), Some(after)) => before != after,
        // Kinds without a generation have no status either: every version is a change.
        _ => old.resource_version() != new.resource_version(),
    }
}

/// Opens watches for the kinds of a release that wants its drift corrected.
pub(crate) async fn follow(runtime: &Runtime, cluster: &Cluster, object: &HelmRelease) {
    if !object.detects_drift() {
        return;
    }
    let inventory = object.status.as_ref().and_then(|status| status.inventory.as_ref());
    for entry in inventory.into_iter().flat_map(|inventory| &inventory.entries) {
        let Some(id) = ObjectId::parse(&entry.id) else { continue };
        let reference = ObjectRef { id, version: entry.v.clone() };
        // A kind that cannot be found now is looked for again with the next pass.
        let Ok(resource) = cluster.resource(&reference).await else { continue };
        let kind = Kind::new(
            &resource.group,
            &resource.version,
            &resource.kind,
            &resource.plural,
            resource.namespaced,
        );
        runtime.hub().watch(WatchSpec::metadata(kind).labelled(NAME));
    }
}
