//! Simulated workloads: the status changes that the controllers and nodes of a cluster would make, without
//! containers.
//!
//! Pods become ready after a delay. Images and annotations make them fail:
//! - an image whose name ends in `broken`, or whose tag is `fail` or `broken`, cannot be pulled;
//! - the annotation `fluorite.dev/simulate` on a workload's pod template or a pod: `fail` (the containers
//!   crash), `pending` (never scheduled), `slow=5s` (ready after that time).

mod client;
mod cron_job;
mod daemon_set;
mod deployment;
mod job;
mod network;
mod persistent_volume_claims;
mod pods;
mod replica_set;
mod resource_quota;
mod service_accounts;
mod stateful_set;

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::server::{Inner, SimulateOptions};
use client::Client;

/// The tables whose changes trigger a run.
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

/// How long to wait for more changes before a run.
const QUIET_PERIOD: Duration = Duration::from_millis(20);

/// Starts the simulation.
pub(crate) fn start(inner: &Arc<Inner>, options: SimulateOptions) -> Vec<tokio::task::JoinHandle<()>> {
    vec![
        tokio::spawn(run(Arc::downgrade(inner), options)),
        tokio::spawn(resource_quota::run(Arc::downgrade(inner))),
    ]
}

async fn run(inner: Weak<Inner>, options: SimulateOptions) {
    let Some(strong) = inner.upgrade() else { return };
    let mut changed = strong.store.subscribe_all();
    let mut ending = strong.ending.subscribe();
    drop(strong);
    let mut seen: Vec<u64> = Vec::new();
    let mut requeue_after: Option<Duration> = None;
    loop {
        {
            let Some(inner) = inner.upgrade() else { return };
            changed.borrow_and_update();
            let now: Vec<u64> = TABLES.iter().map(|t| inner.store.last_change(t)).collect();
            if now != seen || requeue_after.is_some() {
                seen = now;
                requeue_after = reconcile_all(&inner, &options).await;
            }
        }
        let wait = requeue_after.unwrap_or(Duration::from_secs(3600));
        tokio::select! {
            r = changed.changed() => if r.is_err() { return },
            _ = ending.changed() => return,
            () = tokio::time::sleep(wait) => {}
        }
        tokio::time::sleep(QUIET_PERIOD).await;
    }
}

/// Runs every controller once. Returns when the next run is needed if nothing changes.
async fn reconcile_all(inner: &Arc<Inner>, options: &SimulateOptions) -> Option<Duration> {
    let mut client = Client::new(inner, options);
    service_accounts::run(&mut client).await;
    pods::create_nodes(&mut client).await;
    persistent_volume_claims::run(&mut client).await;
    deployment::run(&mut client).await;
    replica_set::run(&mut client).await;
    stateful_set::run(&mut client).await;
    daemon_set::run(&mut client).await;
    cron_job::run(&mut client).await;
    job::run(&mut client).await;
    pods::run(&mut client).await;
    network::run(&mut client).await;
    client.requeue_after
}
