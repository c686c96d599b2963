//! The controller: what the runtime calls for every HelmRelease.

use std::sync::Arc;

use fl_api::condition::{reasons, types};
use fl_api::helm::HelmRelease;
use fl_api::helm::helm_release::ReleaseSnapshot;
use fl_api::meta::artifact::Artifact;
use fl_http::Owner;
use fl_runtime::{
    ArtifactFetcher, Conditions, Edge, End as PassEnd, EventKind, Key, Kind, Names, Next, Outcome, Pass,
    Reconciled, Reconciler, RemoteOptions, Resolver, Runtime,
};
use serde_json::{Map, Value};

use crate::action::LoadedChart;
use crate::action::log::ActionLog;
use crate::action::post_render::owner_labels;
use crate::action::records::Records;
use crate::action::wait::Health;
use crate::action::{Action, ActionError};
use crate::chart::{ChartError, Charts, version_of_revision};
use crate::dependencies::{self, Waits};
use crate::release::{End, Machine, Shared, is_own, record_changes, record_release, summarize};
use crate::requests::reset_requested;
use crate::snapshots::{Snapshots, full_name, is_of, versioned_chart};
use crate::source::{self, AppliedCharts, SourceError};
use crate::spec::{Asked, Defaults};
use crate::target::{Target, TargetError, Targets, identity};
use crate::values;
use crate::watch::Watching;

/// How the controller is set up beside what all controllers share.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `--override-manager`: managers whose fields are taken back before drift is looked for.
    pub override_managers: Vec<String>,
    /// What kubeconfigs of Secrets may do.
    pub kube_config: RemoteOptions,
    /// `--default-kubeconfig-service-account`: for remote clusters whose ConfigMap names no account.
    pub default_kube_config_account: String,
}

/// Reconciles HelmReleases.
#[derive(Debug)]
pub struct HelmReleaseController {
    fetcher: ArtifactFetcher,
    resolver: Resolver,
    targets: Targets,
    watching: Arc<Watching>,
    charts: Charts,
    applied: AppliedCharts,
    shared: Shared,
    track_digest: bool,
}

const TERMINAL: &str = "Reconciliation failed terminally due to configuration error";
const IN_PROGRESS: &str = "reconciliation in progress";
const OWNED: [&str; 7] = [
    types::RELEASED,
    types::REMEDIATED,
    types::TEST_SUCCESS,
    types::RECONCILING,
    types::READY,
    types::STALLED,
    types::DRIFTED,
];

impl HelmReleaseController {
    /// A controller on a runtime.
    pub fn new(runtime: &Runtime, resolver: Resolver, fetcher: ArtifactFetcher, settings: Settings) -> Self {
        let watching = Watching::start(runtime);
        let gates = &runtime.options().gates;
        let defaults = Defaults {
            helm3: gates.enabled("UseHelm3Defaults"),
            retry_on_failure: gates.enabled("DefaultToRetryOnFailure"),
        };
        Self {
            fetcher,
            resolver,
            targets: Targets::new(
                runtime,
                watching.clone(),
                settings.kube_config,
                settings.default_kube_config_account,
            ),
            watching,
            charts: Charts::default(),
            applied: AppliedCharts::default(),
            shared: Shared { defaults, override_managers: settings.override_managers, ..Shared::default() },
            track_digest: !gates.enabled("DisableChartDigestTracking"),
        }
    }

