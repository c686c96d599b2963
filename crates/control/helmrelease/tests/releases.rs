//! Whole releases on an API server in this process: made, changed, broken, healed, removed.

mod lab;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_apply::{ObjectRef, Patch, Write};
use fl_release::{Status, secret_object};
use serde_json::json;

use lab::{MANAGER, World, condition, ready};

#[tokio::test(flavor = "multi_thread")]
async fn a_release_lives_and_ends() {
    let world = World::new().await;
    world.apply(json!({}), "1").await;
    let object = world.settled("1").await;
    assert_eq!(ready(&object), ("True", "InstallSucceeded"), "{}", object["status"]);
    let map = world.get("v1", "ConfigMap", "app-cfg").await.expect("made");
    assert_eq!(map["data"]["color"], "red");
    assert_eq!(map["metadata"]["labels"]["helm.toolkit.fluxcd.io/name"], "app");

    world.apply(json!({"values": {"color": "blue"}}), "2").await;
    let object = world.settled("2").await;
    assert_eq!(ready(&object), ("True", "UpgradeSucceeded"));
    let states: Vec<Status> = world.history().await.releases.into_iter().map(|r| r.info.status).collect();
    assert_eq!(states, [Status::Superseded, Status::Deployed]);

    world.apply(json!({"values": {"color": "blue"}}), "3").await;
    world.settled("3").await;
    assert_eq!(world.history().await.releases.len(), 2, "nothing changed, nothing is released");

    world.apply(json!({"values": {"bad": true}}), "4").await;
    let object = world.settled("4").await;
    assert_eq!(ready(&object), ("False", "UpgradeFailed"));
    assert!(condition(&object, "Stalled").is_some());

    let reference = ObjectRef::new("helm.toolkit.fluxcd.io/v2", "HelmRelease", "default", "app");
    let live = world.cluster.get(&reference).await.expect("an answer").expect("there");
    let owned = fl_apply::Owned::by_check(&live, |_| true).expect("complete").expect("ours");
    world.cluster.delete(&owned, fl_apply::Delete::default()).await.expect("deleted");
    for _ in 0..200 {
        if world.cluster.get(&reference).await.expect("an answer").is_none() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(world.get("v1", "ConfigMap", "app-cfg").await.is_none(), "removed with the release");
    assert!(world.history().await.is_empty(), "no record stays");
    world.end();
}

/// Threat K08: a process that is killed in the middle leaves a lock; the next pass resolves it and finishes.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_resolved_in_one_pass() {
    let world = World::new().await;
    world.apply(json!({}), "1").await;
    world.settled("1").await;
    let mut release = world.history().await.releases.remove(0);
    release.version = 2;
    release.set_status(Status::PendingUpgrade, "Preparing upgrade");
    let record = secret_object(&release, "default", ("createdAt", 0)).expect("a record");
    world.cluster.create(&record, &MANAGER).await.expect("stored");
    world.apply(json!({"values": {"color": "green"}}), "2").await;
    let object = world.settled("2").await;
    assert_eq!(ready(&object).0, "True", "{}", object["status"]);
    let history = world.history().await;
    assert_eq!(history.last().map(|r| (r.version, r.info.status.clone())), Some((3, Status::Deployed)));
    assert_eq!(history.get(2).map(|r| r.info.status.clone()), Some(Status::Failed));
    world.end();
}

/// Threat D10: records that cannot be read neither block the release nor lose their number.
#[tokio::test(flavor = "multi_thread")]
async fn corrupt_records_do_not_block() {
    let world = World::new().await;
    let broken = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {"name": "sh.helm.release.v1.app.v4", "namespace": "default",
            "labels": {"name": "app", "owner": "helm", "status": "deployed", "version": "4"}},
        "data": {"release": STANDARD.encode("H4sIAAAAbroken")},
    });
    world.cluster.create(&broken, &MANAGER).await.expect("stored");
    world.apply(json!({}), "1").await;
    let object = world.settled("1").await;
    assert_eq!(ready(&object), ("True", "InstallSucceeded"), "{}", object["status"]);
    assert_eq!(world.history().await.last().map(|release| release.version), Some(5));
    world.end();
}

/// Threat D11: a hook that never ends times out, and what follows is defined.
#[tokio::test(flavor = "multi_thread")]
async fn an_endless_hook_times_out() {
    let world = World::new().await;
    world.apply(json!({"values": {"hook": true}, "timeout": "1s"}), "1").await;
    let object = world.settled("1").await;
    assert_eq!(ready(&object), ("False", "InstallFailed"));
    assert!(condition(&object, "Stalled").is_some());
    let message = condition(&object, "Ready").and_then(|ready| ready["message"].as_str()).unwrap_or_default();
    assert!(message.contains("failed pre-install: timeout waiting for: [Pod/default/endless"), "{message}");
    world.apply(json!({}), "2").await;
    let object = world.settled("2").await;
    assert_eq!(ready(&object), ("True", "UpgradeSucceeded"));
    world.end();
}

/// A pass that was cut off between the release and its status is not repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_without_status_is_taken_over() {
    let world = World::new().await;
    world.apply(json!({}), "1").await;
    world.settled("1").await;
    let reference = ObjectRef::new("helm.toolkit.fluxcd.io/v2", "HelmRelease", "default", "app");
    let write = Write { subresource: "status", force: false, ..MANAGER };
    let forgotten = json!({"status": {"history": null, "lastAttemptedReleaseAction": null}});
    world.cluster.patch(&reference, Patch::Merge, &forgotten, &write).await.expect("forgotten");
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.apply(json!({}), "2").await;
    let object = world.settled("2").await;
    assert_eq!(ready(&object).0, "True", "{}", object["status"]);
    assert_eq!(world.history().await.releases.len(), 1, "no second effect");
    assert_eq!(object["status"]["history"][0]["version"], 1);
    world.end();
}
