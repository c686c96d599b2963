//! The controller: what the runtime calls for every HelmRelease.

use std::sync::Arc;

use fl_api::condition::{reasons, types};
use fl_api::helm::HelmRelease;
use fl_runtime::{
    ArtifactFetcher, Completed, ConditionPolicy, Conditions, Context, Edge, EventKind, Key, Kind, Names,
    ObservedGeneration, ReconcileError, ReconcileResult, Reconciled, Reconciler, RemoteOptions, Requeue,
    Resolver, Runtime,
};
use fl_targets::{OwnedObjectWatcher, Targets};
use serde_json::{Map, Value};

use crate::action::LoadedChart;
use crate::action::interrupt::Interrupt;
use crate::action::storage::Storage;
use crate::action::wait::Health;
use crate::annotations::reset_requested;
use crate::chart_cache::ChartCache;
use crate::chart_template::{self, AppliedCharts};
use crate::dereference::ReleaseInputs;
use crate::error::{DeleteError, StepError};
use crate::history::ReleaseHistory;
use crate::release::{AtomicRelease, ReleaseResult, Shared};
use crate::source;
use crate::spec::{Defaults, ReleaseSpec};
use crate::target::{self, Target};
use crate::uninstall::target_changed;
use crate::validate::validate;

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
    pub(crate) fetcher: ArtifactFetcher,
    pub(crate) resolver: Resolver,
    pub(crate) targets: Targets,
    pub(crate) owned_objects: Arc<OwnedObjectWatcher>,
    pub(crate) charts: ChartCache,
    applied: AppliedCharts,
    pub(crate) shared: Shared,
    pub(crate) track_digest: bool,
    cancels_health_checks: bool,
}

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
        let owned_objects = OwnedObjectWatcher::start(runtime, target::OWNER, true);
        let gates = &runtime.options().gates;
        let defaults = Defaults {
            helm3: gates.enabled("UseHelm3Defaults"),
            retry_on_failure: gates.enabled("DefaultToRetryOnFailure"),
        };
        Self {
            fetcher,
            resolver,
            targets: Targets::new(runtime, target::options(&settings)).observed_by(owned_objects.clone()),
            owned_objects,
            charts: ChartCache::default(),
            applied: AppliedCharts::default(),
            shared: Shared { defaults, override_managers: settings.override_managers, ..Shared::default() },
            track_digest: !gates.enabled("DisableChartDigestTracking"),
            cancels_health_checks: gates.enabled("CancelHealthCheckOnNewRevision"),
        }
    }

    /// One reconcile: validate, dereference, then release until the state of the release is the desired one.
    async fn run(&self, cx: &mut Context<HelmRelease>) -> Result<Completed, StepError> {
        self.owned_objects.set_drift_detection(&cx.key(), cx.object.detects_drift());
        let health = validate(cx)?;
        chart_template::reconcile(cx, self.targets.local(), &self.applied).await?;
        cx.object.mark_reconciling(reasons::PROGRESSING, "Fulfilling prerequisites");
        cx.progress();
        let Some(inputs) = self.dereference(cx).await? else {
            return Ok(Completed::Requeue(Requeue::Immediately));
        };
        if let Some(reason) = target_changed(&cx.object, inputs.chart.name()) {
            cx.log.info(&format!(
                "release target configuration changed ({reason}): running uninstall for current release"
            ));
            self.abandon_target(cx, &inputs.target, &health).await?;
            return Ok(Completed::Requeue(Requeue::Immediately));
        }
        record_attempt(cx, &inputs.chart, inputs.digest.clone(), &inputs.values);
        self.release(cx, inputs, health).await
    }

    /// Uninstalls the release from the target it no longer has.
    async fn abandon_target(
        &self,
        cx: &mut Context<HelmRelease>,
        target: &Target,
        health: &Health,
    ) -> Result<(), StepError> {
        self.uninstall(cx, target, health).await.map_err(StepError::Uninstall)?;
        let status = cx.object.status.get_or_insert_default();
        status.clear();
        (status.failures, status.install_failures, status.upgrade_failures) = (None, None, None);
        status.storage_namespace = None;
        Ok(())
    }

    /// Runs actions until the release is in the desired state.
    async fn release(
        &self,
        cx: &mut Context<HelmRelease>,
        inputs: ReleaseInputs,
        health: Health,
    ) -> Result<Completed, StepError> {
        let ReleaseInputs { chart, revision, values, target, .. } = inputs;
        let interrupt = match self.cancels_health_checks {
            true => Interrupt::new(cx, &self.resolver, &revision),
            false => Interrupt::default(),
        };
        let storage = {
            let object = &cx.object;
            Storage::new(target.cluster.clone(), object.storage_namespace(), &object.helm_name())
        };
        let is_local = target.is_local();
        let shared = &self.shared;
        let mut release = AtomicRelease {
            cx,
            shared,
            target,
            storage,
            chart,
            values,
            health,
            interrupt: &interrupt,
            just_released: false,
        };
        match release.run().await? {
            ReleaseResult::Done => {
                if is_local {
                    self.watch_objects(cx);
                }
                Ok(Completed::Done)
            }
            ReleaseResult::Requeue => Ok(Completed::Requeue(Requeue::Immediately)),
            ReleaseResult::Canceled { trigger } => {
                report_canceled(cx, &trigger);
                Ok(Completed::Requeue(Requeue::Immediately))
            }
            ReleaseResult::RetryAfter(delay) => Ok(Completed::Requeue(Requeue::Interval(delay))),
        }
    }
}

/// Reports that health checks were canceled.
fn report_canceled(cx: &mut Context<HelmRelease>, trigger: &str) {
    let message = format!("New reconciliation triggered by {trigger}");
    cx.object.mark_false(types::READY, reasons::HEALTH_CHECK_CANCELED, &message);
    cx.log.with([("trigger", trigger.into())]).info("New reconciliation triggered, canceling health checks");
    let message = format!("Health checks canceled due to new reconciliation triggered by {trigger}");
    cx.event(EventKind::Normal, reasons::HEALTH_CHECK_CANCELED, &message);
}

/// Records what is released now. Failures of another generation, chart or other values do not count for it.
fn record_attempt(
    cx: &mut Context<HelmRelease>,
    chart: &LoadedChart,
    digest: Option<String>,
    values: &Map<String, Value>,
) {
    let config = fl_helm_storage::values_digest(values);
    let generation = cx.object.metadata.generation;
    let reset = reset_requested(&mut cx.object);
    let storage = cx.object.storage_namespace().to_owned();
    let status = cx.object.status.get_or_insert_default();
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

    fn policy(&self, _object: &HelmRelease) -> ConditionPolicy {
        ConditionPolicy::Ready {
            progressing_with_retry: false,
            observed_generation: ObservedGeneration::WhenSettled,
        }
    }

    async fn reconcile(&self, cx: &mut Context<HelmRelease>) -> ReconcileResult {
        let requeue = cx.runtime.options().requeue_dependency;
        self.run(cx).await.map_err(|error| error.into_result(requeue))
    }

    async fn delete(&self, cx: &mut Context<HelmRelease>) -> Result<(), ReconcileError> {
        if cx.object.suspended() {
            return Ok(());
        }
        self.delete_release(cx).await?;
        chart_template::reconcile(cx, self.targets.local(), &self.applied)
            .await
            .map_err(DeleteError::from)?;
        Ok(())
    }
}
