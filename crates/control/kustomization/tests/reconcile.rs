//! What the controller does, in a whole world: apply, prune, drift, failures and deaths at every request.

mod fixture;

use std::collections::BTreeMap;
use std::time::Duration;

use fixture::{add, applied, cluster, kustomization, map, push, revision, run};
use fl_runtime::{Kind, Patch, Write};
use fl_sim::{Action, FaultSchedule, NAMESPACE, Rule, TestCluster, condition};
use serde_json::{Value, json};

#[test]
fn objects_are_applied_pruned_and_reported() {
    run(async {
        let cluster = cluster(1, &[("a.yaml", map("a", "one")), ("b.yaml", map("b", "one"))]).await;
        kustomization(&cluster, "app", "./").await;
        let ready = cluster.ready("Kustomization", "app").await;
        assert_eq!(ready["status"]["inventory"]["entries"].as_array().map(Vec::len), Some(2));
        assert_eq!(cluster.get("ConfigMap", "a").await.expect("applied")["data"]["key"], "one");
        push(&cluster, &[("a.yaml", map("a", "two"))]);
        let revision = revision(&cluster, "t1").await;
        applied(&cluster, "app", &revision).await;
        assert_eq!(cluster.get("ConfigMap", "a").await.expect("applied")["data"]["key"], "two");
        assert!(cluster.get("ConfigMap", "b").await.is_none(), "pruned");
        let events = cluster.events().await;
        for wanted in [
            "Progressing: ConfigMap/default/a created\nConfigMap/default/b created",
            "Progressing: ConfigMap/default/a configured",
            "Progressing: ConfigMap/default/b deleted",
        ] {
            assert!(events.iter().any(|e| e == wanted), "{wanted} is not in {events:#?}");
        }
    });
}

/// Drift is corrected in under a second, without anybody asking.
#[test]
fn drift_is_corrected_at_once() {
    run(async {
        let cluster = cluster(2, &[("a.yaml", map("a", "one"))]).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let patch = json!({"data": {"key": "edited", "extra": "x"}});
        let write = Write::by("kubectl-edit");
        cluster
            .user
            .patch(&Kind::config_map(), Some(NAMESPACE), "a", Patch::Merge, &patch, &write)
            .await
            .expect("edited");
        let start = tokio::time::Instant::now();
        cluster.until("ConfigMap", "a", |o| o["data"] == json!({"key": "one"})).await;
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        let delete = fl_runtime::Delete::default();
        cluster.user.delete(&Kind::config_map(), Some(NAMESPACE), "a", &delete).await.expect("deleted");
        cluster.until("ConfigMap", "a", |o| o["data"] == json!({"key": "one"})).await;
    });
}

/// What somebody adds with kubectl goes, even when nothing that Git asks for was touched.
#[test]
fn fields_added_by_kubectl_are_removed() {
    run(async {
        let cluster = cluster(61, &[("a.yaml", map("a", "one"))]).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let last = "kubectl.kubernetes.io/last-applied-configuration";
        let patch = json!({"metadata": {"annotations": {last: "{}"}}, "data": {"extra": "x"}});
        let write = Write::by("kubectl-client-side-apply");
        cluster
            .user
            .patch(&Kind::config_map(), Some(NAMESPACE), "a", Patch::Merge, &patch, &write)
            .await
            .expect("edited");
        let clean = |o: &Value| {
            o["data"] == json!({"key": "one"}) && o["metadata"]["annotations"].get(last).is_none()
        };
        cluster.until("ConfigMap", "a", clean).await;
    });
}

