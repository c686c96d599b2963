//! The driver: what all controllers do the same way, around what each does its own way.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::failure::{EventKind, Next, Outcome};
use crate::graph::Edge;
use crate::hub::{Change, Live, Store, WatchSpec};
use crate::log::Log;
use crate::object::{FINALIZER, REQUESTED_AT, Reconciled};
use crate::pass::{self, Pass, Progress};
use crate::patch::Writer;
use crate::queue::{Target, WorkQueue};
use crate::runtime::Runtime;
use crate::slot::{self, Slots};
use fl_client::Error as ClientError;
use fl_client::KnownSecrets;
use fl_client::{Key, Kind};

/// Which part of a pass has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The object is suspended; nothing was done.
    Suspended,
    /// It is being deleted and could not be let go yet.
    Deleting,
    /// [`Reconciler::reconcile`] has run.
    Reconciled,
}

/// Names under which a controller acts.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// In logs and metrics: `gitrepository`.
    pub controller: &'static str,
    /// The component of its events: `source-controller`.
    pub component: &'static str,
    /// Owner of the fields it writes.
    pub field_manager: &'static str,
}

/// What a controller is beside the driver. Controllers are thin: read, call engines, apply, report.
pub trait Reconciler: Send + Sync + 'static {
    type Object: Reconciled;

    fn names(&self) -> Names;

    /// Types of conditions that are this controller's to write.
    fn owned_conditions(&self) -> &'static [&'static str];

    /// The finalizer put on an object before anything else is done for it.
    fn finalizer(&self, _object: &Self::Object) -> Option<&'static str> {
        Some(FINALIZER)
    }

    /// What the object refers to. Asked whenever its spec changes; a change over there makes it due.
    fn edges(&self, _object: &Self::Object) -> Vec<Edge> {
        Vec::new()
    }

    /// The API server the object is applied to, if it is not the engine's own. Each has a limit of its own on passes at once.
    fn target(&self, _object: &Self::Object) -> Option<Target> {
        None
    }

    /// Brings the world in line with the spec. Status and conditions are set on `pass.object` and written afterwards.
    fn reconcile(&self, pass: &mut Pass<Self::Object>) -> impl Future<Output = Outcome> + Send;

    /// Undoes what was done for an object that is to go. The finalizer is removed when it succeeds.
    fn delete(&self, pass: &mut Pass<Self::Object>) -> impl Future<Output = Result<(), Outcome>> + Send;

    /// Last touch to the status before it is written; runs however the pass ended, but not after a deletion.
    fn finish(&self, pass: &mut Pass<Self::Object>, end: End, outcome: &mut Outcome);
}

/// A controller as the runtime sees it.
pub(crate) trait Driver: Send + Sync {
    fn kind(&self) -> &Kind;
    fn on_change(&self, change: &Change);
    fn queue(&self) -> &WorkQueue;
    fn concurrent(&self) -> usize;
    fn controller(&self) -> &'static str;
    fn run<'a>(&'a self, runtime: &'a Runtime, key: &'a Key) -> BoxFuture<'a, Outcome>;
}

pub(crate) struct Controller<R: Reconciler> {
    reconciler: R,
    kind: Kind,
    queue: WorkQueue,
    concurrent: usize,
    store: OnceLock<Arc<Store>>,
    runtime: Runtime,
}

impl<R: Reconciler> Controller<R> {
    pub(crate) fn new(runtime: &Runtime, reconciler: R, concurrent: usize) -> Self {
        let options = runtime.options();
        Controller {
            reconciler,
            kind: Kind::of::<R::Object>(),
            queue: WorkQueue::new(options.min_retry_delay, options.max_retry_delay),
            concurrent: concurrent.max(1),
            store: OnceLock::new(),
            runtime: runtime.clone(),
        }
    }

    /// Opens the watch; changes arrive from here on. A reference may have opened it before: what it has seen until now was
    /// told to nobody here.
    pub(crate) fn watch(&self) {
        let store = self.runtime.hub().watch(WatchSpec::full(self.kind.clone()));
        let _ = self.store.set(store.clone());
        for live in store.list(None) {
            self.on_change(&Change { kind: self.kind.clone(), old: None, new: Some(live) });
        }
    }

    fn ours(&self, live: &Live) -> bool {
        let Some(selector) = &self.runtime.options().watch_label_selector else { return true };
        selector.matches(|key| live.label(key))
    }

