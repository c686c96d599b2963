//! What the fields of a HelmRelease ask for, on an API server in this process. The expectations were recorded from Flux.

mod lab;

use fl_apply::Write;
use lab::{MANAGER, World, condition, ready};
use serde_json::{Value, json};

fn message(object: &Value) -> &str {
    condition(object, "Ready").and_then(|ready| ready["message"].as_str()).unwrap_or_default()
}

/// Version and state of each release, as the status lists them.
fn history(object: &Value) -> Vec<(u64, String)> {
    let list = object["status"]["history"].as_array().cloned().unwrap_or_default();
    let text = |one: &Value| one["status"].as_str().unwrap_or_default().to_owned();
    list.iter().map(|one| (one["version"].as_u64().unwrap_or_default(), text(one))).collect()
}

fn releases(list: &[(u64, &str)]) -> Vec<(u64, String)> {
    list.iter().map(|(version, state)| (*version, (*state).to_owned())).collect()
}

/// A failed upgrade leaves what it made, unless it is asked to clean up; what was there before stays either way.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_upgrade_cleans_up_when_asked() {
    for clean in [false, true] {
        let world = World::new().await;
        world.apply(json!({}), "1").await;
        world.settled("1").await;
        let upgrade = json!({"values": {"extra": true, "bad": true}, "upgrade": {"cleanupOnFail": clean}});
        world.apply(upgrade, "2").await;
        let object = world.settled("2").await;
        assert_eq!(ready(&object), ("False", "UpgradeFailed"), "{}", object["status"]);
        assert_eq!(world.get("v1", "ConfigMap", "extra").await.is_none(), clean, "cleanupOnFail: {clean}");
        assert!(world.get("v1", "ConfigMap", "app-cfg").await.is_some(), "it was there before");
        world.end();
    }
}

/// Kept values lie below the new ones, and keeping them is no reason to upgrade again in the same pass.
#[tokio::test(flavor = "multi_thread")]
async fn values_of_the_last_release_are_kept() {
    let world = World::new().await;
    world.apply(json!({"values": {"color": "blue", "nested": {"a": 1, "b": 2}}}), "1").await;
    world.settled("1").await;
    let kept = json!({"values": {"nested": {"b": 3}}, "upgrade": {"preserveValues": true}});
    world.apply(kept, "2").await;
    let object = world.settled("2").await;
    assert_eq!(ready(&object), ("True", "UpgradeSucceeded"), "{}", object["status"]);
    let config = world.history().await.last().map(|release| json!(release.config)).unwrap_or_default();
    assert_eq!(config, json!({"color": "blue", "nested": {"a": 1, "b": 3}}));
    let map = world.get("v1", "ConfigMap", "app-cfg").await.expect("there");
    assert_eq!(map["data"]["color"], "blue");
    assert_eq!(history(&object), releases(&[(2, "deployed"), (1, "superseded")]));
    world.end();
}

/// The newest release comes first. Failures are listed until an upgrade succeeds; then the last good one before it ends the list.
#[tokio::test(flavor = "multi_thread")]
async fn the_newest_release_is_listed_first() {
    let world = World::new().await;
    for (token, bad) in [("1", false), ("2", true), ("3", false), ("4", true)] {
        world.apply(json!({"values": {"bad": bad, "color": token}}), token).await;
        world.settled(token).await;
    }
    let object = world.settled("4").await;
    let all = [(4, "failed"), (3, "deployed"), (2, "failed"), (1, "superseded")];
    assert_eq!(history(&object), releases(&all));
    world.apply(json!({"values": {"color": "5"}}), "5").await;
    let object = world.settled("5").await;
    assert_eq!(history(&object), releases(&[(5, "deployed"), (4, "failed"), (3, "superseded")]));
    world.end();
}

/// An expression that can never be a bool is refused for good; there is nothing to wait for.
#[tokio::test(flavor = "multi_thread")]
async fn an_expression_that_is_no_bool_is_terminal() {
    let world = World::new().await;
    world.apply(json!({"dependsOn": [{"name": "app", "readyExpr": "'str'"}]}), "1").await;
    let object = world.settled("1").await;
    assert_eq!(ready(&object), ("False", "InvalidCELExpression"), "{}", object["status"]);
    let wrong =
        "failed to evaluate dependency app: CEL expression output type mismatch: expected bool, got string";
    assert!(message(&object).ends_with(wrong), "{}", message(&object));
    assert!(condition(&object, "Stalled").is_some());
    world.end();
}

/// Where a kubeconfig cannot be had, the release says why, in the words of the one reader that Kustomizations use too.
#[tokio::test(flavor = "multi_thread")]
async fn remote_clusters_are_read_as_kustomizations_read_them() {
    let world = World::new().await;
    let remote = |name: &str| json!({"kubeConfig": {"configMapRef": {"name": name}}});
    let map = |name: &str, data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data});
    let write = Write { ..MANAGER };
    for one in [
        map("moon", json!({"provider": "moon"})),
        map("empty", json!({"address": "https://127.0.0.1:1"})),
        map(
            "account",
            json!({"provider": "generic", "address": "https://127.0.0.1:1", "serviceAccountName": "who"}),
        ),
    ] {
        world.cluster.create(&one, &write).await.expect("made");
    }
    let cases = [
        ("none", "failed to get configmap default/none: configmaps \"none\" not found"),
        ("moon", "provider 'moon' not implemented"),
        ("empty", "provider '' not implemented"),
        (
            "account",
            "failed to get access token for cluster: failed to get service account 'default/who': serviceaccounts \"who\" not found",
        ),
    ];
    for (name, expected) in cases {
        world.apply(remote(name), name).await;
        let object = world.until(|object| message(object) == expected).await;
        assert_eq!(ready(&object), ("False", "RESTClientError"));
    }
    world.end();
}

