//! What the fields of a HelmRelease ask for, on an API server in this process. The expectations were recorded from Flux.

mod fixture;

use fixture::{MANAGER, TestCluster, condition, ready};
use fl_apply::Write;
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
        let test_cluster = TestCluster::new().await;
        test_cluster.apply(json!({}), "1").await;
        test_cluster.settled("1").await;
        let upgrade = json!({"values": {"extra": true, "bad": true}, "upgrade": {"cleanupOnFail": clean}});
        test_cluster.apply(upgrade, "2").await;
        let object = test_cluster.settled("2").await;
        assert_eq!(ready(&object), ("False", "UpgradeFailed"), "{}", object["status"]);
        assert_eq!(
            test_cluster.get("v1", "ConfigMap", "extra").await.is_none(),
            clean,
            "cleanupOnFail: {clean}"
        );
        assert!(test_cluster.get("v1", "ConfigMap", "app-cfg").await.is_some(), "it was there before");
        test_cluster.end();
    }
}

/// Kept values lie below the new ones, and keeping them is no reason to upgrade again in the same pass.
#[tokio::test(flavor = "multi_thread")]
async fn values_of_the_last_release_are_kept() {
    let test_cluster = TestCluster::new().await;
    test_cluster.apply(json!({"values": {"color": "blue", "nested": {"a": 1, "b": 2}}}), "1").await;
    test_cluster.settled("1").await;
    let kept = json!({"values": {"nested": {"b": 3}}, "upgrade": {"preserveValues": true}});
    test_cluster.apply(kept, "2").await;
    let object = test_cluster.settled("2").await;
    assert_eq!(ready(&object), ("True", "UpgradeSucceeded"), "{}", object["status"]);
    let config = test_cluster.history().await.last().map(|release| json!(release.config)).unwrap_or_default();
    assert_eq!(config, json!({"color": "blue", "nested": {"a": 1, "b": 3}}));
    let map = test_cluster.get("v1", "ConfigMap", "app-cfg").await.expect("there");
    assert_eq!(map["data"]["color"], "blue");
    assert_eq!(history(&object), releases(&[(2, "deployed"), (1, "superseded")]));
    test_cluster.end();
}

/// The newest release comes first. Failures are listed until an upgrade succeeds; then the last good one before it ends the list.
#[tokio::test(flavor = "multi_thread")]
async fn the_newest_release_is_listed_first() {
    let test_cluster = TestCluster::new().await;
    for (token, bad) in [("1", false), ("2", true), ("3", false), ("4", true)] {
        test_cluster.apply(json!({"values": {"bad": bad, "color": token}}), token).await;
        test_cluster.settled(token).await;
    }
    let object = test_cluster.settled("4").await;
    let all = [(4, "failed"), (3, "deployed"), (2, "failed"), (1, "superseded")];
    assert_eq!(history(&object), releases(&all));
    test_cluster.apply(json!({"values": {"color": "5"}}), "5").await;
    let object = test_cluster.settled("5").await;
    assert_eq!(history(&object), releases(&[(5, "deployed"), (4, "failed"), (3, "superseded")]));
    test_cluster.end();
}

/// An expression that can never be a bool is refused for good; there is nothing to wait for.
#[tokio::test(flavor = "multi_thread")]
async fn expression_that_is_not_bool_is_terminal() {
    let test_cluster = TestCluster::new().await;
    test_cluster.apply(json!({"dependsOn": [{"name": "app", "readyExpr": "'str'"}]}), "1").await;
    let object = test_cluster.settled("1").await;
    assert_eq!(ready(&object), ("False", "InvalidCELExpression"), "{}", object["status"]);
    let wrong =
        "failed to evaluate dependency app: CEL expression output type mismatch: expected bool, got string";
    assert!(message(&object).ends_with(wrong), "{}", message(&object));
    assert!(condition(&object, "Stalled").is_some());
    test_cluster.end();
}

/// Where a kubeconfig cannot be had, the release says why, in the words of the one reader that Kustomizations use too.
#[tokio::test(flavor = "multi_thread")]
async fn kubeconfigs_are_read_as_for_kustomizations() {
    let test_cluster = TestCluster::new().await;
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
        test_cluster.cluster.create(&one, &write).await.expect("made");
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
        test_cluster.apply(remote(name), name).await;
        let object = test_cluster.until(|object| message(object) == expected).await;
        assert_eq!(ready(&object), ("False", "RESTClientError"));
    }
    test_cluster.end();
}

/// The inventory lists the definitions of the subcharts that the values switch on, and no others.
#[tokio::test(flavor = "multi_thread")]
async fn definitions_of_disabled_subcharts_are_not_listed() {
    let test_cluster = TestCluster::new().await;
    let listed = |object: &Value| {
        let entries = object["status"]["inventory"]["entries"].as_array().cloned().unwrap_or_default();
        entries
            .iter()
            .any(|entry| entry["id"] == "_mugs.example.com_apiextensions.k8s.io_CustomResourceDefinition")
    };
    test_cluster.apply(json!({}), "1").await;
    let object = test_cluster.settled("1").await;
    assert!(!listed(&object), "{}", object["status"]["inventory"]);
    test_cluster
        .apply(json!({"values": {"types": {"enabled": true}}, "upgrade": {"crds": "Create"}}), "2")
        .await;
    let object = test_cluster.settled("2").await;
    assert_eq!(ready(&object), ("True", "UpgradeSucceeded"), "{}", object["status"]);
    assert!(listed(&object), "{}", object["status"]["inventory"]);
    test_cluster.end();
}

