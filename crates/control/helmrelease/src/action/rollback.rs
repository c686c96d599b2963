//! Rollback: an earlier revision as a new one.

use fl_apply::Propagation;
use fl_helm_storage::{GoTime, Info, Release, Status};
use jiff::Timestamp;

use super::apply::Method;
use super::error::ActionError;
use super::hooks::HookRun;
use super::ownership::Existing;
use super::resources::{build, set_release_metadata};
use super::wait::{self, WaitOptions};
use super::{Configuration, apply_method};
use crate::spec::{ReleaseSpec, server_side};

impl Configuration<'_> {
    /// Rolls back to a revision.
    pub(crate) async fn rollback(&mut self, version: i64) -> Result<(), ActionError> {
        let options = self.object.rollback();
        let name = self.storage.name().to_owned();
        let mut current = self.storage.last().await?;
        let history = self.storage.history().await?;
        let Some(previous) = history.get(version).cloned() else {
            return Err(ActionError::failed(format!("release has no {version} version")));
        };
        let revision = history.next_version();
        let server_side = server_side(options.server_side_apply, previous.applied_by_server());
        self.log.note("preparing rollback", &[("name", &name)]);
        let mut target = Release {
            name: name.clone(),
            info: Info {
                first_deployed: current.info.first_deployed.clone(),
                last_deployed: GoTime::at(Timestamp::now()),
                description: format!("Rollback to {version}"),
                status: Status::PendingRollback,
                notes: previous.info.notes.clone(),
                ..Info::default()
            },
            version: revision,
            namespace: current.namespace.clone(),
            apply_method: apply_method(server_side),
            ..previous
        };
        self.log.note("creating rolled back release", &[("name", &name)]);
        self.storage.create(&target, self.object.max_history()).await?;
        self.log.note("performing rollback", &[("name", &name)]);
        let wait_options = WaitOptions {
            wait: self.object.wait(options.disable_wait, self.defaults),
            timeout: self.object.timeout_of(options.timeout),
            jobs: !options.disable_wait_for_jobs.unwrap_or(false),
        };
        self.perform_rollback(&mut current, &mut target, server_side, wait_options).await?;
        self.storage.supersede_deployed(target.version).await?;
        target.info.status = Status::Deployed;
        self.storage.update(&target).await
    }

    async fn perform_rollback(
        &mut self,
        current: &mut Release,
        target: &mut Release,
        server_side: bool,
        wait_options: WaitOptions,
    ) -> Result<(), ActionError> {
        let options = self.object.rollback();
        let originals = build(self.cluster, &current.manifest, self.namespace).await.map_err(|error| {
            error.within("unable to build kubernetes objects from current release manifest")
        })?;
        let mut targets = build(self.cluster, &target.manifest, self.namespace)
            .await
            .map_err(|error| error.within("unable to build kubernetes objects from new release manifest"))?;
        let hooks = !options.disable_hooks.unwrap_or(false);
        let run = |event| HookRun {
            event,
            wait: wait_options.wait,
            timeout: wait_options.timeout,
            server_side,
            only: None,
        };
        if hooks {
            self.run_hooks(target, run("pre-rollback")).await?;
        }
        for object in &mut targets {
            set_release_metadata(&mut object.object, &target.name, &target.namespace);
        }
        let method = match (server_side, options.force.unwrap_or(false)) {
            (true, _) => Method::Apply { force: true },
            (false, true) => Method::Replace,
            (false, false) => Method::Patch { three_way: false },
        };
        self.progress(&format!("Applying {} objects", targets.len()));
        let (written, result) =
            self.writer(target).update(&originals, &targets, method, server_side, &Existing::new()).await;
        if let Err(error) = result {
            let message = format!("Rollback {:?} failed: {error}", target.name);
            self.log.note(&format!("warning: {message}"), &[]);
            current.info.status = Status::Superseded;
            target.set_status(Status::Failed, message);
            self.record(current).await;
            self.record(target).await;
            if options.cleanup_on_fail.unwrap_or(false) && !written.created.is_empty() {
                let cleaned = self.writer(target).delete(&written.created, Propagation::Background).await;
                cleaned.map_err(|errors| {
                    ActionError::failed(format!(
                        "an error occurred while cleaning up resources. original rollback error: \
                         unable to cleanup resources: {}",
                        errors.join(", ")
                    ))
                })?;
            }
            return Err(error);
        }
        self.progress(&format!("Waiting for {} objects", targets.len()));
        if let Err(error) =
            wait::ready(self.cluster, &self.health, &targets, &written.live, wait_options, self.interrupt)
                .await
        {
            target.set_status(Status::Failed, format!("Release {:?} failed: {error}", target.name));
            self.record(current).await;
            self.record(target).await;
            return Err(error.within(&format!("release {} failed", target.name)));
        }
        if hooks {
            self.run_hooks(target, run("post-rollback")).await?;
        }
        Ok(())
    }
}
