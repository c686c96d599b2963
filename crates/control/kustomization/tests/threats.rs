//! Lines F, G, J, K, L, M of the threats that concern what is applied and deleted.

mod fixture;

use std::time::Duration;

use fixture::{applied, cluster, kustomization, map, push, revision, run, test_cluster_with};
use fl_runtime::{Delete, Kind, Patch, Write};
use fl_sim::{Action, FaultSchedule, NAMESPACE, Rule, TestCluster, condition};
use serde_json::{Value, json};

fn message(object: &Value) -> String {
    condition(object, "Ready")["message"].as_str().unwrap_or_default().to_owned()
}

async fn depends(cluster: &TestCluster, name: &str, on: &[&str]) {
    let on: Vec<Value> = on.iter().map(|name| json!({"name": name})).collect();
    let spec = json!({"interval": "10m", "prune": true, "path": name, "dependsOn": on,
        "sourceRef": {"kind": "GitRepository", "name": "app"}});
    cluster.source("Kustomization", name, spec).await;
}

/// L02: a revision that deletes more than the budget, or everything, is held until somebody approves it.
#[test]
fn deletions_beyond_the_budget_wait_for_approval() {
    run(async {
        let options = fl_kustomization::Options { deletion_budget: Some(1), ..Default::default() };
        let files = [("a.yaml", map("a", "1")), ("b.yaml", map("b", "1")), ("c.yaml", map("c", "1"))];
        let cluster = test_cluster_with(21, &files, options, fl_runtime::Options::default()).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        push(&cluster, &files[..1]);
        let wanted = revision(&cluster, "t1").await;
        let held = cluster.failed("Kustomization", "app").await;
        assert_eq!(condition(&held, "Ready")["reason"], "PruneFailed");
        assert!(message(&held).contains("would delete 2 of 3 objects"), "{}", message(&held));
        tokio::time::sleep(Duration::from_secs(3600)).await;
        for name in ["b", "c"] {
            assert!(cluster.get("ConfigMap", name).await.is_some(), "{name} was deleted without approval");
        }
        let annotation = message(&held).split("set the annotation ").nth(1).unwrap_or_default().to_owned();
        let annotation = annotation.split(' ').next().unwrap_or_default().to_owned();
        let patch = json!({"metadata": {"annotations": {annotation: wanted}}});
        let kind = Kind::of::<fl_api::kustomize::Kustomization>();
        let write = Write::by("user");
        cluster
            .user
            .patch(&kind, Some(NAMESPACE), "app", Patch::Merge, &patch, &write)
            .await
            .expect("approved");
        cluster.request("Kustomization", "app", "t2").await;
        applied(&cluster, "app", &wanted).await;
        cluster.gone("ConfigMap", "b").await;
        cluster.gone("ConfigMap", "c").await;
    });
}

/// L04: an object under a name of ours that is not proven to be ours stays.
#[test]
fn prune_keeps_objects_that_were_recreated_by_others() {
    run(async {
        let cluster = cluster(22, &[("a.yaml", map("a", "1")), ("b.yaml", map("b", "1"))]).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        // The engine looks away while somebody replaces the object by one of their own.
        let suspend = json!({"spec": {"suspend": true}});
        let kind = Kind::of::<fl_api::kustomize::Kustomization>();
        let write = Write::by("user");
        let patch = |body: Value| {
            let (cluster, kind, write) = (&cluster, &kind, &write);
            async move { cluster.user.patch(kind, Some(NAMESPACE), "app", Patch::Merge, &body, write).await }
        };
        patch(suspend).await.expect("suspended");
        tokio::time::sleep(Duration::from_secs(2)).await;
        cluster
            .user
            .delete(&Kind::config_map(), Some(NAMESPACE), "b", &Delete::default())
            .await
            .expect("deleted");
        cluster
            .apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": NAMESPACE},
                "data": {"key": "theirs"}}))
            .await;
        push(&cluster, &[("a.yaml", map("a", "1"))]);
        let wanted = revision(&cluster, "t1").await;
        patch(json!({"spec": {"suspend": false}})).await.expect("resumed");
        applied(&cluster, "app", &wanted).await;
        tokio::time::sleep(Duration::from_secs(1800)).await;
        assert_eq!(cluster.get("ConfigMap", "b").await.expect("still there")["data"]["key"], "theirs");
    });
}

