//! Watches applied objects: drift enqueues the owner at once, and unchanged objects need no request.
//!
//! One watch per kind, metadata only, of objects with the owner label. An object has drifted when it differs from what was
//! applied last (its [`Fingerprint`]) and still names its owner. An object that another owner took over has not.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fl_apply::{
    ChangeSet, Cluster, Fingerprint, Inventory, LastApplied, LiveVersions, Lookup, ObjectId, ObjectRef,
    Observer,
};
use fl_runtime::{CachedObject, Change, Key, Runtime, Store, WatchSpec};
use futures::FutureExt as _;
use serde_json::Value;
use tokio::time::Instant;

/// This many corrections of one object within [`CORRECTION_WINDOW`] are a correction loop.
const MAX_CORRECTIONS: usize = 5;
const CORRECTION_WINDOW: Duration = Duration::from_secs(60);
/// How long drift of an object in a correction loop is left to the interval; doubled while the loop goes on.
const MIN_CORRECTION_BACKOFF: Duration = Duration::from_secs(60);
const MAX_CORRECTION_BACKOFF: Duration = Duration::from_secs(3600);

/// The kind of the owners, and how their objects name them.
#[derive(Clone, Copy, Debug)]
pub struct OwnerKind {
    pub group: &'static str,
    pub kind: &'static str,
    /// Label with the owner's name.
    pub name_label: &'static str,
    /// Label with the owner's namespace.
    pub namespace_label: &'static str,
    /// How long a change waits for the response to a write of our own before it counts as drift. Zero where writes are
    /// recorded by the apply engine itself.
    pub confirm_after: Duration,
}

/// An object that another field manager keeps changing back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorrectionLoop {
    pub object: ObjectRef,
    /// The other field manager.
    pub manager: String,
    /// How long drift of the object is corrected at the interval only.
    pub backoff: Duration,
}

#[derive(Default)]
struct Corrections {
    recent: Vec<Instant>,
    suspended_until: Option<Instant>,
    backoff: Duration,
}

/// What is known about the objects of one owner.
#[derive(Default)]
struct OwnerState {
    last_applied: Arc<LastApplied>,
    /// The inventory; none before the first apply of this process.
    objects: Option<HashSet<ObjectId>>,
    /// Whether changes count as drift: the last reconcile succeeded, or the owner detects drift.
    detects_drift: bool,
    /// When all objects were compared with the API server last.
    compared: Option<Instant>,
    corrections: HashMap<ObjectId, Corrections>,
}

/// Watches the objects of all owners of one kind on the engine's own cluster.
pub struct OwnedObjectWatcher {
    runtime: Runtime,
    owner: OwnerKind,
    enabled: bool,
    owners: Mutex<HashMap<Key, OwnerState>>,
    stores: Mutex<HashMap<(String, String), Arc<Store>>>,
}

impl std::fmt::Debug for OwnedObjectWatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnedObjectWatcher").field("owner", &self.owner.kind).finish_non_exhaustive()
    }
}