    async fn run(&self, pass: &mut Pass<HelmRelease>) -> Outcome {
        self.watching.register(&pass.object);
        let checks = pass.object.spec.health_check_exprs.clone().unwrap_or_default();
        let health = match Health::compile(&checks) {
            Ok(health) => health,
            Err(error) => return terminal(pass, reasons::INVALID_CEL_EXPRESSION, &error.to_string()),
        };
        if let Err(error) = source::chart_template(pass, self.targets.own(), &self.applied).await {
            return Outcome::backoff(error);
        }
        if pass.object.rollback().recreate.unwrap_or(false) {
            pass.log.info("warning: the .spec.rollback.recreate field is deprecated and has no effect");
        }
        pass.object.mark_reconciling(reasons::PROGRESSING, "Fulfilling prerequisites");
        pass.progress();
        let (chart, digest, values) = match self.prerequisites(pass).await {
            Ok(found) => found,
            Err(outcome) => return outcome,
        };
        let target = match self.targets.of(&pass.runtime, &pass.object).await {
            Ok(target) => target,
            Err(TargetError::Missing(error) | TargetError::Unusable(error)) => {
                pass.object.mark_false(types::READY, "RESTClientError", &error);
                return Outcome::backoff(error);
            }
        };
        settled(pass, &["RESTClientError"]);
        if let Some(reason) = target_changed(&pass.object, chart.name()) {
            pass.log.info(&format!(
                "release target configuration changed ({reason}): running uninstall for current release"
            ));
            if let Err(error) = self.uninstall(pass, &target, &health).await {
                return Outcome::backoff(error.to_string());
            }
            let status = pass.object.status.get_or_insert_default();
            status.clear();
            (status.failures, status.install_failures, status.upgrade_failures) = (None, None, None);
            status.storage_namespace = None;
            return Outcome::now();
        }
        self.note_attempt(pass, &chart, digest, &values);
        let records = {
            let object = &pass.object;
            Records::new(target.cluster.clone(), object.storage_namespace(), &object.helm_name())
        };
        let interval = pass.object.interval().unwrap_or_default();
        let shared = &self.shared;
        let mut machine =
            Machine { pass, shared, target, records, chart, values, health, just_released: false };
        match machine.run().await {
            End::Done => {
                if machine.target.key.is_empty() {
                    let (runtime, object) = (&machine.pass.runtime, &machine.pass.object);
                    self.watching.follow(runtime, self.targets.own(), object).await;
                }
                Outcome::interval(interval)
            }
            End::Again => Outcome::now(),
            // With jitter, as the interval has it.
            End::RetryAfter(delay) => Outcome::interval(delay),
            End::Stalled(error) => Outcome { next: Next::Never, error: Some(error) },
            End::Failed(error) => Outcome::backoff(error),
        }
    }