    async fn pass(&self, key: &Key, live: &Live, object: R::Object, secrets: KnownSecrets) -> Outcome {
        let names = self.reconciler.names();
        let log = self.runtime.log().with_named([
            ("controller".to_owned(), names.controller.into()),
            ("controllerGroup".to_owned(), key.group().into()),
            ("controllerKind".to_owned(), key.kind().into()),
            (key.kind().to_owned(), json!({"name": key.name(), "namespace": key.namespace()})),
            ("namespace".to_owned(), key.namespace().into()),
            ("name".to_owned(), key.name().into()),
            ("reconcileID".to_owned(), uuid::Uuid::new_v4().to_string().into()),
        ]);
        let log = log.masking(&secrets);
        let before = json!({"metadata": object.meta(), "status": object.status_value()});
        let owned = self.reconciler.owned_conditions();
        let writer =
            Writer::new(self.kind.clone(), names.field_manager, owned, secrets.clone(), before, || {
                live.value()
            });
        let mut pass = Pass {
            original: Arc::new(object.clone()),
            object,
            log,
            runtime: self.runtime.clone(),
            secrets,
            started: Instant::now(),
            component: names.component,
            kind: self.kind.clone(),
            writer: Arc::new(tokio::sync::Mutex::new(writer)),
            progress: Arc::new(Progress::default()),
        };
        if live.deleting() {
            return self.delete(&mut pass).await;
        }
        if let Some(finalizer) = self.reconciler.finalizer(&pass.object)
            && !pass.object.has_finalizer(finalizer)
        {
            pass.object.meta_mut().finalizers.get_or_insert_default().push(finalizer.to_owned());
            if let Err(error) = pass.save_metadata().await {
                return lost(&pass.log, &error);
            }
        }
        if pass.object.suspended() {
            pass.log.info("reconciliation is suspended for this object");
            return self.close(&mut pass, End::Suspended, Outcome::never()).await;
        }
        let (runtime, kind, log) = (pass.runtime.clone(), pass.kind.clone(), pass.log.clone());
        let (writer, progress) = (pass.writer.clone(), pass.progress.clone());
        let due = || {
            let (waiting, _, running) = self.queue.sizes();
            waiting + running
        };
        let remote = self.reconciler.target(&pass.object).is_some();
        // Boxed: a reconcile is large, and every wrapper around it would copy it on the stack.
        let reconcile = AssertUnwindSafe(self.reconciler.reconcile(&mut pass).boxed()).catch_unwind();
        let outcome = tokio::select! {
            outcome = unless_local(remote, reconcile) => outcome,
            () = pass::report(&runtime, &kind, &writer, &progress, &log, due) => unreachable!("reporting never ends"),
        };
        let Ok(outcome) = outcome else {
            pass.log.error("a bug in this engine", "the pass ended by a panic; please report it");
            return Outcome { next: Next::Backoff, error: None };
        };
        self.close(&mut pass, End::Reconciled, outcome).await
    }

    async fn delete(&self, pass: &mut Pass<R::Object>) -> Outcome {
        let Some(finalizer) =
            self.reconciler.finalizer(&pass.object).filter(|f| pass.object.has_finalizer(f))
        else {
            return Outcome::never();
        };
        let remote = self.reconciler.target(&pass.object).is_some();
        let deleted = AssertUnwindSafe(self.reconciler.delete(pass).boxed()).catch_unwind();
        let deleted = unless_local(remote, deleted).await;
        match deleted {
            Ok(Ok(())) => {
                if let Some(finalizers) = &mut pass.object.meta_mut().finalizers {
                    finalizers.retain(|f| f != finalizer);
                }
                match pass.save_metadata().await {
                    Err(error) if !error.is_not_found() => lost(&pass.log, &error),
                    _ => Outcome::never(),
                }
            }
            Ok(Err(outcome)) => self.close(pass, End::Deleting, outcome).await,
            Err(_) => {
                pass.log.error("a bug in this engine", "the deletion ended by a panic; please report it");
                Outcome { next: Next::Backoff, error: None }
            }
        }
    }

    /// Writes the status once.
    async fn close(&self, pass: &mut Pass<R::Object>, end: End, mut outcome: Outcome) -> Outcome {
        self.reconciler.finish(pass, end, &mut outcome);
        let saved = match pass.save_metadata().await {
            Ok(()) => pass.save().await,
            Err(error) => Err(error),
        };
        match saved {
            // Deleted meanwhile: nothing to report to.
            Err(error) if error.is_not_found() => Outcome::never(),
            Err(error) => lost(&pass.log, &error),
            Ok(()) => {
                if let Some(error) = &outcome.error {
                    pass.log.error(error, "Reconciler error");
                }
                outcome
            }
        }
    }
}

/// Runs a step; one on another API server lets other passes of the controller work meanwhile.
async fn unless_local<T>(remote: bool, step: impl Future<Output = T>) -> T {
    if remote { slot::on_remote(step).await } else { step.await }
}

/// A write that did not get through.
fn lost(log: &Log, error: &ClientError) -> Outcome {
    if error.is_not_found() {
        return Outcome::never();
    }
    log.error(&error.to_string(), "Reconciler error");
    // The trouble is the API server's, not the object's: once it is back, nobody should wait for long.
    let next = if error.is_transient() { Next::Returning } else { Next::Backoff };
    Outcome { next, error: Some(error.to_string()) }
}

impl<R: Reconciler> Driver for Controller<R> {
    fn kind(&self) -> &Kind {
        &self.kind
    }

    fn queue(&self) -> &WorkQueue {
        &self.queue
    }

    fn concurrent(&self) -> usize {
        self.concurrent
    }

