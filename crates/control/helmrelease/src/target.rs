//! The cluster a release is installed on, with helm-controller's error messages.

use fl_api::Resource as _;
use fl_api::helm::HelmRelease;
use fl_apply::Inventory;
use fl_runtime::{Context, Identity};
pub(crate) use fl_targets::Target;
use fl_targets::{OwnerKind, TargetError, TargetOptions};

use crate::controller::{HelmReleaseController, Settings};
use crate::spec::ReleaseSpec;

/// HelmReleases as owners of applied objects.
pub(crate) const OWNER: OwnerKind = OwnerKind {
    group: HelmRelease::GROUP,
    kind: HelmRelease::KIND,
    name_label: "helm.toolkit.fluxcd.io/name",
    namespace_label: "helm.toolkit.fluxcd.io/namespace",
    // Actions report their writes when the response arrives, which may be after the watch event.
    confirm_after: std::time::Duration::from_millis(200),
};

/// Why a release has no cluster to be installed on.
#[derive(Debug, thiserror::Error)]
#[error("{}", message(.0))]
pub(crate) struct NoTarget(#[from] TargetError);

impl NoTarget {
    /// Whether the Secret or ConfigMap does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        self.0.is_missing()
    }
}

fn message(error: &TargetError) -> String {
    match error {
        TargetError::Secret { secret, source } => {
            format!("could not get KubeConfig secret '{secret}': {source}")
        }
        TargetError::NoKubeconfig { secret, key: Some(key) } => {
            format!("KubeConfig secret '{secret}' does not contain a '{key}' key with data")
        }
        TargetError::NoKubeconfig { secret, key: None } => {
            format!("KubeConfig secret '{secret}' does not contain a 'value' or 'value.yaml' key with data")
        }
        TargetError::NotText { secret } => {
            format!("failed to load KubeConfig from secret '{secret}': it is not text")
        }
        TargetError::Kubeconfig { secret, source } => {
            format!("failed to load KubeConfig from secret '{secret}': {source}")
        }
        TargetError::InvalidReference => {
            "exactly one of .spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef must be set".to_owned()
        }
        other => other.to_string(),
    }
}

/// What the flags of the controller permit for remote clusters.
pub(crate) fn options(settings: &Settings) -> TargetOptions {
    TargetOptions {
        kubeconfig: settings.kube_config,
        default_service_account: settings.default_kube_config_account.clone(),
    }
}

impl HelmReleaseController {
    /// The identity a release acts with.
    pub(crate) fn identity(&self, object: &HelmRelease) -> Identity {
        self.targets.identity(object.own_namespace(), object.spec.service_account_name.as_deref())
    }

    /// The cluster of a release.
    pub(crate) async fn target(&self, object: &HelmRelease) -> Result<Target, NoTarget> {
        let identity = self.identity(object);
        Ok(self.targets.resolve(object.own_namespace(), object.spec.kube_config.as_ref(), &identity).await?)
    }

    /// Watches the objects of a release that detects drift.
    pub(crate) fn watch_objects(&self, cx: &Context<HelmRelease>) {
        if !cx.object.detects_drift() {
            return;
        }
        let inventory = cx.object.status.as_ref().and_then(|status| status.inventory.as_ref());
        // An inventory that cannot be read is written anew by the next action.
        if let Some(Ok(inventory)) = inventory.map(Inventory::read) {
            self.owned_objects.watch(&cx.key(), &inventory, self.targets.local());
        }
    }
}