/// L05: the engine's own namespace and definitions survive a revision that drops them.
#[test]
fn prune_keeps_the_objects_of_the_engine() {
    run(async {
        let options = fl_runtime::Options { runtime_namespace: "engine".to_owned(), ..Default::default() };
        let namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: engine\n".to_owned();
        let other = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: other\n".to_owned();
        let files = [("a.yaml", map("a", "1")), ("ns.yaml", namespace), ("other.yaml", other)];
        let cluster = test_cluster_with(23, &files, fl_kustomization::Options::default(), options).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        push(&cluster, &files[..1]);
        let wanted = revision(&cluster, "t1").await;
        applied(&cluster, "app", &wanted).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        let own = cluster.user.get(&Kind::namespace(), None, "engine").await.expect("the namespace is there");
        assert!(own["metadata"]["deletionTimestamp"].is_null());
        let other = cluster.user.get(&Kind::namespace(), None, "other").await;
        assert!(other.is_err() || !other.expect("read")["metadata"]["deletionTimestamp"].is_null());
    });
}

/// M01: members of a cycle are flagged, everybody else goes on.
#[test]
fn dependency_cycle_is_reported_by_its_members_only() {
    run(async {
        let names = ["a", "b", "c", "d", "e"];
        let files: Vec<(String, String)> =
            names.iter().map(|n| (format!("{n}/x.yaml"), map(&format!("in-{n}"), "1"))).collect();
        let files: Vec<(&str, String)> = files.iter().map(|(p, c)| (p.as_str(), c.clone())).collect();
        let cluster = cluster(24, &files).await;
        depends(&cluster, "a", &["c"]).await;
        depends(&cluster, "b", &["a"]).await;
        depends(&cluster, "c", &["b"]).await;
        depends(&cluster, "d", &[]).await;
        depends(&cluster, "e", &["d"]).await;
        cluster.ready("Kustomization", "d").await;
        cluster.ready("Kustomization", "e").await;
        for name in ["a", "b", "c"] {
            let stuck = cluster.failed("Kustomization", name).await;
            assert_eq!(
                condition(&stuck, "Ready")["reason"],
                "DependencyNotReady",
                "{name}: {}",
                message(&stuck)
            );
            assert!(cluster.get("ConfigMap", &format!("in-{name}")).await.is_none());
        }
    });
}

/// M02: a chain hands over by event: a hop costs far less than the retry of a dependency.
#[test]
fn dependency_chain_is_triggered_by_events() {
    run(async {
        let names: Vec<String> = (0..20).map(|i| format!("link-{i}")).collect();
        let files: Vec<(String, String)> =
            names.iter().map(|n| (format!("{n}/x.yaml"), map(n, "1"))).collect();
        let files: Vec<(&str, String)> = files.iter().map(|(p, c)| (p.as_str(), c.clone())).collect();
        let cluster = cluster(25, &files).await;
        cluster.ready("GitRepository", "app").await;
        for (i, name) in names.iter().enumerate().rev() {
            let before = i.checked_sub(1).map(|before| names[before].as_str());
            depends(&cluster, name, before.as_slice()).await;
        }
        let start = tokio::time::Instant::now();
        cluster.ready("Kustomization", "link-19").await;
        assert!(start.elapsed() < Duration::from_secs(5), "{:?} on the clock of the world", start.elapsed());
    });
}

/// M06: an object that never goes away holds up nobody else.
#[test]
fn stuck_finalizer_blocks_no_other_kustomization() {
    run(async {
        let held = map("a", "1").replace("  name: a\n", "  name: a\n  finalizers: [example.com/never]\n");
        let cluster = cluster(26, &[("one/a.yaml", held), ("two/b.yaml", map("b", "1"))]).await;
        kustomization(&cluster, "one", "one").await;
        kustomization(&cluster, "two", "two").await;
        cluster.ready("Kustomization", "one").await;
        cluster.ready("Kustomization", "two").await;
        push(&cluster, &[("one/c.yaml", map("c", "1")), ("two/b.yaml", map("b", "2"))]);
        let wanted = revision(&cluster, "t1").await;
        applied(&cluster, "two", &wanted).await;
        cluster.until("ConfigMap", "c", |o| o["data"]["key"] == "1").await;
        assert!(
            !cluster.get("ConfigMap", "a").await.expect("held")["metadata"]["deletionTimestamp"].is_null()
        );
    });
}

