//! The smallest consumer of artifacts: it records which revisions it saw.

use std::sync::{Arc, Mutex};

use fl_api::condition::types;
use fl_api::kustomize::Kustomization;
use fl_runtime::{
    Completed, ConditionPolicy, Conditions, Context, Edge, Names, ObservedGeneration, Phase, ReconcileError,
    ReconcileResult, Reconciled, Reconciler, Resolver, Runtime,
};
use fl_types::ObjectReference;
use tokio::time::Instant;

/// The revisions it saw, and when.
pub(crate) type Seen = Arc<Mutex<Vec<(Instant, String)>>>;

pub(crate) struct Consumer {
    resolver: Resolver,
    pub(crate) seen: Seen,
}

impl Consumer {
    pub(crate) fn new(runtime: &Runtime) -> Self {
        Consumer { resolver: Resolver::new(runtime), seen: Seen::default() }
    }
}

fn reference(object: &Kustomization) -> ObjectReference {
    let source = object.spec.source_ref.clone();
    ObjectReference {
        api_version: source.api_version,
        kind: source.kind,
        name: source.name,
        namespace: source.namespace,
    }
}

impl Reconciler for Consumer {
    type Object = Kustomization;

    fn names(&self) -> Names {
        Names { controller: "kustomization", component: "test", field_manager: "test" }
    }

    fn owned_conditions(&self) -> &'static [&'static str] {
        &[types::READY]
    }

    fn edges(&self, object: &Kustomization) -> Vec<Edge> {
        vec![Resolver::edge(&reference(object), object.namespace())]
    }

    fn policy(&self, _object: &Kustomization) -> ConditionPolicy {
        ConditionPolicy::Ready {
            progressing_with_retry: false,
            observed_generation: ObservedGeneration::WhenSettled,
        }
    }

    async fn reconcile(&self, cx: &mut Context<Kustomization>) -> ReconcileResult {
        let namespace = cx.object.namespace().to_owned();
        match self.resolver.resolve(&reference(&cx.object), &namespace).await {
            Ok(source) => {
                let revision = source.artifact.map(|a| a.revision).unwrap_or_default();
                self.seen.lock().unwrap().push((Instant::now(), revision.clone()));
                cx.object.mark_true(types::READY, "Succeeded", "seen");
                cx.object.status.get_or_insert_default().last_applied_revision = Some(revision);
            }
            Err(error) => cx.object.mark_false(types::READY, "ArtifactFailed", &error.to_string()),
        }
        Ok(Completed::Done)
    }

    async fn delete(&self, _cx: &mut Context<Kustomization>) -> Result<(), ReconcileError> {
        Ok(())
    }

    fn finish(&self, cx: &mut Context<Kustomization>, _phase: Phase, _result: &ReconcileResult) {
        let generation = cx.object.generation();
        *cx.object.status_head().observed_generation = Some(generation);
    }
}
