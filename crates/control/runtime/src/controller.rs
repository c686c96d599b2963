//! The driver: what all controllers share around their [`Reconciler`].

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::concurrency::{self, ConcurrencyLimit};
use crate::context::{self, Context, Progress};
use crate::graph::Edge;
use crate::informer::{CachedObject, Change, Store, WatchSpec};
use crate::log::Log;
use crate::queue::{Target, WorkQueue};
use crate::resource::{FINALIZER, REQUESTED_AT, Reconciled};
use crate::result::{
    self, Completed, ConditionPolicy, EventKind, Outcome, Phase, ReconcileError, ReconcileResult, Requeue,
};
use crate::runtime::Runtime;
use crate::status_patch::Writer;
use fl_client::Error as ClientError;
use fl_client::KnownSecrets;
use fl_client::{Key, Kind};

/// Names of a controller.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// In logs and metrics: `gitrepository`.
    pub controller: &'static str,
    /// The component of its events: `source-controller`.
    pub component: &'static str,
    /// The field manager of its status and metadata writes.
    pub field_manager: &'static str,
}

/// A controller. Controllers are thin: dereference, validate, build, apply, report.
pub trait Reconciler: Send + Sync + 'static {
    type Object: Reconciled;

    fn names(&self) -> Names;

    /// The condition types that this controller owns.
    fn owned_conditions(&self) -> &'static [&'static str];

    /// The finalizer that is added before the first reconcile.
    fn finalizer(&self, _object: &Self::Object) -> Option<&'static str> {
        Some(FINALIZER)
    }

    /// The references of an object, read whenever its spec changes. A change of a referenced object enqueues
    /// it.
    fn edges(&self, _object: &Self::Object) -> Vec<Edge> {
        Vec::new()
    }

    /// The remote API server that an object is applied to, if any. Concurrency is limited per target.
    fn target(&self, _object: &Self::Object) -> Option<Target> {
        None
    }

    /// How conditions follow from the result of a reconcile.
    fn policy(&self, object: &Self::Object) -> ConditionPolicy;

    /// Brings the cluster or the artifact in line with the spec. Conditions that describe a step are set on
    /// `cx.object`; those that follow from the result are set by the driver.
    fn reconcile(&self, cx: &mut Context<Self::Object>) -> impl Future<Output = ReconcileResult> + Send;

    /// Undoes what was done for an object that is being deleted. The finalizer is removed when it succeeds.
    fn delete(
        &self,
        cx: &mut Context<Self::Object>,
    ) -> impl Future<Output = Result<(), ReconcileError>> + Send;

    /// Called after conditions were set from the result and before the status is written; not after a deletion.
    fn finish(&self, _cx: &mut Context<Self::Object>, _phase: Phase, _result: &ReconcileResult) {}
}

/// A controller, without its object type.
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

    /// Opens the watch. A reference may have opened it before, so the cached objects are added as well.
    pub(crate) fn watch(&self) {
        let store = self.runtime.informers().watch(WatchSpec::full(self.kind.clone()));
        let _ = self.store.set(store.clone());
        for live in store.list(None) {
            self.on_change(&Change { kind: self.kind.clone(), old: None, new: Some(live) });
        }
    }

    fn ours(&self, live: &CachedObject) -> bool {
        let Some(selector) = &self.runtime.options().watch_label_selector else { return true };
        selector.matches(|key| live.label(key))
    }

    async fn pass(
        &self,
        key: &Key,
        live: &CachedObject,
        object: R::Object,
        secrets: KnownSecrets,
    ) -> Outcome {
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
        let mut cx = Context {
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
            return self.delete(&mut cx).await;
        }
        if let Some(finalizer) = self.reconciler.finalizer(&cx.object)
            && !cx.object.has_finalizer(finalizer)
        {
            cx.object.meta_mut().finalizers.get_or_insert_default().push(finalizer.to_owned());
            if let Err(error) = cx.save_metadata().await {
                return write_failed(&cx.log, &error);
            }
        }
        if cx.object.suspended() {
            cx.log.info("reconciliation is suspended for this object");
            return self.close(&mut cx, Phase::Suspended, Ok(Completed::Done)).await;
        }
        let (runtime, kind, log) = (cx.runtime.clone(), cx.kind.clone(), cx.log.clone());
        let (writer, progress) = (cx.writer.clone(), cx.progress.clone());
        let due = || {
            let (waiting, _, running) = self.queue.sizes();
            waiting + running
        };
        let remote = self.reconciler.target(&cx.object).is_some();
        // Boxed: the future is large, and every wrapper around it would copy it on the stack.
        let reconcile = AssertUnwindSafe(self.reconciler.reconcile(&mut cx).boxed()).catch_unwind();
        let result = tokio::select! {
            result = unless_local(remote, reconcile) => result,
            () = context::report(&runtime, &kind, &writer, &progress, &log, due) => unreachable!("reporting never ends"),
        };
        let Ok(result) = result else {
            cx.log.error("a bug in this engine", "the pass ended by a panic; please report it");
            return Outcome::requeue(Requeue::Backoff);
        };
        self.close(&mut cx, Phase::Reconciled, result).await
    }

    async fn delete(&self, cx: &mut Context<R::Object>) -> Outcome {
        let Some(finalizer) = self.reconciler.finalizer(&cx.object).filter(|f| cx.object.has_finalizer(f))
        else {
            return Outcome::never();
        };
        let remote = self.reconciler.target(&cx.object).is_some();
        let deleted = AssertUnwindSafe(self.reconciler.delete(cx).boxed()).catch_unwind();
        let deleted = unless_local(remote, deleted).await;
        match deleted {
            Ok(Ok(())) => {
                if let Some(finalizers) = &mut cx.object.meta_mut().finalizers {
                    finalizers.retain(|f| f != finalizer);
                }
                match cx.save_metadata().await {
                    Err(error) if !error.is_not_found() => write_failed(&cx.log, &error),
                    _ => Outcome::never(),
                }
            }
            Ok(Err(error)) => self.close(cx, Phase::Deleting, Err(error)).await,
            Err(_) => {
                cx.log.error("a bug in this engine", "the deletion ended by a panic; please report it");
                Outcome::requeue(Requeue::Backoff)
            }
        }
    }

    /// Writes the status once.
    async fn close(&self, cx: &mut Context<R::Object>, phase: Phase, result: ReconcileResult) -> Outcome {
        let outcome = result::finish(cx, self.reconciler.policy(&cx.object), phase, &result);
        self.reconciler.finish(cx, phase, &result);
        let saved = match cx.save_metadata().await {
            Ok(()) => cx.save().await,
            Err(error) => Err(error),
        };
        match saved {
            // Deleted meanwhile: there is no status to write.
            Err(error) if error.is_not_found() => Outcome::never(),
            Err(error) => write_failed(&cx.log, &error),
            Ok(()) => {
                if let Some(error) = &outcome.error {
                    cx.log.error(error, "Reconciler error");
                }
                outcome
            }
        }
    }
}

