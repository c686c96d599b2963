//! Line K07 of the threats, and M05 for leases: of two processes only the one that leads writes.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fl_apiserver::{ApiServer, User};
use fl_runtime::leader_election::{Election, Times};
use fl_runtime::{Client, Fence, Kind, Log, Shutdown, Write};
use fl_sim::{Action, FaultSchedule, Faults, Rule};
use serde_json::json;
use tokio::time::{Instant, sleep};

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(test);
}

struct Process {
    faults: Faults,
    cluster: Client,
    election: Election,
}

fn process(server: &ApiServer, name: &str) -> Process {
    let faults = Faults::new(7);
    let client = kube::Client::new(faults.layer(server.service(User::superuser("engine"))), "default");
    let cluster = Client::new(client).reconfigured(|settings| settings.fence = Some(Fence::default()));
    let election = Election::new(cluster.clone(), "default", "lease", name, Times::default(), Log::default());
    Process { faults, cluster, election }
}

async fn write(cluster: &Client, name: &str) -> Result<(), String> {
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    let made = cluster.create(&Kind::config_map(), Some("default"), &map, &Write::by("test")).await;
    made.map(drop).map_err(|e| e.to_string())
}

/// K07: a process whose lease is not renewed (it was paused, or cut off from the lease) goes on writing as fast as it can. From the
/// moment another one leads, none of its writes arrives.
#[test]
fn deposed_leader_writes_nothing() {
    run(async {
        let server = ApiServer::in_memory().await.expect("the server starts");
        let mut old = process(&server, "old");
        let mut new = process(&server, "new");
        assert!(write(&old.cluster, "too-early").await.is_ok(), "without an election nothing is fenced");
        old.election.win(&AtomicBool::default()).await;
        assert!(write(&old.cluster, "first").await.is_ok());
        // Its lease cannot be renewed any more; everything else goes through.
        let lease = |_: &http::Method, path: &str| path.contains("/leases/");
        old.faults.add(Rule::new(lease, FaultSchedule::Always, Action::Delay(Duration::from_secs(3600))));
        let stop = Shutdown::default();
        let held = tokio::spawn(async move { old.election.hold(&stop).await.is_some() });
        let writer = old.cluster.clone();
        let writes = tokio::spawn(async move {
            let (begin, mut done) = (Instant::now(), Vec::new());
            for i in 0.. {
                if begin.elapsed() > Duration::from_secs(120) {
                    break;
                }
                if write(&writer, &format!("old-{i}")).await.is_ok() {
                    done.push(Instant::now());
                }
                sleep(Duration::from_millis(100)).await;
            }
            done
        });
        new.election.win(&AtomicBool::default()).await;
        let won = Instant::now();
        assert!(write(&new.cluster, "new").await.is_ok());
        let writes = writes.await.expect("no panic");
        let by_the_deposed = writes.iter().filter(|at| **at >= won).count();
        assert!(writes.len() > 100, "{} writes while it led", writes.len());
        assert_eq!(by_the_deposed, 0);
        assert!(!held.await.expect("no panic"), "the old one knows that it does not lead");
        let refused = write(&old.cluster, "late").await.expect_err("fenced");
        assert!(refused.contains("lease"), "{refused}");
    });
}

/// M05, K07: the clocks of two processes differ by an hour, in either direction. The lease is neither taken early nor kept too long.
#[test]
fn leases_do_not_compare_clocks() {
    for skew in [-3600i64, 3600] {
        run(async {
            let server = ApiServer::in_memory().await.expect("the server starts");
            let mut other = process(&server, "other");
            let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(skew);
            let at = at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": "lease", "namespace": "default"},
                "spec": {"holderIdentity": "skewed", "leaseDurationSeconds": 35, "acquireTime": at, "renewTime": at}});
            let leases = Kind::new("coordination.k8s.io", "v1", "Lease", "leases", true);
            other.cluster.create(&leases, Some("default"), &lease, &Write::default()).await.expect("a lease");
            let begin = Instant::now();
            other.election.win(&AtomicBool::default()).await;
            let waited = begin.elapsed().as_secs();
            assert!((35..=45).contains(&waited), "skew {skew}: {waited} s");
        });
    }
}
