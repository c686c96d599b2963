//! One watch for all who wait for objects of a kind in a namespace under one identity.
//!
//! Many owners that deliver at the same time would otherwise each open a watch for one object, and the server would hold each
//! change against all of them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use fl_client::{Event, EventType};
use futures::StreamExt as _;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};

use super::WaitState;
use crate::object_ref::PartialObject;
use crate::{Cluster, Error, ObjectRef};

/// How long a change is kept for somebody who begins to wait a moment after he saw the object.
const KEPT: Duration = Duration::from_secs(5);
/// How long a watch stays open for the next one who waits.
const LINGER: Duration = Duration::from_secs(2);

/// The watches of one API server that somebody listens to.
#[derive(Default)]
pub(crate) struct Watches {
    open: Mutex<HashMap<WatchScope, Weak<Watch>>>,
    written: Mutex<HashMap<WatchScope, Written>>,
}

/// The versions of what was written in a place lately. Whoever wrote it may come to wait for it.
#[derive(Debug)]
struct Written {
    oldest: u64,
    at: Instant,
    /// The oldest of the time before.
    before: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct WatchScope {
    user: Option<String>,
    api_version: String,
    kind: String,
    namespace: String,
}

impl WatchScope {
    fn of(cluster: &Cluster, object: &ObjectRef) -> Self {
        WatchScope {
            user: cluster.client().user().map(str::to_owned),
            api_version: object.api_version(),
            kind: object.id.kind.clone(),
            namespace: object.id.namespace.clone(),
        }
    }
}

/// A change of one object.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) name: String,
    pub(super) version: u64,
    /// The object, or none if it was deleted. Parsed on demand: most changes concern no waiter.
    object: Option<Box<RawValue>>,
}

impl Change {
    /// A line of a watch; none when it cannot be told what it is about, or which version.
    fn of(object: Box<RawValue>, gone: bool) -> Option<Self> {
        let PartialObject { metadata } = serde_json::from_str(object.get()).ok()?;
        let version = metadata.resource_version.parse().ok()?;
        Some(Change { name: metadata.name, version, object: (!gone).then_some(object) })
    }

    pub(super) fn seen(&self, whole: bool) -> WaitState {
        match &self.object {
            None => WaitState::NotFound,
            Some(object) => WaitState::read(object, whole),
        }
    }
}

/// Why a watch is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchEnd {
    Forbidden,
    /// The connection, or the version to begin with.
    Broken,
}

struct Watch {
    state: Mutex<State>,
}

struct State {
    /// What happened after this version to an object was told.
    since: u64,
    recent: HashMap<String, Arc<Change>>,
    /// Their names and versions by age, with those that a later change of their object replaced.
    ages: VecDeque<(Instant, String, u64)>,
    /// Who listens to which object: in a crowd each change is for one of hundreds, and nobody else is woken.
    inboxes: HashMap<String, Vec<Weak<PendingEvents>>>,
    /// Set when no more changes come.
    over: Option<WatchEnd>,
}

/// What a listener has not heard yet, of each object the last.
#[derive(Default)]
struct PendingEvents {
    changes: Mutex<Vec<Arc<Change>>>,
    bell: Notify,
}

impl PendingEvents {
    fn put(&self, change: &Arc<Change>) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        match changes.iter_mut().find(|waiting| waiting.name == change.name) {
            Some(waiting) => *waiting = change.clone(),
            None => changes.push(change.clone()),
        }
        drop(changes);
        self.bell.notify_one();
    }

    fn take(&self) -> Option<Arc<Change>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// Hears of changes of some objects.
pub(super) struct Listener {
    /// Whether it hears of everything after the version it asked for. If not, the objects have to be looked at once.
    pub(super) complete: bool,
    watch: Arc<Watch>,
    inbox: Arc<PendingEvents>,
}

impl Watches {
    /// Notes what was written: a watch that begins soon begins there, so that it serves all who wrote at the same time.
    pub(crate) fn wrote(&self, cluster: &Cluster, object: &ObjectRef, version: u64) {
        self.note(WatchScope::of(cluster, object), version);
    }

