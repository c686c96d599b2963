//! Runs hooks in the order of their weights, and deletes them by their delete policies.

use fl_apply::Propagation;
use fl_helm_storage::{GoTime, Hook, HookPhase, Release};
use jiff::Timestamp;

use super::Configuration;
use super::apply::Method;
use super::error::ActionError;
use super::resources::{build, metadata};
use super::wait;
use crate::spec::Wait;
use std::time::Duration;

const BEFORE_CREATION: &str = "before-hook-creation";
const SUCCEEDED: &str = "hook-succeeded";
const FAILED: &str = "hook-failed";

/// Hooks whose delete policy is applied after all hooks have run, and for tests after the release was stored.
#[derive(Debug, Default)]
pub(crate) struct DeferredHookDeletions {
    succeeded: Vec<usize>,
    failed: Option<usize>,
}

/// How hooks are run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HookRun<'a> {
    pub(crate) event: &'a str,
    pub(crate) wait: Wait,
    pub(crate) timeout: Duration,
    pub(crate) server_side: bool,
    /// Only these hooks, by their index in the release.
    pub(crate) only: Option<&'a [usize]>,
}

impl Configuration<'_> {
    /// Runs the hooks of an event and applies their delete policies.
    pub(crate) async fn run_hooks(
        &mut self,
        release: &mut Release,
        run: HookRun<'_>,
    ) -> Result<(), ActionError> {
        let (deferred, result) = self.start_hooks(release, run).await;
        let cleaned = self.clean_up_hooks(release, run, deferred).await;
        result.and(cleaned)
    }

    /// Runs the hooks of an event; returns those whose delete policy is still to be applied.
    pub(crate) async fn start_hooks(
        &mut self,
        release: &mut Release,
        run: HookRun<'_>,
    ) -> (DeferredHookDeletions, Result<(), ActionError>) {
        let mut order: Vec<usize> = (0..release.hooks.len())
            .filter(|at| {
                release.hooks[*at].runs_at(run.event) && run.only.is_none_or(|only| only.contains(at))
            })
            .collect();
        order.sort_by(|a, b| {
            let (a, b) = (&release.hooks[*a], &release.hooks[*b]);
            a.weight.cmp(&b.weight).then_with(|| a.name.cmp(&b.name))
        });
        let mut deferred = DeferredHookDeletions::default();
        for at in order {
            match self.run_hook(release, at, run).await {
                Ok(()) => deferred.succeeded.push(at),
                Err((error, ran)) => {
                    deferred.failed = ran.then_some(at);
                    if !ran {
                        // It was not created: no hook of this event is deleted, as in Helm.
                        deferred.succeeded.clear();
                    }
                    return (deferred, Err(error));
                }
            }
        }
        (deferred, Ok(()))
    }

    /// Runs one hook. The error says whether the hook had been created.
    async fn run_hook(
        &mut self,
        release: &mut Release,
        at: usize,
        run: HookRun<'_>,
    ) -> Result<(), (ActionError, bool)> {
        if release.hooks[at].delete_policies.is_empty() {
            release.hooks[at].delete_policies.push(BEFORE_CREATION.to_owned());
        }
        let early = |error: ActionError| (error, false);
        let hook = release.hooks[at].clone();
        self.progress(&format!("Running {} hook {}/{}", run.event, hook.kind, hook.name));
        self.delete_hook(release, &hook, BEFORE_CREATION, run).await.map_err(early)?;
        let targets =
            build(self.cluster, &hook.manifest, self.namespace).await.map_err(|error| {
                early(error.within(&format!(
                    "unable to build kubernetes object for {} hook {}",
                    run.event, hook.path
                )))
            })?;
        let last_run = &mut release.hooks[at].last_run;
        last_run.started_at = GoTime::at(Timestamp::now());
        last_run.completed_at = GoTime::default();
        last_run.phase = HookPhase::RUNNING.into();
        self.record(release).await;
        release.hooks[at].last_run.phase = HookPhase::UNKNOWN.into();
        let method =
            if run.server_side { Method::Apply { force: false } } else { Method::Patch { three_way: false } };
        let created = self.writer(release).create(&targets, method).await;
        let live = match created {
            Ok(live) => live,
            Err(error) => {
                finish(&mut release.hooks[at], HookPhase::FAILED);
                let words = format!("warning: Hook {} {} failed", run.event, hook.path);
                return Err(early(error.within(&words)));
            }
        };
        let done = wait::hook_done(self.cluster, &self.health, &targets, &live, run.wait, run.timeout).await;
        match done {
            Ok(()) => {
                finish(&mut release.hooks[at], HookPhase::SUCCEEDED);
                Ok(())
            }
            Err(error) => {
                finish(&mut release.hooks[at], HookPhase::FAILED);
                self.show_logs(&hook, FAILED).await;
                Err((error, true))
            }
        }
    }

    /// Applies the delete policies of finished hooks.
    pub(crate) async fn clean_up_hooks(
        &mut self,
        release: &Release,
        run: HookRun<'_>,
        deferred: DeferredHookDeletions,
    ) -> Result<(), ActionError> {
        if let Some(at) = deferred.failed {
            let hook = release.hooks[at].clone();
            if let Err(error) = self.delete_hook(release, &hook, FAILED, run).await {
                self.log.note("error deleting the hook resource on hook failure", &[("error", &error)]);
            }
        }
        let backwards: Vec<usize> = if deferred.failed.is_some() {
            deferred.succeeded
        } else {
            deferred.succeeded.into_iter().rev().collect()
        };
        for at in backwards {
            let hook = release.hooks[at].clone();
            if deferred.failed.is_none() {
                self.show_logs(&hook, SUCCEEDED).await;
            }
            self.delete_hook(release, &hook, SUCCEEDED, run).await?;
        }
        Ok(())
    }

    async fn delete_hook(
        &mut self,
        release: &Release,
        hook: &Hook,
        policy: &str,
        run: HookRun<'_>,
    ) -> Result<(), ActionError> {
        // Deleting a CRD would delete its objects.
        if hook.kind == "CustomResourceDefinition" || !hook.delete_policies.iter().any(|p| p == policy) {
            return Ok(());
        }
        let targets = build(self.cluster, &hook.manifest, self.namespace).await.map_err(|error| {
            error.within(&format!("unable to build kubernetes object for deleting hook {}", hook.path))
        })?;
        let deleted = self.writer(release).delete(&targets, Propagation::Background).await;
        deleted.map_err(|errors| ActionError::failed(errors.join("; ")))?;
        wait::gone(self.cluster, &self.health, &targets, run.wait, run.timeout).await
    }

    async fn show_logs(&self, hook: &Hook, policy: &str) {
        if !hook.output_log_policies.iter().any(|p| p == policy) {
            return;
        }
        let namespace = build(self.cluster, &hook.manifest, self.namespace)
            .await
            .ok()
            .and_then(|mut targets| {
                let metadata = metadata(&mut targets.first_mut()?.object).clone();
                metadata.get("namespace")?.as_str().map(str::to_owned)
            })
            .unwrap_or_else(|| self.namespace.to_owned());
        for (container, text) in wait::pod_logs(self.cluster, &hook.kind, &namespace, &hook.name).await {
            for line in text.lines() {
                self.log.note("hook output", &[("container", &container), ("line", &line)]);
            }
        }
    }
}

fn finish(hook: &mut Hook, phase: &str) {
    hook.last_run.completed_at = GoTime::at(Timestamp::now());
    hook.last_run.phase = phase.into();
}
