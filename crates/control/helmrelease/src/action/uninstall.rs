//! Uninstall.

use fl_api::helm::actions::DeletionPropagation;
use fl_apply::{Error as ClusterError, Propagation, annotation};
use fl_helm::{UNINSTALL_ORDER, compare_kinds};
use fl_helm_storage::{GoTime, Release, Status};
use jiff::Timestamp;

use super::Configuration;
use super::error::ActionError;
use super::hooks::HookRun;
use super::ownership::is_marked;
use super::resources::{Resource, build};
use super::wait;
use crate::spec::ReleaseSpec;

impl Configuration<'_> {
    /// Uninstalls the release and returns its last revision.
    pub(crate) async fn uninstall(&mut self) -> Result<Release, ActionError> {
        let options = self.object.uninstall();
        let name = self.storage.name().to_owned();
        let keep = options.keep_history.unwrap_or(false);
        let history = self.storage.history().await?;
        let mut versions: Vec<i64> = history.releases.iter().map(|release| release.version).collect();
        versions.extend(history.corrupt.iter().map(|corrupt| corrupt.version).filter(|version| *version > 0));
        versions.sort_unstable();
        let Some(mut release) = history.last().cloned() else {
            // Revisions that cannot be read name no objects; keeping them would block the name.
            for version in versions {
                self.storage.delete(version).await?;
            }
            return Err(ActionError::NotFound);
        };
        if release.info.status == Status::Uninstalled {
            if keep {
                return Err(ActionError::failed(format!("the release named {name:?} is already deleted")));
            }
            self.purge(&versions).await?;
            return Ok(release);
        }
        self.log.note("uninstall: deleting release", &[("name", &name)]);
        release.info.deleted = GoTime::at(Timestamp::now());
        release.set_status(Status::Uninstalling, "Deletion in progress (or silently failed)");
        let hooks = !options.disable_hooks.unwrap_or(false);
        let wait = self.object.wait(options.disable_wait, self.defaults);
        let timeout = self.object.timeout_of(options.timeout);
        let run = |event| HookRun { event, wait, timeout, server_side: true, only: None };
        if hooks {
            self.run_hooks(&mut release, run("pre-delete")).await?;
        }
        self.record(&release).await;
        let propagation = match options.deletion_propagation {
            DeletionPropagation::Background => Propagation::Background,
            DeletionPropagation::Foreground => Propagation::Foreground,
            DeletionPropagation::Orphan => Propagation::Orphan,
        };
        let deleted = self.delete_objects(&release, propagation).await?;
        self.progress(&format!("Waiting for {} objects to be gone", deleted.len()));
        let mut errors = Vec::new();
        if let Err(error) = wait::gone(self.cluster, &self.health, &deleted, wait, timeout).await {
            errors.push(error.to_string());
        }
        if hooks && let Err(error) = self.run_hooks(&mut release, run("post-delete")).await {
            errors.push(error.to_string());
        }
        release.set_status(Status::Uninstalled, "Uninstallation complete");
        if keep {
            self.record(&release).await;
            self.storage.supersede_deployed(release.version).await?;
        } else if let Err(error) = self.purge(&versions).await {
            errors.push(format!("uninstall: Failed to purge the release: {error}"));
        }
        if errors.is_empty() {
            return Ok(release);
        }
        Err(ActionError::failed(format!(
            "uninstallation completed with {} error(s): {}",
            errors.len(),
            errors.join("; ")
        )))
    }

    async fn purge(&mut self, versions: &[i64]) -> Result<(), ActionError> {
        for version in versions {
            self.storage.delete(*version).await?;
        }
        Ok(())
    }

    async fn delete_objects(
        &self,
        release: &Release,
        propagation: Propagation,
    ) -> Result<Vec<Resource>, ActionError> {
        let failed = || ActionError::failed(format!("failed to delete release: {}", release.name));
        let mut targets = match build(self.cluster, &release.manifest, self.namespace).await {
            Ok(targets) => targets,
            Err(error) => {
                self.log.note("uninstall: Failed to delete release", &[("error", &error)]);
                return Err(failed());
            }
        };
        targets.retain(|target| {
            let keep = annotation(&target.object, "helm.sh/resource-policy")
                .is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"));
            !keep
        });
        if release.namespace != self.namespace {
            // Objects of the same name in another namespace may belong to another release.
            targets = self.marked(release, targets).await.map_err(|error| {
                self.log.note("uninstall: Failed to delete release", &[("error", &error)]);
                failed()
            })?;
        }
        targets.sort_by(|a, b| compare_kinds(&a.reference.id.kind, &b.reference.id.kind, UNINSTALL_ORDER));
        let deleted = self.writer(release).delete(&targets, propagation).await;
        if let Err(errors) = deleted {
            self.log.note("uninstall: Failed to delete release", &[("error", &errors.join("; "))]);
            return Err(failed());
        }
        Ok(targets)
    }

    /// Those with the ownership metadata of the release.
    async fn marked(&self, release: &Release, targets: Vec<Resource>) -> Result<Vec<Resource>, ClusterError> {
        let mut marked = Vec::with_capacity(targets.len());
        for target in targets {
            let live = match self.cluster.get(&target.reference).await {
                Err(ClusterError::Client(fl_client::Error::NoKind { .. })) => None,
                answer => answer?,
            };
            if live.is_some_and(|live| is_marked(&live, &release.name, &release.namespace)) {
                marked.push(target);
            }
        }
        Ok(marked)
    }
}
