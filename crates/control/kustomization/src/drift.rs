//! Watching what was applied: drift wakes its Kustomization at once, and objects nobody touched cost no request.
//!
//! One watch per kind, metadata only, of objects that carry our label. A change is drift when the object is no longer the one that
//! was applied (its fingerprint) and still names its Kustomization as owner; an object handed to another owner is none.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fl_api::Resource as _;
use fl_api::kustomize::Kustomization;
use fl_apply::{ChangeSet, Cluster, Fingerprint, Inventory, Known, LiveVersions, ObjectId, ObjectRef};
use fl_runtime::{Change, EventKind, Key, Live, Pass, Runtime, Store, WatchSpec};
use tokio::time::Instant;

use crate::apply::SharedRemembered;

const NAME: &str = "kustomize.toolkit.fluxcd.io/name";
const NAMESPACE: &str = "kustomize.toolkit.fluxcd.io/namespace";
/// Corrections of one object in [`FIGHT_TIME`] that make a fight.
const FIGHT_ROUNDS: usize = 5;
const FIGHT_TIME: Duration = Duration::from_secs(60);
/// How long a fight is left alone at first; doubled each time it goes on.
const FIRST_PEACE: Duration = Duration::from_secs(60);
const LONGEST_PEACE: Duration = Duration::from_secs(3600);

/// What is known of the objects of all Kustomizations on the engine's own cluster.
pub(crate) struct Drift {
    runtime: Runtime,
    enabled: bool,
    owners: Mutex<HashMap<Key, Owned>>,
    stores: Mutex<HashMap<(String, String), Arc<Store>>>,
}

#[derive(Default)]
struct Owned {
    remembered: SharedRemembered,
    objects: HashSet<ObjectId>,
    /// Whether the last pass ended well. What changes during a pass, or after one that failed, is none of drift's business.
    ready: bool,
    /// When everything was compared last.
    full_pass: Option<Instant>,
    corrections: HashMap<ObjectId, Fight>,
}

#[derive(Default)]
struct Fight {
    rounds: Vec<Instant>,
    until: Option<Instant>,
    peace: Duration,
}

impl Drift {
    pub(crate) fn start(runtime: &Runtime, enabled: bool) -> Arc<Self> {
        let drift = Arc::new(Drift {
            runtime: runtime.clone(),
            enabled,
            owners: Mutex::default(),
            stores: Mutex::default(),
        });
        if enabled {
            let weak = Arc::downgrade(&drift);
            runtime.hub().listen(Arc::new(move |change| {
                if let Some(drift) = weak.upgrade() {
                    drift.on_change(change);
                }
            }));
        }
        drift
    }

    /// What a Kustomization applied.
    pub(crate) fn remembered(&self, key: &Key) -> SharedRemembered {
        self.owners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(key.clone())
            .or_default()
            .remembered
            .clone()
    }

