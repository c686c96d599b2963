//! Workloads without containers: what a control plane and nodes would do to the objects, and nothing else.
//!
//! Pods become ready after a while, or fail when an image or an annotation says so:
//! - an image whose name ends in `broken`, or whose tag is `fail` or `broken`, cannot be pulled;
//! - the annotation `fluorite.dev/simulate` on a workload's pod template or a pod: `fail` (the containers crash),
//!   `pending` (never scheduled), `slow=5s` (ready after that time).

mod accounts;
mod cron;
mod daemon;
mod deployment;
mod job;
mod network;
mod pods;
mod quota;
mod replicas;
mod stateful;
mod volume;
mod world;

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::server::{Inner, SimulateOptions};
use world::World;

/// The tables a change of which is worth a look.
const TABLES: [&str; 12] = [
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
    "apps/daemonsets",
    "batch/jobs",
    "batch/cronjobs",
    "/pods",
    "/persistentvolumeclaims",
    "/services",
    "/nodes",
    "/namespaces",
    "/resourcequotas",
];

/// How long to wait for more changes before looking.
const BURST: Duration = Duration::from_millis(20);

/// Starts the simulation.
pub(crate) fn start(inner: &Arc<Inner>, options: SimulateOptions) -> Vec<tokio::task::JoinHandle<()>> {
    vec![tokio::spawn(run(Arc::downgrade(inner), options)), tokio::spawn(quota::run(Arc::downgrade(inner)))]
}

async fn run(inner: Weak<Inner>, options: SimulateOptions) {
    let Some(strong) = inner.upgrade() else { return };
    let mut changed = strong.store.subscribe_all();
    let mut ending = strong.ending.subscribe();
    drop(strong);
    let mut seen: Vec<u64> = Vec::new();
    let mut due: Option<Duration> = None;
    loop {
        {
            let Some(inner) = inner.upgrade() else { return };
            changed.borrow_and_update();
            let now: Vec<u64> = TABLES.iter().map(|t| inner.store.last_change(t)).collect();
            if now != seen || due.is_some() {
                seen = now;
                due = pass(&inner, &options).await;
            }
        }
        let wait = due.unwrap_or(Duration::from_secs(3600));
        tokio::select! {
            r = changed.changed() => if r.is_err() { return },
            _ = ending.changed() => return,
            () = tokio::time::sleep(wait) => {}
        }
        tokio::time::sleep(BURST).await;
    }
}

/// One look at everything. Returns when the next one is due if nothing changes.
async fn pass(inner: &Arc<Inner>, options: &SimulateOptions) -> Option<Duration> {
    let mut world = World::new(inner, options);
    accounts::run(&mut world).await;
    pods::nodes(&mut world).await;
    volume::run(&mut world).await;
    deployment::run(&mut world).await;
    replicas::run(&mut world).await;
    stateful::run(&mut world).await;
    daemon::run(&mut world).await;
    cron::run(&mut world).await;
    job::run(&mut world).await;
    pods::run(&mut world).await;
    network::run(&mut world).await;
    world.due
}