impl OwnedObjectWatcher {
    /// Starts watching; with `enabled` off it only keeps last-applied states.
    #[must_use]
    pub fn start(runtime: &Runtime, owner: OwnerKind, enabled: bool) -> Arc<Self> {
        let watcher = Arc::new(OwnedObjectWatcher {
            runtime: runtime.clone(),
            owner,
            enabled,
            owners: Mutex::default(),
            stores: Mutex::default(),
        });
        if enabled {
            let weak = Arc::downgrade(&watcher);
            runtime.informers().listen(Arc::new(move |change| {
                if let Some(watcher) = weak.upgrade() {
                    watcher.on_change(change);
                }
            }));
        }
        watcher
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<Key, OwnerState>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stores(&self) -> MutexGuard<'_, HashMap<(String, String), Arc<Store>>> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many owners have state; for tests of its bounds.
    pub fn tracked_owners(&self) -> usize {
        self.owners().len()
    }

    /// The last-applied state of an owner's objects.
    pub fn last_applied(&self, owner: &Key) -> Arc<LastApplied> {
        self.owners().entry(owner.clone()).or_default().last_applied.clone()
    }

    /// Sets whether an owner detects drift at all. Nothing is kept for one that does not.
    pub fn set_drift_detection(&self, owner: &Key, detects: bool) {
        if detects {
            self.owners().entry(owner.clone()).or_default().detects_drift = true;
        } else {
            self.owners().remove(owner);
        }
    }

    /// Records the result of a reconcile: changes count as drift only after a successful one, and a failed one compares
    /// all objects next time.
    pub fn reconciled(&self, owner: &Key, ready: bool) {
        if let Some(state) = self.owners().get_mut(owner) {
            state.detects_drift = ready;
            if !ready {
                state.compared = None;
            }
        }
    }

    /// Watches the kinds of an inventory.
    pub fn watch(&self, owner: &Key, inventory: &Inventory, cluster: &Cluster) {
        let ids: HashSet<ObjectId> = inventory.objects().iter().map(|o| o.id.clone()).collect();
        {
            let mut owners = self.owners();
            let state = owners.entry(owner.clone()).or_default();
            state.last_applied.retain(|id| ids.contains(id));
            state.corrections.retain(|id, _| ids.contains(id));
            state.objects = Some(ids);
        }
        if !self.enabled {
            return;
        }
        for object in inventory.objects() {
            let id = (object.id.group.clone(), object.id.kind.clone());
            if self.stores().contains_key(&id) {
                continue;
            }
            // The kind was applied a moment ago, so discovery answers from its cache; if not, the next reconcile watches it.
            let Some(Ok(kind)) = cluster.resource(object).now_or_never() else { continue };
            let spec = WatchSpec::metadata(kind).labelled(self.owner.name_label);
            let store = self.runtime.informers().watch(spec);
            self.stores().insert(id, store);
        }
    }

    /// Records that all objects were compared with the API server.
    pub fn compared(&self, owner: &Key) {
        self.owners().entry(owner.clone()).or_default().compared = Some(Instant::now());
    }

    /// Whether all objects are to be compared with the API server, whatever the watches say.
    pub fn comparison_is_due(&self, owner: &Key, every: Duration) -> bool {
        self.owners().get(owner).and_then(|state| state.compared).is_none_or(|at| at.elapsed() >= every)
    }

    /// Drops the state of an owner.
    pub fn remove(&self, owner: &Key) {
        self.owners().remove(owner);
    }

    /// Counts drift corrections. Returns the objects that have entered a correction loop; their drift no longer enqueues
    /// the owner for a while.
    pub fn corrected(&self, owner: &Key, changes: &ChangeSet) -> Vec<CorrectionLoop> {
        let now = Instant::now();
        let mut loops = Vec::new();
        let mut owners = self.owners();
        let state = owners.entry(owner.clone()).or_default();
        for change in &changes.entries {
            let Some(manager) = &change.fought_by else { continue };
            let corrections = state.corrections.entry(change.object.id.clone()).or_default();
            corrections.recent.retain(|at| now.duration_since(*at) < CORRECTION_WINDOW);
            corrections.recent.push(now);
            if corrections.recent.len() < MAX_CORRECTIONS {
                continue;
            }
            corrections.recent.clear();
            corrections.backoff =
                (corrections.backoff * 2).clamp(MIN_CORRECTION_BACKOFF, MAX_CORRECTION_BACKOFF);
            corrections.suspended_until = Some(now + corrections.backoff);
            loops.push(CorrectionLoop {
                object: change.object.clone(),
                manager: manager.clone(),
                backoff: corrections.backoff,
            });
        }
        loops
    }

    fn on_change(&self, change: &Change) {
        if change.kind.kind() == self.owner.kind && change.kind.group() == self.owner.group {
            if change.new.is_none() {
                self.remove(&change.object().key());
            }
            return;
        }
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        let Some(owner) = self.owner_of(old).or_else(|| self.owner_of(new)) else { return };
        let id = object_id(change);
        if !self.has_drifted(&owner, &id, old, new) {
            return;
        }
        if self.owner.confirm_after.is_zero() {
            self.runtime.graph().trigger(&owner);
            return;
        }
        let (runtime, confirm_after) = (self.runtime.clone(), self.owner.confirm_after);
        let live = new.map(|object| Fingerprint::of_meta(object.meta()));
        let last_applied = self.owners().get(&owner).map(|state| state.last_applied.clone());
        tokio::spawn(async move {
            tokio::time::sleep(confirm_after).await;
            let own = live.is_some() && last_applied.and_then(|applied| applied.seen(&id)) == live;
            if !own {
                runtime.graph().trigger(&owner);
            }
        });
    }

    fn has_drifted(
        &self,
        owner: &Key,
        id: &ObjectId,
        old: Option<&CachedObject>,
        new: Option<&CachedObject>,
    ) -> bool {
        let owners = self.owners();
        let Some(state) = owners.get(owner).filter(|state| state.detects_drift) else { return false };
        if state.objects.as_ref().is_some_and(|objects| !objects.contains(id)) {
            return false;
        }
        let suspended = state.corrections.get(id).and_then(|corrections| corrections.suspended_until);
        if suspended.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        let known = state.last_applied.seen(id).or_else(|| old.map(|old| Fingerprint::of_meta(old.meta())));
        match (new, known) {
            // An object that this process neither applied nor saw before.
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(new), Some(known)) => {
                let taken_over = self.owner_of(Some(new)).is_some_and(|other| other != *owner);
                !taken_over && !new.deleting() && Fingerprint::of_meta(new.meta()) != known
            }
        }
    }

