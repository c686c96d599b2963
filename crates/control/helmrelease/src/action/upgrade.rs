//! Upgrade: a further revision of a release.

use std::sync::Arc;

use fl_apply::Propagation;
use fl_helm::{CompiledChart, JsonValue};
use fl_helm_storage::{GoTime, Info, Release, Status};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::apply::Method;
use super::error::ActionError;
use super::hooks::HookRun;
use super::ownership::{self, Existing};
use super::resources::{Resource, build, set_release_metadata};
use super::wait::{self, WaitOptions};
use super::{Configuration, LoadedChart, apply_method, coalesce};
use crate::spec::{ReleaseSpec, crds_policy, server_side};

/// The current and the new release of an upgrade.
struct UpgradePlan {
    original: Release,
    upgraded: Release,
    server_side: bool,
}

impl Configuration<'_> {
    /// Upgrades the release. `Storage::observed` has what was stored, also after an error.
    pub(crate) async fn upgrade(
        &mut self,
        chart: &LoadedChart,
        values: &Map<String, Value>,
    ) -> Result<(), ActionError> {
        let options = self.object.upgrade();
        let name = self.storage.name().to_owned();
        let none = || ActionError::failed(format!("{name:?} has no deployed releases"));
        let last = match self.storage.last().await {
            Err(ActionError::NotFound) => return Err(none()),
            other => other?,
        };
        let server_side = server_side(options.server_side_apply, last.applied_by_server());
        let wait_options = WaitOptions {
            wait: self.object.wait(options.disable_wait, self.defaults),
            timeout: self.object.timeout_of(options.timeout),
            jobs: !options.disable_wait_for_jobs.unwrap_or(false),
        };
        self.apply_crds(crds_policy(options.crds), &chart.compiled, values, server_side, wait_options.wait)
            .await
            .map_err(|error| error.within("failed to apply CustomResourceDefinitions"))?;
        self.log.note("preparing upgrade", &[("name", &name)]);
        let mut plan = self.prepare_upgrade(chart, values, last, server_side).await?;
        self.log.note("performing update", &[("name", &name)]);
        let (current, targets, existing) = self.upgrade_objects(&plan).await?;
        self.log.note("creating upgraded release", &[("name", &name)]);
        self.storage.create(&plan.upgraded, self.object.max_history()).await?;
        let result = self.perform_upgrade(&mut plan, &current, &targets, &existing, wait_options).await;
        match result {
            Ok(()) => {
                plan.original.info.status = Status::Superseded;
                self.record(&plan.original).await;
                plan.upgraded.set_status(Status::Deployed, "Upgrade complete");
                self.storage.update(&plan.upgraded).await
            }
            Err((error, created)) => self.fail_upgrade(plan.upgraded, error, created).await,
        }
    }

    async fn prepare_upgrade(
        &mut self,
        chart: &LoadedChart,
        values: &Map<String, Value>,
        last: Release,
        server_side: bool,
    ) -> Result<UpgradePlan, ActionError> {
        let options = self.object.upgrade();
        if last.info.status.is_pending() {
            return Err(ActionError::failed("another operation (install/upgrade/rollback) is in progress"));
        }
        let history = self.storage.history().await?;
        let revision = history.next_version();
        let original = match (&last.info.status, history.deployed()) {
            (Status::Deployed, _) => last.clone(),
            (_, Some(deployed)) => deployed.clone(),
            // An interrupted uninstall leaves objects behind, as a failure does.
            (Status::Failed | Status::Superseded | Status::Uninstalling, None) => last.clone(),
            (_, None) => {
                return Err(ActionError::failed(format!("{:?} has no deployed releases", last.name)));
            }
        };
        let (chart, values) = if options.preserve_values.unwrap_or(false) {
            self.log.note("reusing the old release's values", &[]);
            reuse_values(chart, &original, values)
        } else {
            (chart.clone(), values.clone())
        };
        let skip_schema = options.disable_schema_validation.unwrap_or(false);
        let rendered = self.render(&chart, &values, revision, true, skip_schema).await?;
        let upgraded = Release {
            name: last.name.clone(),
            info: Info {
                first_deployed: original.info.first_deployed.clone(),
                last_deployed: GoTime::at(Timestamp::now()),
                description: "Preparing upgrade".to_owned(),
                status: Status::PendingUpgrade,
                notes: rendered.notes,
                ..Info::default()
            },
            chart: rendered.chart,
            config: values,
            manifest: rendered.manifest,
            hooks: rendered.hooks,
            version: revision,
            namespace: original.namespace.clone(),
            apply_method: apply_method(server_side),
            labels: last.labels.into_iter().filter(|(_, value)| value != "null").collect(),
        };
        Ok(UpgradePlan { original, upgraded, server_side })
    }

    /// The objects of both revisions, and those of the new one that exist already.
    async fn upgrade_objects(
        &self,
        plan: &UpgradePlan,
    ) -> Result<(Vec<Resource>, Vec<Resource>, Existing), ActionError> {
        let namespace = self.namespace;
        let mut targets = build(self.cluster, &plan.upgraded.manifest, namespace)
            .await
            .map_err(|error| error.within("unable to build kubernetes objects from new release manifest"))?;
        let mut current = build(self.cluster, &plan.original.manifest, namespace).await.map_err(|error| {
            let removed = error.to_string().contains("no matches for kind");
            error.within(if removed {
                "current release manifest contains removed kubernetes api(s) for this kubernetes version and it is \
                 therefore unable to build the kubernetes objects for performing the diff. error from kubernetes"
            } else {
                "unable to build kubernetes objects from current release manifest"
            })
        })?;
        let (name, place) = (&plan.upgraded.name, &plan.upgraded.namespace);
        for target in &mut targets {
            set_release_metadata(&mut target.object, name, place);
        }
        let new: Vec<Resource> =
            targets.iter().filter(|target| !current.iter().any(|known| known.is(target))).cloned().collect();
        let take = !self.object.upgrade().disable_take_ownership.unwrap_or(false);
        let existing = ownership::existing(self.cluster, &new, take, name, place)
            .await
            .map_err(|error| error.within("unable to continue with update"))?;
        current.extend(new.into_iter().filter(|target| existing.contains_key(&target.reference.id)));
        Ok((current, targets, existing))
    }

    async fn perform_upgrade(
        &mut self,
        plan: &mut UpgradePlan,
        current: &[Resource],
        targets: &[Resource],
        existing: &Existing,
        wait_options: WaitOptions,
    ) -> Result<(), (ActionError, Vec<Resource>)> {
        let options = self.object.upgrade();
        let server_side = plan.server_side;
        let hooks = !options.disable_hooks.unwrap_or(false);
        let run = |event| HookRun {
            event,
            wait: wait_options.wait,
            timeout: wait_options.timeout,
            server_side,
            only: None,
        };
        if hooks {
            let ran = self.run_hooks(&mut plan.upgraded, run("pre-upgrade")).await;
            ran.map_err(|error| (error.within("pre-upgrade hooks failed"), Vec::new()))?;
        } else {
            self.log.note("upgrade hooks disabled", &[("name", &plan.upgraded.name)]);
        }
        let method = match (server_side, options.force.unwrap_or(false)) {
            (true, _) => Method::Apply { force: true },
            (false, true) => Method::Replace,
            (false, false) => Method::Patch { three_way: false },
        };
        let migrate_managed_fields = server_side && !plan.original.applied_by_server();
        self.progress(&format!("Applying {} objects", targets.len()));
        let (written, result) = self
            .writer(&plan.upgraded)
            .update(current, targets, method, migrate_managed_fields, existing)
            .await;
        if let Err(error) = result {
            self.record(&plan.original).await;
            return Err((error, written.created));
        }
        self.progress(&format!("Waiting for {} objects", targets.len()));
        let ready =
            wait::ready(self.cluster, &self.health, targets, &written.live, wait_options, self.interrupt)
                .await;
        if let Err(error) = ready {
            self.record(&plan.original).await;
            return Err((error, written.created));
        }
        if hooks {
            let ran = self.run_hooks(&mut plan.upgraded, run("post-upgrade")).await;
            ran.map_err(|error| (error.within("post-upgrade hooks failed"), written.created))?;
        }
        Ok(())
    }

    async fn fail_upgrade(
        &mut self,
        mut release: Release,
        error: ActionError,
        created: Vec<Resource>,
    ) -> Result<(), ActionError> {
        self.log.note("warning: upgrade failed", &[("name", &release.name), ("error", &error)]);
        release.set_status(Status::Failed, format!("Upgrade {:?} failed: {error}", release.name));
        self.record(&release).await;
        if self.object.upgrade().cleanup_on_fail.unwrap_or(false) && !created.is_empty() {
            self.log.note("cleanup on fail set", &[("cleaning_resources", &created.len())]);
            let cleaned = self.writer(&release).delete(&created, Propagation::Background).await;
            if let Err(errors) = cleaned {
                return Err(ActionError::failed(format!(
                    "an error occurred while cleaning up resources. original upgrade error: {error}: \
                     unable to cleanup resources: {}",
                    errors.join(", ")
                )));
            }
        }
        Err(error)
    }
}

/// `preserveValues`: keeps values of the last release that the new ones do not set.
fn reuse_values(
    chart: &LoadedChart,
    current: &Release,
    values: &Map<String, Value>,
) -> (LoadedChart, Map<String, Value>) {
    let mut defaults = current.config.clone();
    if let Value::Object(old) = current.chart.values() {
        coalesce(&mut defaults, &old);
    }
    let mut kept = values.clone();
    coalesce(&mut kept, &current.config);
    let tree = JsonValue::from_json(&Value::Object(defaults));
    let mut changed = chart.compiled.chart().clone();
    changed.values = tree.clone();
    let chart = LoadedChart {
        compiled: Arc::new(CompiledChart::new(changed)),
        record: chart.record.clone().with_values(&tree),
        version: chart.version.clone(),
    };
    (chart, kept)
}
