//! Releases are woken by what they depend on, not by a clock.

use std::time::Duration;

use fl_runtime::{Kind, Patch, Write};
use fl_sim::{NAMESPACE, World};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::lab::{release, world};

/// Far below every interval of these tests.
const AT_ONCE: Duration = Duration::from_secs(2);

async fn soon(world: &World, kind: &str, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) {
    let start = Instant::now();
    world.until(kind, name, wanted).await;
    assert!(start.elapsed() < AT_ONCE, "{what} took {:?}", start.elapsed());
}

async fn patch(world: &World, kind: &Kind, name: &str, patch: Value) {
    let write = Write::by("somebody");
    world.user.patch(kind, Some(NAMESPACE), name, Patch::Merge, &patch, &write).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn drift_is_corrected_when_it_happens() {
    let world = world(5).await;
    world.apply(release("app", json!({"driftDetection": {"mode": "enabled"}}))).await;
    world.ready("HelmRelease", "app").await;
    for round in 0..3 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        patch(&world, &Kind::config_map(), "app-cfg", json!({"data": {"color": "pink"}})).await;
        soon(&world, "ConfigMap", "app-cfg", "a correction", |map| map["data"]["color"] == "red").await;
        if round == 1 {
            world
                .user
                .delete(&Kind::config_map(), Some(NAMESPACE), "app-extra", &Default::default())
                .await
                .unwrap();
            soon(&world, "ConfigMap", "app-extra", "a new one", |_| true).await;
        }
    }
    let events = world.events().await;
    assert!(events.iter().any(|event| event.starts_with("DriftCorrected: ")), "{events:#?}");
    assert_eq!(world.ready("HelmRelease", "app").await["status"]["history"][0]["version"], 1);
}

#[tokio::test(start_paused = true)]
async fn corrected_drift_comes_to_rest() {
    let world = world(6).await;
    world.apply(release("app", json!({"driftDetection": {"mode": "enabled"}}))).await;
    world.ready("HelmRelease", "app").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    patch(&world, &Kind::config_map(), "app-cfg", json!({"data": {"color": "pink"}})).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.faults.take_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let writes: Vec<_> =
        world.faults.take_requests().into_iter().filter(|request| !request.starts_with("GET")).collect();
    assert!(writes.is_empty(), "{writes:#?}");
}

#[tokio::test(start_paused = true)]
async fn labelled_values_are_followed() {
    let world = world(7).await;
    let values = |name: &str, color: &str, labels: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels},
               "data": {"values.yaml": format!("color: {color}\n")}})
    };
    let label = json!({"reconcile.fluxcd.io/watch": "Enabled"});
    world.apply(values("loud", "green", label.clone())).await;
    world.apply(values("quiet", "green", json!({}))).await;
    for name in ["loud", "quiet"] {
        let from = json!({"valuesFrom": [{"kind": "ConfigMap", "name": name}]});
        world.apply(release(&format!("on-{name}"), from)).await;
        world.ready("HelmRelease", &format!("on-{name}")).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.apply(values("quiet", "blue", json!({}))).await;
    world.apply(values("loud", "blue", label)).await;
    soon(&world, "ConfigMap", "on-loud-cfg", "an upgrade", |map| map["data"]["color"] == "blue").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.get("ConfigMap", "on-quiet-cfg").await.unwrap()["data"]["color"], "green");
}

#[tokio::test(start_paused = true)]
async fn a_dependent_starts_when_its_dependency_is_ready() {
    let world = world(8).await;
    world.apply(release("second", json!({"dependsOn": [{"name": "first"}]}))).await;
    let waiting = world.failed("HelmRelease", "second").await;
    assert_eq!(fl_sim::condition(&waiting, "Ready")["reason"], "DependencyNotReady");
    tokio::time::sleep(Duration::from_secs(40)).await;
    world.apply(release("first", json!({}))).await;
    world.ready("HelmRelease", "first").await;
    soon(&world, "HelmRelease", "second", "a dependent", |object| {
        fl_sim::condition(object, "Ready")["status"] == "True"
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_new_chart_is_released_when_it_is_stored() {
    let world = world(9).await;
    world.apply(release("app", json!({}))).await;
    world.ready("HelmRelease", "app").await;
    let chart = [
        ("app/Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n"),
        (
            "app/templates/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app-cfg\ndata:\n  color: gold\n",
        ),
    ];
    world.oci.push("registry.example/app", "1.0.0", chart);
    world.request("OCIRepository", "app", "now").await;
    soon(&world, "ConfigMap", "app-cfg", "an upgrade", |map| map["data"]["color"] == "gold").await;
}