/// A release that moves is uninstalled from its new place: objects that name no namespace stay behind in the old one.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_moves_leaves_its_objects_behind() {
    let test_cluster = TestCluster::new().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "two"}});
    test_cluster.cluster.create(&namespace, &MANAGER).await.expect("made");
    // Somebody else's, where the release goes, with the name of one of the objects it leaves.
    let foreign =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra", "namespace": "two"}});
    test_cluster.cluster.create(&foreign, &MANAGER).await.expect("made");
    test_cluster.apply(json!({"values": {"extra": true}}), "1").await;
    test_cluster.settled("1").await;
    test_cluster.apply(json!({"targetNamespace": "two", "releaseName": "app"}), "2").await;
    let object = test_cluster.until(|object| object["status"]["history"][0]["namespace"] == "two").await;
    assert_eq!(ready(&object), ("True", "InstallSucceeded"), "{}", object["status"]);
    assert_eq!(history(&object), releases(&[(1, "deployed")]));
    assert_eq!(test_cluster.history().await.releases.len(), 1, "the record of the old release is gone");
    assert!(test_cluster.get("v1", "ConfigMap", "app-cfg").await.is_some());
    for name in ["app-cfg", "extra"] {
        let there = fl_apply::ObjectRef::new("v1", "ConfigMap", "two", name);
        assert!(test_cluster.cluster.get(&there).await.expect("an answer").is_some(), "{name}");
    }
    test_cluster.end();
}

/// An uninstall that failed as a remedy is not answered with yet another upgrade.
#[tokio::test(flavor = "multi_thread")]
async fn failed_uninstall_does_not_release_again() {
    let test_cluster = TestCluster::new().await;
    let remedy =
        json!({"remediation": {"retries": 0, "strategy": "uninstall", "remediateLastFailure": true}});
    test_cluster.apply(json!({"values": {"stay": true}, "upgrade": remedy}), "1").await;
    test_cluster.settled("1").await;
    test_cluster.apply(json!({"values": {"stay": true, "bad": true}, "upgrade": remedy}), "2").await;
    let object = test_cluster.until(|object| ready(object).1 == "StateError").await;
    let unknown =
        "Could not determine release state: unable to determine state for release with status 'uninstalling'";
    assert_eq!(message(&object), unknown);
    assert_eq!(history(&object), releases(&[(2, "uninstalling"), (1, "deployed")]));
    test_cluster.end();
}

/// Under lock-down: an expression about a release of another namespace is refused unread, and a missing account is the default one.
#[tokio::test(flavor = "multi_thread")]
async fn lockdown_covers_expressions_and_missing_accounts() {
    let options = fl_runtime::Options {
        no_cross_namespace_refs: true,
        default_service_account: "tenant".to_owned(),
        ..Default::default()
    };
    let test_cluster = TestCluster::with(options).await;
    let on =
        json!({"name": "theirs", "namespace": "other", "readyExpr": "dep.spec.interval.startsWith('1')"});
    test_cluster.apply(json!({"dependsOn": [on]}), "1").await;
    let object = test_cluster.settled("1").await;
    assert_eq!(ready(&object), ("False", "AccessDenied"), "{}", object["status"]);
    let want = "can't access 'HelmRelease/other/theirs', cross-namespace references have been blocked";
    assert_eq!(message(&object), want);
    assert!(condition(&object, "Stalled").is_some());
    // Nothing is installed in the engine's name: the account of the namespace may do nothing. (An empty name is refused by the CRD.)
    test_cluster.apply(json!({"dependsOn": []}), "2").await;
    let object =
        test_cluster.until(|o| o["status"]["lastHandledReconcileAt"] == "2" && ready(o).0 == "False").await;
    assert!(message(&object).contains("system:serviceaccount:default:tenant"), "{}", object["status"]);
    assert!(test_cluster.get("v1", "ConfigMap", "app-cfg").await.is_none(), "the engine installed it");
    test_cluster.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn disable_openapi_validation_is_reported_as_without_effect() {
    let test_cluster = TestCluster::new().await;
    test_cluster.apply(json!({"install": {"disableOpenAPIValidation": true}}), "1").await;
    let object = test_cluster.settled("1").await;
    assert_eq!(ready(&object), ("True", "InstallSucceeded"), "{}", object["status"]);
    let (kind, message) = test_cluster.event("FieldWithoutEffect").await;
    assert_eq!(kind, "Warning");
    assert!(message.starts_with(".spec.install.disableOpenAPIValidation has no effect"), "{message}");
    test_cluster.end();
}
