//! Validation of the spec. Sends no requests.

use std::time::Duration;

use fl_api::kustomize::Kustomization;
use fl_api::kustomize::kustomization::DeletionPolicy;
use fl_apply::{HealthRuleError, HealthRules, IgnoreRules};
use fl_runtime::FeatureGates;
use fl_types::ObjectReference;

const MIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Flux's prefix of errors that only a change of the spec resolves.
const TERMINAL: &str = "Reconciliation failed terminally due to configuration error";

/// A spec that cannot be carried out until it changes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ValidationError {
    #[error("{TERMINAL}: {0}")]
    HealthCheckExpression(#[from] HealthRuleError),
    #[error(
        "to use spec.decryption.serviceAccountName for decryption authentication please enable the ObjectLevelWorkloadIdentity feature gate in the controller"
    )]
    WorkloadIdentityGate,
    #[error(
        "spec.decryption.serviceAccountName cannot be used: this engine exchanges no tokens of service accounts for credentials of key services; put keys or credentials into the Secret of spec.decryption.secretRef"
    )]
    WorkloadIdentity,
}

/// The spec with its expressions compiled.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) health: HealthRules,
    /// Invalid rules fail the apply, as they do in Flux.
    pub(crate) ignore: Result<IgnoreRules, String>,
    pub(crate) timeout: Duration,
}

/// Compiles the expressions and rules of a spec, and checks what the API server does not check.
pub(crate) fn validate(object: &Kustomization, gates: &FeatureGates) -> Result<Plan, ValidationError> {
    let spec = &object.spec;
    let health = HealthRules::compile(spec.health_check_exprs.as_deref().unwrap_or_default())?;
    let account =
        spec.decryption.as_ref().and_then(|d| d.service_account_name.as_deref()).unwrap_or_default();
    if !account.is_empty() {
        return Err(match gates.enabled("ObjectLevelWorkloadIdentity") {
            false => ValidationError::WorkloadIdentityGate,
            true => ValidationError::WorkloadIdentity,
        });
    }
    let ignore = IgnoreRules::compile(spec.ignore.as_deref().unwrap_or_default()).map_err(|e| e.to_string());
    Ok(Plan { health, ignore, timeout: timeout(object) })
}

/// The message for a `readyExpr` that is invalid.
pub(crate) fn terminal(message: &str) -> String {
    format!("{TERMINAL}: {message}")
}

pub(crate) fn interval(object: &Kustomization) -> Duration {
    object.spec.interval.to_std().unwrap_or_default()
}

pub(crate) fn retry_interval(object: &Kustomization) -> Duration {
    match object.spec.retry_interval {
        Some(retry) => retry.to_std().unwrap_or_default(),
        None => interval(object),
    }
}

pub(crate) fn timeout(object: &Kustomization) -> Duration {
    let timeout = match object.spec.timeout {
        Some(timeout) => timeout.to_std().unwrap_or_default(),
        None => interval(object).saturating_sub(MIN_TIMEOUT),
    };
    timeout.max(MIN_TIMEOUT)
}

pub(crate) fn source_reference(object: &Kustomization) -> ObjectReference {
    let source = &object.spec.source_ref;
    ObjectReference {
        api_version: source.api_version.clone(),
        kind: source.kind.clone(),
        name: source.name.clone(),
        namespace: source.namespace.clone(),
    }
}

/// Whether the objects are deleted with the Kustomization.
pub(crate) fn deletes_objects(object: &Kustomization) -> bool {
    let suspended = object.spec.suspend.unwrap_or_default();
    let inventory = object.status.as_ref().and_then(|s| s.inventory.as_ref());
    if suspended || inventory.is_none_or(|i| i.entries.is_empty()) {
        return false;
    }
    match object.spec.deletion_policy {
        None | Some(DeletionPolicy::MirrorPrune) => object.spec.prune,
        Some(DeletionPolicy::Delete | DeletionPolicy::WaitForTermination) => true,
        Some(DeletionPolicy::Orphan) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(spec: serde_json::Value) -> Kustomization {
        let mut full =
            json!({"interval": "10m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "app"}});
        for (key, value) in spec.as_object().expect("a map") {
            full[key] = value.clone();
        }
        serde_json::from_value(
            json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "app", "namespace": "ns"}, "spec": full,
            "status": {"inventory": {"entries": [{"id": "ns_a__ConfigMap", "v": "v1"}]}}}),
        )
        .expect("a Kustomization")
    }

    #[test]
    fn timeout_and_retry_interval_default_to_the_interval() {
        assert_eq!(timeout(&object(json!({}))), Duration::from_secs(570));
        assert_eq!(timeout(&object(json!({"interval": "10s"}))), MIN_TIMEOUT);
        assert_eq!(timeout(&object(json!({"timeout": "1s"}))), MIN_TIMEOUT);
        assert_eq!(timeout(&object(json!({"timeout": "2m"}))), Duration::from_secs(120));
        assert_eq!(retry_interval(&object(json!({}))), Duration::from_secs(600));
        assert_eq!(retry_interval(&object(json!({"retryInterval": "1m"}))), Duration::from_secs(60));
    }

    #[test]
    fn deletion_policy_decides_whether_objects_are_deleted() {
        assert!(deletes_objects(&object(json!({}))));
        assert!(!deletes_objects(&object(json!({"prune": false}))));
        assert!(deletes_objects(&object(json!({"prune": false, "deletionPolicy": "Delete"}))));
        assert!(deletes_objects(&object(json!({"deletionPolicy": "WaitForTermination"}))));
        assert!(!deletes_objects(&object(json!({"deletionPolicy": "Orphan"}))));
        assert!(!deletes_objects(&object(json!({"suspend": true}))));
    }

    #[test]
    fn decryption_with_a_service_account_is_refused() {
        let with_account = object(json!({"decryption": {"provider": "sops", "serviceAccountName": "kms"}}));
        let invalid = validate(&with_account, &FeatureGates::default()).expect_err("the gate is off");
        assert!(matches!(invalid, ValidationError::WorkloadIdentityGate), "{invalid}");
        let open: FeatureGates = "ObjectLevelWorkloadIdentity=true".parse().expect("a gate");
        let invalid = validate(&with_account, &open).expect_err("not supported");
        assert!(matches!(invalid, ValidationError::WorkloadIdentity), "{invalid}");
        assert!(invalid.to_string().contains("spec.decryption.secretRef"), "{invalid}");
    }
}