/// Expressions and selectors that cannot be used are told in the words of Flux, each at the step that needs it.
#[test]
fn invalid_spec_is_reported_by_the_step_that_needs_it() {
    run(async {
        let cluster = cluster(62, &[("a.yaml", map("a", "one"))]).await;
        kustomization(&cluster, "one", "").await;
        cluster.ready("Kustomization", "one").await;
        let source = json!({"kind": "GitRepository", "name": "app"});
        let depends = |expression: &str| {
            json!({"interval": "10m", "prune": true, "sourceRef": source,
                "dependsOn": [{"name": "one", "readyExpr": expression}]})
        };
        cluster.source("Kustomization", "two", depends("'a' + 'b'")).await;
        cluster.source("Kustomization", "three", depends("dep.(")).await;
        let selector = json!({"interval": "10m", "prune": true, "sourceRef": source,
            "ignore": [{"paths": ["/data"], "target": {"labelSelector": "!!!"}}]});
        cluster.source("Kustomization", "four", selector).await;
        let told = async |name: &str| {
            let done = |o: &Value| condition(o, "Ready")["status"] == "False";
            let object = cluster.until("Kustomization", name, done).await;
            let text = condition(&object, "Ready")["message"].as_str().unwrap_or_default().to_owned();
            (text, object)
        };
        let begin = "Reconciliation failed terminally due to configuration error: terminal error: failed to evaluate dependency one: ";
        let (text, _) = told("two").await;
        assert_eq!(text, format!("{begin}CEL expression output type mismatch: expected bool, got string"));
        let (text, _) = told("three").await;
        assert!(text.starts_with(&format!("{begin}failed to parse the CEL expression 'dep.(': ")), "{text}");
        let (text, object) = told("four").await;
        assert!(
            text.starts_with("failed to create ignore rule selector: invalid label selector: "),
            "{text}"
        );
        assert!(condition(&object, "Stalled").is_null(), "{:#}", object["status"]);
        assert_eq!(object["status"]["history"][0]["lastReconciledStatus"], "ReconciliationFailed");
    });
}

/// A source whose status, and with it the first artifact, comes so much later.
async fn slow_source(seed: u64, delay: Duration) -> TestCluster {
    let slow = |cluster: &TestCluster| {
        let is_status = |method: &http::Method, path: &str| {
            *method != http::Method::GET && path.contains("/gitrepositories/app/status")
        };
        cluster.faults.add(Rule::new(is_status, FaultSchedule::First(1), Action::Delay(delay)));
        add(cluster);
    };
    let cluster = TestCluster::with(seed, fl_runtime::Options::default(), slow).await;
    push(&cluster, &[("a.yaml", map("a", "one"))]);
    let source = json!({"url": fixture::URL, "interval": "1h", "ref": {"branch": "main"}});
    cluster.source("GitRepository", "app", source).await;
    cluster
}

/// A Kustomization that is applied together with its source waits for the first artifact: no failure is told, nothing is done twice.
#[test]
fn new_kustomization_waits_for_the_first_artifact() {
    run(async {
        let cluster = slow_source(12, Duration::from_millis(700)).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let requests = cluster.faults.take_requests();
        let count = |what: &str| requests.iter().filter(|r| r.contains(what)).count();
        // The inventory before the apply, and the result.
        assert_eq!(count("/kustomizations/app/status"), 2, "{requests:#?}");
        assert_eq!(count("/configmaps/a"), 1, "{requests:#?}");
    });
}

