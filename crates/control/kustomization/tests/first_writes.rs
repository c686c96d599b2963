//! How the objects of a new Kustomization are written: dry-runs first, the inventory before the objects, nothing orphaned.

mod lab;

use fl_sim::{Action, NAMESPACE, Rule, When, World, condition};
use lab::{map, push, run, world};
use serde_json::{Value, json};

/// Two objects, the second of which a variable can make invalid.
fn template() -> [(&'static str, String); 2] {
    [("a.yaml", map("a-${WHO}", "1")), ("b.yaml", map("b-${WHO}${END:=}", "1"))]
}

async fn tenant(world: &World, who: &str, end: &str) {
    let spec = json!({"interval": "10m", "retryInterval": "10s", "prune": true,
        "sourceRef": {"kind": "GitRepository", "name": "app"},
        "postBuild": {"substitute": {"WHO": who, "END": end}}});
    world.source("Kustomization", who, spec).await;
}

/// A world with one Kustomization of the template.
async fn after_one(seed: u64) -> World {
    let world = world(seed, &template()).await;
    tenant(&world, "one", "").await;
    world.ready("Kustomization", "one").await;
    world
}

/// How many dry-runs and how many writes of ConfigMaps there were since the last call.
fn counts(world: &World) -> (usize, usize) {
    let requests = world.faults.take_requests();
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
fn similar_kustomizations_are_validated_each() {
    run(async {
        let world = world(81, &template()).await;
        for who in ["one", "two"] {
            tenant(&world, who, "").await;
            let object = world.ready("Kustomization", who).await;
            assert_eq!(counts(&world), (1, 2));
            assert_eq!(inventory(&object).len(), 2);
        }
    });
}

#[test]
fn a_refused_set_leaves_nothing_behind() {
    run(async {
        let world = after_one(82).await;
        counts(&world);
        tenant(&world, "two", "_").await;
        let failed = world.failed("Kustomization", "two").await;
        assert_eq!(condition(&failed, "Ready")["reason"], "ReconciliationFailed");
        assert_eq!(counts(&world).1, 0);
        assert!(world.get("ConfigMap", "a-two").await.is_none());
        assert_eq!(inventory(&failed), Vec::<&str>::new());
    });
}

/// The process dies after it has created the first object. The next one knows of it, and prunes it when Git no longer has it.
#[test]
fn a_crash_during_an_apply_orphans_nothing() {
    run(async {
        let world = world(83, &[("a.yaml", map("a", "1")), ("b.yaml", map("b", "1"))]).await;
        world.ready("GitRepository", "app").await;
        let writes = |method: &http::Method, path: &str| {
            *method != http::Method::GET && path.contains("/configmaps") && !path.contains("dryRun")
        };
        world.faults.add(Rule::new(writes, When::Nth(1), Action::Die { served: true }));
        lab::kustomization(&world, "app", "./").await;
        while !world.faults.dead() {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert!(world.get("ConfigMap", "a").await.is_some(), "the first object was created");
        push(&world, &[("c.yaml", map("c", "1"))]);
        let world = world.restart(83, lab::add).await;
        world.request("GitRepository", "app", "t1").await;
        let has_c = |o: &Value| inventory(o) == [format!("{NAMESPACE}_c__ConfigMap")];
        world.until("Kustomization", "app", has_c).await;
        for name in ["a", "b"] {
            assert!(world.get("ConfigMap", name).await.is_none(), "{name} is orphaned");
        }
    });
}

/// An apply that fails half-way keeps what it wrote in the inventory.
#[test]
fn objects_of_a_failed_apply_stay_in_the_inventory() {
    run(async {
        let world = world(87, &[("a.yaml", map("a", "1")), ("b.yaml", map("b", "1"))]).await;
        let second = |method: &http::Method, path: &str| {
            *method != http::Method::GET && path.contains("/configmaps/b") && !path.contains("dryRun")
        };
        world.faults.add(Rule::new(second, When::Always, Action::Fail(403, "Forbidden")));
        lab::kustomization(&world, "app", "./").await;
        let failed = world.failed("Kustomization", "app").await;
        assert!(inventory(&failed).contains(&format!("{NAMESPACE}_a__ConfigMap").as_str()), "{failed:#}");
    });
}

/// K01, K04: any write may fail or lose its answer; the set is whole in the end.
#[test]
fn every_write_may_fail() {
    for nth in 1..=4 {
        for action in [Action::LoseAnswer, Action::Fail(500, "InternalError"), Action::Disconnect] {
            run(async {
                let world = after_one(84).await;
                let ours = |method: &http::Method, path: &str| {
                    *method != http::Method::GET && path.contains("two") && !path.contains("events")
                };
                world.faults.add(Rule::new(ours, When::Nth(nth), action.clone()));
                tenant(&world, "two", "").await;
                let done = world.ready("Kustomization", "two").await;
                assert_eq!(inventory(&done).len(), 2, "write {nth}, {action:?}");
                for name in ["a-two", "b-two"] {
                    assert!(world.get("ConfigMap", name).await.is_some(), "write {nth}, {action:?}");
                }
            });
        }
    }
}

/// The finalizer and the first status (the inventory, before anything is created) are written with PUT, and with PATCH by an identity
/// that may only patch, or after a conflict. The object is the same either way.
#[test]
fn new_objects_are_put_and_else_patched() {
    run(async {
        let mut seen = Vec::new();
        for (refused, ways) in [
            (0, ["PUT", "PUT", "PATCH"]),
            (403, ["PATCH", "PATCH", "PATCH"]),
            (409, ["PATCH", "PATCH", "PATCH"]),
        ] {
            let world = world(86, &[("a.yaml", map("a", "1"))]).await;
            let source = world.ready("GitRepository", "app").await;
            assert_eq!(source["metadata"]["finalizers"], json!(["finalizers.fluxcd.io"]));
            if refused > 0 {
                let puts = |method: &http::Method, path: &str| {
                    *method == http::Method::PUT && path.contains("/kustomizations/")
                };
                world.faults.add(Rule::new(puts, When::Always, Action::Fail(refused, "refused")));
            }
            world.faults.take_requests();
            lab::kustomization(&world, "one", "./").await;
            let object = world.ready("Kustomization", "one").await;
            let requests = world.faults.take_requests();
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
