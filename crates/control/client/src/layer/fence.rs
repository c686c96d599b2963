//! Rejects writes of a process whose lease has expired.
//!
//! A process that was paused may resume in the middle of a reconcile while another one leads. So the expiry
//! of the lease is checked before each write, not only on renewal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::future::{BoxFuture, Either, Ready, ready};
use http::{Method, Request};
use tokio::time::Instant;
use tower::{BoxError, Service};

/// The leases of a process. Clones share them; without leases all writes are allowed.
#[derive(Clone, Debug, Default)]
pub struct Fence {
    leases: Arc<Mutex<HashMap<String, Instant>>>,
}

impl Fence {
    /// Expiry of each lease on the local clock.
    pub fn holds(&self, lease: &str, until: Instant) {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner).insert(lease.to_owned(), until);
    }

    /// Records the loss of a lease.
    pub fn lost(&self, lease: &str) {
        self.holds(lease, Instant::now());
    }

    /// Whether every lease still holds.
    pub fn open(&self) -> bool {
        let now = Instant::now();
        self.leases.lock().unwrap_or_else(PoisonError::into_inner).values().all(|until| now < *until)
    }
}

/// The error of a rejected write.
#[derive(Debug, thiserror::Error)]
#[error("the lease of this process has run out; nothing is written")]
pub(crate) struct Fenced;

#[derive(Clone)]
pub(super) struct FenceService<S> {
    inner: S,
    fence: Option<Fence>,
}

impl<S> FenceService<S> {
    pub(super) fn new(inner: S, fence: Option<Fence>) -> Self {
        FenceService { inner, fence }
    }
}

impl<S, A> Service<Request<A>> for FenceService<S>
where
    S: Service<Request<A>, Error = BoxError>,
    S::Future: Send + 'static,
    S::Response: Send,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future =
        Either<Ready<Result<S::Response, BoxError>>, BoxFuture<'static, Result<S::Response, BoxError>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
        // The leases themselves may always be written.
        let lease = request.uri().path().starts_with("/apis/coordination.k8s.io/");
        let allowed = reads || lease || self.fence.as_ref().is_none_or(Fence::open);
        if allowed {
            Either::Right(Box::pin(self.inner.call(request)))
        } else {
            Either::Left(ready(Err(Fenced.into())))
        }
    }
}
