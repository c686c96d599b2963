//! The cache of one kind.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use fl_api::ObjectMeta;
use tokio::sync::watch;

use super::CachedObject;
use fl_client::Kind;

/// A change of an object. At least one side is present.
#[derive(Clone, Debug)]
pub struct Change {
    pub kind: Kind,
    pub old: Option<Arc<CachedObject>>,
    pub new: Option<Arc<CachedObject>>,
}

impl Change {
    /// The new state, or the old one of a deleted object.
    pub fn object(&self) -> &Arc<CachedObject> {
        self.new.as_ref().or(self.old.as_ref()).expect("a change has a side")
    }
}

type Objects = HashMap<String, HashMap<String, Arc<CachedObject>>>;

/// Whether `a` is newer than `b`. resourceVersions of one server are increasing numbers; if they are not
/// numbers, a different one counts as newer.
fn newer(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    if a.uid.as_deref().unwrap_or_default() != b.uid.as_deref().unwrap_or_default() {
        return true;
    }
    let a = a.resource_version.as_deref().unwrap_or_default();
    let b = b.resource_version.as_deref().unwrap_or_default();
    match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) => a > b,
        _ => a != b,
    }
}

/// Objects by namespace and name.
#[derive(Debug)]
pub struct Store {
    kind: Kind,
    objects: RwLock<Objects>,
    synced: watch::Sender<bool>,
    /// Counts changes, to wait for the next one.
    changes: watch::Sender<u64>,
}

/// Waits for changes in a set of stores.
#[derive(Debug)]
pub struct ChangeStream {
    stores: Vec<watch::Receiver<u64>>,
}

impl ChangeStream {
    /// Subscribes to later changes of these stores.
    pub(crate) fn of<'a>(stores: impl IntoIterator<Item = &'a Store>) -> Self {
        ChangeStream { stores: stores.into_iter().map(|store| store.changes.subscribe()).collect() }
    }

    /// Waits for the next change since the last call. Subscribing before reading the stores misses no change.
    pub async fn heard(&mut self) {
        if self.stores.is_empty() {
            return std::future::pending().await;
        }
        let waits = self.stores.iter_mut().map(|store| {
            Box::pin(async move {
                if store.changed().await.is_err() {
                    // The store was dropped.
                    std::future::pending::<()>().await;
                }
            })
        });
        futures::future::select_all(waits).await;
    }
}

impl Store {
    /// Changes of any object of this store, from now on.
    pub fn subscribe(&self) -> ChangeStream {
        ChangeStream::of([self])
    }

