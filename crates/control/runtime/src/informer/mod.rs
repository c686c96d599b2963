//! Informers: one list and watch per kind, shared by the whole process.
//!
//! Controllers, the source resolver and the graph read from these caches; none opens a watch of its own.
//! Objects are kept as compact JSON with parsed metadata. Kinds of which only the existence matters are
//! watched by metadata alone.

mod object;
mod store;
mod watch;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

pub use object::CachedObject;
pub use store::{Change, ChangeStream, Store};

use crate::log::Log;
use fl_client::Client;
use fl_client::Kind;
use fl_client::Shutdown;

/// How much of each object is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    Metadata,
    Full,
}

/// What to watch.
#[derive(Clone, Debug)]
pub struct WatchSpec {
    pub kind: Kind,
    pub content: Content,
    /// Label selector, for kinds with many objects.
    pub label_selector: String,
}

impl WatchSpec {
    pub fn full(kind: Kind) -> Self {
        WatchSpec { kind, content: Content::Full, label_selector: String::new() }
    }

    pub fn metadata(kind: Kind) -> Self {
        WatchSpec { kind, content: Content::Metadata, label_selector: String::new() }
    }

    #[must_use]
    pub fn labelled(mut self, selector: &str) -> Self {
        selector.clone_into(&mut self.label_selector);
        self
    }
}

/// Called with every change, in the order in which the server reports them for a kind. Must not block.
pub type EventHandler = Arc<dyn Fn(&Change) + Send + Sync>;

/// The informers of one cluster. Clones share them.
#[derive(Clone)]
pub struct Informers {
    inner: Arc<Inner>,
}

struct Inner {
    cluster: Client,
    /// Watch one namespace only.
    namespace: Option<String>,
    stop: Shutdown,
    log: Log,
    watches: Mutex<HashMap<(Kind, String), InformerState>>,
    listeners: Mutex<Arc<[EventHandler]>>,
}

struct InformerState {
    store: Arc<Store>,
    content: Content,
    stop: Shutdown,
}

impl std::fmt::Debug for Informers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

impl Informers {
    pub fn new(cluster: Client, namespace: Option<String>, stop: Shutdown, log: Log) -> Self {
        Informers {
            inner: Arc::new(Inner {
                cluster,
                namespace,
                stop,
                log,
                watches: Mutex::default(),
                listeners: Mutex::new(Arc::new([])),
            }),
        }
    }

    /// Calls `listener` with every later change.
    pub fn listen(&self, listener: EventHandler) {
        let mut listeners = self.inner.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        *listeners = listeners.iter().cloned().chain([listener]).collect();
    }

    /// The cache of a kind; the first call opens the watch. A later call that needs full content reopens it.
    pub fn watch(&self, spec: WatchSpec) -> Arc<Store> {
        let mut watches = self.inner.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let id = (spec.kind.clone(), spec.label_selector.clone());
        match watches.get(&id) {
            Some(watched) if watched.content >= spec.content => return watched.store.clone(),
            Some(watched) => watched.stop.now(),
            None => {}
        }
        let store = Arc::new(Store::new(spec.kind.clone()));
        let stop = Shutdown::default();
        let informers = self.clone();
        let (task_store, task_stop, content) = (store.clone(), stop.clone(), spec.content);
        tokio::spawn(async move {
            tokio::select! {
                () = watch::run(&informers, &spec, &task_store) => {}
                () = task_stop.stopped() => {}
                () = informers.inner.stop.stopped() => {}
            }
        });
        watches.insert(id, InformerState { store: store.clone(), content, stop });
        store
    }

    /// Closes a watch.
    pub fn unwatch(&self, kind: &Kind, label_selector: &str) {
        let mut watches = self.inner.watches.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watched) = watches.remove(&(kind.clone(), label_selector.to_owned())) {
            watched.stop.now();
        }
    }

    /// The cache of a kind that is watched.
    pub fn store(&self, kind: &Kind) -> Option<Arc<Store>> {
        let watches = self.inner.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.get(&(kind.clone(), String::new())).map(|w| w.store.clone())
    }

    /// Whether all watches have synced.
    pub fn synced(&self) -> bool {
        let watches = self.inner.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.values().all(|w| w.store.synced())
    }

    pub fn cluster(&self) -> &Client {
        &self.inner.cluster
    }

    /// Puts the response to a write into the cache, ahead of the watch event.
    pub fn written(&self, kind: &Kind, object: serde_json::Value) {
        let Some(store) = self.store(kind) else { return };
        let content = {
            let watches = self.inner.watches.lock().unwrap_or_else(PoisonError::into_inner);
            watches.get(&(kind.clone(), String::new())).map(|w| w.content)
        };
        // A write that removed the object is left to the watch.
        let gone = object["metadata"]["deletionTimestamp"].is_string()
            && object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if gone || store.get_by_meta(&object).is_none() {
            return;
        }
        if let Ok(live) = CachedObject::new(kind, object, content == Some(Content::Full))
            && let Some(change) = store.put(live)
        {
            self.publish(&change);
        }
    }

    fn publish(&self, change: &Change) {
        let listeners = self.inner.listeners.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for listener in listeners.iter() {
            listener(change);
        }
    }
}
