//! Objects of releases are watched: a change by somebody else makes the release due at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fl_api::Resource;
use fl_api::helm::HelmRelease;
use fl_apply::{Cluster, Fingerprint, ObjectId, ObjectRef, Observer};
use fl_runtime::{Change, Key, Live, Runtime, WatchSpec};
use serde_json::Value;

use crate::spec::Asked;

const NAME: &str = "helm.toolkit.fluxcd.io/name";
const NAMESPACE: &str = "helm.toolkit.fluxcd.io/namespace";
/// The news of a write may come before its answer: so long the answer is waited for.
const ANSWER: Duration = Duration::from_millis(200);

/// What we wrote last to each object of a release, by uid.
type Written = HashMap<String, Fingerprint>;

/// The releases that detect drift, and what the engine itself wrote for them. Nothing is kept for other releases, nor after a release
/// is deleted.
pub(crate) struct Watching {
    releases: Mutex<HashMap<Key, Written>>,
}

impl std::fmt::Debug for Watching {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watching").finish_non_exhaustive()
    }
}

impl Observer for Watching {
    fn wrote(&self, object: &Value) {
        let label = |key: &str| object["metadata"]["labels"][key].as_str();
        let (Some(name), Some(namespace)) = (label(NAME), label(NAMESPACE)) else { return };
        let mut releases = self.releases();
        let Some(written) = releases.get_mut(&release(namespace, name)) else { return };
        if let (Some(uid), Some(print)) = (object["metadata"]["uid"].as_str(), Fingerprint::of(object)) {
            written.insert(uid.to_owned(), print);
        }
    }
}

impl Watching {
    /// Wakes releases whose objects change. Once per process.
    pub(crate) fn start(runtime: &Runtime) -> Arc<Self> {
        let watching = Arc::new(Watching { releases: Mutex::default() });
        let (weak, own) = (Arc::downgrade(&watching), runtime.clone());
        runtime.hub().listen(Arc::new(move |change: &Change| {
            let Some(watching) = weak.upgrade() else { return };
            if change.kind.kind() == HelmRelease::KIND && change.kind.group() == HelmRelease::GROUP {
                if change.new.is_none() {
                    watching.releases().remove(&change.object().key());
                }
                return;
            }
            if let Some((release, print)) = watching.disturbed(change) {
                let uid = change.object().uid().to_owned();
                let own = own.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(ANSWER).await;
                    if !watching.is_own(&release, &uid, print.as_ref()) {
                        own.graph().wake(&release);
                    }
                });
            }
        }));
        watching
    }

    fn releases(&self) -> MutexGuard<'_, HashMap<Key, Written>> {
        self.releases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The release whose object was changed or deleted, when it cares, and what the object is now.
    fn disturbed(&self, change: &Change) -> Option<(Key, Option<Fingerprint>)> {
        let old = change.old.as_deref()?;
        if change.kind.group().ends_with(".toolkit.fluxcd.io") {
            return None;
        }
        let (name, namespace) = (old.label(NAME)?, old.label(NAMESPACE)?);
        let release = release(namespace, name);
        let mut releases = self.releases();
        let written = releases.get_mut(&release)?;
        match change.new.as_deref() {
            None => {
                written.remove(old.uid());
                Some((release, None))
            }
            Some(new) => {
                let touched = new.uid() != old.uid() || spec_changed(old, new);
                touched.then(|| (release, Some(Fingerprint::of_meta(new.meta()))))
            }
        }
    }

    fn is_own(&self, release: &Key, uid: &str, print: Option<&Fingerprint>) -> bool {
        let releases = self.releases();
        print.is_some_and(|print| releases.get(release).and_then(|written| written.get(uid)) == Some(print))
    }

    /// Notes whether a release detects drift, before anything is written for it.
    pub(crate) fn register(&self, object: &HelmRelease) {
        let key = release(object.own_namespace(), &object.metadata.name);
        if object.detects_drift() {
            self.releases().entry(key).or_default();
        } else {
            self.releases().remove(&key);
        }
    }

    /// Opens watches on the objects of a release that detects drift.
    pub(crate) async fn follow(&self, runtime: &Runtime, cluster: &Cluster, object: &HelmRelease) {
        if !object.detects_drift() {
            return;
        }
        let inventory = object.status.as_ref().and_then(|status| status.inventory.as_ref());
        for entry in inventory.into_iter().flat_map(|inventory| &inventory.entries) {
            let Some(id) = ObjectId::parse(&entry.id) else { continue };
            let reference = ObjectRef { id, version: entry.v.clone() };
            // A kind that cannot be found now is looked for again with the next pass.
            let Ok(kind) = cluster.resource(&reference).await else { continue };
            runtime.hub().watch(WatchSpec::metadata(kind).labelled(NAME));
        }
    }
}

fn release(namespace: &str, name: &str) -> Key {
    Key::new(HelmRelease::GROUP, HelmRelease::KIND, namespace, name)
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