/// M07: a manager that keeps changing a field back is named, and left alone after a few rounds.
#[test]
fn repeated_drift_correction_backs_off_with_a_warning() {
    run(async {
        let cluster = cluster(27, &[("a.yaml", map("a", "ours"))]).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let patch = json!({"data": {"key": "theirs"}});
        let write = Write::by("other-operator");
        let mut corrections = 0;
        for _ in 0..20 {
            let kind = Kind::config_map();
            cluster
                .user
                .patch(&kind, Some(NAMESPACE), "a", Patch::Merge, &patch, &write)
                .await
                .expect("patched");
            tokio::time::sleep(Duration::from_secs(2)).await;
            if cluster.get("ConfigMap", "a").await.expect("there")["data"]["key"] == "ours" {
                corrections += 1;
            }
        }
        assert!((3..=6).contains(&corrections), "corrected {corrections} times in 40 seconds");
        let events = cluster.events().await;
        let named = |e: &String| e.starts_with("DriftFight: ") && e.contains("'other-operator'");
        assert!(events.iter().any(named), "{events:#?}");
    });
}

/// K06: the API server is away for an hour: nothing is deleted, and all is in step soon after.
#[test]
fn unavailable_api_server_is_survived_for_an_hour() {
    run(async {
        let cluster = cluster(28, &[("a.yaml", map("a", "1")), ("b.yaml", map("b", "1"))]).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        cluster.faults.add(Rule::new(|_, _| true, FaultSchedule::Always, Action::Disconnect));
        push(&cluster, &[("a.yaml", map("a", "2")), ("b.yaml", map("b", "1"))]);
        cluster.request("GitRepository", "app", "t1").await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        cluster.faults.clear();
        let back = tokio::time::Instant::now();
        let seen = |o: &Value| o["status"]["lastHandledReconcileAt"] == "t1";
        let source = cluster.until("GitRepository", "app", seen).await;
        let wanted = source["status"]["artifact"]["revision"].as_str().expect("a revision").to_owned();
        applied(&cluster, "app", &wanted).await;
        assert!(back.elapsed() < Duration::from_secs(120), "{:?}", back.elapsed());
        for name in ["a", "b"] {
            assert!(cluster.get("ConfigMap", name).await.is_some(), "{name} is gone");
        }
    });
}

/// F03: the program of a kubeconfig is never started, and nothing is applied in its place.
#[test]
fn kubeconfig_exec_plugins_are_never_run() {
    run(async {
        let cluster = cluster(29, &[("a.yaml", map("a", "1"))]).await;
        let trace = tempfile::tempdir().expect("a folder");
        let file = trace.path().join("started");
        let user = format!(
            "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:1'}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\ncurrent-context: c\nusers: [{{name: u, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: touch, args: ['{}'], interactiveMode: Never}}}}}}]\n",
            file.display()
        );
        cluster
            .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "remote", "namespace": NAMESPACE},
                "stringData": {"value": user}}))
            .await;
        let spec = json!({"interval": "10m", "prune": true, "kubeConfig": {"secretRef": {"name": "remote"}},
            "sourceRef": {"kind": "GitRepository", "name": "app"}});
        cluster.ready("GitRepository", "app").await;
        cluster.source("Kustomization", "app", spec).await;
        let failed = cluster.failed("Kustomization", "app").await;
        assert_eq!(condition(&failed, "Ready")["reason"], "ReconciliationFailed", "{}", message(&failed));
        assert!(!file.exists(), "the program was started");
        assert!(cluster.get("ConfigMap", "a").await.is_none());
    });
}

/// G01, G02: a Secret's content never reaches an event, a condition or an error, also when applying it fails.
#[test]
fn secret_bytes_appear_in_no_message() {
    run(async {
        let canary = "c4n4ry-of-the-mine";
        let secret = |data: &str| {
            format!(
                "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: {NAMESPACE}\nimmutable: true\nstringData:\n  password: {data}\n"
            )
        };
        let cluster = cluster(30, &[("s.yaml", secret(canary))]).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        // Immutable: the change is refused, and the refusal is reported.
        push(&cluster, &[("s.yaml", secret(&format!("{canary}-2")))]);
        revision(&cluster, "t1").await;
        let failed = cluster.failed("Kustomization", "app").await;
        let events = cluster.events().await.join("\n");
        assert!(!failed.to_string().contains(canary), "{failed:#}");
        assert!(!events.contains(canary), "{events}");
    });
}

/// J04: a thousand objects are delivered, and their inventory is stored.
#[test]
fn large_inventory_is_stored() {
    run(async {
        let all: String = (0..1000).map(|i| format!("---\n{}", map(&format!("object-{i}"), "1"))).collect();
        let cluster = cluster(31, &[("all.yaml", all)]).await;
        kustomization(&cluster, "app", "").await;
        let ready = cluster.ready("Kustomization", "app").await;
        assert_eq!(ready["status"]["inventory"]["entries"].as_array().map(Vec::len), Some(1000));
    });
}
