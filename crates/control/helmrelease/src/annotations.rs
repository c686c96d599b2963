//! Requests by annotation: force a release, reset its failures.

use fl_api::helm::HelmRelease;
use fl_runtime::{REQUESTED_AT, Reconciled};

const FORCE_AT: &str = "reconcile.fluxcd.io/forceAt";
const RESET_AT: &str = "reconcile.fluxcd.io/resetAt";

/// Whether `forceAt` requests a release without changes. True once per request.
pub(crate) fn force_requested(object: &mut HelmRelease) -> bool {
    requested(object, FORCE_AT, |object| &mut object.status.get_or_insert_default().last_handled_force_at)
}

/// Whether `resetAt` requests a reset of the failure counters. True once per request.
pub(crate) fn reset_requested(object: &mut HelmRelease) -> bool {
    requested(object, RESET_AT, |object| &mut object.status.get_or_insert_default().last_handled_reset_at)
}

/// A request counts if it has the value of a reconcile request that was not handled yet.
fn requested(
    object: &mut HelmRelease,
    annotation: &str,
    handled: impl Fn(&mut HelmRelease) -> &mut Option<String>,
) -> bool {
    let Some(asked) = object.annotation(annotation).map(str::to_owned) else { return false };
    let pass = object.annotation(REQUESTED_AT).map(str::to_owned);
    let before = handled(object).replace(asked.clone());
    pass.as_ref() == Some(&asked)
        && object.last_handled() != Some(asked.as_str())
        && before.as_ref() != Some(&asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(force: &str, pass: &str, handled: &str) -> HelmRelease {
        serde_json::from_value(serde_json::json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "a", "namespace": "b", "annotations": {FORCE_AT: force, REQUESTED_AT: pass}},
            "spec": {"interval": "1m", "chartRef": {"kind": "HelmChart", "name": "c"}},
            "status": {"lastHandledReconcileAt": handled}
        }))
        .expect("a HelmRelease")
    }

    #[test]
    fn request_counts_once() {
        let mut fresh = object("t1", "t1", "t0");
        assert!(force_requested(&mut fresh));
        assert!(!force_requested(&mut fresh));
        assert!(!force_requested(&mut object("t1", "t2", "t0")));
        assert!(!force_requested(&mut object("t1", "t1", "t1")));
    }
}
