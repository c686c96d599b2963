//! One pass over one Kustomization, step by step.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fl_api::condition::{reasons, types};
use fl_api::kustomize::Kustomization;
use fl_api::meta::artifact::Artifact;
use fl_api::meta::references::ValuesKind;
use fl_http::Owner;
use fl_runtime::{
    ArtifactError, ArtifactFetcher, Conditions as _, Edge, End, EventKind, Key, Kind, Names, Outcome, Pass,
    Reconciled as _, Reconciler, Resolver, Runtime,
};
use fl_types::ObjectReference;
use tokio::time::Instant;

use crate::apply::Failure;
use crate::build::{BuildCache, Built, KeyMaterial, Request, Tree, Trees, build, check_path};
use crate::dereference::{self, NoSource, Unready};
use crate::drift::Drift;
use crate::status::{Revision, event, finished, go, progressing};
use crate::target::{Target, Targets};
use crate::validate::{self, Plan};
use crate::{Options, delete};

pub(crate) const NAMES: Names = Names {
    controller: "kustomization",
    component: "kustomize-controller",
    // Not the manager of applied objects: Kustomizations that apply Kustomizations would take its finalizer over.
    field_manager: "gotk-kustomize-controller",
};

/// The metadata of an artifact that names the revision it was made from.
const ORIGIN: &str = "org.opencontainers.image.revision";

/// The controller.
pub struct KustomizationController {
    pub(crate) runtime: Runtime,
    pub(crate) options: Options,
    pub(crate) targets: Targets,
    pub(crate) drift: Arc<Drift>,
    resolver: Resolver,
    trees: Trees,
    builds: BuildCache,
    started: Instant,
    /// Those that came before the first artifact of their source, and when.
    newcomers: Mutex<HashMap<Key, Instant>>,
}

impl std::fmt::Debug for KustomizationController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KustomizationController").field("options", &self.options).finish_non_exhaustive()
    }
}

/// How a pass ended before its end.
enum Stop {
    /// Said already; when to look again.
    Quiet(Outcome),
    /// Ready is set; the error goes into an event, and it is tried again after the retry interval.
    Failed(String),
}

impl KustomizationController {
    /// Makes a controller; [`crate::add`] puts it to work.
    #[must_use]
    pub fn new(runtime: &Runtime, artifacts: ArtifactFetcher, options: Options) -> Self {
        KustomizationController {
            runtime: runtime.clone(),
            targets: Targets::new(runtime),
            drift: Drift::start(runtime, options.watch_drift),
            resolver: Resolver::new(runtime),
            trees: Trees::new(artifacts),
            builds: BuildCache::default(),
            started: Instant::now(),
            newcomers: Mutex::default(),
            options,
        }
    }

    pub(crate) fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    async fn run(&self, pass: &mut Pass<Kustomization>) -> Outcome {
        let plan = match validate::plan(&pass.object, &self.runtime.options().gates) {
            Ok(plan) => plan,
            Err(invalid) => return self.invalid(pass, &invalid),
        };
        let artifact = match self.artifact(pass, &plan).await {
            Ok(artifact) => artifact,
            Err(outcome) => return outcome,
        };
        let revision = Revision {
            revision: artifact.revision.clone(),
            origin: artifact.metadata.as_ref().and_then(|m| m.get(ORIGIN)).cloned().unwrap_or_default(),
        };
        if let Err(outcome) = self.dependencies(pass, &artifact, &revision).await {
            return outcome;
        }
        let key = pass.key();
        let outcome = match self.steps(pass, &plan, &artifact, &revision).await {
            Ok(()) => Outcome::interval(plan.interval),
            Err(Stop::Quiet(outcome)) => outcome,
            Err(Stop::Failed(message)) => {
                let text = format!(
                    "Reconciliation failed after {}, next try in {}",
                    go(pass.started.elapsed()),
                    go(plan.retry)
                );
                pass.log.error(&message, &text);
                event(pass, EventKind::Warning, &message, &revision);
                Outcome::after(plan.retry)
            }
        };
        self.drift.settle(&key, &pass.object);
        outcome
    }

