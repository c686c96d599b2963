//! Lines K02, K09, L06, M03, M05 of the threats: views that are behind, conflicts, kinds that vanish, many revisions at once, clocks.

mod fixture;

use std::time::Duration;

use fixture::{applied, cluster, kustomization, map, push, revision, run, test_cluster_with};
use fl_runtime::{Delete, Kind, Patch, Write};
use fl_sim::{Action, FaultSchedule, NAMESPACE, Rule, TestCluster, condition};
use serde_json::{Value, json};

fn kustomizations() -> Kind {
    Kind::of::<fl_api::kustomize::Kustomization>()
}

fn entries(object: &Value) -> usize {
    object["status"]["inventory"]["entries"].as_array().map_or(0, Vec::len)
}

/// K02: every watch tells half a minute late, and reads of an object show what it was before somebody replaced it. Nothing that is
/// not ours is deleted, and no revision is followed by an older one.
#[test]
fn stale_cache_neither_prunes_nor_downgrades() {
    run(async {
        let late = |cluster: &TestCluster| {
            cluster.faults.add(Rule::watches(FaultSchedule::Always, Action::Lag(Duration::from_secs(30))));
            fixture::add(cluster);
        };
        let cluster = TestCluster::with(41, fl_runtime::Options::default(), late).await;
        push(&cluster, &[("a.yaml", map("a", "1")), ("b.yaml", map("b", "1"))]);
        let source = json!({"url": fixture::URL, "interval": "1h", "ref": {"branch": "main"}});
        cluster.source("GitRepository", "app", source).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;

        // Somebody replaces b by one of their own. The engine's server still shows the old one.
        let old = cluster.get("ConfigMap", "b").await.expect("applied");
        let delete = Delete::default();
        cluster.user.delete(&Kind::config_map(), Some(NAMESPACE), "b", &delete).await.expect("deleted");
        let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "theirs"},
            "metadata": {"name": "b", "namespace": NAMESPACE}});
        cluster.apply(theirs).await;
        let is_b = |method: &http::Method, path: &str| {
            *method == http::Method::GET && path.ends_with("/namespaces/default/configmaps/b")
        };
        cluster.faults.add(Rule::new(is_b, FaultSchedule::Always, Action::Answer(old.to_string())));
        push(&cluster, &[("a.yaml", map("a", "2"))]);
        let wanted = revision(&cluster, "t1").await;
        applied(&cluster, "app", &wanted).await;

        let (mut wrong_deletes, mut downgrades) = (0, 0);
        for _ in 0..1200 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let b = cluster.get("ConfigMap", "b").await;
            wrong_deletes += usize::from(b.is_none_or(|b| b["data"]["key"] != "theirs"));
            let a = cluster.get("ConfigMap", "a").await.expect("applied");
            downgrades += usize::from(a["data"]["key"] != "2");
        }
        assert_eq!((wrong_deletes, downgrades), (0, 0));

        // A new process begins with the same late view.
        let cluster = cluster.restart(42, late).await;
        for _ in 0..120 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let a = cluster.get("ConfigMap", "a").await.expect("applied");
            assert_eq!(a["data"]["key"], "2", "an older revision came back");
        }
        assert_eq!(cluster.get("ConfigMap", "b").await.expect("theirs")["data"]["key"], "theirs");
    });
}

/// K09: most writes of the status meet a conflict, and somebody else writes a condition of their own all the time. Both are there in
/// the end, as they were written last.
#[test]
fn concurrent_conflicts_lose_no_update() {
    run(async {
        let cluster = cluster(43, &[("a.yaml", map("a", "0"))]).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        let is_status = |method: &http::Method, path: &str| {
            *method == http::Method::PATCH && path.contains("/kustomizations/app/status")
        };
        cluster.faults.add(Rule::new(is_status, FaultSchedule::Chance(0.6), Action::Fail(409, "Conflict")));
        let mut lost = 0;
        let mut wanted = String::new();
        for round in 1..=20 {
            let round = round.to_string();
            push(&cluster, &[("a.yaml", map("a", &round))]);
            wanted = revision(&cluster, &format!("t{round}")).await;
            // Their condition, on top of what they read: of two writers one wins, and the other tries again.
            loop {
                let object = cluster.get("Kustomization", "app").await.expect("there");
                let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
                conditions.retain(|c| c["type"] != "Theirs");
                conditions
                    .push(json!({"type": "Theirs", "status": "True", "reason": "Round", "message": round,
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}));
                let patch = json!({"status": {"conditions": conditions},
                    "metadata": {"resourceVersion": object["metadata"]["resourceVersion"]}});
                let (kind, write) = (kustomizations(), Write::by("theirs").to("status"));
                let sent = cluster.user.patch(&kind, Some(NAMESPACE), "app", Patch::Merge, &patch, &write);
                match sent.await {
                    Ok(_) => break,
                    Err(error) => assert!(error.is_conflict(), "{error}"),
                }
            }
            tokio::time::sleep(Duration::from_millis(700)).await;
            let after = cluster.get("Kustomization", "app").await.expect("there");
            lost += usize::from(condition(&after, "Theirs")["message"] != round.as_str());
        }
        let done = applied(&cluster, "app", &wanted).await;
        lost += usize::from(condition(&done, "Theirs")["message"] != "20");
        assert_eq!(lost, 0, "{:#}", done["status"]);
        assert_eq!(done["status"]["observedGeneration"], done["metadata"]["generation"]);
        assert_eq!(cluster.get("ConfigMap", "a").await.expect("applied")["data"]["key"], "20");
        assert_eq!(entries(&done), 1);
    });
}

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

