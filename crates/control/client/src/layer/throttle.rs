//! The client-side rate limit, for servers without API priority and fairness.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Request;
use tokio::time::Instant;
use tower::Service;

/// A token bucket that fills at a steady rate.
#[derive(Debug)]
pub(crate) struct Throttle {
    per_second: f64,
    burst: f64,
    state: Mutex<(f64, Instant)>,
}

impl Throttle {
    pub(super) fn new(qps: f32, burst: u32) -> Self {
        let burst = f64::from(burst.max(1));
        Throttle { per_second: f64::from(qps), burst, state: Mutex::new((burst, Instant::now())) }
    }

    /// Takes a token, waiting in order of arrival.
    pub(super) async fn wait(&self) {
        let debt = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let filled = state.0 + now.duration_since(state.1).as_secs_f64() * self.per_second;
            // Below zero, the token is borrowed and later callers wait longer.
            *state = (filled.min(self.burst) - 1.0, now);
            -state.0
        };
        if debt > 0.0 {
            tokio::time::sleep(Duration::from_secs_f64(debt / self.per_second)).await;
        }
    }
}

#[derive(Clone)]
pub(super) struct Throttled<S> {
    inner: S,
    throttle: Option<Arc<Throttle>>,
}

impl<S> Throttled<S> {
    pub(super) fn new(inner: S, throttle: Option<Arc<Throttle>>) -> Self {
        Throttled { inner, throttle }
    }
}

impl<S, A> Service<Request<A>> for Throttled<S>
where
    S: Service<Request<A>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Response: 'static,
    S::Error: 'static,
    A: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let Some(throttle) = self.throttle.clone() else { return Box::pin(self.inner.call(request)) };
        // Call the service instance that was polled ready.
        let next = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, next);
        Box::pin(async move {
            throttle.wait().await;
            ready.call(request).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn holds_the_rate() {
        let throttle = Throttle::new(10.0, 5);
        let start = Instant::now();
        for _ in 0..25 {
            throttle.wait().await;
        }
        let took = start.elapsed().as_secs_f64();
        assert!((1.9..2.2).contains(&took), "{took}");
    }
}
