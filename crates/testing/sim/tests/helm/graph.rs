//! The graph of a whole platform: 35 releases, 44 edges. Order is kept, and nothing waits for what it does not need.

use std::collections::BTreeMap;
use std::time::Duration;

use fl_runtime::Kind;
use fl_sim::{Action, FaultSchedule, NAMESPACE, Rule, condition};
use serde_json::json;
use tokio::time::Instant;

use crate::fixture::{release, test_cluster};

/// Names, and what all of them depend on.
const GRAPH: &[(&str, &str)] = &[
    ("cilium vpa reloader", ""),
    ("cert-manager kyverno falco", "cilium"),
    ("flux sealed-secrets spire powerdns keycloak trivy opentelemetry sigstore syft-grype", "cert-manager"),
    ("coraza", "cilium cert-manager"),
    ("crossplane cnpg valkey", "flux"),
    ("seaweedfs", "flux cert-manager"),
    ("nats openbao", "spire"),
    ("gitea", "keycloak"),
    ("external-dns", "cert-manager powerdns"),
    ("alloy", "opentelemetry"),
    ("harbor", "cnpg seaweedfs cert-manager"),
    ("langfuse", "cnpg keycloak cert-manager"),
    ("velero loki mimir tempo", "seaweedfs"),
    ("external-secrets", "openbao cert-manager"),
    ("crossplane-claims", "crossplane"),
    ("catalyst-platform", "gitea"),
    ("grafana", "cnpg loki mimir tempo keycloak"),
];

/// How long each release takes.
const WORK: Duration = Duration::from_secs(10);
/// From a dependency that is ready to a dependent that has begun, and the ticks of this test.
const HANDOVER: Duration = Duration::from_millis(500);

#[tokio::test(start_paused = true)]
async fn a_platform_is_installed_in_order_and_as_parallel_as_it_allows() {
    let edges: BTreeMap<&str, Vec<&str>> = GRAPH
        .iter()
        .flat_map(|(names, needs)| {
            names.split_whitespace().map(|name| (name, needs.split_whitespace().collect::<Vec<_>>()))
        })
        .collect();
    assert_eq!(edges.len(), 35);
    assert_eq!(edges.values().map(Vec::len).sum::<usize>(), 44);

    let test_cluster = test_cluster(3).await;
    let writes = |method: &http::Method, path: &str| method != "GET" && path.contains("-cfg");
    test_cluster.faults.add(Rule::new(writes, FaultSchedule::Always, Action::Delay(WORK)));
    let start = Instant::now();
    for (name, needs) in &edges {
        let depends: Vec<_> = needs.iter().map(|need| json!({"name": need})).collect();
        test_cluster.apply(release(name, json!({"dependsOn": depends}))).await;
    }
    let kind = Kind::of::<fl_api::helm::HelmRelease>();
    let mut ready: BTreeMap<String, Duration> = BTreeMap::new();
    while ready.len() < edges.len() {
        assert!(start.elapsed() < Duration::from_secs(600), "only {:?} became ready", ready.keys());
        for object in test_cluster.user.list(&kind, Some(NAMESPACE), "").await.unwrap() {
            let name = object["metadata"]["name"].as_str().unwrap();
            if condition(&object, "Ready")["status"] == "True" && !ready.contains_key(name) {
                ready.insert(name.to_owned(), start.elapsed());
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for (name, needs) in &edges {
        let free = needs.iter().map(|need| ready[*need]).max().unwrap_or_default();
        let took = ready[*name].saturating_sub(free);
        assert!(took + HANDOVER >= WORK, "{name} did not wait for {needs:?}: ready after {took:?}");
        assert!(took <= WORK + HANDOVER, "{name} waited for more than {needs:?}: ready after {took:?}");
    }
}