/// Runs a step, without a permit if it works on a remote API server.
async fn unless_local<T>(remote: bool, step: impl Future<Output = T>) -> T {
    if remote { concurrency::on_remote(step).await } else { step.await }
}

/// The outcome of a failed write.
fn write_failed(log: &Log, error: &ClientError) -> Outcome {
    if error.is_not_found() {
        return Outcome::never();
    }
    log.error(&error.to_string(), "Reconciler error");
    // The API server is unavailable; once it is back, objects should not wait for a long backoff.
    let requeue = if error.is_transient() { Requeue::Unavailable } else { Requeue::Backoff };
    Outcome { requeue, error: Some(error.to_string()) }
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
            self.queue.remove(&key);
            self.runtime.metrics().remove_object(&key);
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
        // A reconcile request counts when it is set or changed, not when it is removed.
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
                self.queue.remove(key);
                return Outcome::never();
            };
            match live.parse::<R::Object>() {
                Ok(object) => {
                    let public = [key.name(), key.namespace(), key.kind()];
                    let secrets = KnownSecrets::with_public_names(public);
                    let cx = self.pass(key, &live, object, secrets.clone());
                    secrets.during(cx).await
                }
                Err(error) => {
                    // An object that passed an older, laxer CRD. One event per change of it, and no retry.
                    let names = self.reconciler.names();
                    let about = crate::events::InvolvedObject {
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

/// Maximum backoff while the API server is unavailable.
const UNAVAILABLE_BACKOFF: Duration = Duration::from_secs(15);

/// Reconciles queued objects until the queue closes.
pub(crate) async fn work(runtime: Runtime, driver: Arc<dyn Driver>) {
    let limit = ConcurrencyLimit::new(driver.concurrent());
    let mut running = JoinSet::new();
    while let Some(key) = driver.queue().next().await {
        while running.try_join_next().is_some() {}
        if driver.queue().sizes().0 >= driver.concurrent() {
            runtime.load().record();
        }
        // After the key, not before it: a permit held while the queue is empty would be missing to a reconcile that
        // released its own to wait, and with one permit it would wait for ever.
        let permit = tokio::select! {
            permit = runtime.starvation().watched(driver.as_ref(), limit.take()) => permit,
            () = runtime.stop().stopped() => break,
        };
        running.spawn(permit.hold(runtime.stop().clone(), one(runtime.clone(), driver.clone(), key)));
    }
    while running.join_next().await.is_some() {}
}

/// One reconcile and its requeue.
async fn one(runtime: Runtime, driver: Arc<dyn Driver>, key: Key) {
    let started = Instant::now();
    // A panic anywhere in a reconcile is handled as a failure, so that the object stays in the queue.
    let outcome = AssertUnwindSafe(driver.run(&runtime, &key)).catch_unwind().await.unwrap_or_else(|_| {
        let log = runtime.log().with([("object", key.to_string().into())]);
        log.error("a bug in this engine", "the end of a reconcile panicked; please report it");
        Outcome::requeue(Requeue::Backoff)
    });
    let result = match (&outcome.error, outcome.requeue) {
        (Some(_), _) | (None, Requeue::Backoff | Requeue::Unavailable) => "error",
        (None, Requeue::Immediately) => "requeue",
        (None, Requeue::Interval(_) | Requeue::After(_)) => "requeue_after",
        (None, Requeue::Never) => "success",
    };
    let failed = result == "error";
    runtime.metrics().pass(driver.controller(), &key, started.elapsed(), result, failed);
    let queue = driver.queue();
    if !matches!(outcome.requeue, Requeue::Backoff | Requeue::Unavailable) {
        queue.reset_backoff(&key);
    }
    match outcome.requeue {
        Requeue::Interval(interval) => queue.add_after(key.clone(), runtime.jitter(interval)),
        Requeue::After(delay) => queue.add_after(key.clone(), delay),
        Requeue::Immediately => queue.add_after(key.clone(), Duration::ZERO),
        Requeue::Backoff => {
            queue.add_failed(key.clone(), Duration::MAX);
        }
        Requeue::Unavailable => {
            queue.add_failed(key.clone(), runtime.jitter(UNAVAILABLE_BACKOFF));
        }
        Requeue::Never => {}
    }
    queue.done(&key);
}