    /// Dependencies, source, values and chart, in Flux's order.
    async fn prerequisites(
        &self,
        pass: &mut Pass<HelmRelease>,
    ) -> Result<(LoadedChart, Option<String>, Map<String, Value>), Outcome> {
        let requeue = pass.runtime.options().requeue_dependency;
        match dependencies::check(pass).await {
            Ok(()) => settled(pass, &[reasons::DEPENDENCY_NOT_READY]),
            Err(Waits::Never(error)) => {
                let error = format!("terminal error: {error}");
                return Err(terminal(pass, reasons::INVALID_CEL_EXPRESSION, &error));
            }
            Err(Waits::Denied(error)) => {
                pass.object.mark_stalled(reasons::ACCESS_DENIED, &error);
                pass.object.mark_false(types::READY, reasons::ACCESS_DENIED, &error);
                pass.event(EventKind::Warning, reasons::ACCESS_DENIED, &error);
                return Err(Outcome { next: Next::Never, error: Some(error) });
            }
            Err(Waits::NotReady(error)) => {
                pass.object.mark_false(types::READY, reasons::DEPENDENCY_NOT_READY, &error);
                pass.event(EventKind::Normal, reasons::DEPENDENCY_NOT_READY, &error);
                pass.log.info(&format!(
                    "dependencies do not meet ready condition ({error}): retrying in {}",
                    fl_types::Duration::from(requeue)
                ));
                return Err(Outcome::after(requeue));
            }
        }
        let found = match source::find(pass, &self.resolver).await {
            Ok(found) => found,
            Err(SourceError::Denied(error)) => {
                pass.object.mark_stalled(reasons::ACCESS_DENIED, &error);
                pass.object.mark_false(types::READY, reasons::ACCESS_DENIED, &error);
                pass.event(EventKind::Warning, reasons::ACCESS_DENIED, &error);
                return Err(Outcome { next: Next::Never, error: Some(error) });
            }
            Err(SourceError::Unavailable(error)) => {
                let message = format!("could not get Source object: {error}");
                pass.object.mark_false(types::READY, reasons::ARTIFACT_FAILED, &message);
                return Err(Outcome::backoff(error));
            }
        };
        settled(pass, &[reasons::ACCESS_DENIED, reasons::ARTIFACT_FAILED]);
        let artifact = match source::usable(&found) {
            Ok(artifact) => artifact,
            Err(message) => {
                pass.log.info(&message);
                pass.object.mark_false(types::READY, "SourceNotReady", &message);
                return Err(Outcome::after(requeue));
            }
        };
        settled(pass, &["SourceNotReady"]);
        let values = values::resolve(pass.cluster(), &pass.object).await.map_err(|error| {
            pass.object.mark_false(types::READY, "ValuesError", &error.to_string());
            pass.event(EventKind::Warning, "ValuesError", &error.to_string());
            Outcome::backoff(error.to_string())
        })?;
        settled(pass, &["ValuesError"]);
        let owner = Owner::namespace(found.key.namespace());
        let loaded = tokio::select! {
            loaded = self.load(&artifact, &owner) => loaded,
            () = source::moved(pass, &self.resolver, &artifact) => return Err(Outcome::now()),
        };
        let chart = match loaded {
            Ok(chart) => chart,
            Err(ChartError::Missing) => {
                let message = format!(
                    "Source not ready: artifact not found. Retrying in {}",
                    fl_types::Duration::from(requeue)
                );
                pass.object.mark_false(types::READY, reasons::ARTIFACT_FAILED, &message);
                pass.log.info(&message);
                return Err(Outcome::after(requeue));
            }
            Err(ChartError::Replaced(error) | ChartError::Unusable(error)) => {
                let message = format!("Could not load chart: {error}");
                pass.object.mark_false(types::READY, reasons::ARTIFACT_FAILED, &message);
                pass.event(EventKind::Warning, reasons::ARTIFACT_FAILED, &error);
                return Err(Outcome::backoff(error));
            }
        };
        settled(pass, &[reasons::ARTIFACT_FAILED]);
        if !source::has_digest(&found, &artifact) {
            return Ok((chart, None, values));
        }
        match version_of_revision(&chart.version, &artifact.revision) {
            Ok((version, digest)) if self.track_digest => {
                let id = artifact.digest.as_ref().map(ToString::to_string).unwrap_or_default();
                Ok((self.charts.with_version(chart, &id, &version), Some(digest), values))
            }
            Ok((_, digest)) => Ok((chart, Some(digest), values)),
            Err(error) => {
                pass.object.mark_false(types::READY, "ChartMutateError", &error);
                Err(Outcome::backoff(error))
            }
        }
    }

    /// The chart of an artifact. A source that packs it anew replaces the file before its status says so; that is waited for.
    async fn load(&self, artifact: &Artifact, owner: &Owner) -> Result<LoadedChart, ChartError> {
        let first = self.charts.load(&self.fetcher, artifact, owner).await;
        if !matches!(first, Err(ChartError::Replaced(_))) {
            return first;
        }
        fl_runtime::idle(tokio::time::sleep(fl_runtime::STATUS_FOLLOWS)).await;
        self.charts.load(&self.fetcher, artifact, owner).await
    }