/// L06: a kind vanishes. What else was delivered goes on, and what is still wanted is not forgotten.
#[test]
fn removed_kind_does_not_block_other_objects() {
    run(async {
        let widget = format!(
            "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: w\n  namespace: {NAMESPACE}\n"
        );
        let cluster = cluster(
            44,
            &[("one/a.yaml", map("a", "1")), ("one/w.yaml", widget.clone()), ("two/b.yaml", map("b", "1"))],
        )
        .await;
        let definitions = Kind::new(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            false,
        );
        let (definition, write) = (definition(), Write::by("user"));
        let create = || cluster.user.create(&definitions, None, &definition, &write);
        create().await.expect("a definition");
        tokio::time::sleep(Duration::from_secs(5)).await;
        for name in ["one", "two"] {
            let spec = json!({"interval": "1m", "retryInterval": "10s", "prune": true, "path": name,
                "sourceRef": {"kind": "GitRepository", "name": "app"}});
            cluster.source("Kustomization", name, spec).await;
        }
        assert_eq!(entries(&cluster.ready("Kustomization", "one").await), 2);
        cluster.ready("Kustomization", "two").await;

        let delete = Delete::default();
        cluster.user.delete(&definitions, None, "widgets.example.com", &delete).await.expect("deleted");
        tokio::time::sleep(Duration::from_secs(20)).await;
        push(
            &cluster,
            &[("one/a.yaml", map("a", "2")), ("one/w.yaml", widget), ("two/b.yaml", map("b", "2"))],
        );
        let wanted = revision(&cluster, "t1").await;
        applied(&cluster, "two", &wanted).await;
        assert_eq!(cluster.get("ConfigMap", "b").await.expect("applied")["data"]["key"], "2");
        let stuck = cluster.failed("Kustomization", "one").await;
        assert_eq!(entries(&stuck), 2, "{:#}", stuck["status"]);

        // No longer wanted: the others of the same set go on.
        push(&cluster, &[("one/a.yaml", map("a", "3")), ("two/b.yaml", map("b", "2"))]);
        revision(&cluster, "t2").await;
        cluster.until("ConfigMap", "a", |o| o["data"]["key"] == "3").await;
    });
}

/// L06: a kind is not served for a while. Objects of it that are no longer wanted stay in the inventory, and go when it is back.
#[test]
fn objects_of_an_unavailable_kind_stay_in_the_inventory() {
    run(async {
        let widget = format!(
            "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: w\n  namespace: {NAMESPACE}\n"
        );
        let cluster = cluster(45, &[("a.yaml", map("a", "1")), ("w.yaml", widget)]).await;
        let definitions = Kind::new(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            false,
        );
        cluster
            .user
            .create(&definitions, None, &definition(), &Write::by("user"))
            .await
            .expect("a definition");
        tokio::time::sleep(Duration::from_secs(5)).await;
        let spec = json!({"interval": "1m", "retryInterval": "10s", "prune": true,
            "sourceRef": {"kind": "GitRepository", "name": "app"}});
        cluster.source("Kustomization", "app", spec).await;
        assert_eq!(entries(&cluster.ready("Kustomization", "app").await), 2);

        let widgets = |_: &http::Method, path: &str| path.contains("/widgets/");
        cluster.faults.add(Rule::new(widgets, FaultSchedule::Always, Action::Fail(404, "")));
        push(&cluster, &[("a.yaml", map("a", "2"))]);
        revision(&cluster, "t1").await;
        cluster.until("ConfigMap", "a", |o| o["data"]["key"] == "2").await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let kept = cluster.get("Kustomization", "app").await.expect("there");
        assert_eq!(entries(&kept), 2, "{:#}", kept["status"]);

        cluster.faults.clear();
        cluster.until("Kustomization", "app", |o| entries(o) == 1).await;
        let widgets = Kind::new("example.com", "v1", "Widget", "widgets", true);
        let gone = cluster.user.get(&widgets, Some(NAMESPACE), "w").await;
        assert!(gone.as_ref().is_err_and(fl_runtime::ClientError::is_not_found), "{gone:?}");
    });
}

