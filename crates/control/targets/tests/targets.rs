//! Connections and watched owners are bounded: nothing is kept for what is gone.

use std::time::Duration;

use fl_api::meta::kube_config::KubeConfigReference;
use fl_apply::Observer as _;
use fl_runtime::{Delete, Identity, Key, Kind, WatchSpec};
use fl_sim::{NAMESPACE, TestCluster};
use fl_targets::{MAX_CONNECTIONS, OwnedObjectWatcher, OwnerKind, TargetOptions, Targets};
use serde_json::{Value, json};

fn kubeconfig_secret(name: &str, server: &str) -> Value {
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
         users: [{{name: u, user: {{token: t}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
    );
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE},
           "stringData": {"value": kubeconfig}})
}

fn reference(name: &str) -> KubeConfigReference {
    serde_json::from_value(json!({"secretRef": {"name": name}})).expect("a reference")
}

async fn key(targets: &Targets, name: &str) -> String {
    let target = targets.resolve(NAMESPACE, Some(&reference(name)), &Identity::Engine).await;
    target.expect("a target").key
}

#[tokio::test(start_paused = true)]
async fn connections_are_bounded_and_replaced_with_their_kubeconfig() {
    let cluster = TestCluster::start(1).await;
    let targets = Targets::new(&cluster.runtime, TargetOptions::default());
    for i in 0..MAX_CONNECTIONS + 5 {
        let name = format!("remote-{i}");
        cluster.apply(kubeconfig_secret(&name, "https://127.0.0.1:1")).await;
        key(&targets, &name).await;
    }
    assert_eq!(targets.open_connections(), MAX_CONNECTIONS);
    let last = format!("remote-{}", MAX_CONNECTIONS + 4);
    let before = key(&targets, &last).await;
    assert_eq!(key(&targets, &last).await, before);
    cluster.apply(kubeconfig_secret(&last, "https://127.0.0.1:2")).await;
    assert_ne!(key(&targets, &last).await, before, "a changed kubeconfig is another cluster");
    assert_eq!(targets.open_connections(), MAX_CONNECTIONS);
    let secret = Kind::secret();
    cluster.user.delete(&secret, Some(NAMESPACE), &last, &Delete::default()).await.expect("deleted");
    let gone = targets.resolve(NAMESPACE, Some(&reference(&last)), &Identity::Engine).await;
    assert!(gone.expect_err("no Secret").is_missing());
    assert_eq!(targets.open_connections(), MAX_CONNECTIONS - 1);
}

#[tokio::test(start_paused = true)]
async fn connections_are_not_shared_by_namespaces() {
    let cluster = TestCluster::start(2).await;
    let targets = Targets::new(&cluster.runtime, TargetOptions::default());
    cluster.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})).await;
    let mut secret = kubeconfig_secret("remote", "https://127.0.0.1:1");
    cluster.apply(secret.clone()).await;
    secret["metadata"]["namespace"] = json!("other");
    cluster.apply(secret).await;
    let reference = reference("remote");
    let mine = targets.resolve(NAMESPACE, Some(&reference), &Identity::Engine).await.expect("a target");
    let theirs = targets.resolve("other", Some(&reference), &Identity::Engine).await.expect("a target");
    assert_ne!(mine.key, theirs.key);
    assert_eq!(targets.open_connections(), 2);
}

const OWNER: OwnerKind = OwnerKind {
    group: "kustomize.toolkit.fluxcd.io",
    kind: "Kustomization",
    name_label: "kustomize.toolkit.fluxcd.io/name",
    namespace_label: "kustomize.toolkit.fluxcd.io/namespace",
    confirm_after: Duration::ZERO,
};

fn written(uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "a", "namespace": NAMESPACE, "uid": uid, "resourceVersion": "1",
        "labels": {OWNER.name_label: "app", OWNER.namespace_label: NAMESPACE}}})
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_for_owners_without_drift_detection_or_after_their_deletion() {
    let cluster = TestCluster::start(3).await;
    let watcher = OwnedObjectWatcher::start(&cluster.runtime, OWNER, true);
    let owner = Key::new(OWNER.group, OWNER.kind, NAMESPACE, "app");
    watcher.set_drift_detection(&owner, false);
    watcher.wrote(&written("1"));
    assert_eq!(watcher.tracked_owners(), 0, "no drift detection");
    watcher.set_drift_detection(&owner, true);
    watcher.wrote(&written("1"));
    assert_eq!(watcher.tracked_owners(), 1);
    watcher.set_drift_detection(&owner, false);
    assert_eq!(watcher.tracked_owners(), 0, "drift detection was switched off");

    // The watch on the owners themselves removes the state of a deleted one.
    let kind = Kind::of::<fl_api::kustomize::Kustomization>();
    let store = cluster.runtime.informers().watch(WatchSpec::metadata(kind.clone()));
    let spec =
        json!({"interval": "1h", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "none"}});
    cluster
        .apply(json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "app", "namespace": NAMESPACE}, "spec": spec}))
        .await;
    while store.get(NAMESPACE, "app").is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    watcher.set_drift_detection(&owner, true);
    cluster.user.delete(&kind, Some(NAMESPACE), "app", &Delete::default()).await.expect("deleted");
    while store.get(NAMESPACE, "app").is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(watcher.tracked_owners(), 0, "deleted");
}