    /// Failures of other circumstances are forgotten; what is tried now is noted.
    fn note_attempt(
        &self,
        pass: &mut Pass<HelmRelease>,
        chart: &LoadedChart,
        digest: Option<String>,
        values: &Map<String, Value>,
    ) {
        let config = fl_release::values_digest(values);
        let generation = pass.object.metadata.generation;
        let reset = reset_requested(&mut pass.object);
        let storage = pass.object.storage_namespace().to_owned();
        let status = pass.object.status.get_or_insert_default();
        let other = status.last_attempted_generation != generation
            || status.last_attempted_revision.as_deref().unwrap_or_default() != chart.version
            || status.last_attempted_config_digest.as_deref().is_some_and(|known| known != config);
        if other || reset {
            (status.failures, status.install_failures, status.upgrade_failures) = (None, None, None);
        }
        status.storage_namespace = Some(storage);
        status.last_attempted_generation = generation;
        status.last_attempted_revision = Some(chart.version.clone());
        status.last_attempted_revision_digest = digest;
        status.last_attempted_config_digest = Some(config);
        status.last_attempted_values_checksum = None;
        status.last_release_revision = None;
    }

    /// Uninstalls the release the status names.
    async fn uninstall(
        &self,
        pass: &mut Pass<HelmRelease>,
        target: &Target,
        health: &Health,
    ) -> Result<(), ActionError> {
        let status = pass.object.status.clone().unwrap_or_default();
        let (Some(current), Some(storage)) = (status.latest().cloned(), status.storage_namespace) else {
            return Ok(());
        };
        let object = pass.object.clone();
        let log = ActionLog::default();
        let mut records = Records::new(target.cluster.clone(), &storage, &current.name);
        let mut action = Action {
            cluster: &target.cluster,
            cluster_key: target.key.clone(),
            records: &mut records,
            log: &log,
            health: health.clone(),
            capabilities: &self.shared.capabilities,
            object: &object,
            defaults: self.shared.defaults,
            // Where the release would be made now: of a release that moved, Helm looks there for objects that name no namespace
            // themselves, and leaves those of the old namespace behind.
            namespace: object.release_namespace(),
            owner: owner_labels(&object),
            listener: &|_: &str| {},
        };
        let mut result = action.uninstall().await;
        // An uninstall that fails half-way leaves records in another state than the history says.
        record_changes(&mut pass.object, &records.observed, Some("uninstall"), false);
        let name = full_name(&current);
        let keep = object.uninstall().keep_history.unwrap_or(false);
        match &result {
            Err(ActionError::NotFound) => {
                let message = format!("Release {name} was not found, assuming it is uninstalled");
                pass.object.mark_false(types::RELEASED, "UninstallSucceeded", &message);
                summarize(&mut pass.object);
                return Ok(());
            }
            Err(error) if keep && error.to_string().contains("is already deleted") => {
                let message = format!("Release {name} was already uninstalled");
                pass.object.mark_false(types::RELEASED, "UninstallSucceeded", &message);
                summarize(&mut pass.object);
                return Ok(());
            }
            Ok(release) if !is_of(&current, release) => {
                // A newer revision by somebody else was there; it is gone with the rest.
                result = Err(ActionError::failed(format!(
                    "release mismatch: uninstalled release {}/{}.v{} != current release {name}",
                    release.namespace, release.name, release.version
                )));
            }
            // Helm goes on when its storage cannot be written; then nothing says that the release has ended.
            Ok(_) if current.status != "uninstalled" && is_unchanged(&pass.object, &current) => {
                result = Err(ActionError::failed(
                    "uninstall completed with error: release not updated in Helm storage",
                ));
            }
            _ => {}
        }
        let chart = versioned_chart(&current);
        let data = crate::release::snapshot_data(&current);
        let outcome = match result {
            Ok(_) => {
                let message = format!("Helm uninstall succeeded for release {name} with chart {chart}");
                pass.object.status.get_or_insert_default().inventory = None;
                pass.object.mark_false(types::RELEASED, "UninstallSucceeded", &message);
                pass.event_with(EventKind::Normal, "UninstallSucceeded", &message, data);
                Ok(())
            }
            Err(error) => {
                let text = error.to_string();
                let message =
                    format!("Helm uninstall failed for release {name} with chart {chart}: {}", text.trim());
                let status = pass.object.status.get_or_insert_default();
                status.failures = Some(status.failures.unwrap_or(0) + 1);
                pass.object.mark_false(types::RELEASED, "UninstallFailed", &message);
                pass.event_with(EventKind::Warning, "UninstallFailed", &log.behind(&message), data);
                Err(error)
            }
        };
        summarize(&mut pass.object);
        outcome
    }

