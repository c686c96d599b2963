//! How releases end: what the status says while an uninstall does not get through.

use fl_api::helm::HelmRelease;
use fl_release::Status;
use fl_runtime::{Kind, Patch, Write};
use fl_sim::{NAMESPACE, World, condition};
use serde_json::json;

use crate::lab::{history, release, states, world};

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

async fn stuck(world: &World) {
    world.oci.push("registry.example/stuck", "1.0.0", STUCK.iter().copied());
    let spec = json!({"url": "oci://registry.example/stuck", "interval": "1h", "ref": {"tag": "1.0.0"},
                      "layerSelector": {"operation": "copy"}});
    world.source("OCIRepository", "stuck", spec).await;
    let object = release("stuck", json!({"chartRef": {"kind": "OCIRepository", "name": "stuck"}}));
    world.apply(object).await;
    world.ready("HelmRelease", "stuck").await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_uninstall_shows_in_the_history() {
    let world = world(61).await;
    stuck(&world).await;
    let kind = Kind::of::<HelmRelease>();
    world.user.delete(&kind, Some(NAMESPACE), "stuck", &Default::default()).await.unwrap();
    let failed = world
        .until("HelmRelease", "stuck", |found| condition(found, "Ready")["reason"] == "UninstallFailed")
        .await;
    let latest = &failed["status"]["history"][0];
    assert_eq!(latest["status"], "uninstalling", "{latest:#}");
    assert_eq!(latest["action"], "uninstall");
    assert!(latest["deleted"].is_string());
    assert_eq!(states(&history(&world, "stuck").await), [Status::Uninstalling]);
    assert!(world.get("ConfigMap", "stuck").await.is_some());

    let hooks = json!({"spec": {"uninstall": {"disableHooks": true}}});
    let write = Write::by("user");
    world.user.patch(&kind, Some(NAMESPACE), "stuck", Patch::Merge, &hooks, &write).await.unwrap();
    world.gone("HelmRelease", "stuck").await;
    assert!(history(&world, "stuck").await.is_empty());
    assert!(world.get("ConfigMap", "stuck").await.is_none());
}
