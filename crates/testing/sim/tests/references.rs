//! References: lines F01, M04 of the threats, the acceptance checks of Open Flux, and how fast a dependent wakes.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod consumer;

use std::time::{Duration, Instant};

use consumer::{Consumer, Seen};
use fl_runtime::{Kind, Options};
use fl_sim::{TestCluster, condition};
use serde_json::{Value, json};

const URL: &str = "https://git.example/app";

async fn test_cluster(options: Options) -> (TestCluster, Seen) {
    let mut seen = Seen::default();
    let slot = &mut seen;
    let test_cluster = TestCluster::with(1, options, |test_cluster| {
        let consumer = Consumer::new(&test_cluster.runtime);
        *slot = consumer.seen.clone();
        test_cluster.runtime.add(consumer, 4);
    })
    .await;
    (test_cluster, seen)
}

fn consumer(name: &str, source: Value) -> Value {
    json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": name},
           "spec": {"interval": "1h", "prune": false, "sourceRef": source}})
}

fn artifact(name: &str, revision: &str, owners: Value) -> Value {
    json!({"apiVersion": "openfluxcd.ocm.software/v1alpha1", "kind": "Artifact",
           "metadata": {"name": name, "ownerReferences": owners},
           "spec": {"url": "http://x.example/a.tar.gz", "revision": revision, "lastUpdateTime": "2026-01-01T00:00:00Z",
                    "digest": format!("sha256:{}", "a".repeat(64))}})
}

fn owner(name: &str, controller: bool) -> Value {
    json!({"apiVersion": "sources.example.com/v2", "kind": "Feed", "name": name, "uid": "1", "controller": controller})
}

fn options(gates: &str) -> Options {
    Options { gates: gates.parse().unwrap(), ..Options::default() }
}

async fn saw(test_cluster: &TestCluster, name: &str, revision: &str) {
    test_cluster.until("Kustomization", name, |o| o["status"]["lastAppliedRevision"] == revision).await;
}

async fn says(test_cluster: &TestCluster, name: &str, text: &str) {
    test_cluster
        .until("Kustomization", name, |o| {
            let ready = condition(o, "Ready");
            ready["status"] == "False" && ready["message"].as_str().is_some_and(|m| m.contains(text))
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_foreign_kind_is_found_through_the_artifact_it_owns() {
    let (test_cluster, seen) = test_cluster(options("")).await;
    let feed = json!({"apiVersion": "sources.example.com/v1", "kind": "Feed", "name": "f"});
    test_cluster.apply(consumer("app", feed)).await;
    says(&test_cluster, "app", "no artifact resource found for sources.example.com/Feed/default/f").await;
    test_cluster.apply(artifact("a", "r1", json!([owner("f", false)]))).await;
    saw(&test_cluster, "app", "r1").await;
    // A new revision wakes once; a new time under the same revision does not.
    let before = seen.lock().unwrap().len();
    test_cluster.apply(artifact("a", "r2", json!([owner("f", false)]))).await;
    saw(&test_cluster, "app", "r2").await;
    let mut touched = artifact("a", "r2", json!([owner("f", false)]));
    touched["spec"]["lastUpdateTime"] = "2026-02-02T00:00:00Z".into();
    test_cluster.apply(touched).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(seen.lock().unwrap().len(), before + 1);
    // Two are one too many, unless exactly one is managed by its owner.
    test_cluster.apply(artifact("b", "r3", json!([owner("f", false)]))).await;
    let kind = Kind::of::<fl_api::openflux::Artifact>();
    let mut other = artifact("b", "r3", json!([owner("f", false)]));
    other["spec"]["digest"] = format!("sha256:{}", "b".repeat(64)).into();
    test_cluster.apply(other.clone()).await;
    says(&test_cluster, "app", "multiple artifacts found for sources.example.com/Feed/default/f").await;
    other["metadata"]["ownerReferences"] = json!([owner("f", true)]);
    test_cluster.apply(other).await;
    saw(&test_cluster, "app", "r3").await;
    // Gone: said at once.
    for name in ["a", "b"] {
        test_cluster.user.delete(&kind, Some("default"), name, &Default::default()).await.unwrap();
    }
    says(&test_cluster, "app", "no artifact resource found").await;
    // The foreign kind itself was never asked for.
    assert!(!test_cluster.faults.take_requests().iter().any(|r| r.contains("sources.example.com")));
}

#[tokio::test(start_paused = true)]
async fn artifacts_by_name_and_external_artifacts() {
    let (test_cluster, _) = test_cluster(options("ExternalArtifact=true")).await;
    let named = json!({"apiVersion": "openfluxcd.ocm.software/v1alpha1", "kind": "Artifact", "name": "a"});
    test_cluster.apply(consumer("direct", named)).await;
    test_cluster.apply(artifact("a", "r1", json!([]))).await;
    saw(&test_cluster, "direct", "r1").await;
    let feed = json!({"apiVersion": "sources.example.com/v1", "kind": "Feed", "name": "f"});
    test_cluster.apply(consumer("feed", feed)).await;
    test_cluster.apply(consumer("external", json!({"kind": "ExternalArtifact", "name": "e"}))).await;
    test_cluster
        .apply(json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "ExternalArtifact", "metadata": {"name": "e"},
            "spec": {"sourceRef": {"apiVersion": "sources.example.com/v1", "kind": "Feed", "name": "f"}}}))
        .await;
    let kind = Kind::of::<fl_api::source::ExternalArtifact>();
    let status = json!({"status": {"artifact": {"url": "http://x.example/e.tar.gz", "path": "e", "revision": "latest@sha256:1",
        "digest": format!("sha256:{}", "c".repeat(64)), "lastUpdateTime": "2026-01-01T00:00:00Z"}}});
    let write = fl_runtime::Write::by("producer").to("status");
    test_cluster
        .user
        .patch(&kind, Some("default"), "e", fl_runtime::Patch::Merge, &status, &write)
        .await
        .unwrap();
    saw(&test_cluster, "external", "latest@sha256:1").await;
    saw(&test_cluster, "feed", "latest@sha256:1").await;
}

#[tokio::test(start_paused = true)]
async fn external_artifacts_need_their_gate() {
    let (test_cluster, _) = test_cluster(options("")).await;
    test_cluster.apply(consumer("external", json!({"kind": "ExternalArtifact", "name": "e"}))).await;
    says(&test_cluster, "external", "feature gate ExternalArtifact is off").await;
}

/// F01: every form of reference to another namespace is refused under lock-down, without a look at what is there.
#[tokio::test(start_paused = true)]
async fn lockdown_covers_every_form_of_reference() {
    let mut strict = options("ExternalArtifact=true");
    strict.no_cross_namespace_refs = true;
    let (test_cluster, _) = test_cluster(strict).await;
    test_cluster.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})).await;
    test_cluster.faults.take_requests();
    let forms = [
        json!({"kind": "GitRepository"}),
        json!({"kind": "OCIRepository"}),
        json!({"kind": "Bucket"}),
        json!({"kind": "ExternalArtifact"}),
        json!({"kind": "Artifact", "apiVersion": "openfluxcd.ocm.software/v1alpha1"}),
        json!({"kind": "Feed", "apiVersion": "sources.example.com/v1"}),
    ];
    for (i, mut form) in forms.into_iter().enumerate() {
        form["name"] = "secret".into();
        form["namespace"] = "other".into();
        let name = format!("app{i}");
        let kind = form["kind"].as_str().unwrap().to_owned();
        test_cluster.apply(consumer(&name, form)).await;
        let words =
            format!("can't access '{kind}/other/secret', cross-namespace references have been blocked");
        says(&test_cluster, &name, &words).await;
    }
    let reads: Vec<String> = test_cluster
        .faults
        .take_requests()
        .into_iter()
        .filter(|r| r.contains("/namespaces/other/"))
        .collect();
    assert_eq!(reads, Vec::<String>::new());
}

