//! One watch per kind for the whole process.
//!
//! Controllers, the resolver and the graph share what is seen here; none opens a watch of its own. Objects are kept as
//! compact JSON beside their parsed metadata: a thousand idle objects cost what their text costs. Kinds of which only the
//! existence matters are watched by metadata alone.

mod live;
mod store;
mod watch;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

pub use live::Live;
pub use store::{Change, News, Store};

use crate::log::Log;
use fl_client::Client;
use fl_client::Kind;
use fl_client::Stop;

/// How much of each object is kept.
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
    /// Only objects with these labels; for kinds of which there are too many.
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
pub type Listener = Arc<dyn Fn(&Change) + Send + Sync>;

/// The watches of one cluster. Clones share them.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    cluster: Client,
    /// Watch one namespace only.
    namespace: Option<String>,
    stop: Stop,
    log: Log,
    watches: Mutex<HashMap<(Kind, String), Watched>>,
    listeners: Mutex<Arc<[Listener]>>,
}

struct Watched {
    store: Arc<Store>,
    content: Content,
    stop: Stop,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

impl Hub {
    pub fn new(cluster: Client, namespace: Option<String>, stop: Stop, log: Log) -> Self {
        Hub {
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

    /// Calls `listener` with every change from now on.
    pub fn listen(&self, listener: Listener) {
        let mut listeners = self.inner.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        *listeners = listeners.iter().cloned().chain([listener]).collect();
    }

    /// The store of a kind, watched from the first call on. A later call that needs more than the first gets it: the watch
    /// is opened anew with full content.
    pub fn watch(&self, spec: WatchSpec) -> Arc<Store> {
        let mut watches = self.inner.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let id = (spec.kind.clone(), spec.label_selector.clone());
        match watches.get(&id) {
            Some(watched) if watched.content >= spec.content => return watched.store.clone(),
            Some(watched) => watched.stop.now(),
            None => {}
        }
        let store = Arc::new(Store::new(spec.kind.clone()));
        let stop = Stop::default();
        let hub = self.clone();
        let (task_store, task_stop, content) = (store.clone(), stop.clone(), spec.content);
        tokio::spawn(async move {
            tokio::select! {
                () = watch::run(&hub, &spec, &task_store) => {}
                () = task_stop.stopped() => {}
                () = hub.inner.stop.stopped() => {}
            }
        });
        watches.insert(id, Watched { store: store.clone(), content, stop });
        store
    }

    /// Ends a watch that nobody needs any more.
    pub fn unwatch(&self, kind: &Kind, label_selector: &str) {
        let mut watches = self.inner.watches.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watched) = watches.remove(&(kind.clone(), label_selector.to_owned())) {
            watched.stop.now();
        }
    }

    /// The store of a kind that is being watched.
    pub fn store(&self, kind: &Kind) -> Option<Arc<Store>> {
        let watches = self.inner.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.get(&(kind.clone(), String::new())).map(|w| w.store.clone())
    }

    /// Whether all watches have seen their kinds once.
    pub fn synced(&self) -> bool {
        let watches = self.inner.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.values().all(|w| w.store.synced())
    }

    pub fn cluster(&self) -> &Client {
        &self.inner.cluster
    }

    /// Takes over the answer to a write of ours, so that nobody has to wait for the watch to tell it.
    pub fn written(&self, kind: &Kind, object: serde_json::Value) {
        let Some(store) = self.store(kind) else { return };
        let content = {
            let watches = self.inner.watches.lock().unwrap_or_else(PoisonError::into_inner);
            watches.get(&(kind.clone(), String::new())).map(|w| w.content)
        };
        // An object that left with this write is the watch's to report.
        let gone = object["metadata"]["deletionTimestamp"].is_string()
            && object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if gone || store.get_by_meta(&object).is_none() {
            return;
        }
        if let Ok(live) = Live::new(kind, object, content == Some(Content::Full))
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
