//! Objects of releases are watched: a change by somebody else makes the release due at once.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fl_api::Resource;
use fl_api::helm::HelmRelease;
use fl_apply::{Cluster, Fingerprint, ObjectId, ObjectRef, Observer};
use fl_runtime::{Change, Key, Kind, Live, Metrics, Runtime, WatchSpec};
use serde_json::Value;

use crate::spec::Asked;

const NAME: &str = "helm.toolkit.fluxcd.io/name";
const NAMESPACE: &str = "helm.toolkit.fluxcd.io/namespace";
/// The news of a write may come before its answer: so long the answer is waited for.
const ANSWER: Duration = Duration::from_millis(200);

/// Knows which releases want to hear of changes, and which changes are the engine's own.
pub(crate) struct Watching {
    metrics: Metrics,
    releases: Mutex<HashSet<Key>>,
    /// What we wrote last, by uid.
    own: Mutex<HashMap<String, Fingerprint>>,
}

impl std::fmt::Debug for Watching {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watching").finish_non_exhaustive()
    }
}

impl Observer for Watching {
    fn answered(&self, method: &str, status: u16) {
        self.metrics.count_request(method, status);
    }

    fn wrote(&self, object: &Value) {
        let uid = object["metadata"]["uid"].as_str();
        // Only objects that are watched at all.
        let labelled = object["metadata"]["labels"].get(NAME).is_some();
        if let (Some(uid), true, Some(print)) = (uid, labelled, Fingerprint::of(object)) {
            self.own.lock().unwrap_or_else(PoisonError::into_inner).insert(uid.to_owned(), print);
        }
    }
}

impl Watching {
    /// Wakes releases whose objects change. Once per process.
    pub(crate) fn start(runtime: &Runtime) -> Arc<Self> {
        let watching = Arc::new(Watching {
            metrics: runtime.metrics().clone(),
            releases: Mutex::default(),
            own: Mutex::default(),
        });
        let (weak, own) = (Arc::downgrade(&watching), runtime.clone());
        runtime.hub().listen(Arc::new(move |change: &Change| {
            let Some(watching) = weak.upgrade() else { return };
            if let Some((release, print)) = watching.disturbed(change) {
                let uid = change.object().uid().to_owned();
                let own = own.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(ANSWER).await;
                    if !watching.is_own(&uid, print.as_ref()) {
                        own.graph().wake(&release);
                    }
                });
            }
        }));
        watching
    }

    /// The release whose object was changed or deleted, when it cares, and what the object is now.
    fn disturbed(&self, change: &Change) -> Option<(Key, Option<Fingerprint>)> {
        let old = change.old.as_deref()?;
        if change.kind.group().ends_with(".toolkit.fluxcd.io") {
            return None;
        }
        let (name, namespace) = (old.label(NAME)?, old.label(NAMESPACE)?);
        let release = Key::new(HelmRelease::GROUP, HelmRelease::KIND, namespace, name);
        if !self.releases.lock().unwrap_or_else(PoisonError::into_inner).contains(&release) {
            return None;
        }
        match change.new.as_deref() {
            None => {
                self.own.lock().unwrap_or_else(PoisonError::into_inner).remove(old.uid());
                Some((release, None))
            }
            Some(new) => {
                let touched = new.uid() != old.uid() || spec_changed(old, new);
                touched.then(|| (release, Some(Fingerprint::of_meta(new.meta()))))
            }
        }
    }

    fn is_own(&self, uid: &str, print: Option<&Fingerprint>) -> bool {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        print.is_some_and(|print| own.get(uid) == Some(print))
    }

    /// Follows the objects of a release that wants its drift found, and of no other.
    pub(crate) async fn follow(&self, runtime: &Runtime, cluster: &Cluster, object: &HelmRelease) {
        let key =
            Key::new(HelmRelease::GROUP, HelmRelease::KIND, object.own_namespace(), &object.metadata.name);
        {
            let mut releases = self.releases.lock().unwrap_or_else(PoisonError::into_inner);
            if !object.detects_drift() {
                releases.remove(&key);
                return;
            }
            releases.insert(key);
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
