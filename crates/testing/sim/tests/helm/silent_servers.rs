//! API servers that accept requests and never answer: threat N09 for HelmReleases.

use std::net::TcpListener;
use std::time::Duration;

use fl_api::helm::HelmRelease;
use fl_helmrelease::{HelmReleaseController, Settings};
use fl_runtime::{ArtifactFetcher, Kind, Options, Resolver};
use fl_sim::{Action, FaultSchedule, NAMESPACE, Rule, TestCluster, condition};
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixture::{ready_at_least, release, with_chart};

/// The actions of a release whose requests are left without an answer.
#[derive(Clone, Copy, Debug)]
enum Step {
    Install,
    Upgrade,
    Uninstall,
}

/// A cluster with one permit: a permit that a reconcile lost would stop all releases.
async fn one_permit(seed: u64) -> TestCluster {
    let test_cluster = TestCluster::with(seed, Options::default(), |test_cluster| {
        let fetcher = ArtifactFetcher::new(Some(test_cluster.store.clone()), 0, None).unwrap();
        let resolver = Resolver::new(&test_cluster.runtime);
        let controller =
            HelmReleaseController::new(&test_cluster.runtime, resolver, fetcher, Settings::default());
        test_cluster.runtime.add(controller, 1);
    })
    .await;
    with_chart(test_cluster).await
}

/// Requests that end with their response.
fn is_plain(method: &Method, path: &str) -> bool {
    !path.contains("watch=true")
        && !path.contains("/leases/")
        && (*method != Method::POST || !path.contains("/events"))
}

async fn prepare(test_cluster: &TestCluster, step: Step) {
    if !matches!(step, Step::Install) {
        test_cluster.apply(release("one", json!({"timeout": "1m"}))).await;
        test_cluster.until("HelmRelease", "one", |object| ready_at_least(object, 1)).await;
    }
}

async fn begin(test_cluster: &TestCluster, step: Step) {
    match step {
        Step::Install => {
            test_cluster.apply(release("one", json!({"timeout": "1m"}))).await;
        }
        Step::Upgrade => {
            test_cluster.apply(release("one", json!({"timeout": "1m", "values": {"color": "blue"}}))).await;
        }
        Step::Uninstall => {
            let kind = Kind::of::<HelmRelease>();
            test_cluster.user.delete(&kind, Some(NAMESPACE), "one", &Default::default()).await.unwrap();
        }
    }
}

/// Whether the result of the step is reported: released, or failed by the request without an answer. Without remediation a
/// failure after the release was stored stalls, as in Flux.
fn is_reported(object: &Value, version: i64) -> bool {
    let ready = condition(object, "Ready");
    let names_the_request =
        ready["message"].as_str().is_some_and(|m| m.contains("no answer from the API server"));
    let is_stalled = condition(object, "Stalled")["reason"] == "RetriesExceeded";
    ready_at_least(object, version) || ready["status"] == "False" && (names_the_request || is_stalled)
}

async fn done(test_cluster: &TestCluster, step: Step) {
    match step {
        Step::Install => {
            test_cluster.until("HelmRelease", "one", |object| is_reported(object, 1)).await;
        }
        Step::Upgrade => {
            test_cluster.until("HelmRelease", "one", |object| is_reported(object, 2)).await;
        }
        Step::Uninstall => test_cluster.gone("HelmRelease", "one").await,
    }
}

async fn requests(step: Step) -> u64 {
    let test_cluster = one_permit(50).await;
    prepare(&test_cluster, step).await;
    test_cluster.faults.take_requests();
    begin(&test_cluster, step).await;
    done(&test_cluster, step).await;
    let all = test_cluster.faults.take_requests();
    let plain = all.iter().filter_map(|request| request.split_once(' '));
    plain.filter(|(method, path)| is_plain(&method.parse().unwrap(), path)).count() as u64
}

/// Each request in turn never gets a response: the reconcile ends and reports it or succeeds later, and another release is
/// installed.
async fn no_request_blocks(step: Step) {
    let count = requests(step).await;
    assert!(count > 4, "{step:?}: {count} requests");
    for nth in 1..=count {
        let test_cluster = one_permit(50).await;
        prepare(&test_cluster, step).await;
        test_cluster.faults.add(Rule::new(is_plain, FaultSchedule::Nth(nth), Action::Hang));
        let started = Instant::now();
        begin(&test_cluster, step).await;
        test_cluster.apply(release("two", json!({"timeout": "1m"}))).await;
        test_cluster.until("HelmRelease", "two", |object| is_reported(object, 1)).await;
        done(&test_cluster, step).await;
        let took = started.elapsed();
        assert!(took < Duration::from_secs(600), "{step:?}, request {nth} of {count}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_request_of_an_install_blocks_the_controller() {
    no_request_blocks(Step::Install).await;
}

#[tokio::test(start_paused = true)]
async fn no_request_of_an_upgrade_blocks_the_controller() {
    no_request_blocks(Step::Upgrade).await;
}

#[tokio::test(start_paused = true)]
async fn no_request_of_an_uninstall_blocks_the_controller() {
    no_request_blocks(Step::Uninstall).await;
}

/// Six releases on a remote cluster that accepts connections and never answers: each reports it, and a local one is installed
/// at once.
#[tokio::test(start_paused = true)]
async fn silent_remote_cluster_does_not_block_local_releases() {
    let test_cluster = one_permit(51).await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\ncurrent-context: c\nusers: [{{name: u, user: {{token: t}}}}]\n"
    );
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "silent", "namespace": NAMESPACE},
        "stringData": {"value": kubeconfig}});
    test_cluster.apply(secret).await;
    for i in 0..6 {
        let more = json!({"timeout": "20s", "kubeConfig": {"secretRef": {"name": "silent"}}});
        test_cluster.apply(release(&format!("silent-{i}"), more)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let started = Instant::now();
    test_cluster.apply(release("local", json!({}))).await;
    test_cluster.until("HelmRelease", "local", |object| ready_at_least(object, 1)).await;
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let reported = |object: &Value| {
        let ready = condition(object, "Ready");
        let message = ready["message"].as_str().unwrap_or_default().to_owned();
        ready["status"] == "False" && message.contains("no answer from the API server")
    };
    for i in 0..6 {
        test_cluster.until("HelmRelease", &format!("silent-{i}"), reported).await;
    }
    assert!(started.elapsed() < Duration::from_secs(600), "{:?}", started.elapsed());
}
