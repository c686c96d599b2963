//! The reconciler of all kinds of sources.
//!
//! A reconcile is *check storage, fetch, store the artifact, emit the event*. What differs between the kinds is a
//! [`Fetcher`]: how the content is found and verified, and how it is written. Conditions that report an error follow
//! from the error ([`ReconcileError::on`]); a revision that is in storage already is an `Ok` value.

use std::future::Future;
use std::time::Duration;

use fl_api::condition::types;
use fl_artifact_store::{Location, Store};
use fl_http::{ByteBudget, Lease, Owner};
use fl_runtime::{
    Completed, ConditionPolicy, Conditions, Context, Edge, EventKind, FINALIZER, Names, ReconcileError,
    ReconcileResult, Reconciled, Reconciler, Requeue, Source,
};

use crate::conditions;
use crate::storage::{self, blocking, has_revision};

/// What is specific to one kind of source.
pub trait Fetcher: Send + Sync + 'static {
    type Object: Source;
    /// Verified content that is not in storage yet.
    type Content: Send;

    /// The name of the controller in logs and metrics.
    const CONTROLLER: &'static str;
    /// The name of the link to the newest artifact, for kinds with `status.url`.
    const LINK: Option<&'static str> = None;

    /// Objects whose changes trigger a reconcile.
    fn edges(&self, object: &Self::Object) -> Vec<Edge>;

    /// The deadline of one remote operation.
    fn timeout(&self, object: &Self::Object) -> Duration;

    /// `status.url`, for kinds that have it.
    fn status_url<'a>(&self, _object: &'a mut Self::Object) -> Option<&'a mut Option<String>> {
        None
    }

    /// Whether the object is only an address and has no artifact: a HelmRepository of type `oci`.
    fn is_static(&self, _object: &Self::Object) -> bool {
        false
    }

    /// Removes the status of an object that became static.
    fn clear_status(&self, _object: &mut Self::Object) {}

    /// Dereferences and authenticates, resolves the revision, fetches and verifies the content. What it keeps in memory
    /// or in temporary files is counted by `lease`.
    fn fetch(
        &self,
        cx: &mut Context<Self::Object>,
        storage: &Storage<'_>,
        lease: &Lease,
    ) -> impl Future<Output = Result<Fetched<Self::Content>, ReconcileError>> + Send;

    /// Writes the content to storage and `status.artifact` to the object.
    fn store(
        &self,
        cx: &mut Context<Self::Object>,
        storage: &Storage<'_>,
        content: Self::Content,
    ) -> impl Future<Output = Result<SourceResult, ReconcileError>> + Send;
}

/// What a fetch came to.
#[derive(Debug)]
pub enum Fetched<C> {
    /// The artifact has the revision of the remote.
    Current(SourceResult),
    /// Content to be stored.
    New(C),
}

/// What a reconcile that succeeded reports.
#[derive(Clone, Debug)]
pub struct SourceResult {
    /// The revision of the artifact.
    pub revision: String,
    /// Reason and message of `ArtifactInStorage`.
    pub condition: (&'static str, String),
    /// The message of the event of a new artifact or a recovery.
    pub event: String,
    /// The reason of that event where it is not `NewArtifact` or `Succeeded`.
    pub event_reason: Option<&'static str>,
    pub change: Change,
}

/// Whether the artifact changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new artifact was stored.
    Stored,
    /// The content was fetched or listed, and the artifact has it.
    UpToDate,
    /// The remote has not changed since the last reconcile: the reason and message of a trace event.
    Unchanged { reason: &'static str, message: String },
}

/// The store and where in it the artifacts of one object are.
#[derive(Debug)]
pub struct Storage<'a> {
    pub store: &'a Store,
    pub location: Location,
}

impl Storage<'_> {
    /// Points `status.url` to a stored file by way of a link. A failure is reported and not fatal.
    pub(crate) async fn link<F: Fetcher>(
        &self,
        fetcher: &F,
        cx: &mut Context<F::Object>,
        file: String,
    ) -> Result<(), ReconcileError> {
        let Some(name) = F::LINK else { return Ok(()) };
        let (store, location) = (self.store.clone(), self.location.clone());
        match blocking(move || store.link(&location, &file, name)).await? {
            Ok(url) => {
                if let Some(current) = fetcher.status_url(&mut cx.object) {
                    *current = Some(url);
                }
            }
            Err(error) => {
                let message = format!("failed to update status URL symlink: {}", storage::chain(&error));
                let reason = fl_api::condition::reasons::source::SYMLINK_UPDATE_FAILED;
                cx.event(EventKind::Trace, reason, &message);
            }
        }
        Ok(())
    }
}