    async fn delete_release(&self, pass: &mut Pass<HelmRelease>) -> Result<(), Outcome> {
        let target = match self.targets.of(&pass.runtime, &pass.object).await {
            Ok(target) => target,
            Err(TargetError::Missing(error)) => {
                pass.log.error(&error, "skipping Helm release uninstallation");
                return Ok(());
            }
            Err(TargetError::Unusable(error)) => {
                let message = format!("failed to build REST client getter to uninstall release: {error}");
                pass.object.mark_false(types::READY, "UninstallFailed", &message);
                return Err(Outcome::backoff(error));
            }
        };
        if pass.object.spec.kube_config.is_none()
            && let Some(name) = identity(pass.runtime.options(), &pass.object).account()
        {
            let namespace = pass.object.own_namespace().to_owned();
            let found = pass.cluster().get(&Kind::service_account(), Some(&namespace), name).await;
            match found {
                Ok(_) => {}
                Err(error) if error.is_not_found() => {
                    pass.log.error(&error.to_string(), "skipping Helm release uninstallation");
                    return Ok(());
                }
                Err(error) => {
                    let message = format!(
                        "failed to confirm ServiceAccount '{name}' can be used to uninstall release: {error}"
                    );
                    pass.object.mark_false(types::READY, "UninstallFailed", &message);
                    return Err(Outcome::backoff(error.to_string()));
                }
            }
        }
        if pass.object.status.as_ref().and_then(|status| status.latest()).is_none() {
            self.find_unrecorded(pass, &target).await?;
        }
        let checks = pass.object.spec.health_check_exprs.clone().unwrap_or_default();
        let health = Health::compile(&checks).or_else(|_| Health::compile(&[]));
        let health = health.map_err(|error| Outcome::backoff(error.to_string()))?;
        self.uninstall(pass, &target, &health).await.map_err(|error| Outcome::backoff(error.to_string()))?;
        let status = pass.object.status.get_or_insert_default();
        status.clear();
        status.storage_namespace = None;
        Ok(())
    }

    /// Looks for a release that a pass made but did not live to write down, so that it goes with its object.
    async fn find_unrecorded(&self, pass: &mut Pass<HelmRelease>, target: &Target) -> Result<(), Outcome> {
        let storage = pass.object.storage_namespace().to_owned();
        let mut records = Records::new(target.cluster.clone(), &storage, &pass.object.helm_name());
        let last = match records.last().await {
            Ok(last) => last,
            // Who may not read records has not made any.
            Err(error) if error.is_forbidden() => return Ok(()),
            Err(ActionError::NotFound) => return Ok(()),
            Err(error) => return Err(Outcome::backoff(error.to_string())),
        };
        if !is_own(&records, &last, &pass.object) {
            pass.log.info("skipping Helm release uninstallation: no release of this object");
            return Ok(());
        }
        record_release(&mut pass.object, std::slice::from_ref(&last), "install");
        pass.object.status.get_or_insert_default().storage_namespace = Some(storage);
        Ok(())
    }
}

/// Whether name, place or chart of the release changed so that it must be made anew.
fn target_changed(object: &HelmRelease, chart: &str) -> Option<&'static str> {
    use fl_api::helm::actions::ChartNameChangeStrategy::InPlaceUpdate;
    let status = object.status.as_ref()?;
    let (latest, storage) = (status.latest()?, status.storage_namespace.as_deref()?);
    if object.storage_namespace() != storage {
        return Some("storage namespace");
    }
    if object.release_namespace() != latest.namespace {
        return Some("release namespace");
    }
    if object.helm_name() != latest.name {
        return Some("release name");
    }
    let in_place = object.upgrade().chart_name_change_strategy == Some(InPlaceUpdate);
    (chart != latest.chart_name && !in_place).then_some("chart name")
}

