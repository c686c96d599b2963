//! Cancellation of waits for readiness: the feature gate `CancelHealthCheckOnNewRevision`.

use std::sync::{Arc, OnceLock};

use fl_api::Resource as _;
use fl_api::helm::HelmRelease;
use fl_runtime::{Context, Kind, REQUESTED_AT, Reconciled as _, Resolver, Store, WatchSpec};
use fl_types::ObjectReference;

use crate::source;
use crate::spec::ReleaseSpec as _;

/// Cancels waits for readiness when another reconcile of the same HelmRelease is triggered: by a new revision of the
/// source, a new generation of the spec, or a reconcile request.
///
/// As in helm-controller, waits for hooks and for deletions go on.
#[derive(Debug, Default)]
pub(crate) struct Interrupt {
    watched: Option<Watched>,
    trigger: OnceLock<String>,
}

/// The objects whose changes trigger a reconcile, as they were when this one began.
#[derive(Debug)]
struct Watched {
    releases: Arc<Store>,
    resolver: Resolver,
    reference: ObjectReference,
    revision: String,
    namespace: String,
    name: String,
    generation: i64,
    requested_at: Option<String>,
}

impl Interrupt {
    /// An interrupt for the reconcile of `cx`, which releases this revision of the source.
    pub(crate) fn new(cx: &Context<HelmRelease>, resolver: &Resolver, revision: &str) -> Self {
        let watched = source::reference(&cx.object).map(|reference| Watched {
            releases: cx.runtime.informers().watch(WatchSpec::full(Kind::of::<HelmRelease>())),
            resolver: resolver.clone(),
            reference,
            revision: revision.to_owned(),
            namespace: cx.object.own_namespace().to_owned(),
            name: cx.object.metadata.name.clone(),
            generation: cx.object.generation(),
            requested_at: cx.object.requested_at().map(str::to_owned),
        });
        Interrupt { watched, trigger: OnceLock::new() }
    }

    /// Completes when another reconcile is triggered; never without the feature gate.
    pub(crate) async fn triggered(&self) {
        let Some(watched) = &self.watched else { return std::future::pending().await };
        let mut source = watched.resolver.news(&watched.reference, &watched.namespace);
        let mut releases = watched.releases.subscribe();
        loop {
            if let Some(trigger) = watched.trigger().await {
                // Set already if an earlier wait of the same reconcile was cancelled.
                let _ = self.trigger.set(trigger);
                return;
            }
            tokio::select! {
                () = source.heard() => {}
                () = releases.heard() => {}
            }
        }
    }

    /// `Kind/namespace/name` of the object that triggered the other reconcile, if a wait was cancelled.
    pub(crate) fn trigger(&self) -> Option<&str> {
        self.trigger.get().map(String::as_str)
    }
}

impl Watched {
    async fn trigger(&self) -> Option<String> {
        let Watched { namespace, name, .. } = self;
        if let Some(live) = self.releases.get(namespace, name) {
            let requested = live.annotation(REQUESTED_AT);
            let is_requested = requested.is_some() && requested != self.requested_at.as_deref();
            if live.generation() != self.generation || is_requested {
                return Some(format!("{}/{namespace}/{name}", HelmRelease::KIND));
            }
        }
        let newest = self.resolver.resolve(&self.reference, namespace).await.ok()?.artifact?;
        let source = &self.reference;
        (newest.revision != self.revision)
            .then(|| format!("{}/{}/{}", source.kind, source.namespace_or(namespace), source.name))
    }
}