    fn note(&self, place: WatchScope, version: u64) {
        let now = Instant::now();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        match written.get_mut(&place) {
            Some(known) if now.duration_since(known.at) < KEPT => known.oldest = known.oldest.min(version),
            Some(known) => {
                let recent = now.duration_since(known.at) < 2 * KEPT;
                *known = Written { oldest: version, at: now, before: recent.then_some(known.oldest) };
            }
            None => {
                written.retain(|_, known| now.duration_since(known.at) < 2 * KEPT);
                written.insert(place, Written { oldest: version, at: now, before: None });
            }
        }
    }

    /// The oldest version that somebody may want to wait from.
    fn oldest(&self, place: &WatchScope) -> Option<u64> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let known = written.get(place).filter(|known| known.at.elapsed() < 2 * KEPT)?;
        Some(known.before.map_or(known.oldest, |before| before.min(known.oldest)))
    }

    /// Listens to objects of one kind and namespace from a version on.
    pub(super) fn listen<'a>(
        &self,
        cluster: &Cluster,
        objects: impl Iterator<Item = &'a ObjectRef> + Clone,
        since: u64,
    ) -> Option<Listener> {
        let object = objects.clone().next()?;
        let names = objects.map(|object| object.id.name.as_str());
        let place = WatchScope::of(cluster, object);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watch) = open.get(&place).and_then(Weak::upgrade)
            && let Some(listener) = Watch::join(watch, names.clone(), since)
        {
            return Some(listener);
        }
        open.retain(|_, watch| watch.strong_count() > 0);
        let since = self.oldest(&place).map_or(since, |oldest| oldest.min(since));
        let watch = Arc::new(Watch::since(since));
        open.insert(place, Arc::downgrade(&watch));
        let all = ObjectRef::new(&object.api_version(), &object.id.kind, &object.id.namespace, "");
        let listener = Watch::join(watch.clone(), names, since);
        tokio::spawn(run(cluster.clone(), all, since, watch));
        listener
    }
}