/// One that waits in vain says so after a second, and is not forgotten.
#[test]
fn new_kustomization_reports_a_missing_artifact_after_a_second() {
    run(async {
        let cluster = slow_source(13, Duration::from_secs(20)).await;
        let start = tokio::time::Instant::now();
        kustomization(&cluster, "app", "").await;
        cluster.until("Kustomization", "app", |o| condition(o, "Ready")["reason"] == "ArtifactFailed").await;
        assert!((1..3).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
        cluster.ready("Kustomization", "app").await;
        assert!(start.elapsed() < Duration::from_secs(25), "{:?}", start.elapsed());
    });
}

/// While many Kustomizations wait for their turn their work goes before the events that tell of it; all events come in the end.
#[test]
fn normal_events_are_delayed_under_load() {
    run(async {
        let names: Vec<String> = (0..24).map(|i| format!("app-{i}")).collect();
        let paths: Vec<String> = names.iter().map(|name| format!("{name}/a.yaml")).collect();
        let files: Vec<(&str, String)> =
            paths.iter().zip(&names).map(|(path, name)| (path.as_str(), map(name, "one"))).collect();
        let cluster = cluster(14, &files).await;
        cluster.ready("GitRepository", "app").await;
        let is_finalizer = |method: &http::Method, path: &str| {
            *method == http::Method::PUT && path.contains("/kustomizations/") && !path.contains("/status")
        };
        cluster.faults.add(Rule::new(
            is_finalizer,
            FaultSchedule::Always,
            Action::Delay(Duration::from_millis(200)),
        ));
        cluster.faults.take_requests();
        for name in &names {
            kustomization(&cluster, name, name).await;
        }
        for name in &names {
            cluster.ready("Kustomization", name).await;
        }
        tokio::time::sleep(Duration::from_secs(15)).await;
        let requests = cluster.faults.take_requests();
        let is_event = |r: &&String| r.starts_with("POST") && r.contains("/events");
        let last = requests.iter().rposition(|r| r.contains("/status")).expect("a status was written");
        let early = requests[..last].iter().filter(is_event).count();
        let all = requests.iter().filter(is_event).count();
        assert!(all >= names.len() && early * 2 < all, "{early} of {all}: {requests:#?}");
    });
}

/// An interval in which nothing changed costs no request; installing costs few.
#[test]
fn reconcile_without_changes_sends_no_writes() {
    run(async {
        let files = [
            ("a.yaml", map("a", "1")),
            ("b.yaml", map("b", "1")),
            ("c.yaml", map("c", "1")),
            ("d.yaml", map("d", "1")),
        ];
        let cluster = cluster(3, &files).await;
        cluster.ready("GitRepository", "app").await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        cluster.faults.take_requests();
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let install: Vec<String> = cluster
            .faults
            .take_requests()
            .into_iter()
            .filter(|r| !r.contains("watch=true") && !r.contains("?limit"))
            .collect();
        // Two of them are for the object itself before anything is created: its finalizer and its inventory.
        assert!(install.len() <= 13, "{install:#?}");
        tokio::time::sleep(Duration::from_secs(25 * 60)).await;
        let quiet: Vec<String> = cluster
            .faults
            .take_requests()
            .into_iter()
            .filter(|r| r.contains("kustomizations") || r.contains("configmaps") || r.contains("events"))
            .filter(|r| !r.contains("watch=true"))
            .collect();
        assert!(quiet.is_empty(), "{quiet:#?}");
    });
}

/// A new process finds out that nothing changed by reading: it tries nothing and writes no object.
#[test]
fn restart_sends_no_writes() {
    run(async {
        let files = [("a.yaml", map("a", "1")), ("b.yaml", map("b", "1"))];
        let cluster = cluster(9, &files).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        cluster.request("Kustomization", "app", "t1").await;
        let cluster = cluster.restart(10, add).await;
        cluster.request("Kustomization", "app", "t2").await;
        cluster.until("Kustomization", "app", |o| o["status"]["lastHandledReconcileAt"] == "t2").await;
        let requests = cluster.faults.take_requests();
        let objects = |method: &str| {
            requests.iter().filter(|r| r.starts_with(method) && r.contains("/configmaps/")).count()
        };
        assert_eq!((objects("GET"), objects("PATCH")), (2, 0), "{requests:#?}");
        // What the proof rests on is seen to be wrong: the server is asked again.
        let patch = json!({"data": {"key": "edited"}});
        let (kind, write) = (Kind::config_map(), Write::by("someone"));
        let edit = cluster.user.patch(&kind, Some(NAMESPACE), "a", Patch::Merge, &patch, &write);
        edit.await.expect("edited");
        let cluster = cluster.restart(11, add).await;
        cluster.until("ConfigMap", "a", |o| o["data"]["key"] == "1").await;
    });
}

/// New objects are tried as creations. What creation takes and apply refuses is found out before anything is written.
#[test]
fn new_objects_are_all_written_or_none() {
    run(async {
        let pod = |first: &str| {
            let env = format!("[{{name: {first}, value: '1'}}, {{name: TWO, value: '2'}}]");
            let pod =
                "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\nspec:\n  containers:\n";
            ("p.yaml", format!("{pod}  - {{name: c, image: c, env: {env}}}\n"))
        };
        let maps = [("a.yaml", map("a", "1")), ("b.yaml", map("b", "1"))];
        let [a, b] = maps.clone();
        let cluster = cluster(63, &[a, b, pod("TWO")]).await;
        kustomization(&cluster, "app", "").await;
        let failed = cluster.failed("Kustomization", "app").await;
        let told = condition(&failed, "Ready")["message"].clone();
        assert!(
            told.as_str().is_some_and(|m| m.contains("Pod/default/p") && m.contains("duplicate")),
            "{told}"
        );
        assert!(
            cluster.get("ConfigMap", "a").await.is_none() && cluster.get("ConfigMap", "b").await.is_none()
        );
        cluster.faults.take_requests();
        let [a, b] = maps;
        push(&cluster, &[a, b, pod("ONE")]);
        revision(&cluster, "t1").await;
        cluster.ready("Kustomization", "app").await;
        let requests = cluster.faults.take_requests();
        let tried = |method: &str| {
            requests.iter().filter(|r| r.starts_with(method) && r.contains("dryRun=All")).count()
        };
        assert_eq!((tried("POST"), tried("PATCH")), (2, 0), "{requests:#?}");
    });
}

/// Threat L01: what cannot be read is not gone.
#[test]
fn failures_never_prune() {
    run(async {
        let cluster = cluster(4, &[("a.yaml", map("a", "one"))]).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        // A build that fails.
        push(&cluster, &[("bad.yaml", "a: [".to_owned())]);
        revision(&cluster, "t1").await;
        let failed = cluster.failed("Kustomization", "app").await;
        assert_eq!(condition(&failed, "Ready")["reason"], "BuildFailed");
        assert!(cluster.get("ConfigMap", "a").await.is_some());
        // A source that is gone.
        let source = Kind::of::<fl_api::source::GitRepository>();
        cluster
            .user
            .delete(&source, Some(NAMESPACE), "app", &fl_runtime::Delete::default())
            .await
            .expect("deleted");
        cluster.until("Kustomization", "app", |o| condition(o, "Ready")["reason"] == "ArtifactFailed").await;
        tokio::time::sleep(Duration::from_secs(1800)).await;
        assert!(cluster.get("ConfigMap", "a").await.is_some());
    });
}

/// Threat L03: an object that moves to another Kustomization is handed over, in whatever order they run.
#[test]
fn objects_move_between_kustomizations() {
    run(async {
        let cluster = cluster(5, &[("one/a.yaml", map("a", "1")), ("two/b.yaml", map("b", "1"))]).await;
        kustomization(&cluster, "one", "one").await;
        kustomization(&cluster, "two", "two").await;
        cluster.ready("Kustomization", "one").await;
        cluster.ready("Kustomization", "two").await;
        push(
            &cluster,
            &[("one/c.yaml", map("c", "1")), ("two/a.yaml", map("a", "1")), ("two/b.yaml", map("b", "1"))],
        );
        let revision = revision(&cluster, "t1").await;
        applied(&cluster, "one", &revision).await;
        applied(&cluster, "two", &revision).await;
        tokio::time::sleep(Duration::from_secs(1500)).await;
        let after = cluster.get("ConfigMap", "a").await.expect("still there");
        assert_eq!(after["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"], "two");
    });
}

/// Everything a run leaves behind that anybody could see.
async fn end_of(cluster: &TestCluster, done: &Value) -> BTreeMap<&'static str, Value> {
    let a = cluster.get("ConfigMap", "a").await.expect("applied");
    BTreeMap::from([
        ("data", a["data"].clone()),
        ("labels", a["metadata"]["labels"].clone()),
        ("inventory", done["status"]["inventory"].clone()),
        ("b", json!(cluster.get("ConfigMap", "b").await.is_some())),
    ])
}

