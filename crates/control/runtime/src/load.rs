//! Detects load: while many objects are queued, writes that only report (progress, normal events) are
//! delayed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long the queue must be short before load counts as over.
const QUIET_PERIOD: Duration = Duration::from_secs(1);

/// When more objects were queued than could be reconciled at once, most recently. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    last: Arc<Mutex<Option<Instant>>>,
}

impl Load {
    /// Records that more objects are queued than are being reconciled.
    pub(crate) fn record(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// When the quiet period ends; none if it is over.
    fn until(&self) -> Option<Instant> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.map(|at| at + QUIET_PERIOD).filter(|calm| Instant::now() < *calm)
    }

    /// Waits for the end of the quiet period, until `latest` at most.
    pub(crate) async fn wait_until_quiet(&self, latest: Instant) {
        while let Some(calm) = self.until() {
            tokio::time::sleep_until(calm.min(latest)).await;
            if Instant::now() >= latest {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn quiet_period_has_an_upper_bound() {
        let load = Load::default();
        let begin = Instant::now();
        load.wait_until_quiet(begin + Duration::from_secs(10)).await;
        assert_eq!(begin.elapsed(), Duration::ZERO);
        load.record();
        load.wait_until_quiet(begin + Duration::from_secs(10)).await;
        assert_eq!(begin.elapsed(), QUIET_PERIOD);
        let busy = async {
            loop {
                load.record();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let begin = Instant::now();
        tokio::select! {
            biased; // polled first: load is recorded before the wait starts
            () = busy => {}
            () = load.wait_until_quiet(begin + Duration::from_secs(10)) => {}
        }
        assert_eq!(begin.elapsed().as_secs(), 10);
    }
}
