//! How the objects of a new Kustomization are written: dry-runs first, the inventory before the objects, nothing orphaned.

mod fixture;

use fixture::{cluster, map, push, run};
use fl_sim::{Action, FaultSchedule, NAMESPACE, Rule, TestCluster, condition};
use serde_json::{Value, json};

/// Two objects, the second of which a variable can make invalid.
fn template() -> [(&'static str, String); 2] {
    [("a.yaml", map("a-${WHO}", "1")), ("b.yaml", map("b-${WHO}${END:=}", "1"))]
}

async fn tenant(cluster: &TestCluster, who: &str, end: &str) {
    let spec = json!({"interval": "10m", "retryInterval": "10s", "prune": true,
        "sourceRef": {"kind": "GitRepository", "name": "app"},
        "postBuild": {"substitute": {"WHO": who, "END": end}}});
    cluster.source("Kustomization", who, spec).await;
}

/// A world with one Kustomization of the template.
async fn after_one(seed: u64) -> TestCluster {
    let cluster = cluster(seed, &template()).await;
    tenant(&cluster, "one", "").await;
    cluster.ready("Kustomization", "one").await;
    cluster
}

/// How many dry-runs and how many writes of ConfigMaps there were since the last call.
fn counts(cluster: &TestCluster) -> (usize, usize) {
    let requests = cluster.faults.take_requests();
    let maps = requests.iter().filter(|r| !r.starts_with("GET") && r.contains("/configmaps"));
    let (dry_runs, writes): (Vec<_>, Vec<_>) = maps.partition(|r| r.contains("dryRun=All"));
    (dry_runs.len(), writes.len())
}

fn inventory(object: &Value) -> Vec<&str> {
    let entries = object["status"]["inventory"]["entries"].as_array().into_iter().flatten();
    entries.filter_map(|e| e["id"].as_str()).collect()
}

/// Every object but the first passes a dry-run before anything is written, also when a similar Kustomization was applied before.
#[test]
fn similar_kustomizations_are_each_validated() {
    run(async {
        let cluster = cluster(81, &template()).await;
        for who in ["one", "two"] {
            tenant(&cluster, who, "").await;
            let object = cluster.ready("Kustomization", who).await;
            assert_eq!(counts(&cluster), (1, 2));
            assert_eq!(inventory(&object).len(), 2);
        }
    });
}

#[test]
fn rejected_objects_leave_nothing_behind() {
    run(async {
        let cluster = after_one(82).await;
        counts(&cluster);
        tenant(&cluster, "two", "_").await;
        let failed = cluster.failed("Kustomization", "two").await;
        assert_eq!(condition(&failed, "Ready")["reason"], "ReconciliationFailed");
        assert_eq!(counts(&cluster).1, 0);
        assert!(cluster.get("ConfigMap", "a-two").await.is_none());
        assert_eq!(inventory(&failed), Vec::<&str>::new());
    });
}

/// The inventory is stored after the dry-runs and before the first write: rejected objects are never part of it.
#[test]
fn inventory_is_stored_between_dry_runs_and_writes() {
    run(async {
        let cluster = after_one(88).await;
        cluster.faults.take_requests();
        tenant(&cluster, "two", "_").await;
        cluster.failed("Kustomization", "two").await;
        let is_status = |r: &str, who: &str| {
            !r.starts_with("GET") && r.contains(&format!("/kustomizations/{who}/status"))
        };
        let requests = cluster.faults.take_requests();
        let statuses = requests.iter().filter(|r| is_status(r, "two")).count();
        assert_eq!(statuses, 1, "only the failure: {requests:#?}");

        tenant(&cluster, "three", "").await;
        cluster.ready("Kustomization", "three").await;
        let requests = cluster.faults.take_requests();
        let writes = |r: &&String| !r.starts_with("GET") && r.contains("/configmaps");
        let last_dry_run = requests.iter().rposition(|r| writes(&r) && r.contains("dryRun=All"));
        let first_write = requests.iter().position(|r| writes(&r) && !r.contains("dryRun=All"));
        let stored = requests.iter().position(|r| is_status(r, "three"));
        assert!(last_dry_run < stored && stored < first_write, "{requests:#?}");
        assert!(last_dry_run.is_some(), "{requests:#?}");
    });
}

/// The process dies after it has created the first object. The next one knows of it, and prunes it when Git no longer has it.
#[test]
fn crash_during_an_apply_orphans_no_object() {
    run(async {
        let cluster = cluster(83, &[("a.yaml", map("a", "1")), ("b.yaml", map("b", "1"))]).await;
        cluster.ready("GitRepository", "app").await;
        let writes = |method: &http::Method, path: &str| {
            *method != http::Method::GET && path.contains("/configmaps") && !path.contains("dryRun")
        };
        cluster.faults.add(Rule::new(writes, FaultSchedule::Nth(1), Action::Die { served: true }));
        fixture::kustomization(&cluster, "app", "./").await;
        while !cluster.faults.dead() {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert!(cluster.get("ConfigMap", "a").await.is_some(), "the first object was created");
        push(&cluster, &[("c.yaml", map("c", "1"))]);
        let cluster = cluster.restart(83, fixture::add).await;
        cluster.request("GitRepository", "app", "t1").await;
        let has_c = |o: &Value| inventory(o) == [format!("{NAMESPACE}_c__ConfigMap")];
        cluster.until("Kustomization", "app", has_c).await;
        for name in ["a", "b"] {
            assert!(cluster.get("ConfigMap", name).await.is_none(), "{name} is orphaned");
        }
    });
}

/// An apply that fails half-way keeps what it wrote in the inventory.
#[test]
fn objects_of_a_failed_apply_stay_in_the_inventory() {
    run(async {
        let cluster = cluster(87, &[("a.yaml", map("a", "1")), ("b.yaml", map("b", "1"))]).await;
        let second = |method: &http::Method, path: &str| {
            *method != http::Method::GET && path.contains("/configmaps/b") && !path.contains("dryRun")
        };
        cluster.faults.add(Rule::new(second, FaultSchedule::Always, Action::Fail(403, "Forbidden")));
        fixture::kustomization(&cluster, "app", "./").await;
        let failed = cluster.failed("Kustomization", "app").await;
        assert!(inventory(&failed).contains(&format!("{NAMESPACE}_a__ConfigMap").as_str()), "{failed:#}");
    });
}

/// K01, K04: any write may fail or lose its answer; the set is whole in the end.
#[test]
fn kustomization_recovers_from_every_failed_write() {
    for nth in 1..=4 {
        for action in [Action::LoseAnswer, Action::Fail(500, "InternalError"), Action::Disconnect] {
            run(async {
                let cluster = after_one(84).await;
                let ours = |method: &http::Method, path: &str| {
                    *method != http::Method::GET && path.contains("two") && !path.contains("events")
                };
                cluster.faults.add(Rule::new(ours, FaultSchedule::Nth(nth), action.clone()));
                tenant(&cluster, "two", "").await;
                let done = cluster.ready("Kustomization", "two").await;
                assert_eq!(inventory(&done).len(), 2, "write {nth}, {action:?}");
                for name in ["a-two", "b-two"] {
                    assert!(cluster.get("ConfigMap", name).await.is_some(), "write {nth}, {action:?}");
                }
            });
        }
    }
}

/// The finalizer and the first status (the inventory, before anything is created) are written with PUT, and with PATCH by an identity
/// that may only patch, or after a conflict. The object is the same either way.
#[test]
fn new_objects_are_written_with_put_or_patch() {
    run(async {
        let mut seen = Vec::new();
        for (refused, ways) in [
            (0, ["PUT", "PUT", "PATCH"]),
            (403, ["PATCH", "PATCH", "PATCH"]),
            (409, ["PATCH", "PATCH", "PATCH"]),
        ] {
            let cluster = cluster(86, &[("a.yaml", map("a", "1"))]).await;
            let source = cluster.ready("GitRepository", "app").await;
            assert_eq!(source["metadata"]["finalizers"], json!(["finalizers.fluxcd.io"]));
            if refused > 0 {
                let puts = |method: &http::Method, path: &str| {
                    *method == http::Method::PUT && path.contains("/kustomizations/")
                };
                cluster.faults.add(Rule::new(puts, FaultSchedule::Always, Action::Fail(refused, "refused")));
            }
            cluster.faults.take_requests();
            fixture::kustomization(&cluster, "one", "./").await;
            let object = cluster.ready("Kustomization", "one").await;
            let requests = cluster.faults.take_requests();
            let writes =
                requests.iter().filter(|r| !r.starts_with("GET") && r.contains("/kustomizations/one"));
            let methods: Vec<&str> = writes.filter_map(|r| r.split(' ').next()).collect();
            let taken: Vec<&str> =
                if refused > 0 { methods.iter().copied().filter(|m| *m != "PUT").collect() } else { methods };
            assert_eq!(taken, ways, "{refused}");
            assert_eq!(object["metadata"]["finalizers"], json!(["finalizers.fluxcd.io"]));
            let owners = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
            let owners = owners.into_iter().map(|mut owner| {
                owner["time"].take();
                owner
            });
            seen.push((owners.collect::<Vec<_>>(), object["metadata"]["generation"].clone()));
        }
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:#?}");
    });
}