impl Watch {
    fn since(since: u64) -> Self {
        let state = State {
            since,
            recent: HashMap::new(),
            ages: VecDeque::new(),
            inboxes: HashMap::new(),
            over: None,
        };
        Watch { state: Mutex::new(state) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A listener, unless the watch is over.
    fn join<'a>(watch: Arc<Watch>, names: impl Iterator<Item = &'a str>, since: u64) -> Option<Listener> {
        let inbox = Arc::new(PendingEvents::default());
        let mut state = watch.state();
        if state.over.is_some() {
            return None;
        }
        let complete = state.since <= since;
        for name in names {
            if let Some(missed) = state.recent.get(name).filter(|c| complete && c.version > since) {
                inbox.put(missed);
            }
            state.inboxes.entry(name.to_owned()).or_default().push(Arc::downgrade(&inbox));
        }
        drop(state);
        Some(Listener { complete, watch, inbox })
    }

    fn tell(&self, change: Change) {
        let mut state = self.state();
        let now = Instant::now();
        while let Some((_, name, version)) =
            state.ages.pop_front_if(|(at, _, _)| now.duration_since(*at) >= KEPT)
        {
            // One that a later change replaced is missed by nobody.
            if state.recent.get(&name).is_some_and(|last| last.version == version) {
                state.recent.remove(&name);
                state.since = state.since.max(version);
            }
        }
        let change = Arc::new(change);
        state.ages.push_back((now, change.name.clone(), change.version));
        for inbox in state.inboxes.get(&change.name).into_iter().flatten().filter_map(Weak::upgrade) {
            inbox.put(&change);
        }
        state.recent.insert(change.name.clone(), change);
    }

    fn end(&self, over: WatchEnd) {
        let mut state = self.state();
        state.over = Some(over);
        let inboxes = std::mem::take(&mut state.inboxes);
        drop(state);
        for inbox in inboxes.into_values().flatten().filter_map(|inbox| inbox.upgrade()) {
            inbox.bell.notify_one();
        }
    }

    /// Ends when nobody listens; says whether it did.
    fn end_unheard(&self) -> bool {
        let mut state = self.state();
        let unheard = state.is_unheard();
        if unheard {
            state.over = Some(WatchEnd::Broken);
        }
        unheard
    }

    fn is_unheard(&self) -> bool {
        self.state().is_unheard()
    }
}

impl State {
    /// Whether nobody listens; forgets those who no longer do.
    fn is_unheard(&mut self) -> bool {
        self.inboxes.retain(|_, listening| {
            listening.retain(|inbox| inbox.strong_count() > 0);
            !listening.is_empty()
        });
        self.inboxes.is_empty()
    }
}

impl Listener {
    /// The next change.
    ///
    /// # Errors
    /// When no more will come.
    pub(super) async fn next(&self) -> Result<Arc<Change>, WatchEnd> {
        loop {
            if let Some(change) = self.inbox.take() {
                return Ok(change);
            }
            if let Some(over) = self.watch.state().over {
                return Err(over);
            }
            self.inbox.bell.notified().await;
        }
    }
}

async fn run(cluster: Cluster, all: ObjectRef, since: u64, watch: Arc<Watch>) {
    let mut events = match cluster.watch(&all, vec![("resourceVersion", since.to_string())]).await {
        Ok(events) => events,
        Err(Error::Client(error)) if error.is_forbidden() => return watch.end(WatchEnd::Forbidden),
        Err(_) => return watch.end(WatchEnd::Broken),
    };
    let mut look = tokio::time::interval_at(Instant::now() + LINGER, LINGER);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut unheard = false;
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            _ = look.tick() => {
                if unheard && watch.end_unheard() {
                    return;
                }
                unheard = watch.is_unheard();
                continue;
            }
        };
        let (object, gone) = match event {
            Some(Ok(Event { event: EventType::Bookmark, .. })) => continue,
            Some(Ok(Event { event, object })) => (object, event == EventType::Deleted),
            Some(Err(_)) | None => return watch.end(WatchEnd::Broken),
        };
        // Without numbers for versions nobody could tell what he has seen.
        let Some(change) = Change::of(object, gone) else { return watch.end(WatchEnd::Broken) };
        watch.tell(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> WatchScope {
        WatchScope {
            user: None,
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            namespace: name.to_owned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_late_hears_what_is_kept() {
        let watch = Arc::new(Watch::since(5));
        let tell = |name: &str, version: u64| {
            let text = format!(r#"{{"metadata": {{"name": "{name}", "resourceVersion": "{version}"}}}}"#);
            let object = RawValue::from_string(text).expect("JSON");
            watch.tell(Change::of(object, false).expect("named"));
        };
        let missed = |since: u64| {
            let listener = Watch::join(watch.clone(), ["a", "b", "c"].into_iter(), since).expect("open");
            let mut versions: Vec<u64> =
                std::iter::from_fn(|| listener.inbox.take()).map(|c| c.version).collect();
            versions.sort_unstable();
            (listener.complete, versions)
        };
        tell("a", 6);
        tell("b", 7);
        tokio::time::advance(KEPT / 2).await;
        tell("a", 8);
        assert_eq!(missed(6), (true, vec![7, 8]), "only the last of each");
        tokio::time::advance(KEPT / 2).await;
        tell("c", 9);
        assert_eq!(missed(7), (true, vec![8, 9]), "b is forgotten, a was told anew");
        assert_eq!(missed(6), (false, vec![]), "b was missed");
        let gone = RawValue::from_string(r#"{"metadata": {"name": "x"}}"#.to_owned()).expect("JSON");
        assert!(Change::of(gone, true).is_none(), "without a version");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_begins_with_the_oldest_recent_write() {
        let watches = Watches::default();
        for version in [12, 10, 11] {
            watches.note(place("a"), version);
        }
        assert_eq!((watches.oldest(&place("a")), watches.oldest(&place("b"))), (Some(10), None));
        tokio::time::advance(KEPT).await;
        watches.note(place("a"), 20);
        assert_eq!(watches.oldest(&place("a")), Some(10), "whoever wrote it may still come");
        tokio::time::advance(KEPT).await;
        watches.note(place("a"), 30);
        assert_eq!(watches.oldest(&place("a")), Some(20));
        tokio::time::advance(2 * KEPT).await;
        assert_eq!(watches.oldest(&place("a")), None);
        watches.note(place("b"), 40);
        assert_eq!(watches.written.lock().expect("not poisoned").len(), 1, "old places are forgotten");
    }
}