    fn invalid(&self, pass: &mut Pass<Kustomization>, invalid: &validate::Invalid) -> Outcome {
        let object = &mut pass.object;
        object.mark_false(types::READY, invalid.reason, &invalid.message);
        object.mark_stalled(invalid.reason, &invalid.message);
        if invalid.observed {
            object.status.get_or_insert_default().observed_generation = object.metadata.generation;
        }
        pass.log.error(&invalid.message, "the spec cannot be carried out");
        event(pass, EventKind::Warning, &invalid.message, &Revision::default());
        Outcome::never()
    }

    async fn artifact(&self, pass: &mut Pass<Kustomization>, plan: &Plan) -> Result<Artifact, Outcome> {
        let again = self.runtime.options().requeue_dependency;
        let found = dereference::source(&pass.object, &self.resolver).await;
        if matches!(found, Err(NoSource::NoArtifact)) && self.is_early(pass) {
            // The first artifact wakes it.
            return Err(Outcome::after(FIRST_ARTIFACT));
        }
        self.newcomers().remove(&pass.key());
        let problem = match found {
            Ok(artifact) => return Ok(artifact),
            Err(problem) => problem,
        };
        let object = &mut pass.object;
        Err(match problem {
            NoSource::NotFound(message) => {
                object.mark_false(types::READY, reasons::ARTIFACT_FAILED, &message);
                pass.log.info(&message);
                Outcome::after(plan.retry)
            }
            NoSource::Denied(message) => {
                object.mark_false(types::READY, reasons::ACCESS_DENIED, &message);
                object.mark_stalled(reasons::ACCESS_DENIED, &message);
                event(pass, EventKind::Warning, &message, &Revision::default());
                Outcome::never()
            }
            NoSource::NoArtifact => {
                let message = format!("Source artifact not found, retrying in {}", go(again));
                object.mark_false(types::READY, reasons::ARTIFACT_FAILED, &message);
                pass.log.info(&message);
                Outcome::after(again)
            }
            NoSource::Unavailable(message) => {
                object.mark_false(types::READY, reasons::ARTIFACT_FAILED, &message);
                Outcome::backoff(message)
            }
        })
    }

    /// A source is often applied together with what is built from it. A Kustomization of which nothing was told yet gives it a
    /// moment, and then need not be told of as failed.
    fn is_early(&self, pass: &Pass<Kustomization>) -> bool {
        if !pass.object.conditions().is_empty() || pass.requested() {
            return false;
        }
        let since = *self.newcomers().entry(pass.key()).or_insert_with(Instant::now);
        since.elapsed() < FIRST_ARTIFACT
    }

