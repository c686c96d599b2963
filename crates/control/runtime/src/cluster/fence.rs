//! Nothing is written by a process whose lease has run out.
//!
//! A process that was paused goes on in the middle of a pass and does not know yet that another one leads. So the time of its leases
//! is looked at before each write, not only where they are renewed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Service};

/// The leases a process works under. Clones share them; one without leases stops nothing.
#[derive(Clone, Debug, Default)]
pub struct Fence {
    leases: Arc<Mutex<HashMap<String, Instant>>>,
}

impl Fence {
    /// A lease holds until then, on our own clock.
    pub(crate) fn holds(&self, lease: &str, until: Instant) {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner).insert(lease.to_owned(), until);
    }

    /// A lease is no longer ours.
    pub(crate) fn lost(&self, lease: &str) {
        self.holds(lease, Instant::now());
    }

    /// Whether every lease still holds.
    pub fn open(&self) -> bool {
        let now = Instant::now();
        self.leases.lock().unwrap_or_else(PoisonError::into_inner).values().all(|until| now < *until)
    }

    /// The same client, which refuses writes while the fence is closed. Leases themselves may always be written.
    pub fn around(&self, client: kube::Client) -> kube::Client {
        let namespace = client.default_namespace().to_owned();
        kube::Client::new(Fenced { client, fence: self.clone() }, namespace)
    }
}

#[derive(Clone)]
struct Fenced {
    client: kube::Client,
    fence: Fence,
}

impl Service<Request<Body>> for Fenced {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Fenced { client, fence } = self.clone();
        Box::pin(async move {
            let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
            let lease = request.uri().path().starts_with("/apis/coordination.k8s.io/");
            if !reads && !lease && !fence.open() {
                return Err("the lease of this process has run out; nothing is written".into());
            }
            client.send(request).await.map_err(Into::into)
        })
    }
}