/// The inventory lists the definitions of the subcharts that the values switch on, and no others.
#[tokio::test(flavor = "multi_thread")]
async fn definitions_of_disabled_subcharts_are_not_listed() {
    let world = World::new().await;
    let listed = |object: &Value| {
        let entries = object["status"]["inventory"]["entries"].as_array().cloned().unwrap_or_default();
        entries
            .iter()
            .any(|entry| entry["id"] == "_mugs.example.com_apiextensions.k8s.io_CustomResourceDefinition")
    };
    world.apply(json!({}), "1").await;
    let object = world.settled("1").await;
    assert!(!listed(&object), "{}", object["status"]["inventory"]);
    world.apply(json!({"values": {"types": {"enabled": true}}, "upgrade": {"crds": "Create"}}), "2").await;
    let object = world.settled("2").await;
    assert_eq!(ready(&object), ("True", "UpgradeSucceeded"), "{}", object["status"]);
    assert!(listed(&object), "{}", object["status"]["inventory"]);
    world.end();
}

/// A release that moves is uninstalled from its new place: objects that name no namespace stay behind in the old one.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_moves_leaves_its_objects_behind() {
    let world = World::new().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "two"}});
    world.cluster.create(&namespace, &MANAGER).await.expect("made");
    // Somebody else's, where the release goes, with the name of one of the objects it leaves.
    let foreign =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra", "namespace": "two"}});
    world.cluster.create(&foreign, &MANAGER).await.expect("made");
    world.apply(json!({"values": {"extra": true}}), "1").await;
    world.settled("1").await;
    world.apply(json!({"targetNamespace": "two", "releaseName": "app"}), "2").await;
    let object = world.until(|object| object["status"]["history"][0]["namespace"] == "two").await;
    assert_eq!(ready(&object), ("True", "InstallSucceeded"), "{}", object["status"]);
    assert_eq!(history(&object), releases(&[(1, "deployed")]));
    assert_eq!(world.history().await.releases.len(), 1, "the record of the old release is gone");
    assert!(world.get("v1", "ConfigMap", "app-cfg").await.is_some());
    for name in ["app-cfg", "extra"] {
        let there = fl_apply::ObjectRef::new("v1", "ConfigMap", "two", name);
        assert!(world.cluster.get(&there).await.expect("an answer").is_some(), "{name}");
    }
    world.end();
}

/// An uninstall that failed as a remedy is not answered with yet another upgrade.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_uninstall_is_no_reason_to_release() {
    let world = World::new().await;
    let remedy =
        json!({"remediation": {"retries": 0, "strategy": "uninstall", "remediateLastFailure": true}});
    world.apply(json!({"values": {"stay": true}, "upgrade": remedy}), "1").await;
    world.settled("1").await;
    world.apply(json!({"values": {"stay": true, "bad": true}, "upgrade": remedy}), "2").await;
    let object = world.until(|object| ready(object).1 == "StateError").await;
    let unknown =
        "Could not determine release state: unable to determine state for release with status 'uninstalling'";
    assert_eq!(message(&object), unknown);
    assert_eq!(history(&object), releases(&[(2, "uninstalling"), (1, "deployed")]));
    world.end();
}

/// Under lock-down: an expression about a release of another namespace is refused unread, and a missing account is the default one.
#[tokio::test(flavor = "multi_thread")]
async fn lock_down_covers_expressions_and_missing_accounts() {
    let options = fl_runtime::Options {
        no_cross_namespace_refs: true,
        default_service_account: "tenant".to_owned(),
        ..Default::default()
    };
    let world = World::with(options).await;
    let on =
        json!({"name": "theirs", "namespace": "other", "readyExpr": "dep.spec.interval.startsWith('1')"});
    world.apply(json!({"dependsOn": [on]}), "1").await;
    let object = world.settled("1").await;
    assert_eq!(ready(&object), ("False", "AccessDenied"), "{}", object["status"]);
    let want = "can't access 'HelmRelease/other/theirs', cross-namespace references have been blocked";
    assert_eq!(message(&object), want);
    assert!(condition(&object, "Stalled").is_some());
    // Nothing is installed in the engine's name: the account of the namespace may do nothing. (An empty name is refused by the CRD.)
    world.apply(json!({"dependsOn": []}), "2").await;
    let object = world.until(|o| o["status"]["lastHandledReconcileAt"] == "2" && ready(o).0 == "False").await;
    assert!(message(&object).contains("system:serviceaccount:default:tenant"), "{}", object["status"]);
    assert!(world.get("v1", "ConfigMap", "app-cfg").await.is_none(), "the engine installed it");
    world.end();
}
