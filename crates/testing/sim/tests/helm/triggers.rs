//! Releases are woken by what they depend on, not by a clock.

use std::time::Duration;

use fl_runtime::{Kind, Patch, Write};
use fl_sim::{NAMESPACE, TestCluster};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixture::{release, test_cluster};

/// Far below every interval of these tests.
const AT_ONCE: Duration = Duration::from_secs(2);

async fn soon(
    test_cluster: &TestCluster,
    kind: &str,
    name: &str,
    what: &str,
    wanted: impl Fn(&Value) -> bool,
) {
    let start = Instant::now();
    test_cluster.until(kind, name, wanted).await;
    assert!(start.elapsed() < AT_ONCE, "{what} took {:?}", start.elapsed());
}

async fn patch(test_cluster: &TestCluster, kind: &Kind, name: &str, patch: Value) {
    let write = Write::by("somebody");
    test_cluster.user.patch(kind, Some(NAMESPACE), name, Patch::Merge, &patch, &write).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn drift_is_corrected_when_it_happens() {
    let test_cluster = test_cluster(5).await;
    test_cluster.apply(release("app", json!({"driftDetection": {"mode": "enabled"}}))).await;
    test_cluster.ready("HelmRelease", "app").await;
    for round in 0..3 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        patch(&test_cluster, &Kind::config_map(), "app-cfg", json!({"data": {"color": "pink"}})).await;
        soon(&test_cluster, "ConfigMap", "app-cfg", "a correction", |map| map["data"]["color"] == "red")
            .await;
        if round == 1 {
            test_cluster
                .user
                .delete(&Kind::config_map(), Some(NAMESPACE), "app-extra", &Default::default())
                .await
                .unwrap();
            soon(&test_cluster, "ConfigMap", "app-extra", "a new one", |_| true).await;
        }
    }
    let events = test_cluster.events().await;
    assert!(events.iter().any(|event| event.starts_with("DriftCorrected: ")), "{events:#?}");
    assert_eq!(test_cluster.ready("HelmRelease", "app").await["status"]["history"][0]["version"], 1);
}

#[tokio::test(start_paused = true)]
async fn drift_correction_does_not_loop() {
    let test_cluster = test_cluster(6).await;
    test_cluster.apply(release("app", json!({"driftDetection": {"mode": "enabled"}}))).await;
    test_cluster.ready("HelmRelease", "app").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    patch(&test_cluster, &Kind::config_map(), "app-cfg", json!({"data": {"color": "pink"}})).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    test_cluster.faults.take_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let writes: Vec<_> = test_cluster
        .faults
        .take_requests()
        .into_iter()
        .filter(|request| !request.starts_with("GET"))
        .collect();
    assert!(writes.is_empty(), "{writes:#?}");
}

#[tokio::test(start_paused = true)]
async fn change_of_labelled_values_triggers_an_upgrade() {
    let test_cluster = test_cluster(7).await;
    let values = |name: &str, color: &str, labels: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels},
               "data": {"values.yaml": format!("color: {color}\n")}})
    };
    let label = json!({"reconcile.fluxcd.io/watch": "Enabled"});
    test_cluster.apply(values("loud", "green", label.clone())).await;
    test_cluster.apply(values("quiet", "green", json!({}))).await;
    for name in ["loud", "quiet"] {
        let from = json!({"valuesFrom": [{"kind": "ConfigMap", "name": name}]});
        test_cluster.apply(release(&format!("on-{name}"), from)).await;
        test_cluster.ready("HelmRelease", &format!("on-{name}")).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    test_cluster.apply(values("quiet", "blue", json!({}))).await;
    test_cluster.apply(values("loud", "blue", label)).await;
    soon(&test_cluster, "ConfigMap", "on-loud-cfg", "an upgrade", |map| map["data"]["color"] == "blue").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(test_cluster.get("ConfigMap", "on-quiet-cfg").await.unwrap()["data"]["color"], "green");
}

#[tokio::test(start_paused = true)]
async fn a_dependent_starts_when_its_dependency_is_ready() {
    let test_cluster = test_cluster(8).await;
    test_cluster.apply(release("second", json!({"dependsOn": [{"name": "first"}]}))).await;
    let waiting = test_cluster.failed("HelmRelease", "second").await;
    assert_eq!(fl_sim::condition(&waiting, "Ready")["reason"], "DependencyNotReady");
    tokio::time::sleep(Duration::from_secs(40)).await;
    test_cluster.apply(release("first", json!({}))).await;
    test_cluster.ready("HelmRelease", "first").await;
    soon(&test_cluster, "HelmRelease", "second", "a dependent", |object| {
        fl_sim::condition(object, "Ready")["status"] == "True"
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_new_chart_is_released_when_it_is_stored() {
    let test_cluster = test_cluster(9).await;
    test_cluster.apply(release("app", json!({}))).await;
    test_cluster.ready("HelmRelease", "app").await;
    let chart = [
        ("app/Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n"),
        (
            "app/templates/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app-cfg\ndata:\n  color: gold\n",
        ),
    ];
    test_cluster.oci.push("registry.example/app", "1.0.0", chart);
    test_cluster.request("OCIRepository", "app", "now").await;
    soon(&test_cluster, "ConfigMap", "app-cfg", "an upgrade", |map| map["data"]["color"] == "gold").await;
}
