//! API servers that accept requests and never answer: N09 of the threats, for the engine's own server and for remote ones.

mod fixture;

use std::net::TcpListener;
use std::time::Duration;

use fixture::{cluster, map, run};
use fl_sim::{Action, FaultSchedule, NAMESPACE, Rule, TestCluster, condition};
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

async fn kustomization(cluster: &TestCluster, name: &str, path: &str) {
    let spec = json!({"interval": "10m", "retryInterval": "10s", "prune": true, "path": path,
        "sourceRef": {"kind": "GitRepository", "name": "app"}});
    cluster.source("Kustomization", name, spec).await;
}

/// Requests of the controllers that end with their answer.
fn is_plain(method: &Method, path: &str) -> bool {
    !path.contains("watch=true")
        && !path.contains("/leases/")
        && (*method != Method::POST || !path.contains("/events"))
}

/// One request of a pass is never answered, each in turn. The pass ends, the next one succeeds, and others go on meanwhile.
#[test]
fn every_request_of_a_reconcile_has_a_deadline() {
    let files = [("one/a.yaml", map("a", "1")), ("two/b.yaml", map("b", "1"))];
    let requests = run(async {
        let cluster = cluster(40, &files).await;
        cluster.ready("GitRepository", "app").await;
        cluster.faults.take_requests();
        kustomization(&cluster, "one", "./one").await;
        cluster.ready("Kustomization", "one").await;
        let all = cluster.faults.take_requests();
        all.iter()
            .filter(|r| r.split_once(' ').is_some_and(|(m, p)| is_plain(&m.parse().expect("a method"), p)))
            .count()
    });
    assert!(requests > 4, "{requests}");
    for nth in 1..=requests {
        run(async {
            let cluster = cluster(40, &files).await;
            cluster.ready("GitRepository", "app").await;
            cluster.faults.add(Rule::new(
                is_plain,
                FaultSchedule::Nth(u64::try_from(nth).expect("small")),
                Action::Hang,
            ));
            let begin = Instant::now();
            kustomization(&cluster, "one", "./one").await;
            kustomization(&cluster, "two", "./two").await;
            cluster.ready("Kustomization", "two").await;
            cluster.ready("Kustomization", "one").await;
            assert!(begin.elapsed() < Duration::from_secs(300), "request {nth}: {:?}", begin.elapsed());
        });
    }
}

/// A server that accepts connections and says nothing.
fn silent_server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    (listener, address)
}

async fn remote(cluster: &TestCluster, name: &str, server: &str) {
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\ncurrent-context: c\nusers: [{{name: u, user: {{token: t}}}}]\n"
    );
    cluster
        .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "silent", "namespace": NAMESPACE},
            "stringData": {"value": kubeconfig}}))
        .await;
    cluster
        .source(
            "Kustomization",
            name,
            json!({"interval": "10m", "timeout": "20s", "prune": true, "path": "./one",
                "kubeConfig": {"secretRef": {"name": "silent"}},
                "sourceRef": {"kind": "GitRepository", "name": "app"}}),
        )
        .await;
}

/// Twelve Kustomizations on a silent cluster: each reports it within its timeout, and a local one is ready at once.
#[test]
fn silent_remote_cluster_delays_no_other_kustomization() {
    run(async {
        let cluster = cluster(41, &[("one/a.yaml", map("a", "1")), ("two/b.yaml", map("b", "1"))]).await;
        cluster.ready("GitRepository", "app").await;
        let (_listener, address) = silent_server();
        for i in 0..12 {
            remote(&cluster, &format!("silent-{i}"), &address).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let begin = Instant::now();
        kustomization(&cluster, "two", "./two").await;
        cluster.ready("Kustomization", "two").await;
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        let told = |o: &Value| {
            let message = condition(o, "Ready")["message"].as_str().unwrap_or_default().to_owned();
            condition(o, "Ready")["status"] == "False" && message.contains("no answer from the API server")
        };
        for i in 0..12 {
            cluster.until("Kustomization", &format!("silent-{i}"), told).await;
        }
        // Four at a time, each within its timeout.
        assert!(begin.elapsed() < Duration::from_secs(180), "{:?}", begin.elapsed());
    });
}
