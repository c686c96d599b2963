//! Killed at every request, before or after the server served it: the next process ends where an undisturbed one does.

use std::time::Duration;

use fl_release::Status;
use fl_runtime::Kind;
use fl_sim::{Action, NAMESPACE, Rule, When, World, condition};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::lab::{config_maps, helm_requests, history, ready_at_least, release, restart, states, world};

/// A change that a release goes through.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    Install,
    Upgrade,
    Rollback,
    Uninstall,
}

/// What counts as a request of the engine's work: neither watches nor the events it tells.
fn counts(path: &str) -> bool {
    !path.contains("watch=true") && !path.contains("/events")
}

impl Deed {
    /// Everything up to the change.
    async fn prepare(self, world: &World) {
        if self != Deed::Install {
            world.apply(release("app", json!({}))).await;
            world.ready("HelmRelease", "app").await;
            // Let what runs beside the pass come to rest.
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    }

    /// The change.
    async fn start(self, world: &World) {
        match self {
            Deed::Install => drop(world.apply(release("app", json!({}))).await),
            Deed::Upgrade => {
                let values = json!({"values": {"color": "blue", "extra": false}});
                world.apply(release("app", values)).await;
            }
            Deed::Rollback => {
                let spec = json!({"values": {"color": "blue", "bad": true},
                    "upgrade": {"remediation": {"remediateLastFailure": true}}});
                world.apply(release("app", spec)).await;
            }
            Deed::Uninstall => {
                let kind = Kind::of::<fl_api::helm::HelmRelease>();
                world.user.delete(&kind, Some(NAMESPACE), "app", &Default::default()).await.unwrap();
            }
        }
    }

    fn is_over(self, object: Option<&Value>) -> bool {
        let Some(object) = object else { return self == Deed::Uninstall };
        match self {
            Deed::Install => ready_at_least(object, 1),
            Deed::Upgrade => ready_at_least(object, 2),
            Deed::Rollback => {
                condition(object, "Stalled")["status"] == "True"
                    && object["status"]["observedGeneration"] == object["metadata"]["generation"]
            }
            Deed::Uninstall => false,
        }
    }

    /// What must be there afterwards, however it came about.
    async fn end(self, world: &World) -> Value {
        let history = history(world, "app").await;
        let deployed: Vec<_> =
            history.releases.iter().filter(|r| r.info.status == Status::Deployed).collect();
        let pending = states(&history).into_iter().filter(Status::is_pending).count();
        let ready = world.get("HelmRelease", "app").await;
        json!({
            "config maps": config_maps(world).await,
            "deployed": deployed.iter().map(|r| json!([r.manifest, r.config])).collect::<Vec<_>>(),
            "pending": pending,
            "ready": ready.map(|object| condition(&object, "Ready")["status"].clone()),
        })
    }
}

/// Waits until the process is dead or the change is through.
async fn until_dead_or_over(world: &World, deed: Deed) {
    let start = Instant::now();
    while !world.faults.dead() && !deed.is_over(world.get("HelmRelease", "app").await.as_ref()) {
        assert!(start.elapsed() < Duration::from_secs(3600), "{deed:?} neither died nor ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until_over(world: &World, deed: Deed, about: &str) -> Duration {
    let start = Instant::now();
    loop {
        let object = world.get("HelmRelease", "app").await;
        if deed.is_over(object.as_ref()) {
            return start.elapsed();
        }
        if start.elapsed() > Duration::from_secs(600) {
            let states = states(&history(world, "app").await);
            panic!("{about}: stuck with {states:?} at {:#}", object.unwrap_or_default()["status"]);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How long a new process may take, on the paused clock: one pass, no waiting for a retry.
const ONE_PASS: Duration = Duration::from_millis(600);

async fn survives(deed: Deed) {
    let undisturbed = world(1).await;
    deed.prepare(&undisturbed).await;
    undisturbed.faults.take_requests();
    deed.start(&undisturbed).await;
    until_over(&undisturbed, deed, "undisturbed").await;
    let wanted = deed.end(&undisturbed).await;
    let versions = history(&undisturbed, "app").await.releases.len();
    let requests = helm_requests(&undisturbed, counts);
    drop(undisturbed);
    for n in 1..=requests.len() as u64 {
        for served in [false, true] {
            let about =
                format!("{deed:?} killed at request {n} ({}), served: {served}", requests[n as usize - 1]);
            let first = world(n).await;
            deed.prepare(&first).await;
            first.faults.add(Rule::new(|_, path| counts(path), When::Nth(n), Action::Die { served }));
            deed.start(&first).await;
            until_dead_or_over(&first, deed).await;
            let before = states(&history(&first, "app").await);
            first.stop();
            let second = restart(&first, n + 1_000).await;
            let took = until_over(&second, deed, &about).await;
            assert!(took <= ONE_PASS, "{about}: took {took:?} from {before:?}");
            assert_eq!(deed.end(&second).await, wanted, "{about}");
            // A release that was through is not made once more.
            if before.len() == versions && !before.iter().any(Status::is_pending) {
                assert_eq!(history(&second, "app").await.releases.len(), versions, "{about}: made twice");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_install_survives_every_crash() {
    survives(Deed::Install).await;
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_survives_every_crash() {
    survives(Deed::Upgrade).await;
}

#[tokio::test(start_paused = true)]
async fn a_rollback_survives_every_crash() {
    survives(Deed::Rollback).await;
}

#[tokio::test(start_paused = true)]
async fn an_uninstall_survives_every_crash() {
    survives(Deed::Uninstall).await;
}