    fn controller(&self) -> &'static str {
        self.reconciler.names().controller
    }

    fn on_change(&self, change: &Change) {
        let key = change.object().key();
        let Some(new) = &change.new else {
            self.runtime.graph().set_edges(&key, Vec::new());
            self.queue.forget(&key);
            self.runtime.metrics().forget(&key);
            return;
        };
        if !self.ours(new) {
            self.runtime.graph().set_edges(&key, Vec::new());
            return;
        }
        let old = change.old.as_ref().filter(|o| o.uid() == new.uid() && self.ours(o));
        let spec_changed = old.is_none_or(|o| o.generation() != new.generation());
        if spec_changed && let Ok(object) = new.parse::<R::Object>() {
            self.runtime.graph().set_edges(&key, self.reconciler.edges(&object));
            self.queue.set_target(&key, self.reconciler.target(&object));
        }
        // A request counts when it comes or changes, not when it is taken back.
        let requested = new.annotation(REQUESTED_AT);
        let asked = requested.is_some() && old.is_some_and(|o| o.annotation(REQUESTED_AT) != requested);
        if spec_changed || asked || new.deleting() && old.is_some_and(|o| !o.deleting()) {
            self.queue.add(key);
        }
    }

    fn run<'a>(&'a self, _runtime: &'a Runtime, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let store = self.store.get().expect("the watch is opened before work begins");
            let Some(live) = store.get(key.namespace(), key.name()) else {
                self.queue.forget(key);
                return Outcome::never();
            };
            match live.parse::<R::Object>() {
                Ok(object) => {
                    let public = [key.name(), key.namespace(), key.kind()];
                    let secrets = KnownSecrets::with_public_names(public);
                    let pass = self.pass(key, &live, object, secrets.clone());
                    secrets.during(pass).await
                }
                Err(error) => {
                    // An object that passed a laxer CRD. One event per change of it, and no retry.
                    let names = self.reconciler.names();
                    let about = crate::events::About {
                        kind: key.kind().to_owned(),
                        namespace: key.namespace().to_owned(),
                        name: key.name().to_owned(),
                        uid: live.uid().to_owned(),
                        api_version: self.kind.api_version(),
                        resource_version: live.resource_version().to_owned(),
                        ..Default::default()
                    };
                    let message = format!("the object cannot be read: {error}");
                    let recorder = self.runtime.recorder().named(names.component);
                    let text = KnownSecrets::default().mask(&message);
                    recorder.event(&about, EventKind::Warning, "InvalidObject", &text, Default::default());
                    self.runtime.log().error(&message, "Reconciler error");
                    Outcome::never()
                }
            }
        }
        .boxed()
    }
}

/// How long an object waits at most while the API server is away.
const RETURNING: Duration = Duration::from_secs(15);

/// Takes keys until the queue closes, as many at once as the controller may work on.
pub(crate) async fn work(runtime: Runtime, driver: Arc<dyn Driver>) {
    let slots = Slots::new(driver.concurrent());
    let mut passes = JoinSet::new();
    loop {
        let slot = runtime.starvation().watched(driver.as_ref(), slots.take()).await;
        while passes.try_join_next().is_some() {}
        let Some(key) = driver.queue().next().await else { break };
        if driver.queue().sizes().0 > driver.concurrent() {
            runtime.pressure().note();
        }
        passes.spawn(slot.hold(runtime.stop().clone(), one(runtime.clone(), driver.clone(), key)));
    }
    while passes.join_next().await.is_some() {}
}

/// One pass and what follows from it.
async fn one(runtime: Runtime, driver: Arc<dyn Driver>, key: Key) {
    let started = Instant::now();
    // Whatever happens in a pass, its object must stay in the queue: a panic anywhere in it is one more failure.
    let outcome = AssertUnwindSafe(driver.run(&runtime, &key)).catch_unwind().await.unwrap_or_else(|_| {
        let log = runtime.log().with([("object", key.to_string().into())]);
        log.error("a bug in this engine", "the end of a reconcile panicked; please report it");
        Outcome { next: Next::Backoff, error: None }
    });
    let result = match (&outcome.error, outcome.next) {
        (Some(_), _) | (None, Next::Backoff | Next::Returning) => "error",
        (None, Next::Now) => "requeue",
        (None, Next::Interval(_) | Next::After(_)) => "requeue_after",
        (None, Next::Never) => "success",
    };
    let failed = result == "error";
    runtime.metrics().pass(driver.controller(), &key, started.elapsed(), result, failed);
    let queue = driver.queue();
    if !matches!(outcome.next, Next::Backoff | Next::Returning) {
        queue.forgive(&key);
    }
    match outcome.next {
        Next::Interval(interval) => queue.add_after(key.clone(), runtime.jitter(interval)),
        Next::After(delay) => queue.add_after(key.clone(), delay),
        Next::Now => queue.add_after(key.clone(), Duration::ZERO),
        Next::Backoff => {
            queue.add_failed(key.clone(), Duration::MAX);
        }
        Next::Returning => {
            queue.add_failed(key.clone(), runtime.jitter(RETURNING));
        }
        Next::Never => {}
    }
    queue.done(&key);
}
