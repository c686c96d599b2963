//! Access to other clusters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::references::{LocalObjectReference, SecretKeyReference};

/// How to reach another cluster. Exactly one of the fields is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef must be specified", "rule": "has(self.configMapRef) || has(self.secretRef)"},
    {"message": "exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef must be specified", "rule": "!has(self.configMapRef) || !has(self.secretRef)"},
]))]
pub struct KubeConfigReference {
    /// ConfigMap that says how to reach the cluster with the workload's own identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<LocalObjectReference>,
    /// Secret with a kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretKeyReference>,
}

impl KubeConfigReference {
    /// The name of the Secret or ConfigMap.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let secret = self.secret_ref.as_ref().map(|reference| reference.name.as_str());
        secret.or_else(|| self.config_map_ref.as_ref().map(|reference| reference.name.as_str()))
    }
}
