//! What makes a crowd of new Kustomizations cheap, and never harms: what is known of the first of those that differ in their
//! variables only, and how new objects are written.

mod lab;

use fl_sim::{Action, NAMESPACE, Rule, When, World, condition};
use lab::{map, run, world};
use serde_json::{Value, json};

/// Two objects, the second of which can be spoilt by a variable.
fn template() -> [(&'static str, String); 2] {
    [("a.yaml", map("a-${WHO}", "1")), ("b.yaml", map("b-${WHO}${END:=}", "1"))]
}

async fn tenant(world: &World, who: &str, end: &str) {
    let spec = json!({"interval": "10m", "retryInterval": "10s", "prune": true,
        "sourceRef": {"kind": "GitRepository", "name": "app"},
        "postBuild": {"substitute": {"WHO": who, "END": end}}});
    world.source("Kustomization", who, spec).await;
}

/// A world in which one of the crowd was accepted.
async fn after_one(seed: u64) -> World {
    let world = world(seed, &template()).await;
    tenant(&world, "one", "").await;
    world.ready("Kustomization", "one").await;
    world
}

/// How many objects were tried, and how many writes of objects there were beside that, since the last call.
fn counts(world: &World) -> (usize, usize) {
    let requests = world.faults.take_requests();
    let maps = requests.iter().filter(|r| !r.starts_with("GET") && r.contains("/configmaps"));
    let (tried, written): (Vec<_>, Vec<_>) = maps.partition(|r| r.contains("dryRun=All"));
    (tried.len(), written.len())
}

fn inventory(object: &Value) -> Vec<&str> {
    let entries = object["status"]["inventory"]["entries"].as_array().into_iter().flatten();
    entries.filter_map(|e| e["id"].as_str()).collect()
}

#[test]
fn what_was_accepted_once_is_not_tried_again_for_others() {
    run(async {
        let world = world(81, &template()).await;
        tenant(&world, "one", "").await;
        let one = world.ready("Kustomization", "one").await;
        assert_eq!(counts(&world), (1, 2));
        tenant(&world, "two", "").await;
        let two = world.ready("Kustomization", "two").await;
        assert_eq!(counts(&world), (0, 2));
        assert_eq!(inventory(&two).len(), 2);
        assert_eq!(
            inventory(&two),
            inventory(&one).iter().map(|id| id.replace("one", "two")).collect::<Vec<_>>()
        );
        // Written as ever: applied by the same manager, with nothing left of the way it was written.
        let fields = |object: Value| {
            let managed = object["metadata"]["managedFields"][0].clone();
            [managed["manager"].clone(), managed["operation"].clone(), managed["fieldsV1"].clone()]
        };
        let [a, b] = [world.get("ConfigMap", "b-one").await, world.get("ConfigMap", "b-two").await];
        assert_eq!(fields(a.expect("applied")), fields(b.expect("applied")));
        let told = |name: &str| format!("ConfigMap/{NAMESPACE}/a-{name} created");
        tokio::time::sleep(std::time::Duration::from_secs(30)).await;
        let events = world.events().await;
        assert!(events.iter().any(|e| e.contains(&told("two"))), "{events:#?}");
        // Later it has to be found out anew.
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        world.faults.take_requests();
        tenant(&world, "three", "").await;
        world.ready("Kustomization", "three").await;
        assert_eq!(counts(&world), (1, 2));
    });
}

#[test]
fn one_that_is_refused_leaves_nothing_behind() {
    run(async {
        let world = after_one(82).await;
        tenant(&world, "two", "_no-name").await;
        let failed = world.failed("Kustomization", "two").await;
        let told = condition(&failed, "Ready")["message"].as_str().expect("a message").to_owned();
        // The words of a trial, though something had been written before it.
        assert!(told.contains("ConfigMap/default/b-two_no-name dry-run failed (Invalid)"), "{told}");
        assert!(world.get("ConfigMap", "a-two").await.is_none());
        assert!(inventory(&failed).is_empty());
        assert!(world.get("ConfigMap", "a-one").await.is_some());
        // It has cost the others their credit.
        world.faults.take_requests();
        tenant(&world, "three", "").await;
        world.ready("Kustomization", "three").await;
        assert_eq!(counts(&world), (1, 2));
    });
}

#[test]
fn what_is_there_already_is_taken_over_as_ever() {
    run(async {
        let world = after_one(83).await;
        let others = |name: &str, data: Value| {
            let metadata = json!({"name": name, "namespace": NAMESPACE});
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        };
        let before = world.apply(others("b-two", json!({"key": "theirs", "more": "theirs"}))).await;
        tenant(&world, "two", "").await;
        world.ready("Kustomization", "two").await;
        let after = world.get("ConfigMap", "b-two").await.expect("still there");
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(after["data"]["key"], "1");
        // Nothing that was there goes when the set is refused.
        let before = world.apply(others("a-three", json!({"key": "theirs"}))).await;
        tenant(&world, "four", "").await;
        world.ready("Kustomization", "four").await;
        tenant(&world, "three", "_no-name").await;
        world.failed("Kustomization", "three").await;
        let after = world.get("ConfigMap", "a-three").await.expect("still there");
        assert_eq!(
            [&after["metadata"]["uid"], &after["data"]],
            [&before["metadata"]["uid"], &before["data"]]
        );
    });
}

/// A server that does not answer has refused nothing: what was written stays, and the next pass goes on from there.
#[test]
fn nothing_is_taken_back_while_the_server_is_away() {
    run(async {
        let world = after_one(85).await;
        let others = |method: &http::Method, path: &str| {
            *method != http::Method::GET && path.contains("/configmaps") && !path.contains("a-two")
        };
        world.faults.add(Rule::new(others, When::Always, Action::Fail(503, "ServiceUnavailable")));
        tenant(&world, "two", "").await;
        world.failed("Kustomization", "two").await;
        let first = world.get("ConfigMap", "a-two").await.expect("written");
        world.faults.clear();
        world.ready("Kustomization", "two").await;
        let after = world.get("ConfigMap", "a-two").await.expect("still there");
        assert_eq!(after["metadata"]["uid"], first["metadata"]["uid"]);
        assert!(!world.faults.take_requests().iter().any(|r| r.starts_with("DELETE")));
    });
}

/// K01, K04 for this way of writing: any write may fail or lose its answer; the set is whole in the end.
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

/// The finalizer and the first status are put, and patched by an identity that may only do that, or when somebody wrote in
/// between. Nobody can tell from the object which way it went.
#[test]
fn new_objects_are_put_and_else_patched() {
    run(async {
        let mut seen = Vec::new();
        for (refused, ways) in [(0, ["PUT", "PUT"]), (403, ["PATCH", "PATCH"]), (409, ["PATCH", "PATCH"])] {
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
