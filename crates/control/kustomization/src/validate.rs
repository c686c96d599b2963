//! What the spec asks for, compiled and checked. No client here.

use std::time::Duration;

use fl_api::kustomize::Kustomization;
use fl_api::kustomize::kustomization::DeletionPolicy;
use fl_apply::{HealthRules, IgnoreRules};
use fl_runtime::FeatureGates;
use fl_types::ObjectReference;

const SHORTEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The prefix of errors that only a change of the spec can mend.
const TERMINAL: &str = "Reconciliation failed terminally due to configuration error";

/// A spec that cannot be carried out.
#[derive(Debug)]
pub(crate) struct Invalid {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// Whether the generation counts as observed.
    pub(crate) observed: bool,
}

/// The spec, ready for use.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) health: HealthRules,
    /// Rules that cannot be read fail the apply, as they do in Flux.
    pub(crate) ignore: Result<IgnoreRules, String>,
    pub(crate) timeout: Duration,
    pub(crate) retry: Duration,
    pub(crate) interval: Duration,
}

pub(crate) fn plan(object: &Kustomization, gates: &FeatureGates) -> Result<Plan, Invalid> {
    let spec = &object.spec;
    let health =
        HealthRules::compile(spec.health_check_exprs.as_deref().unwrap_or_default()).map_err(|e| {
            Invalid { reason: "InvalidCELExpression", message: format!("{TERMINAL}: {e}"), observed: true }
        })?;
    let account =
        spec.decryption.as_ref().and_then(|d| d.service_account_name.as_deref()).unwrap_or_default();
    if !account.is_empty() && !gates.enabled("ObjectLevelWorkloadIdentity") {
        return Err(Invalid {
            reason: "FeatureGateDisabled",
            message: "to use spec.decryption.serviceAccountName for decryption authentication please enable the ObjectLevelWorkloadIdentity feature gate in the controller".to_owned(),
            observed: false,
        });
    }
    if !account.is_empty() {
        return Err(Invalid {
            reason: "InvalidDecryption",
            message: "spec.decryption.serviceAccountName cannot be used: this engine exchanges no tokens of service accounts for credentials of key services; put keys or credentials into the Secret of spec.decryption.secretRef".to_owned(),
            observed: true,
        });
    }
    let ignore = IgnoreRules::compile(spec.ignore.as_deref().unwrap_or_default()).map_err(|e| e.to_string());
    Ok(Plan {
        health,
        ignore,
        timeout: timeout(object),
        retry: retry_interval(object),
        interval: interval(object),
    })
}

/// The text of a dependency expression that cannot be used.
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
        None => interval(object).saturating_sub(SHORTEST_TIMEOUT),
    };
    timeout.max(SHORTEST_TIMEOUT)
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

/// Whether the objects go with the Kustomization.
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
    fn times() {
        assert_eq!(timeout(&object(json!({}))), Duration::from_secs(570));
        assert_eq!(timeout(&object(json!({"interval": "10s"}))), SHORTEST_TIMEOUT);
        assert_eq!(timeout(&object(json!({"timeout": "1s"}))), SHORTEST_TIMEOUT);
        assert_eq!(timeout(&object(json!({"timeout": "2m"}))), Duration::from_secs(120));
        assert_eq!(retry_interval(&object(json!({}))), Duration::from_secs(600));
        assert_eq!(retry_interval(&object(json!({"retryInterval": "1m"}))), Duration::from_secs(60));
    }

    #[test]
    fn deletion_policies() {
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
        let invalid = plan(&with_account, &FeatureGates::default()).expect_err("the gate is off");
        assert_eq!(invalid.reason, "FeatureGateDisabled");
        let open: FeatureGates = "ObjectLevelWorkloadIdentity=true".parse().expect("a gate");
        let invalid = plan(&with_account, &open).expect_err("not supported");
        assert_eq!(invalid.reason, "InvalidDecryption");
        assert!(invalid.message.contains("spec.decryption.secretRef"), "{}", invalid.message);
    }
}
