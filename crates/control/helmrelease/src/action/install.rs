//! Install: the first revision of a release.

use fl_helm_storage::{GoTime, Info, Release, Status};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::apply::Method;
use super::error::ActionError;
use super::hooks::HookRun;
use super::ownership::{self, Existing};
use super::resources::{Resource, build, set_release_metadata};
use super::wait::{self, WaitOptions};
use super::{Configuration, LoadedChart, MANAGER, apply_method};
use crate::spec::{ReleaseSpec, crds_policy};
use fl_apply::Write;

impl Configuration<'_> {
    /// Installs a chart. `Storage::observed` has what was stored, also after an error.
    pub(crate) async fn install(
        &mut self,
        chart: &LoadedChart,
        values: &Map<String, Value>,
    ) -> Result<(), ActionError> {
        let options = self.object.install();
        let server_side = options.server_side_apply.unwrap_or(!self.defaults.helm3);
        let wait_options = WaitOptions {
            wait: self.object.wait(options.disable_wait, self.defaults),
            timeout: self.object.timeout_of(options.timeout),
            jobs: !options.disable_wait_for_jobs.unwrap_or(false),
        };
        self.apply_crds(crds_policy(options.crds), &chart.compiled, values, server_side, wait_options.wait)
            .await
            .map_err(|error| error.within("failed to apply CustomResourceDefinitions"))?;
        let replace = options.replace.unwrap_or(false);
        let revision = self.free_revision(replace).await?;
        let skip_schema = options.disable_schema_validation.unwrap_or(false);
        let rendered = self.render(chart, values, 1, false, skip_schema).await?;
        let now = GoTime::at(Timestamp::now());
        let mut release = Release {
            name: self.storage.name().to_owned(),
            info: Info {
                first_deployed: now.clone(),
                last_deployed: now,
                description: "Initial install underway".to_owned(),
                status: Status::PendingInstall,
                notes: rendered.notes,
                ..Info::default()
            },
            chart: rendered.chart,
            config: values.clone(),
            manifest: rendered.manifest,
            hooks: rendered.hooks,
            version: revision,
            namespace: self.namespace.to_owned(),
            apply_method: apply_method(server_side),
            ..Release::default()
        };
        let mut targets = build(self.cluster, &release.manifest, self.namespace)
            .await
            .map_err(|error| error.within("unable to build kubernetes objects from release manifest"))?;
        for target in &mut targets {
            set_release_metadata(&mut target.object, &release.name, &release.namespace);
        }
        let take = !options.disable_take_ownership.unwrap_or(false);
        let existing = ownership::existing(self.cluster, &targets, take, &release.name, &release.namespace)
            .await
            .map_err(|error| error.within("unable to continue with install"))?;
        if self.object.spec.target_namespace.is_some() && options.create_namespace.unwrap_or(false) {
            self.create_namespace(server_side).await?;
        }
        if replace {
            self.supersede_last().await?;
        }
        self.storage.create(&release, 0).await?;
        let hooks = !options.disable_hooks.unwrap_or(false);
        match self
            .perform_install(&mut release, &targets, &existing, server_side, take, wait_options, hooks)
            .await
        {
            Ok(()) => {
                release.set_status(Status::Deployed, "Install complete");
                self.record(&release).await;
                Ok(())
            }
            Err(error) => {
                release.set_status(Status::Failed, format!("Release {:?} failed: {error}", release.name));
                self.record(&release).await;
                Err(error)
            }
        }
    }

    /// The number of the new revision, if the name is free.
    async fn free_revision(&mut self, replace: bool) -> Result<i64, ActionError> {
        let free = self.next_revision(replace).await;
        free.map_err(|error| {
            self.log.note("release name check failed", &[("error", &error)]);
            error.within("release name check failed")
        })
    }

    async fn next_revision(&mut self, replace: bool) -> Result<i64, ActionError> {
        fl_helm::check_release_name(self.storage.name())?;
        let history = self.storage.history().await?;
        let next = history.next_version();
        match history.last().map(|last| &last.info.status) {
            // Revisions that cannot be read keep their numbers.
            None => Ok(next),
            Some(Status::Uninstalled | Status::Failed) if replace => Ok(next),
            Some(_) => Err(ActionError::failed("cannot reuse a name that is still in use")),
        }
    }

    async fn supersede_last(&mut self) -> Result<(), ActionError> {
        let Some(mut last) = self.storage.history().await?.last().cloned() else { return Ok(()) };
        if last.info.status != Status::Failed {
            last.set_status(Status::Superseded, "superseded by new release");
            self.storage.update(&last).await?;
        }
        Ok(())
    }

    async fn create_namespace(&self, server_side: bool) -> Result<(), ActionError> {
        let object = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": self.namespace, "labels": {"name": self.namespace}},
        });
        let write = Write { manager: MANAGER, ..Write::default() };
        if server_side {
            let target = build(self.cluster, &object.to_string(), "").await?;
            self.bare_writer().create(&target, Method::Apply { force: false }).await.map(drop)
        } else {
            match self.cluster.create(&object, &write).await {
                Err(error) if error.api().is_some_and(|api| api.code == 409) => Ok(()),
                other => other.map(drop).map_err(ActionError::from),
            }
        }
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the options of one action, each decided once by the caller"
    )]
    async fn perform_install(
        &mut self,
        release: &mut Release,
        targets: &[Resource],
        existing: &Existing,
        server_side: bool,
        take: bool,
        wait_options: WaitOptions,
        hooks: bool,
    ) -> Result<(), ActionError> {
        let run = |event| HookRun {
            event,
            wait: wait_options.wait,
            timeout: wait_options.timeout,
            server_side,
            only: None,
        };
        if hooks {
            let ran = self.run_hooks(release, run("pre-install")).await;
            ran.map_err(|error| error.within("failed pre-install"))?;
        }
        self.progress(&format!("Applying {} objects", targets.len()));
        let live = if existing.is_empty() {
            let method =
                if server_side { Method::Apply { force: false } } else { Method::Patch { three_way: false } };
            if targets.is_empty() { Vec::new() } else { self.writer(release).create(targets, method).await? }
        } else {
            let method =
                if server_side { Method::Apply { force: true } } else { Method::Patch { three_way: take } };
            let adopted: Vec<Resource> = targets
                .iter()
                .filter(|target| existing.contains_key(&target.reference.id))
                .cloned()
                .collect();
            let (written, result) =
                self.writer(release).update(&adopted, targets, method, server_side, existing).await;
            result?;
            written.live
        };
        self.progress(&format!("Waiting for {} objects", targets.len()));
        wait::ready(self.cluster, &self.health, targets, &live, wait_options, self.interrupt).await?;
        if hooks {
            let ran = self.run_hooks(release, run("post-install")).await;
            ran.map_err(|error| error.within("failed post-install"))?;
        }
        Ok(())
    }
}
