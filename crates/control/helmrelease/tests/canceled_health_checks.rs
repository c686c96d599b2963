//! `CancelHealthCheckOnNewRevision`: a wait for readiness ends when another reconcile is triggered.

mod fixture;

use std::time::{Duration, Instant};

use fixture::{TestCluster, condition, ready};
use fl_helm_storage::Status;
use fl_runtime::Options;
use serde_json::{Value, json};

async fn test_cluster(gate: bool) -> TestCluster {
    let gates = format!("CancelHealthCheckOnNewRevision={gate}").parse().expect("a feature gate");
    TestCluster::with(Options { gates, ..Options::default() }).await
}

/// Installs a release whose Deployment never becomes ready, and waits until the action waits for it.
async fn install_slow(test_cluster: &TestCluster, timeout: &str) {
    test_cluster.apply(json!({"values": {"slow": true}, "timeout": timeout}), "1").await;
    let waits = |object: &Value| {
        let message = condition(object, "Reconciling").and_then(|c| c["message"].as_str());
        message.is_some_and(|message| message.contains("Waiting for"))
    };
    test_cluster.until(waits).await;
}

fn states(history: &fl_helm_storage::History) -> Vec<Status> {
    history.releases.iter().map(|release| release.info.status.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn new_generation_cancels_the_wait_and_is_released_at_once() {
    let test_cluster = test_cluster(true).await;
    install_slow(&test_cluster, "10m").await;
    let started = Instant::now();
    test_cluster.apply(json!({"values": {"color": "blue"}, "timeout": "10m"}), "2").await;
    let object = test_cluster.settled("2").await;
    assert_eq!(ready(&object), ("True", "UpgradeSucceeded"), "{}", object["status"]);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    let history = test_cluster.history().await;
    assert_eq!(history.get(1).map(|release| release.info.status.clone()), Some(Status::Superseded));
    assert_eq!(history.last().map(|release| release.info.status.clone()), Some(Status::Deployed));
    let (kind, message) = test_cluster.event("HealthCheckCanceled").await;
    assert_eq!(kind, "Normal");
    let expected = "Health checks canceled due to new reconciliation triggered by HelmRelease/default/app";
    assert_eq!(message, expected);
    let (_, failed) = test_cluster.event("InstallFailed").await;
    assert!(failed.contains("context canceled"), "{failed}");
    test_cluster.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_gate_the_wait_goes_on_until_its_timeout() {
    let test_cluster = test_cluster(false).await;
    install_slow(&test_cluster, "3s").await;
    test_cluster.apply(json!({"values": {"color": "blue"}, "timeout": "3s"}), "2").await;
    let object = test_cluster.settled("2").await;
    assert_eq!(ready(&object).0, "True", "{}", object["status"]);
    assert_eq!(states(&test_cluster.history().await).last(), Some(&Status::Deployed));
    let (_, failed) = test_cluster.event("InstallFailed").await;
    assert!(failed.contains("timeout waiting for"), "{failed}");
    test_cluster.end();
}
