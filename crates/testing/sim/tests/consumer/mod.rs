//! The smallest consumer of artifacts: it writes down which revision it saw.

use std::sync::{Arc, Mutex};

use fl_api::condition::types;
use fl_api::kustomize::Kustomization;
use fl_runtime::{Conditions, Edge, End, Names, Outcome, Pass, Reconciled, Reconciler, Resolver, Runtime};
use fl_types::ObjectReference;
use tokio::time::Instant;

/// When it saw which revision.
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

    async fn reconcile(&self, pass: &mut Pass<Kustomization>) -> Outcome {
        let namespace = pass.object.namespace().to_owned();
        let interval = pass.object.interval().unwrap_or_default();
        match self.resolver.resolve(&reference(&pass.object), &namespace).await {
            Ok(source) => {
                let revision = source.artifact.map(|a| a.revision).unwrap_or_default();
                self.seen.lock().unwrap().push((Instant::now(), revision.clone()));
                pass.object.mark_true(types::READY, "Succeeded", "seen");
                pass.object.status.get_or_insert_default().last_applied_revision = Some(revision);
            }
            Err(error) => pass.object.mark_false(types::READY, "ArtifactFailed", &error.to_string()),
        }
        Outcome::interval(interval)
    }

    async fn delete(&self, _pass: &mut Pass<Kustomization>) -> Result<(), Outcome> {
        Ok(())
    }

    fn finish(&self, pass: &mut Pass<Kustomization>, _end: End, _outcome: &mut Outcome) {
        let generation = pass.object.generation();
        *pass.object.status_head().observed_generation = Some(generation);
    }
}
