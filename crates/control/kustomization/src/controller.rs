//! The controller as the runtime drives it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fl_api::condition::types;
use fl_api::kustomize::Kustomization;
use fl_api::meta::references::ValuesKind;
use fl_runtime::{
    ArtifactFetcher, Completed, ConditionPolicy, Conditions as _, Context, Edge, Key, Kind, Names,
    ObservedGeneration, Phase, ReconcileError, ReconcileResult, Reconciled as _, Reconciler, Resolver,
    Runtime,
};
use fl_targets::{OwnedObjectWatcher, Targets};
use tokio::time::Instant;

use crate::build::BuildCache;
use crate::dereference::ArtifactOpener;
use crate::drift;
use crate::status::finished;
use crate::target;
use crate::{Options, delete, validate};

pub(crate) const NAMES: Names = Names {
    controller: "kustomization",
    component: "kustomize-controller",
    // Not the field manager of applied objects: Kustomizations that apply Kustomizations would own its finalizer.
    field_manager: "gotk-kustomize-controller",
};

/// The controller.
pub struct KustomizationController {
    pub(crate) runtime: Runtime,
    pub(crate) options: Options,
    pub(crate) targets: Targets,
    pub(crate) owned_objects: Arc<OwnedObjectWatcher>,
    pub(crate) resolver: Resolver,
    pub(crate) artifacts: ArtifactOpener,
    pub(crate) builds: BuildCache,
    /// Kustomizations whose source has no artifact yet, and when they were first seen.
    awaiting_first_artifact: Mutex<HashMap<Key, Instant>>,
}

impl std::fmt::Debug for KustomizationController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KustomizationController").field("options", &self.options).finish_non_exhaustive()
    }
}

impl KustomizationController {
    /// Makes a controller; [`crate::add`] registers it with a runtime.
    #[must_use]
    pub fn new(runtime: &Runtime, artifacts: ArtifactFetcher, options: Options) -> Self {
        let resolver = Resolver::new(runtime);
        KustomizationController {
            runtime: runtime.clone(),
            targets: Targets::new(runtime, target::options(&options)),
            owned_objects: OwnedObjectWatcher::start(runtime, drift::OWNER, options.watch_drift),
            artifacts: ArtifactOpener::new(resolver.clone(), artifacts),
            resolver,
            builds: BuildCache::default(),
            awaiting_first_artifact: Mutex::default(),
            options,
        }
    }

    pub(crate) fn awaiting_first_artifact(&self) -> MutexGuard<'_, HashMap<Key, Instant>> {
        self.awaiting_first_artifact.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reconciler for KustomizationController {
    type Object = Kustomization;

    fn names(&self) -> Names {
        NAMES
    }

    fn owned_conditions(&self) -> &'static [&'static str] {
        &[types::HEALTHY, types::READY, types::RECONCILING, types::STALLED]
    }

    fn target(&self, object: &Kustomization) -> Option<fl_runtime::Target> {
        let kubeconfig = object.spec.kube_config.as_ref()?.name()?;
        Some((object.namespace().to_owned(), kubeconfig.to_owned()))
    }

    fn edges(&self, object: &Kustomization) -> Vec<Edge> {
        let own = object.namespace();
        let mut edges = vec![Resolver::edge(&validate::source_reference(object), own)];
        let kind = Kind::of::<Kustomization>();
        for dependency in object.spec.depends_on.iter().flatten() {
            let namespace = dependency.namespace.as_deref().filter(|n| !n.is_empty()).unwrap_or(own);
            edges.push(Edge::ready(kind.key(namespace, &dependency.name)));
        }
        let mut config = |kind: Kind, name: &str| edges.push(Edge::change(kind.key(own, name)));
        for reference in object.spec.post_build.iter().flat_map(|p| p.substitute_from.iter().flatten()) {
            match reference.kind {
                ValuesKind::ConfigMap => config(Kind::config_map(), &reference.name),
                ValuesKind::Secret => config(Kind::secret(), &reference.name),
            }
        }
        if let Some(secret) = object.spec.decryption.as_ref().and_then(|d| d.secret_ref.as_ref()) {
            config(Kind::secret(), &secret.name);
        }
        if let Some(remote) = &object.spec.kube_config {
            if let Some(secret) = &remote.secret_ref {
                config(Kind::secret(), &secret.name);
            }
            if let Some(map) = &remote.config_map_ref {
                config(Kind::config_map(), &map.name);
            }
        }
        edges
    }

    fn policy(&self, _object: &Kustomization) -> ConditionPolicy {
        ConditionPolicy::Ready {
            progressing_with_retry: true,
            observed_generation: ObservedGeneration::WhenReady,
        }
    }

    async fn reconcile(&self, cx: &mut Context<Kustomization>) -> ReconcileResult {
        self.run(cx).await
    }

    async fn delete(&self, cx: &mut Context<Kustomization>) -> Result<(), ReconcileError> {
        let key = cx.key();
        delete::delete(self, cx).await?;
        self.builds.forget(&key);
        self.owned_objects.remove(&key);
        self.awaiting_first_artifact().remove(&key);
        Ok(())
    }

    fn finish(&self, cx: &mut Context<Kustomization>, phase: Phase, result: &ReconcileResult) {
        if phase == Phase::Reconciled && matches!(result, Ok(Completed::Done)) && cx.object.is_ready() {
            finished(cx, cx.started.elapsed());
        }
    }
}