    /// Watches the kinds of an inventory.
    pub(crate) fn watch(&self, key: &Key, inventory: &Inventory, cluster: &Cluster) {
        let ids: HashSet<ObjectId> = inventory.objects().iter().map(|o| o.id.clone()).collect();
        {
            let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
            let owned = owners.entry(key.clone()).or_default();
            owned.remembered.retain(|id| ids.contains(id));
            owned.corrections.retain(|id, _| ids.contains(id));
            owned.objects = ids;
        }
        if !self.enabled {
            return;
        }
        for object in inventory.objects() {
            let id = (object.id.group.clone(), object.id.kind.clone());
            if self.stores.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&id) {
                continue;
            }
            // The kind was applied a moment ago, so its place is known without a request.
            let Some(Ok(kind)) = futures_now(cluster.resource(object)) else { continue };
            let store = self.runtime.hub().watch(WatchSpec::metadata(kind).labelled(NAME));
            self.stores.lock().unwrap_or_else(PoisonError::into_inner).insert(id, store);
        }
    }

    /// Notes that everything was compared.
    pub(crate) fn passed(&self, key: &Key) {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.entry(key.clone()).or_default().full_pass = Some(Instant::now());
    }

    /// Whether it is time to compare everything, whatever the watches say.
    pub(crate) fn full_pass_is_due(&self, key: &Key, every: Duration) -> bool {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(key).and_then(|o| o.full_pass).is_none_or(|at| at.elapsed() >= every)
    }

    /// After a pass: a Kustomization that failed compares everything next time.
    pub(crate) fn settle(&self, key: &Key, object: &Kustomization) {
        let ready = object.status.as_ref().and_then(|s| s.conditions.as_ref()).is_some_and(|list| {
            list.iter()
                .any(|c| c.r#type == "Ready" && c.status == fl_api::meta::condition::ConditionStatus::True)
        });
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(owned) = owners.get_mut(key) {
            owned.ready = ready;
            if !ready {
                owned.full_pass = None;
            }
        }
    }

    pub(crate) fn forget(&self, key: &Key) {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Counts corrections; an object that somebody else keeps changing is left alone for a while, and both are named.
    pub(crate) fn corrected(&self, key: &Key, changes: &ChangeSet, pass: &Pass<Kustomization>) {
        let now = Instant::now();
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let owned = owners.entry(key.clone()).or_default();
        for change in &changes.entries {
            let Some(other) = &change.fought_by else { continue };
            let fight = owned.corrections.entry(change.object.id.clone()).or_default();
            fight.rounds.retain(|at| now.duration_since(*at) < FIGHT_TIME);
            fight.rounds.push(now);
            if fight.rounds.len() < FIGHT_ROUNDS {
                continue;
            }
            fight.rounds.clear();
            fight.peace = (fight.peace * 2).clamp(FIRST_PEACE, LONGEST_PEACE);
            fight.until = Some(now + fight.peace);
            let message = format!(
                "{} is changed again and again by '{other}'; its drift is corrected only at the interval for the next {}. Leave the field to one of the two, for example with spec.ignore",
                change.object,
                crate::status::go(fight.peace)
            );
            pass.log.error(&message, "two managers fight over an object");
            pass.event(EventKind::Warning, "DriftFight", &message);
        }
    }

    fn on_change(&self, change: &Change) {
        let object = change.object();
        let Some(owner) = owner_of(change.old.as_deref()).or_else(|| owner_of(change.new.as_deref())) else {
            return;
        };
        let id = ObjectId {
            group: change.kind.group().to_owned(),
            kind: change.kind.kind().to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
        };
        let drifted = {
            let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(owned) = owners.get(&owner).filter(|o| o.ready && o.objects.contains(&id)) else {
                return;
            };
            let peace = owned.corrections.get(&id).and_then(|f| f.until);
            if peace.is_some_and(|until| Instant::now() < until) {
                return;
            }
            let Some(seen) = owned.remembered.seen(&id) else { return };
            match change.new.as_deref() {
                // Another owner has it now: it was handed over.
                Some(new) if owner_of(Some(new)).is_some_and(|o| o != owner) => false,
                Some(new) if new.deleting() => false,
                Some(new) => Fingerprint::of_meta(new.meta()) != seen,
                None => true,
            }
        };
        if drifted {
            self.runtime.graph().wake(&owner);
        }
    }
}

/// The Kustomization an object's labels name.
fn owner_of(live: Option<&Live>) -> Option<Key> {
    let live = live?;
    let (name, namespace) = (live.label(NAME)?, live.label(NAMESPACE)?);
    Some(Key::new(Kustomization::GROUP, Kustomization::KIND, namespace, name))
}

impl LiveVersions for Drift {
    fn version(&self, object: &ObjectRef) -> Known<Fingerprint, fl_apply::Error> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let id = (object.id.group.clone(), object.id.kind.clone());
        match stores.get(&id).filter(|s| s.synced()) {
            Some(store) => {
                let live = store.get(&object.id.namespace, &object.id.name);
                live.map_or(Known::Absent, |live| Known::Present(Fingerprint::of_meta(live.meta())))
            }
            None => Known::Unknown(fl_apply::Error::Timeout("no watch covers the kind yet".to_owned())),
        }
    }
}

/// The result of a future that needs no waiting, if it is one.
fn futures_now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}
