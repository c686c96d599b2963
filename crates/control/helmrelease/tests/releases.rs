//! Whole releases on an API server in this process: install, upgrade, failure, remediation, uninstall.

mod fixture;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_apply::{ObjectRef, Patch, Write};
use fl_helm_storage::{Status, secret_object};
use serde_json::json;

use fixture::{MANAGER, TestCluster, condition, ready};

#[tokio::test(flavor = "multi_thread")]
async fn release_is_installed_upgraded_and_uninstalled() {
    let test_cluster = TestCluster::new().await;
    test_cluster.apply(json!({}), "1").await;
    let object = test_cluster.settled("1").await;
    assert_eq!(ready(&object), ("True", "InstallSucceeded"), "{}", object["status"]);
    let map = test_cluster.get("v1", "ConfigMap", "app-cfg").await.expect("made");
    assert_eq!(map["data"]["color"], "red");
    assert_eq!(map["metadata"]["labels"]["helm.toolkit.fluxcd.io/name"], "app");

    test_cluster.apply(json!({"values": {"color": "blue"}}), "2").await;
    let object = test_cluster.settled("2").await;
    assert_eq!(ready(&object), ("True", "UpgradeSucceeded"));
    let states: Vec<Status> =
        test_cluster.history().await.releases.into_iter().map(|r| r.info.status).collect();
    assert_eq!(states, [Status::Superseded, Status::Deployed]);

    test_cluster.apply(json!({"values": {"color": "blue"}}), "3").await;
    test_cluster.settled("3").await;
    assert_eq!(test_cluster.history().await.releases.len(), 2, "nothing changed, nothing is released");

    test_cluster.apply(json!({"values": {"bad": true}}), "4").await;
    let object = test_cluster.settled("4").await;
    assert_eq!(ready(&object), ("False", "UpgradeFailed"));
    assert!(condition(&object, "Stalled").is_some());

    let reference = ObjectRef::new("helm.toolkit.fluxcd.io/v2", "HelmRelease", "default", "app");
    let live = test_cluster.cluster.get(&reference).await.expect("an answer").expect("there");
    let owned = fl_apply::Owned::by_check(&live, |_| true).expect("complete").expect("ours");
    test_cluster.cluster.delete(&owned, fl_apply::Delete::default()).await.expect("deleted");
    for _ in 0..200 {
        if test_cluster.cluster.get(&reference).await.expect("an answer").is_none() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(test_cluster.get("v1", "ConfigMap", "app-cfg").await.is_none(), "removed with the release");
    assert!(test_cluster.history().await.is_empty(), "no record stays");
    test_cluster.end();
}

/// Threat K08: a killed process leaves a pending release; the next reconcile unlocks it and completes.
#[tokio::test(flavor = "multi_thread")]
async fn pending_release_is_unlocked_in_one_reconcile() {
    let test_cluster = TestCluster::new().await;
    test_cluster.apply(json!({}), "1").await;
    test_cluster.settled("1").await;
    let mut release = test_cluster.history().await.releases.remove(0);
    release.version = 2;
    release.set_status(Status::PendingUpgrade, "Preparing upgrade");
    let record = secret_object(&release, "default", ("createdAt", 0)).expect("a record");
    test_cluster.cluster.create(&record, &MANAGER).await.expect("stored");
    test_cluster.apply(json!({"values": {"color": "green"}}), "2").await;
    let object = test_cluster.settled("2").await;
    assert_eq!(ready(&object).0, "True", "{}", object["status"]);
    let history = test_cluster.history().await;
    assert_eq!(history.last().map(|r| (r.version, r.info.status.clone())), Some((3, Status::Deployed)));
    assert_eq!(history.get(2).map(|r| r.info.status.clone()), Some(Status::Failed));
    test_cluster.end();
}

/// Threat D10: revisions that cannot be read neither block the release nor lose their number.
#[tokio::test(flavor = "multi_thread")]
async fn corrupt_revisions_do_not_block_a_release() {
    let test_cluster = TestCluster::new().await;
    let broken = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {"name": "sh.helm.release.v1.app.v4", "namespace": "default",
            "labels": {"name": "app", "owner": "helm", "status": "deployed", "version": "4"}},
        "data": {"release": STANDARD.encode("H4sIAAAAbroken")},
    });
    test_cluster.cluster.create(&broken, &MANAGER).await.expect("stored");
    test_cluster.apply(json!({}), "1").await;
    let object = test_cluster.settled("1").await;
    assert_eq!(ready(&object), ("True", "InstallSucceeded"), "{}", object["status"]);
    assert_eq!(test_cluster.history().await.last().map(|release| release.version), Some(5));
    test_cluster.end();
}

/// Threat D11: a hook that never ends times out, and the next release succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn endless_hook_times_out() {
    let test_cluster = TestCluster::new().await;
    test_cluster.apply(json!({"values": {"hook": true}, "timeout": "1s"}), "1").await;
    let object = test_cluster.settled("1").await;
    assert_eq!(ready(&object), ("False", "InstallFailed"));
    assert!(condition(&object, "Stalled").is_some());
    let message = condition(&object, "Ready").and_then(|ready| ready["message"].as_str()).unwrap_or_default();
    assert!(message.contains("failed pre-install: timeout waiting for: [Pod/default/endless"), "{message}");
    test_cluster.apply(json!({}), "2").await;
    let object = test_cluster.settled("2").await;
    assert_eq!(ready(&object), ("True", "UpgradeSucceeded"));
    test_cluster.end();
}

/// A reconcile that was interrupted between the release and its status is not repeated.
#[tokio::test(flavor = "multi_thread")]
async fn release_without_status_is_recorded_not_repeated() {
    let test_cluster = TestCluster::new().await;
    test_cluster.apply(json!({}), "1").await;
    test_cluster.settled("1").await;
    let reference = ObjectRef::new("helm.toolkit.fluxcd.io/v2", "HelmRelease", "default", "app");
    let write = Write { subresource: "status", force: false, ..MANAGER };
    let forgotten = json!({"status": {"history": null, "lastAttemptedReleaseAction": null}});
    test_cluster.cluster.patch(&reference, Patch::Merge, &forgotten, &write).await.expect("forgotten");
    tokio::time::sleep(Duration::from_millis(300)).await;
    test_cluster.apply(json!({}), "2").await;
    let object = test_cluster.settled("2").await;
    assert_eq!(ready(&object).0, "True", "{}", object["status"]);
    assert_eq!(test_cluster.history().await.releases.len(), 1, "no second effect");
    assert_eq!(object["status"]["history"][0]["version"], 1);
    test_cluster.end();
}