    pub(super) fn new(kind: Kind) -> Self {
        Store {
            kind,
            objects: RwLock::default(),
            synced: watch::Sender::new(false),
            changes: watch::Sender::new(0),
        }
    }

    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Whether the initial list is complete. Before that, a missing object means nothing.
    pub fn synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Waits for the initial list.
    pub async fn wait_synced(&self) {
        let mut receiver = self.synced.subscribe();
        let _ = receiver.wait_for(|synced| *synced).await;
    }

    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<CachedObject>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.get(namespace)?.get(name).cloned()
    }

    /// The object, waiting a moment for a watch event that creates it. Does not wait before the initial list
    /// is complete.
    pub async fn soon(
        &self,
        namespace: &str,
        name: &str,
        progress_delay: Duration,
    ) -> Option<Arc<CachedObject>> {
        let mut news = ChangeStream::of([self]);
        let come = async {
            loop {
                if let Some(live) = self.get(namespace, name) {
                    return live;
                }
                news.heard().await;
            }
        };
        if !self.synced() {
            return self.get(namespace, name);
        }
        tokio::time::timeout(progress_delay, come).await.ok()
    }

    /// The cached state of an object given as JSON.
    pub(super) fn get_by_meta(&self, object: &serde_json::Value) -> Option<Arc<CachedObject>> {
        let meta = &object["metadata"];
        self.get(meta["namespace"].as_str().unwrap_or_default(), meta["name"].as_str()?)
    }

    /// All objects of a namespace, or of all namespaces.
    pub fn list(&self, namespace: Option<&str>) -> Vec<Arc<CachedObject>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        match namespace {
            Some(namespace) => {
                objects.get(namespace).map_or_else(Vec::new, |o| o.values().cloned().collect())
            }
            None => objects.values().flat_map(|o| o.values().cloned()).collect(),
        }
    }

    pub fn len(&self) -> usize {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.values().map(HashMap::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn mark_synced(&self) {
        self.synced.send_replace(true);
    }

    /// Replaces the state if the new one is newer. Lists, watches and responses to writes overlap; a response
    /// may arrive after the watch event.
    pub(super) fn put(&self, live: CachedObject) -> Option<Change> {
        let live = Arc::new(live);
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let of_namespace = objects.entry(live.namespace().to_owned()).or_default();
        if of_namespace.get(live.name()).is_some_and(|known| !newer(live.meta(), known.meta())) {
            return None;
        }
        let old = of_namespace.insert(live.name().to_owned(), live.clone());
        drop(objects);
        self.changes.send_modify(|count| *count += 1);
        Some(Change { kind: self.kind.clone(), old, new: Some(live) })
    }

    /// Whether this state or a newer one is cached.
    pub(super) fn knows(&self, meta: &ObjectMeta) -> bool {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let of_namespace = objects.get(meta.namespace.as_deref().unwrap_or_default());
        of_namespace.and_then(|o| o.get(&meta.name)).is_some_and(|known| !newer(meta, known.meta()))
    }

    pub(super) fn remove(&self, namespace: &str, name: &str) -> Option<Change> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let of_namespace = objects.get_mut(namespace)?;
        let old = of_namespace.remove(name)?;
        if of_namespace.is_empty() {
            objects.remove(namespace);
        }
        drop(objects);
        self.changes.send_modify(|count| *count += 1);
        Some(Change { kind: self.kind.clone(), old: Some(old), new: None })
    }

    /// Names of all cached objects.
    pub(super) fn names(&self) -> Vec<(String, String)> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.iter().flat_map(|(ns, o)| o.keys().map(|n| (ns.clone(), n.clone()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn change_stream_reports_each_change_once() {
        let (one, two) = (Store::new(Kind::config_map()), Store::new(Kind::secret()));
        let live = |kind: &Kind, version: &str| {
            let object =
                json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": version}});
            CachedObject::new(kind, object, false).expect("an object")
        };
        let mut news = ChangeStream::of([&one, &two]);
        let mut quiet = async || tokio::time::timeout(Duration::from_secs(1), news.heard()).await.is_err();
        assert!(quiet().await);
        two.put(live(two.kind(), "2"));
        assert!(!quiet().await);
        assert!(quiet().await);
        two.put(live(two.kind(), "1"));
        assert!(quiet().await, "nothing new");
        one.put(live(one.kind(), "3"));
        two.remove("ns", "a");
        assert!(!quiet().await && !quiet().await);
        assert!(quiet().await);
        let nothing = tokio::time::timeout(Duration::from_secs(1), ChangeStream::of([]).heard()).await;
        assert!(nothing.is_err(), "no store is subscribed");
    }

    #[tokio::test(start_paused = true)]
    async fn late_objects_are_waited_for() {
        let store = Store::new(Kind::secret());
        let object =
            json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "1"}});
        let live = CachedObject::new(store.kind(), object, false).expect("an object");
        let begin = tokio::time::Instant::now();
        let moment = Duration::from_millis(50);
        assert!(store.soon("ns", "a", moment).await.is_none());
        assert!(begin.elapsed().is_zero(), "nothing was seen yet, so nothing can be late");
        store.mark_synced();
        assert!(store.soon("ns", "a", moment).await.is_none());
        assert!(begin.elapsed() >= moment);
        let (found, ()) = tokio::join!(store.soon("ns", "a", moment), async {
            tokio::time::sleep(moment / 2).await;
            store.put(live);
        });
        assert!(found.is_some());
        assert!(begin.elapsed() < 2 * moment);
    }
}