/// Whether the history still has a release as it was.
fn is_unchanged(object: &HelmRelease, known: &ReleaseSnapshot) -> bool {
    let latest = object.status.as_ref().and_then(|status| status.latest());
    latest.is_some_and(|latest| latest.digest == known.digest)
}

/// A prerequisite that failed before holds again.
fn settled(pass: &mut Pass<HelmRelease>, failures: &[&str]) {
    if pass.object.condition(types::READY).is_some_and(|ready| failures.contains(&ready.reason.as_str())) {
        pass.object.mark_unknown(types::READY, reasons::PROGRESSING, IN_PROGRESS);
    }
}

fn terminal(pass: &mut Pass<HelmRelease>, reason: &str, error: &str) -> Outcome {
    let message = format!("{TERMINAL}: {error}");
    pass.object.mark_false(types::READY, reason, &message);
    pass.object.mark_stalled(reason, &message);
    pass.event(EventKind::Warning, reason, error);
    Outcome { next: Next::Never, error: Some(error.to_owned()) }
}

impl Reconciler for HelmReleaseController {
    type Object = HelmRelease;

    fn names(&self) -> Names {
        Names { controller: "helmrelease", component: "helm-controller", field_manager: "helm-controller" }
    }

    fn owned_conditions(&self) -> &'static [&'static str] {
        &OWNED
    }

    fn target(&self, object: &HelmRelease) -> Option<fl_runtime::Target> {
        let kubeconfig = object.spec.kube_config.as_ref()?.name()?;
        Some((object.own_namespace().to_owned(), kubeconfig.to_owned()))
    }

    fn edges(&self, object: &HelmRelease) -> Vec<Edge> {
        let own = object.own_namespace();
        let mut edges = Vec::new();
        if let Some(reference) = source::reference(object) {
            let key = Resolver::key(&reference, own);
            edges.push(Edge::artifact(key.clone()));
            edges.push(Edge::ready(key));
        }
        let kind = Kind::of::<HelmRelease>();
        for dependency in object.spec.depends_on.iter().flatten() {
            let namespace = dependency.namespace.as_deref().filter(|n| !n.is_empty()).unwrap_or(own);
            edges.push(Edge::ready(kind.key(namespace, &dependency.name)));
        }
        let config = |kind: &str, name: &str| Edge::change(Key::new("", kind, own, name));
        for reference in object.spec.values_from.iter().flatten() {
            let kind = match reference.kind {
                fl_api::meta::references::ValuesKind::ConfigMap => "ConfigMap",
                fl_api::meta::references::ValuesKind::Secret => "Secret",
            };
            edges.push(config(kind, &reference.name));
        }
        if let Some(remote) = &object.spec.kube_config {
            edges.extend(remote.secret_ref.as_ref().map(|secret| config("Secret", &secret.name)));
            edges.extend(remote.config_map_ref.as_ref().map(|map| config("ConfigMap", &map.name)));
        }
        edges
    }

    async fn reconcile(&self, pass: &mut Pass<HelmRelease>) -> Outcome {
        self.run(pass).await
    }

    async fn delete(&self, pass: &mut Pass<HelmRelease>) -> Result<(), Outcome> {
        if pass.object.suspended() {
            return Ok(());
        }
        self.delete_release(pass).await?;
        source::chart_template(pass, self.targets.own(), &self.applied).await.map_err(Outcome::backoff)
    }

    fn finish(&self, pass: &mut Pass<HelmRelease>, end: PassEnd, outcome: &mut Outcome) {
        if let Some(requested) = pass.object.requested_at().map(str::to_owned) {
            pass.object.status.get_or_insert_default().last_handled_reconcile_at = Some(requested);
        }
        // A pass that waits for something, or comes back at once, has not settled the generation.
        let settled = end != PassEnd::Deleting && matches!(outcome.next, Next::Interval(_) | Next::Never);
        if settled {
            let generation = pass.object.metadata.generation;
            pass.object.status.get_or_insert_default().observed_generation = generation;
        }
    }
}