fn is_ours(method: &http::Method, path: &str) -> bool {
    *method != http::Method::GET && (path.contains("configmaps") || path.contains("kustomizations"))
}

async fn deliver(cluster: &TestCluster) {
    let spec = json!({"interval": "1m", "retryInterval": "10s", "prune": true,
        "sourceRef": {"kind": "GitRepository", "name": "app"}});
    cluster.source("Kustomization", "app", spec).await;
}

/// Threats K01, K04, K05: any single write is refused, unsent, or done with its answer lost; the end is the same.
#[test]
fn kustomization_recovers_from_every_failed_request() {
    let outcome = |fault: Option<(u64, Action)>| {
        let mut end = BTreeMap::new();
        let mut writes = 0;
        run(async {
            let cluster = cluster(6, &[("a.yaml", map("a", "one")), ("b.yaml", map("b", "one"))]).await;
            cluster.ready("GitRepository", "app").await;
            if let Some((nth, action)) = fault.clone() {
                cluster.faults.add(Rule::new(is_ours, FaultSchedule::Nth(nth), action));
            }
            cluster.faults.take_requests();
            deliver(&cluster).await;
            let first = cluster.ready("GitRepository", "app").await["status"]["artifact"]["revision"].clone();
            applied(&cluster, "app", first.as_str().expect("a revision")).await;
            push(&cluster, &[("a.yaml", map("a", "two"))]);
            let revision = revision(&cluster, "t1").await;
            let done = applied(&cluster, "app", &revision).await;
            cluster.gone("ConfigMap", "b").await;
            end = end_of(&cluster, &done).await;
            writes = count_writes(&cluster);
        });
        (end, writes)
    };
    let (want, writes) = outcome(None);
    assert!(writes >= 7, "{writes}");
    for nth in 1..=u64::try_from(writes).expect("few") {
        for action in [Action::LoseAnswer, Action::Fail(500, "InternalError"), Action::Disconnect] {
            let (end, _) = outcome(Some((nth, action.clone())));
            assert_eq!(end, want, "request {nth}, {action:?}");
        }
    }
}

