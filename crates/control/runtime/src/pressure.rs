//! Work comes before telling of it: while many objects wait for their turn, what only tells of others gives way for a while.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// So long after the last sign of a crowd it is over.
const CALM: Duration = Duration::from_secs(1);

/// When there was last more to do than could be done at once. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pressure {
    last: Arc<Mutex<Option<Instant>>>,
}

impl Pressure {
    /// More wait than are worked on.
    pub(crate) fn note(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// When it will have been calm for long enough; none when it is.
    fn until(&self) -> Option<Instant> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.map(|at| at + CALM).filter(|calm| Instant::now() < *calm)
    }

    /// Waits until it is calm, not longer than to `latest`.
    pub(crate) async fn gone(&self, latest: Instant) {
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
    async fn waits_for_calm_but_not_forever() {
        let pressure = Pressure::default();
        let begin = Instant::now();
        pressure.gone(begin + Duration::from_secs(10)).await;
        assert_eq!(begin.elapsed(), Duration::ZERO);
        pressure.note();
        pressure.gone(begin + Duration::from_secs(10)).await;
        assert_eq!(begin.elapsed(), CALM);
        let crowd = async {
            loop {
                pressure.note();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let begin = Instant::now();
        tokio::select! {
            biased; // the crowd is there before anyone waits for its end
            () = crowd => {}
            () = pressure.gone(begin + Duration::from_secs(10)) => {}
        }
        assert_eq!(begin.elapsed().as_secs(), 10);
    }
}