    fn newcomers(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Instant>> {
        self.newcomers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn dependencies(
        &self,
        pass: &mut Pass<Kustomization>,
        artifact: &Artifact,
        revision: &Revision,
    ) -> Result<(), Outcome> {
        let again = self.runtime.options().requeue_dependency;
        match dereference::dependencies(&pass.object, artifact, &self.runtime).await {
            Ok(()) => Ok(()),
            Err(Unready::Terminal(problem)) => {
                let message = validate::terminal(&problem);
                let object = &mut pass.object;
                object.mark_false(types::READY, reasons::INVALID_CEL_EXPRESSION, &message);
                object.mark_stalled(reasons::INVALID_CEL_EXPRESSION, &message);
                object.status.get_or_insert_default().observed_generation = object.metadata.generation;
                event(pass, EventKind::Warning, &message, revision);
                Err(Outcome::never())
            }
            Err(Unready::Denied(message)) => {
                pass.object.mark_false(types::READY, reasons::ACCESS_DENIED, &message);
                pass.object.mark_stalled(reasons::ACCESS_DENIED, &message);
                event(pass, EventKind::Warning, &message, revision);
                Err(Outcome::never())
            }
            Err(Unready::Waiting(problem)) => {
                pass.object.mark_false(types::READY, reasons::DEPENDENCY_NOT_READY, &problem);
                if let Some(cycle) = dereference::cycle(&self.runtime, &pass.key()) {
                    pass.log.error(&cycle, "this Kustomization waits for itself through dependsOn");
                }
                let message = format!("Dependencies do not meet ready condition, retrying in {}", go(again));
                pass.log.info(&message);
                event(pass, EventKind::Normal, &message, revision);
                Err(Outcome::after(again))
            }
        }
    }

    /// Fetch, build, apply. Conditions tell the step; an early end has said why.
    async fn steps(
        &self,
        pass: &mut Pass<Kustomization>,
        plan: &Plan,
        artifact: &Artifact,
        revision: &Revision,
    ) -> Result<(), Stop> {
        let quiet = self.quiet_run(pass, artifact).await;
        if let Some(built) = &quiet {
            // Nothing was asked for and nothing is new: unless an object drifted, nobody needs to hear of this pass.
            let before = pass.object.clone();
            match self.unchanged(pass, plan, artifact, revision, built).await {
                Some(Ok(())) => {
                    pass.object.status = before.status;
                    return Err(Stop::Quiet(Outcome::interval(plan.interval)));
                }
                Some(Err(stop)) => return Err(stop),
                None => {}
            }
        }
        pass.object.mark_unknown(types::READY, reasons::PROGRESSING, "Reconciliation in progress");
        progressing(pass, "Fetching manifests", &revision.revision, plan.timeout);
        let source = validate::source_reference(&pass.object);
        let opened = tokio::select! {
            biased;
            opened = self.open(artifact, &source, pass.object.namespace()) => opened,
            // The address may belong to an engine that is gone; the source says when it has another one.
            () = self.resolver.moved(&source, pass.object.namespace(), artifact) => {
                return Err(Stop::Quiet(Outcome::now()));
            }
        };
        let tree = match opened {
            Ok(tree) => tree,
            Err(ArtifactError::NotFound) => {
                let again = self.runtime.options().requeue_dependency;
                let message = format!("Source is not ready, artifact not found, retrying in {}", go(again));
                pass.object.mark_false(types::READY, reasons::ARTIFACT_FAILED, &message);
                pass.log.info(&message);
                return Err(Stop::Quiet(Outcome::after(again)));
            }
            Err(error) => return Err(failed(pass, reasons::ARTIFACT_FAILED, error.to_string())),
        };
        let path = pass.object.spec.path.clone().unwrap_or_default();
        let directory = match check_path(&tree, &path) {
            Ok(directory) => directory,
            Err(message) => return Err(failed(pass, reasons::ARTIFACT_FAILED, message)),
        };
        pass.object.status.get_or_insert_default().last_attempted_revision = Some(revision.revision.clone());
        progressing(pass, "Building manifests", &revision.revision, plan.timeout);
        let target = match self.targets.of(&pass.object, &self.options).await {
            Ok(target) => target,
            Err(message) => {
                pass.object.mark_false(types::READY, reasons::RECONCILIATION_FAILED, &message);
                return Err(Stop::Failed(format!("failed to build kube client: {message}")));
            }
        };
        let variables = dereference::variables(&pass.object, &self.runtime).await;
        let keys = match self.keys(&pass.object).await {
            Ok(keys) => keys,
            Err(message) => return Err(failed(pass, reasons::BUILD_FAILED, message)),
        };
        let key = pass.key();
        let inputs = inputs(&pass.object, variables.as_ref().ok());
        let digest = artifact.digest.as_ref().map(ToString::to_string).unwrap_or_default();
        let cached = match (&variables, &keys) {
            (Ok(_), None) => self.builds.same_files(&key, &inputs, &digest, &tree),
            _ => None,
        };
        let built = match cached {
            Some(built) => built,
            None => {
                let object = pass.object.clone();
                let strict = self.runtime.options().gates.enabled("StrictPostBuildSubstitutions");
                // What decryption made is not kept in memory longer than the pass.
                let keep = keys.is_none() && variables.is_ok();
                let (key_services, secrets) = (self.options.key_services.clone(), pass.secrets.clone());
                let remote = (!self.options.no_remote_bases).then(|| self.options.remote_addresses.clone());
                let result = tokio::task::spawn_blocking(move || {
                    let key_services = &key_services;
                    let request =
                        Request { object: &object, variables, strict, keys, key_services, secrets, remote };
                    build(&tree, &directory, &request)
                })
                .await;
                let built = match result {
                    Ok(Ok(built)) => Arc::new(built),
                    Ok(Err(message)) => return Err(failed(pass, reasons::BUILD_FAILED, message)),
                    Err(_) => {
                        let message = "the build ended by a bug in this engine; please report it".to_owned();
                        return Err(failed(pass, reasons::BUILD_FAILED, message));
                    }
                };
                if keep {
                    self.builds.keep(&key, inputs, &digest, built.clone());
                }
                built
            }
        };
        progressing(pass, "Detecting drift", &revision.revision, plan.timeout);
        self.finish_steps(pass, plan, revision, &target, &built).await
    }

    /// The files of an artifact. What cannot be had yet is waited for, and nobody need be told of a failure: a process that has just
    /// started may have lost what its sources published, and a source that packs the same revision anew replaces the file
    /// before its status names the new digest.
    async fn open(
        &self,
        artifact: &Artifact,
        source: &ObjectReference,
        own: &str,
    ) -> Result<Arc<Tree>, ArtifactError> {
        let mut news = self.resolver.news(source, own);
        let owner = Owner::namespace(source.namespace_or(own));
        let first = self.trees.open(artifact, &owner).await;
        let until = match &first {
            Err(ArtifactError::NotFound) => self.started + SOURCES_RETURN,
            Err(ArtifactError::Digest { .. }) => Instant::now() + fl_runtime::STATUS_FOLLOWS,
            _ => return first,
        };
        if Instant::now() >= until {
            return first;
        }
        fl_runtime::idle(async {
            loop {
                // Published again within the second in which it was published before, an artifact looks the same: no news of it comes.
                let _ = tokio::time::timeout(SAME_SECOND, news.heard()).await;
                let opened = self.trees.open(artifact, &owner).await;
                let unsettled = matches!(opened, Err(ArtifactError::NotFound | ArtifactError::Digest { .. }));
                if !unsettled || Instant::now() >= until {
                    return opened;
                }
            }
        })
        .await
    }

    async fn finish_steps(
        &self,
        pass: &mut Pass<Kustomization>,
        plan: &Plan,
        revision: &Revision,
        target: &Target,
        built: &Built,
    ) -> Result<(), Stop> {
        match self.push(pass, plan, revision, target, built).await {
            Ok(()) => Ok(()),
            Err(Failure::Canceled(message)) => {
                pass.object.mark_false(types::READY, reasons::HEALTH_CHECK_CANCELED, &message);
                let text = format!(
                    "Health checks canceled due to new reconciliation {}",
                    message.trim_start_matches("New reconciliation ")
                );
                event(pass, EventKind::Normal, &text, revision);
                Err(Stop::Quiet(Outcome::now()))
            }
            Err(Failure::Error { reason, message }) => Err(failed(pass, reason, message)),
        }
    }

    /// The last build, when this pass is only the interval: same artifact, spec and variables, ready before, nothing requested.
    async fn quiet_run(&self, pass: &Pass<Kustomization>, artifact: &Artifact) -> Option<Arc<Built>> {
        let object = &pass.object;
        let applied = object.status.as_ref()?.last_applied_revision.as_deref();
        let same = applied == Some(artifact.revision.as_str())
            && object.is_ready()
            && object.observed_generation() == Some(object.generation())
            && !pass.requested()
            && object.spec.decryption.is_none()
            && object.spec.kube_config.is_none();
        if !same || self.drift.full_pass_is_due(&pass.key(), self.options.full_pass) {
            return None;
        }
        let variables = dereference::variables(object, &self.runtime).await.ok()?;
        let digest = artifact.digest.as_ref()?.to_string();
        self.builds.same_artifact(&pass.key(), &inputs(object, Some(&variables)), &digest)
    }

    /// Looks for drift without telling anybody. None: something has to be done.
    async fn unchanged(
        &self,
        pass: &mut Pass<Kustomization>,
        plan: &Plan,
        _artifact: &Artifact,
        _revision: &Revision,
        built: &Built,
    ) -> Option<Result<(), Stop>> {
        let target = self.targets.of(&pass.object, &self.options).await.ok()?;
        let unchanged = self.is_unchanged(pass, plan, &target, built).await;
        unchanged.then_some(Ok(()))
    }

    async fn keys(&self, object: &Kustomization) -> Result<Option<KeyMaterial>, String> {
        let Some(decryption) = &object.spec.decryption else { return Ok(None) };
        let (namespace, name, own) = match &decryption.secret_ref {
            Some(secret) => (object.namespace(), secret.name.as_str(), false),
            None if !self.options.sops_age_secret.is_empty() => (
                self.runtime.options().runtime_namespace.as_str(),
                self.options.sops_age_secret.as_str(),
                true,
            ),
            None => return Ok(Some(KeyMaterial::default())),
        };
        let data = match dereference::secret_data(&self.runtime, namespace, name).await {
            Ok(data) => data,
            Err(error) if error.is_not_found() => return Err(error.to_string()),
            Err(error) => {
                return Err(format!("cannot get sops decryption Secret '{namespace}/{name}': {error}"));
            }
        };
        let kind = if own { "sops SOPS age" } else { "sops" };
        let place = format!("{kind} decryption Secret '{namespace}/{name}'");
        let import = if own { KeyMaterial::import_age } else { KeyMaterial::import };
        import(&data, &place).map(Some)
    }
}

fn failed(pass: &mut Pass<Kustomization>, reason: &str, message: String) -> Stop {
    pass.object.mark_false(types::READY, reason, &message);
    Stop::Failed(message)
}

/// A print of everything beside the files that decides what a build makes.
fn inputs(object: &Kustomization, variables: Option<&dereference::Variables>) -> [u8; 32] {
    let spec = serde_json::to_string(&object.spec).unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    hasher.update(spec.as_bytes());
    for (key, value) in variables.into_iter().flat_map(fl_types::Secret::expose) {
        hasher.update(&(key.len() as u64).to_le_bytes()).update(key.as_bytes());
        hasher.update(&(value.len() as u64).to_le_bytes()).update(value.as_bytes());
    }
    *hasher.finalize().as_bytes()
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

    async fn reconcile(&self, pass: &mut Pass<Kustomization>) -> Outcome {
        self.run(pass).await
    }

    async fn delete(&self, pass: &mut Pass<Kustomization>) -> Result<(), Outcome> {
        let key = pass.key();
        delete::delete(self, pass).await?;
        self.builds.forget(&key);
        self.drift.forget(&key);
        self.newcomers().remove(&key);
        Ok(())
    }

    fn finish(&self, pass: &mut Pass<Kustomization>, end: End, outcome: &mut Outcome) {
        let quiet = pass.original.status == pass.object.status && end == End::Reconciled;
        if let Some(requested) = pass.object.requested_at().map(str::to_owned) {
            pass.object.status_head().last_handled.replace(requested);
        }
        let object = &mut pass.object;
        if object.is_true(types::READY) {
            object.remove_condition(types::RECONCILING);
            let generation = object.metadata.generation;
            object.status.get_or_insert_default().observed_generation = generation;
        }
        if object.is_false(types::READY) {
            object.mark_retrying();
        }
        if end == End::Reconciled && !quiet && pass.object.is_ready() {
            finished(pass, pass.started.elapsed());
        }
        // A Kustomization that failed is not backed off; its retry interval says when.
        if outcome.next == fl_runtime::Next::Backoff && end == End::Reconciled {
            outcome.error.get_or_insert_with(|| "the pass failed".to_owned());
        }
    }
}

/// How long a new Kustomization waits for the first artifact of its source before it says that there is none.
const FIRST_ARTIFACT: Duration = Duration::from_secs(1);

/// How long after its start a process waits for artifacts that it does not find.
const SOURCES_RETURN: Duration = Duration::from_secs(10);

/// How often an artifact is looked for again while no news of its source comes.
const SAME_SECOND: Duration = Duration::from_secs(1);