/// M04: deleted and recreated, under a new identity; the consumer follows.
#[tokio::test(start_paused = true)]
async fn a_recreated_source_is_followed() {
    let (test_cluster, _) = test_cluster(options("")).await;
    let first = test_cluster.git.push(URL, "main", [("a", "1")]);
    let spec = json!({"url": URL, "interval": "1h", "ref": {"branch": "main"}});
    test_cluster.apply(consumer("app", json!({"kind": "GitRepository", "name": "src"}))).await;
    test_cluster.source("GitRepository", "src", spec.clone()).await;
    saw(&test_cluster, "app", &format!("main@sha1:{first}")).await;
    let kind = Kind::of::<fl_api::source::GitRepository>();
    test_cluster.user.delete(&kind, Some("default"), "src", &Default::default()).await.unwrap();
    test_cluster.gone("GitRepository", "src").await;
    says(&test_cluster, "app", "not found").await;
    let second = test_cluster.git.push(URL, "main", [("a", "2")]);
    test_cluster.source("GitRepository", "src", spec).await;
    saw(&test_cluster, "app", &format!("main@sha1:{second}")).await;
}

/// From the source's status to the consumer's pass, on the real clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dependent_is_enqueued_within_50_ms() {
    let (test_cluster, seen) = test_cluster(options("")).await;
    test_cluster
        .apply(consumer(
            "app",
            json!({"kind": "Artifact", "apiVersion": "openfluxcd.ocm.software/v1alpha1", "name": "a"}),
        ))
        .await;
    test_cluster.apply(artifact("a", "r0", json!([]))).await;
    saw(&test_cluster, "app", "r0").await;
    let mut hops = Vec::new();
    for i in 1..=100 {
        let revision = format!("r{i}");
        let start = Instant::now();
        test_cluster.apply(artifact("a", &revision, json!([]))).await;
        while seen.lock().unwrap().last().is_none_or(|(_, r)| *r != revision) {
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert!(start.elapsed() < Duration::from_secs(5), "never woken");
        }
        hops.push(start.elapsed());
    }
    hops.sort();
    println!("hop: median {:?}, p99 {:?}", hops[50], hops[98]);
    assert!(hops[98] < Duration::from_millis(50), "p99 {:?}", hops[98]);
}
