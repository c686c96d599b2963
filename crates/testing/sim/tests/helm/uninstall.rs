//! Uninstall: the status while an uninstall fails.

use fl_api::helm::HelmRelease;
use fl_helm_storage::Status;
use fl_runtime::{Kind, Patch, Write};
use fl_sim::{NAMESPACE, TestCluster, condition};
use serde_json::json;

use crate::fixture::{history, release, states, test_cluster};

/// A hook that the server never takes stands in the way of the uninstall.
const STUCK: &[(&str, &str)] = &[
    ("stuck/Chart.yaml", "apiVersion: v2\nname: stuck\nversion: 1.0.0\n"),
    ("stuck/values.yaml", "color: red\n"),
    ("stuck/templates/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stuck}\n"),
    (
        "stuck/templates/hook.yaml",
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: hook\n  annotations: {helm.sh/hook: pre-delete}\nspec: {ports: [{port: 99999}]}\n",
    ),
];

async fn stuck(test_cluster: &TestCluster) {
    test_cluster.oci.push("registry.example/stuck", "1.0.0", STUCK.iter().copied());
    let spec = json!({"url": "oci://registry.example/stuck", "interval": "1h", "ref": {"tag": "1.0.0"},
                      "layerSelector": {"operation": "copy"}});
    test_cluster.source("OCIRepository", "stuck", spec).await;
    let object = release("stuck", json!({"chartRef": {"kind": "OCIRepository", "name": "stuck"}}));
    test_cluster.apply(object).await;
    test_cluster.ready("HelmRelease", "stuck").await;
}

#[tokio::test(start_paused = true)]
async fn failed_uninstall_is_in_the_history() {
    let test_cluster = test_cluster(61).await;
    stuck(&test_cluster).await;
    let kind = Kind::of::<HelmRelease>();
    test_cluster.user.delete(&kind, Some(NAMESPACE), "stuck", &Default::default()).await.unwrap();
    let failed = test_cluster
        .until("HelmRelease", "stuck", |found| condition(found, "Ready")["reason"] == "UninstallFailed")
        .await;
    let latest = &failed["status"]["history"][0];
    assert_eq!(latest["status"], "uninstalling", "{latest:#}");
    assert_eq!(latest["action"], "uninstall");
    assert!(latest["deleted"].is_string());
    assert_eq!(states(&history(&test_cluster, "stuck").await), [Status::Uninstalling]);
    assert!(test_cluster.get("ConfigMap", "stuck").await.is_some());

    let hooks = json!({"spec": {"uninstall": {"disableHooks": true}}});
    let write = Write::by("user");
    test_cluster.user.patch(&kind, Some(NAMESPACE), "stuck", Patch::Merge, &hooks, &write).await.unwrap();
    test_cluster.gone("HelmRelease", "stuck").await;
    assert!(history(&test_cluster, "stuck").await.is_empty());
    assert!(test_cluster.get("ConfigMap", "stuck").await.is_none());
}
