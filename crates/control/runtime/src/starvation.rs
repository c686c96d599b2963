//! Detects controllers with queued objects and no free worker, for readiness.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::controller::Driver;

/// Requests have a deadline of a minute, so a worker is free long before this unless something is wrong.
const LIMIT: Duration = Duration::from_secs(180);

/// Since when each controller with queued objects has had no free worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Starvation {
    since: Arc<Mutex<HashMap<&'static str, Instant>>>,
}

impl Starvation {
    /// Waits for a worker of a controller.
    pub(crate) async fn watched<T>(&self, driver: &dyn Driver, worker: impl Future<Output = T>) -> T {
        let mut worker = std::pin::pin!(worker);
        if let Some(worker) = futures::FutureExt::now_or_never(worker.as_mut()) {
            return worker;
        }
        self.since().insert(driver.controller(), Instant::now());
        let worker = worker.await;
        self.since().remove(driver.controller());
        worker
    }

    /// The controllers without a free worker for too long, and since when.
    pub(crate) fn found(&self) -> Vec<(&'static str, Duration)> {
        let since = self.since();
        let waited = since.iter().map(|(controller, since)| (*controller, since.elapsed()));
        waited.filter(|(_, waited)| *waited >= LIMIT).collect()
    }

    fn since(&self) -> std::sync::MutexGuard<'_, HashMap<&'static str, Instant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
