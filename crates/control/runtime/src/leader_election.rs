//! Leader election over a Lease, compatible with Flux's controllers: same names, same times.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::Digest as _;
use tokio::time::Instant;

use crate::log::Log;
use fl_client::Kind;
use fl_client::Shutdown;
use fl_client::{Client, Error as ClientError, Fence, Write};

/// Durations of a lease, and whether it is released on shutdown.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub lease: Duration,
    pub renew: Duration,
    pub retry: Duration,
    /// Release the lease on shutdown, so that the next leader need not wait for it to expire.
    pub release: bool,
}

impl Default for Times {
    fn default() -> Self {
        Times {
            lease: Duration::from_secs(35),
            renew: Duration::from_secs(30),
            retry: Duration::from_secs(5),
            release: true,
        }
    }
}

/// The lease of a controller: `<controller>-leader-election`, with a suffix for shards.
pub fn lease_name(controller: &str, label_selector: &str) -> String {
    let name = format!("{controller}-leader-election");
    if label_selector.is_empty() {
        return name;
    }
    let sum = sha2::Sha256::digest(label_selector.as_bytes());
    let hex: String = sum[..4].iter().map(|b| format!("{b:02x}")).collect();
    format!("{name}-{hex}")
}

/// A candidate for a lease, or its holder.
#[derive(Debug)]
pub struct Election {
    cluster: Client,
    namespace: String,
    name: String,
    identity: String,
    times: Times,
    log: Log,
    fence: Fence,
    /// The last record of another holder and when it was first observed here: clocks of other machines are
    /// not trusted.
    seen: Option<(String, Instant)>,
}

impl Election {
    pub fn new(cluster: Client, namespace: &str, name: &str, identity: &str, times: Times, log: Log) -> Self {
        let cluster_fence = cluster.fence().cloned().unwrap_or_default();
        Election {
            cluster,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            times,
            log,
            fence: cluster_fence,
            seen: None,
        }
    }

    /// Waits until this process leads. The fence of the client opens then, and closes when the lease is not
    /// renewed in time. `standing_by` is called once the API server has answered that another process leads.
    pub async fn win(&mut self, standing_by: &AtomicBool) {
        self.fence.lost(&self.name);
        loop {
            match self.try_once().await {
                Ok(true) => return,
                Ok(false) => standing_by.store(true, Ordering::Relaxed),
                Err(error) => {
                    standing_by.store(false, Ordering::Relaxed);
                    self.log.error(&error.to_string(), "the lease cannot be had, trying again");
                }
            }
            tokio::time::sleep(self.times.retry).await;
        }
    }

    /// Renews the lease until renewal fails for longer than the renew deadline; no write may follow. On
    /// shutdown it returns with the lease still held: [`Election::release`] gives it up after the last write.
    pub async fn hold(mut self, stop: &Shutdown) -> Option<Self> {
        let mut renewed = Instant::now();
        loop {
            tokio::select! {
                () = stop.stopped() => return Some(self),
                () = tokio::time::sleep(self.times.retry) => {}
            }
            match tokio::time::timeout(self.times.retry, self.try_once()).await {
                Ok(Ok(true)) => renewed = Instant::now(),
                Ok(Ok(false)) => {
                    self.fence.lost(&self.name);
                    self.log.error("another process leads", "leader election lost");
                    return None;
                }
                Ok(Err(error)) => {
                    self.log.error(&error.to_string(), "the lease cannot be renewed, trying again");
                }
                Err(_) => {}
            }
            if renewed.elapsed() > self.times.renew {
                self.log.error("the lease could not be renewed in time", "leader election lost");
                return None;
            }
        }
    }

    /// Releases the lease, if configured, so that another process can lead at once. No write may follow.
    pub async fn release(mut self) {
        self.fence.lost(&self.name);
        if self.times.release {
            let _ = self.write_released().await;
        }
    }

    /// The deadline counts from before the request and the other candidates count from after it, so this
    /// process stops before another can start.
    async fn try_once(&mut self) -> Result<bool, ClientError> {
        let began = Instant::now();
        let ours = self.attempt().await?;
        if ours {
            self.fence.holds(&self.name, began + self.times.renew);
        }
        Ok(ours)
    }

    /// Acquires or renews the lease; `false` while another process holds it.
    async fn attempt(&mut self) -> Result<bool, ClientError> {
        let kind = Kind::lease();
        let now = micro(jiff::Timestamp::now());
        let seconds = self.times.lease.as_secs();
        let found = match self.cluster.get(&kind, Some(&self.namespace), &self.name).await {
            Ok(lease) => lease,
            Err(error) if error.is_not_found() => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {"name": self.name, "namespace": self.namespace},
                    "spec": {"holderIdentity": self.identity, "leaseDurationSeconds": seconds,
                             "acquireTime": now, "renewTime": now, "leaseTransitions": 0},
                });
                let made = self.cluster.create(&kind, Some(&self.namespace), &lease, &Write::default()).await;
                return match made {
                    Ok(_) => Ok(true),
                    Err(error) if error.already_exists() => Ok(false),
                    Err(error) => Err(error),
                };
            }
            Err(error) => return Err(error),
        };
        let spec = &found["spec"];
        let holder = spec["holderIdentity"].as_str().unwrap_or_default();
        let ours = holder == self.identity;
        if !ours && !holder.is_empty() {
            let mark = format!("{holder} {}", spec["renewTime"]);
            let fresh = self.seen.as_ref().is_none_or(|(known, _)| *known != mark);
            if fresh {
                self.seen = Some((mark, Instant::now()));
            }
            let theirs = Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or(seconds));
            if self.seen.as_ref().is_some_and(|(_, at)| at.elapsed() < theirs) {
                return Ok(false);
            }
        }
        let mut lease = found.clone();
        lease["spec"]["holderIdentity"] = self.identity.clone().into();
        lease["spec"]["leaseDurationSeconds"] = seconds.into();
        lease["spec"]["renewTime"] = now.clone().into();
        if !ours {
            lease["spec"]["acquireTime"] = now.into();
            lease["spec"]["leaseTransitions"] =
                (spec["leaseTransitions"].as_i64().unwrap_or_default() + 1).into();
        }
        self.put(&lease).await
    }

    async fn write_released(&mut self) -> Result<bool, ClientError> {
        let mut lease = self.cluster.get(&Kind::lease(), Some(&self.namespace), &self.name).await?;
        if lease["spec"]["holderIdentity"] != self.identity.as_str() {
            return Ok(false);
        }
        lease["spec"]["holderIdentity"] = "".into();
        lease["spec"]["leaseDurationSeconds"] = 1.into();
        lease["spec"]["renewTime"] = micro(jiff::Timestamp::now()).into();
        self.put(&lease).await
    }

    /// Replaces the lease at the resourceVersion that was read: of two candidates, one succeeds.
    async fn put(&self, lease: &Value) -> Result<bool, ClientError> {
        let kind = Kind::lease();
        match self.cluster.replace(&kind, Some(&self.namespace), &self.name, lease, &Write::default()).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn micro(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_leases() {
        assert_eq!(lease_name("source-controller", ""), "source-controller-leader-election");
        assert_eq!(
            lease_name("source-controller", "sharding.fluxcd.io/key=shard1"),
            "source-controller-leader-election-73fdc1be"
        );
    }
}