/// M03: a hundred commits in ten seconds while health checks run and some requests fail: the last one is applied, whatever the seed.
/// `FLUORITE_STORM_SEEDS=0..10000` runs the long form, or a part of it. Every other seed gives up health checks for a new revision.
#[test]
fn last_of_many_revisions_is_applied() {
    let asked = std::env::var("FLUORITE_STORM_SEEDS").unwrap_or_else(|_| "0..6".to_owned());
    let (first, end) = asked.split_once("..").expect("FLUORITE_STORM_SEEDS is FIRST..END");
    for seed in first.parse::<u64>().expect("a number")..end.parse().expect("a number") {
        run(async {
            let gates = format!("CancelHealthCheckOnNewRevision={}", seed % 2 == 1).parse().expect("a gate");
            let options = fl_runtime::Options { gates, ..Default::default() };
            let files = |i: u64| [("a.yaml", map("a", &i.to_string()))];
            let cluster =
                test_cluster_with(seed, &files(0), fl_kustomization::Options::default(), options).await;
            let spec = json!({"interval": "10m", "retryInterval": "5s", "timeout": "20s", "prune": true, "wait": true,
                    "healthCheckExprs": [{"apiVersion": "v1", "kind": "ConfigMap", "current": "data.key == '100'"}],
                    "sourceRef": {"kind": "GitRepository", "name": "app"}});
            cluster.source("Kustomization", "app", spec).await;
            cluster.faults.add(Rule::writes(FaultSchedule::Chance(0.03), Action::Fail(500, "InternalError")));
            for i in 1..=100 {
                push(&cluster, &files(i));
                cluster.request("GitRepository", "app", &format!("t{i}")).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let last = tokio::time::Instant::now();
            let seen = |o: &Value| o["status"]["lastHandledReconcileAt"] == "t100";
            let source = cluster.until("GitRepository", "app", seen).await;
            let wanted = source["status"]["artifact"]["revision"].as_str().expect("a revision").to_owned();
            applied(&cluster, "app", &wanted).await;
            assert!(last.elapsed() < Duration::from_secs(120), "seed {seed}: {:?}", last.elapsed());
            let end = cluster.get("ConfigMap", "a").await.expect("applied");
            assert_eq!(end["data"]["key"], "100", "seed {seed}");
        });
    }
}

/// How many passes a controller made.
fn passes(cluster: &TestCluster, controller: &str) -> u64 {
    let text = cluster.runtime.scrape();
    let ours = text.lines().filter(|l| {
        l.starts_with("controller_runtime_reconcile_total{") && l.contains(&format!("\"{controller}\""))
    });
    ours.filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// M05: what is due follows the time that passes, not the clock on the wall. Here a day passes while that clock stands still, which is
/// a jump back by an hour twenty-four times over; no pass is missed and none comes twice.
#[test]
fn clock_jump_does_not_move_the_schedule() {
    run(async {
        let options = fl_runtime::Options { interval_jitter_percentage: 0, ..Default::default() };
        let files = [("a.yaml", map("a", "1"))];
        let cluster = test_cluster_with(45, &files, fl_kustomization::Options::default(), options).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let wall = std::time::SystemTime::now();
        let before = (passes(&cluster, "kustomization"), passes(&cluster, "gitrepository"));
        tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
        let after = (passes(&cluster, "kustomization"), passes(&cluster, "gitrepository"));
        assert!(
            wall.elapsed().is_ok_and(|t| t < Duration::from_secs(3600)),
            "the clock on the wall stood still"
        );
        // Every ten minutes and every hour.
        let (kustomizations, sources) = (after.0 - before.0, after.1 - before.1);
        let misfires = kustomizations.abs_diff(144) + sources.abs_diff(24);
        assert_eq!(misfires, 0, "{kustomizations} and {sources} passes in a day");
    });
}