/// The controller of one kind of source.
pub struct SourceReconciler<F> {
    store: Store,
    budget: ByteBudget,
    pub(crate) fetcher: F,
}

impl<F> std::fmt::Debug for SourceReconciler<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceReconciler").finish_non_exhaustive()
    }
}

impl<F: Fetcher> SourceReconciler<F> {
    pub(crate) fn with_fetcher(store: Store, fetcher: F) -> Self {
        Self { store, budget: ByteBudget::shared(), fetcher }
    }

    /// Counts the content of fetches against another budget than that of the process.
    #[must_use]
    pub fn with_budget(self, budget: ByteBudget) -> Self {
        Self { budget, ..self }
    }

    async fn run(&self, cx: &mut Context<F::Object>) -> ReconcileResult {
        conditions::begin(cx);
        storage::check(cx, &self.store).await?;
        let storage = Storage { store: &self.store, location: storage::location(&cx.object)? };
        self.refresh_url(cx, &storage);
        let owner = Owner::namespace(cx.object.namespace());
        let lease = self.budget.lease(owner, self.fetcher.timeout(&cx.object));
        let result = match self.fetcher.fetch(cx, &storage, &lease).await? {
            Fetched::Current(result) => result,
            Fetched::New(content) => self.fetcher.store(cx, &storage, content).await?,
        };
        Ok(finish(cx, result))
    }

    /// The host of `status.url` is that of the store, which may have changed; without an artifact there is none.
    fn refresh_url(&self, cx: &mut Context<F::Object>, storage: &Storage<'_>) {
        let exists = cx.object.artifact().is_some();
        let Some(url) = self.fetcher.status_url(&mut cx.object) else { return };
        if url.is_some() {
            let path = F::LINK.filter(|_| exists).and_then(|link| storage.location.path(link).ok());
            *url = path.map(|path| storage.store.url(&path));
        }
    }

    /// Removes what is stored for an object that became static.
    async fn retire(&self, cx: &mut Context<F::Object>) -> ReconcileResult {
        if cx.object.has_finalizer(FINALIZER) || cx.object.artifact().is_some() {
            storage::remove(cx, &self.store).await?;
        }
        if let Some(finalizers) = &mut cx.object.meta_mut().finalizers {
            finalizers.retain(|f| f != FINALIZER);
        }
        self.fetcher.clear_status(&mut cx.object);
        Ok(Completed::Requeue(Requeue::Never))
    }
}

/// The conditions and events of a reconcile that succeeded.
fn finish<T: Source>(cx: &mut Context<T>, result: SourceResult) -> Completed {
    if result.change == Change::UpToDate {
        let message = format!("artifact up-to-date with remote revision: '{}'", result.revision);
        cx.log.info(&message);
        cx.event(EventKind::Trace, "ArtifactUpToDate", &message);
    }
    if has_revision(cx.object.artifact(), &result.revision) {
        cx.object.remove_condition(types::ARTIFACT_OUTDATED);
        let (reason, message) = &result.condition;
        cx.object.mark_true(types::ARTIFACT_IN_STORAGE, reason, message);
    }
    conditions::emit_event(cx, result.event_reason, &result.event);
    match result.change {
        Change::Stored | Change::UpToDate => Completed::Done,
        Change::Unchanged { reason, message } => Completed::Unchanged { reason, message },
    }
}

impl<F: Fetcher> Reconciler for SourceReconciler<F> {
    type Object = F::Object;

    fn names(&self) -> Names {
        Names {
            controller: F::CONTROLLER,
            component: "source-controller",
            field_manager: "source-controller",
        }
    }

    fn owned_conditions(&self) -> &'static [&'static str] {
        conditions::CONDITIONS
    }

    fn finalizer(&self, object: &F::Object) -> Option<&'static str> {
        (!self.fetcher.is_static(object) || object.deleting()).then_some(FINALIZER)
    }

    fn edges(&self, object: &F::Object) -> Vec<Edge> {
        self.fetcher.edges(object)
    }

    fn policy(&self, object: &F::Object) -> ConditionPolicy {
        if self.fetcher.is_static(object) { ConditionPolicy::None } else { conditions::POLICY }
    }

    async fn reconcile(&self, cx: &mut Context<F::Object>) -> ReconcileResult {
        if self.fetcher.is_static(&cx.object) { self.retire(cx).await } else { self.run(cx).await }
    }

    async fn delete(&self, cx: &mut Context<F::Object>) -> Result<(), ReconcileError> {
        storage::remove(cx, &self.store).await
    }
}
