//! An engine that a HelmRelease of its own delivers: the new version cannot start, and somebody must still be there to go back.
//!
//! The test is Kubernetes here. As `deploy/chart` asks for, the old pod lives until the new one is ready.

use std::time::Duration;

use fl_helm_storage::Status;
use fl_runtime::{Client, Kind, Patch, Write};
use fl_sim::{NAMESPACE, TestCluster, condition};
use serde_json::{Value, json};

use crate::fixture::{history, release, restart, states, test_cluster};

const CHART: &[(&str, &str)] = &[
    ("engine/Chart.yaml", "apiVersion: v2\nname: engine\nversion: 1.0.0\n"),
    ("engine/values.yaml", "image: engine:good\n"),
    (
        "engine/templates/deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: engine}\nspec:\n  selector: {matchLabels: {app: engine}}\n  \
         template:\n    metadata: {labels: {app: engine}}\n    spec: {containers: [{name: engine, image: {{ .Values.image | quote }}}]}\n",
    ),
];

fn deployments() -> Kind {
    Kind::new("apps", "v1", "Deployment", "deployments", true)
}

fn image(deployment: &Value) -> &str {
    deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default()
}

/// Pods of the good image become ready, those of the other never do; the old pod stays beside them.
async fn roll_out(cluster: Client) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let Ok(found) = cluster.get(&deployments(), Some(NAMESPACE), "engine").await else { continue };
        let good = image(&found) == "engine:good";
        let seen = &found["metadata"]["generation"];
        let status = json!({"status": {
            "observedGeneration": seen, "replicas": if good { 1 } else { 2 }, "updatedReplicas": 1,
            "readyReplicas": 1, "availableReplicas": 1, "unavailableReplicas": if good { 0 } else { 1 },
            "conditions": [
                {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
                {"type": "Progressing", "status": "True", "reason": if good { "NewReplicaSetAvailable" } else { "ReplicaSetUpdated" }},
            ],
        }});
        let write = Write::by("kubernetes").to("status");
        let kind = deployments();
        cluster.patch(&kind, Some(NAMESPACE), "engine", Patch::Merge, &status, &write).await.unwrap();
    }
}

fn own(image: &str) -> Value {
    release(
        "engine",
        json!({
            "chartRef": {"kind": "OCIRepository", "name": "engine"}, "timeout": "2m", "values": {"image": image},
            "upgrade": {"remediation": {"retries": 1, "remediateLastFailure": true}},
        }),
    )
}

/// The chart, ready to be used.
async fn prepare(test_cluster: &TestCluster) {
    test_cluster.oci.push("registry.example/engine", "1.0.0", CHART.iter().copied());
    let spec = json!({"url": "oci://registry.example/engine", "interval": "1h", "ref": {"tag": "1.0.0"},
                      "layerSelector": {"operation": "copy"}});
    test_cluster.source("OCIRepository", "engine", spec).await;
}

/// The upgrade fails, `killed` with the process ended in the middle of it: what runs in the end is the version before.
async fn survives(seed: u64, killed: bool) {
    let first = test_cluster(seed).await;
    prepare(&first).await;
    let kubernetes = tokio::spawn(roll_out(first.user.clone()));
    first.apply(own("engine:good")).await;
    first.ready("HelmRelease", "engine").await;

    first.apply(own("engine:bad")).await;
    first.until("Deployment", "engine", |found| image(found) == "engine:bad").await;
    let second = if killed {
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(states(&history(&first, "engine").await).iter().any(Status::is_pending), "not in the middle");
        first.stop();
        Some(restart(&first, seed + 1).await)
    } else {
        None
    };
    let test_cluster = second.as_ref().unwrap_or(&first);
    let end = test_cluster
        .until("HelmRelease", "engine", |found| condition(found, "Stalled")["status"] == "True")
        .await;
    assert_eq!(condition(&end, "Remediated")["status"], "True", "{end:#}");
    let deployment = test_cluster.get("Deployment", "engine").await.unwrap();
    assert_eq!(image(&deployment), "engine:good");
    let history = history(test_cluster, "engine").await;
    let last = history.releases.iter().rfind(|r| r.info.status == Status::Deployed).unwrap();
    assert!(last.manifest.contains("engine:good"));
    assert!(!states(&history).iter().any(Status::is_pending), "{:?}", states(&history));
    kubernetes.abort();
}

#[tokio::test(start_paused = true)]
async fn self_managed_engine_survives_a_failed_upgrade() {
    survives(31, false).await;
}

#[tokio::test(start_paused = true)]
async fn self_managed_engine_killed_during_upgrade_is_rolled_back() {
    survives(41, true).await;
}