    /// The owner that an object's labels name.
    fn owner_of(&self, object: Option<&CachedObject>) -> Option<Key> {
        let object = object?;
        let (name, namespace) =
            (object.label(self.owner.name_label)?, object.label(self.owner.namespace_label)?);
        Some(Key::new(self.owner.group, self.owner.kind, namespace, name))
    }
}

fn object_id(change: &Change) -> ObjectId {
    let object = change.object();
    ObjectId {
        group: change.kind.group().to_owned(),
        kind: change.kind.kind().to_owned(),
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
    }
}

/// Records the writes of controllers that do not apply through the apply engine.
impl Observer for OwnedObjectWatcher {
    fn wrote(&self, object: &Value) {
        let label = |key: &str| object["metadata"]["labels"][key].as_str();
        let (Some(name), Some(namespace)) = (label(self.owner.name_label), label(self.owner.namespace_label))
        else {
            return;
        };
        let key = Key::new(self.owner.group, self.owner.kind, namespace, name);
        let Some(last_applied) = self.owners().get(&key).map(|state| state.last_applied.clone()) else {
            return;
        };
        if let (Ok(reference), Some(live)) = (ObjectRef::of(object), Fingerprint::of(object)) {
            last_applied.note(&reference.id, &[], live);
        }
    }
}

impl LiveVersions for OwnedObjectWatcher {
    fn version(&self, object: &ObjectRef) -> Lookup<Fingerprint, fl_apply::Error> {
        let stores = self.stores();
        let id = (object.id.group.clone(), object.id.kind.clone());
        match stores.get(&id).filter(|store| store.synced()) {
            Some(store) => {
                let live = store.get(&object.id.namespace, &object.id.name);
                live.map_or(Lookup::NotFound, |live| Lookup::Found(Fingerprint::of_meta(live.meta())))
            }
            None => Lookup::Unknown(fl_apply::Error::Timeout("no watch covers the kind yet".to_owned())),
        }
    }
}
