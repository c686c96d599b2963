//! Killed at every request, before or after the server served it: the next process ends where an undisturbed one does.

use std::time::Duration;

use fl_helm_storage::Status;
use fl_runtime::Kind;
use fl_sim::{Action, FaultSchedule, NAMESPACE, Rule, TestCluster, condition};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixture::{
    config_maps, helm_requests, history, ready_at_least, release, restart, states, test_cluster,
};

/// A change that a release goes through.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Install,
    Upgrade,
    Rollback,
    Uninstall,
}

/// What counts as a request of the engine's work: neither watches nor the events it tells.
fn counts(path: &str) -> bool {
    !path.contains("watch=true") && !path.contains("/events")
}

impl Step {
    /// Everything up to the change.
    async fn prepare(self, test_cluster: &TestCluster) {
        if self != Step::Install {
            test_cluster.apply(release("app", json!({}))).await;
            test_cluster.ready("HelmRelease", "app").await;
            // Let what runs beside the pass come to rest.
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    }

    /// The change.
    async fn start(self, test_cluster: &TestCluster) {
        match self {
            Step::Install => drop(test_cluster.apply(release("app", json!({}))).await),
            Step::Upgrade => {
                let values = json!({"values": {"color": "blue", "extra": false}});
                test_cluster.apply(release("app", values)).await;
            }
            Step::Rollback => {
                let spec = json!({"values": {"color": "blue", "bad": true},
                    "upgrade": {"remediation": {"remediateLastFailure": true}}});
                test_cluster.apply(release("app", spec)).await;
            }
            Step::Uninstall => {
                let kind = Kind::of::<fl_api::helm::HelmRelease>();
                test_cluster.user.delete(&kind, Some(NAMESPACE), "app", &Default::default()).await.unwrap();
            }
        }
    }

    fn is_over(self, object: Option<&Value>) -> bool {
        let Some(object) = object else { return self == Step::Uninstall };
        match self {
            Step::Install => ready_at_least(object, 1),
            Step::Upgrade => ready_at_least(object, 2),
            Step::Rollback => {
                condition(object, "Stalled")["status"] == "True"
                    && object["status"]["observedGeneration"] == object["metadata"]["generation"]
            }
            Step::Uninstall => false,
        }
    }

    /// What must be there afterwards, however it came about.
    async fn end(self, test_cluster: &TestCluster) -> Value {
        let history = history(test_cluster, "app").await;
        let deployed: Vec<_> =
            history.releases.iter().filter(|r| r.info.status == Status::Deployed).collect();
        let pending = states(&history).into_iter().filter(Status::is_pending).count();
        let ready = test_cluster.get("HelmRelease", "app").await;
        json!({
            "config maps": config_maps(test_cluster).await,
            "deployed": deployed.iter().map(|r| json!([r.manifest, r.config])).collect::<Vec<_>>(),
            "pending": pending,
            "ready": ready.map(|object| condition(&object, "Ready")["status"].clone()),
        })
    }
}

/// Waits until the process is dead or the change is through.
async fn until_dead_or_over(test_cluster: &TestCluster, step: Step) {
    let start = Instant::now();
    while !test_cluster.faults.dead() && !step.is_over(test_cluster.get("HelmRelease", "app").await.as_ref())
    {
        assert!(start.elapsed() < Duration::from_secs(3600), "{step:?} neither died nor ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until_over(test_cluster: &TestCluster, step: Step, about: &str) -> Duration {
    let start = Instant::now();
    loop {
        let object = test_cluster.get("HelmRelease", "app").await;
        if step.is_over(object.as_ref()) {
            return start.elapsed();
        }
        if start.elapsed() > Duration::from_secs(600) {
            let states = states(&history(test_cluster, "app").await);
            panic!("{about}: stuck with {states:?} at {:#}", object.unwrap_or_default()["status"]);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How long a new process may take, on the paused clock: one pass, no waiting for a retry.
const ONE_PASS: Duration = Duration::from_millis(600);

async fn survives(step: Step) {
    let undisturbed = test_cluster(1).await;
    step.prepare(&undisturbed).await;
    undisturbed.faults.take_requests();
    step.start(&undisturbed).await;
    until_over(&undisturbed, step, "undisturbed").await;
    let wanted = step.end(&undisturbed).await;
    let versions = history(&undisturbed, "app").await.releases.len();
    let requests = helm_requests(&undisturbed, counts);
    drop(undisturbed);
    for n in 1..=requests.len() as u64 {
        for served in [false, true] {
            let about =
                format!("{step:?} killed at request {n} ({}), served: {served}", requests[n as usize - 1]);
            let first = test_cluster(n).await;
            step.prepare(&first).await;
            first.faults.add(Rule::new(
                |_, path| counts(path),
                FaultSchedule::Nth(n),
                Action::Die { served },
            ));
            step.start(&first).await;
            until_dead_or_over(&first, step).await;
            let before = states(&history(&first, "app").await);
            first.stop();
            let second = restart(&first, n + 1_000).await;
            let took = until_over(&second, step, &about).await;
            assert!(took <= ONE_PASS, "{about}: took {took:?} from {before:?}");
            assert_eq!(step.end(&second).await, wanted, "{about}");
            // A release that was through is not made once more.
            if before.len() == versions && !before.iter().any(Status::is_pending) {
                assert_eq!(history(&second, "app").await.releases.len(), versions, "{about}: made twice");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_install_survives_every_crash() {
    survives(Step::Install).await;
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_survives_every_crash() {
    survives(Step::Upgrade).await;
}

#[tokio::test(start_paused = true)]
async fn a_rollback_survives_every_crash() {
    survives(Step::Rollback).await;
}

#[tokio::test(start_paused = true)]
async fn an_uninstall_survives_every_crash() {
    survives(Step::Uninstall).await;
}
