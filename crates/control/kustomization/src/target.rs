//! The cluster a Kustomization applies to, with kustomize-controller's error messages.

use fl_api::kustomize::Kustomization;
use fl_runtime::{Identity, Reconciled as _, RemoteOptions};
pub(crate) use fl_targets::Target;
use fl_targets::{TargetError, TargetOptions};

use crate::Options;
use crate::controller::KustomizationController;

/// Why a Kustomization has no cluster to apply to.
#[derive(Debug, thiserror::Error)]
#[error("{}", message(.0))]
pub(crate) struct NoTarget(#[from] TargetError);

fn message(error: &TargetError) -> String {
    match error {
        TargetError::Secret { secret, source } => {
            format!("unable to read KubeConfig secret '{secret}' error: {source}")
        }
        TargetError::NoKubeconfig { secret, key } => {
            let key = key.as_deref().unwrap_or("value");
            format!("KubeConfig secret '{secret}' does not contain a '{key}' key with a kubeconfig")
        }
        TargetError::NotText { secret } => format!("KubeConfig secret '{secret}' is not text"),
        TargetError::Kubeconfig { source, .. } => source.to_string(),
        TargetError::InvalidReference => {
            "invalid .spec.kubeConfig, neither .spec.kubeConfig.provider nor .spec.kubeConfig.secretRef is set"
                .to_owned()
        }
        other => other.to_string(),
    }
}

/// What the flags of the controller permit for remote clusters.
pub(crate) fn options(options: &Options) -> TargetOptions {
    TargetOptions {
        kubeconfig: RemoteOptions {
            allow_exec: options.insecure_kubeconfig_exec,
            allow_insecure_tls: options.insecure_kubeconfig_tls,
        },
        default_service_account: options.default_kubeconfig_service_account.clone(),
    }
}

impl KustomizationController {
    /// The identity objects are applied with.
    pub(crate) fn identity(&self, object: &Kustomization) -> Identity {
        self.targets.identity(object.namespace(), object.spec.service_account_name.as_deref())
    }

    /// The cluster of a Kustomization.
    pub(crate) async fn target(&self, object: &Kustomization) -> Result<Target, NoTarget> {
        let identity = self.identity(object);
        Ok(self.targets.resolve(object.namespace(), object.spec.kube_config.as_ref(), &identity).await?)
    }
}
