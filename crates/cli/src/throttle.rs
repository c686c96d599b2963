//! `--kube-api-qps` and `--kube-api-burst`: a limit on requests to the API server, as client-go has it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;
use tower::{Layer, Service};

/// Delays requests that come faster than allowed.
#[derive(Clone)]
pub(crate) struct Throttle(Option<Arc<Bucket>>);

struct Bucket {
    /// Time that one request uses up.
    each: Duration,
    /// Time that may be used up in advance.
    burst: Duration,
    /// When all requests so far are paid for.
    paid: Mutex<Instant>,
}

impl Throttle {
    /// No limit when `qps` is not positive.
    pub(crate) fn new(qps: f64, burst: i64) -> Self {
        let each = (qps > 0.0).then(|| Duration::try_from_secs_f64(1.0 / qps).unwrap_or_default());
        let more = u32::try_from((burst - 1).max(0)).unwrap_or(u32::MAX);
        Throttle(each.map(|each| {
            let burst = each.saturating_mul(more);
            Arc::new(Bucket { each, burst, paid: Mutex::new(Instant::now()) })
        }))
    }
}

impl Bucket {
    /// When the next request may be sent.
    fn take(&self, now: Instant) -> Instant {
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        let start = (*paid).max(now);
        *paid = start + self.each;
        start.checked_sub(self.burst).map_or(now, |at| at.max(now))
    }
}

impl<S> Layer<S> for Throttle {
    type Service = Throttled<S>;

    fn layer(&self, inner: S) -> Throttled<S> {
        Throttled { bucket: self.0.clone(), inner }
    }
}

/// A service behind a [`Throttle`].
pub(crate) struct Throttled<S> {
    bucket: Option<Arc<Bucket>>,
    inner: S,
}

impl<S, R> Service<R> for Throttled<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let at = self.bucket.as_ref().map(|bucket| bucket.take(Instant::now()));
        // Nothing is sent before the answer is awaited.
        let answer = self.inner.call(request);
        Box::pin(async move {
            if let Some(at) = at {
                tokio::time::sleep_until(at).await;
            }
            answer.await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_beyond_the_burst_wait() {
        let Throttle(Some(bucket)) = Throttle::new(10.0, 3) else { panic!("a limit") };
        let now = Instant::now() + Duration::from_secs(60);
        let waits: Vec<u128> = (0..6).map(|_| (bucket.take(now) - now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
        // After a pause the burst is there again.
        let later = now + Duration::from_secs(10);
        assert_eq!(bucket.take(later), later);
        assert!(Throttle::new(-1.0, 3).0.is_none());
    }
}
