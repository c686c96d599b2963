//! Deletion of a HelmRelease.

use fl_api::helm::HelmRelease;
use fl_runtime::{Context, Kind};

use crate::action::ActionError;
use crate::action::storage::Storage;
use crate::action::wait::Health;
use crate::controller::HelmReleaseController;
use crate::error::DeleteError;
use crate::history::ReleaseHistory;
use crate::release::{is_own, record_release};
use crate::spec::ReleaseSpec;
use crate::target::Target;

impl HelmReleaseController {
    /// Uninstalls the release of a HelmRelease that is deleted.
    pub(crate) async fn delete_release(&self, cx: &mut Context<HelmRelease>) -> Result<(), DeleteError> {
        let target = match self.target(&cx.object).await {
            Ok(target) => target,
            Err(error) if error.is_missing() => {
                cx.log.error(&error.to_string(), "skipping Helm release uninstallation");
                return Ok(());
            }
            Err(error) => return Err(DeleteError::Target(error)),
        };
        if cx.object.spec.kube_config.is_none()
            && let Some(name) = self.identity(&cx.object).account()
        {
            let namespace = cx.object.own_namespace().to_owned();
            let found = cx.cluster().get(&Kind::service_account(), Some(&namespace), name).await;
            match found {
                Ok(_) => {}
                Err(error) if error.is_not_found() => {
                    cx.log.error(&error.to_string(), "skipping Helm release uninstallation");
                    return Ok(());
                }
                Err(error) => {
                    return Err(DeleteError::ServiceAccount { name: name.to_owned(), error });
                }
            }
        }
        if cx.object.status.as_ref().and_then(|status| status.latest()).is_none() {
            self.find_unrecorded(cx, &target).await?;
        }
        let checks = cx.object.spec.health_check_exprs.clone().unwrap_or_default();
        let health = Health::compile(&checks).or_else(|_| Health::compile(&[]));
        let health = health.map_err(DeleteError::HealthChecks)?;
        self.uninstall(cx, &target, &health).await.map_err(DeleteError::Uninstall)?;
        let status = cx.object.status.get_or_insert_default();
        status.clear();
        status.storage_namespace = None;
        Ok(())
    }

    /// Looks for a release that an interrupted reconcile made without recording it in the status.
    async fn find_unrecorded(
        &self,
        cx: &mut Context<HelmRelease>,
        target: &Target,
    ) -> Result<(), DeleteError> {
        let namespace = cx.object.storage_namespace().to_owned();
        let mut storage = Storage::new(target.cluster.clone(), &namespace, &cx.object.helm_name());
        let last = match storage.last().await {
            Ok(last) => last,
            // An identity that may not read the storage has not made a release.
            Err(error) if error.is_forbidden() => return Ok(()),
            Err(ActionError::NotFound) => return Ok(()),
            Err(error) => return Err(DeleteError::Storage(error)),
        };
        if !is_own(&storage, &last, &cx.object) {
            cx.log.info("skipping Helm release uninstallation: no release of this object");
            return Ok(());
        }
        record_release(&mut cx.object, std::slice::from_ref(&last), "install");
        cx.object.status.get_or_insert_default().storage_namespace = Some(namespace);
        Ok(())
    }
}