fn count_writes(cluster: &TestCluster) -> usize {
    let is_write = |r: &&String| {
        let (method, path) = r.split_once(' ').unwrap_or_default();
        method.parse().is_ok_and(|method| is_ours(&method, path))
    };
    cluster.faults.take_requests().iter().filter(is_write).count()
}

/// Threat K01: the process dies at every write of apply, prune and status, before or after it took effect; a new one on the same
/// cluster and the same artifacts comes to the same end.
#[test]
fn kustomization_recovers_from_a_crash_at_every_request() {
    let outcome = |fault: Option<(u64, bool)>| {
        let mut end = BTreeMap::new();
        let mut writes = 0;
        run(async {
            let cluster = cluster(7, &[("a.yaml", map("a", "one")), ("b.yaml", map("b", "one"))]).await;
            cluster.ready("GitRepository", "app").await;
            deliver(&cluster).await;
            let first = cluster.ready("GitRepository", "app").await["status"]["artifact"]["revision"].clone();
            applied(&cluster, "app", first.as_str().expect("a revision")).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            cluster.faults.take_requests();
            if let Some((nth, served)) = fault {
                cluster.faults.add(Rule::new(is_ours, FaultSchedule::Nth(nth), Action::Die { served }));
            }
            push(&cluster, &[("a.yaml", map("a", "two"))]);
            cluster.request("GitRepository", "app", "t1").await;
            let cluster = if fault.is_some() {
                let start = tokio::time::Instant::now();
                while !cluster.faults.dead() && start.elapsed() < Duration::from_secs(120) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                assert!(cluster.faults.dead(), "the request never came");
                cluster.restart(8, add).await
            } else {
                cluster
            };
            let wanted = |o: &Value| o["status"]["lastHandledReconcileAt"] == "t1";
            let source = cluster.until("GitRepository", "app", wanted).await;
            let revision = source["status"]["artifact"]["revision"].as_str().expect("a revision").to_owned();
            let done = applied(&cluster, "app", &revision).await;
            cluster.gone("ConfigMap", "b").await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            end = end_of(&cluster, &done).await;
            writes = count_writes(&cluster);
        });
        (end, writes)
    };
    let (want, writes) = outcome(None);
    assert!(writes >= 3, "{writes}");
    for nth in 1..=u64::try_from(writes).expect("few") {
        for served in [false, true] {
            let (end, _) = outcome(Some((nth, served)));
            assert_eq!(end, want, "death at request {nth}, served: {served}");
        }
    }
}
