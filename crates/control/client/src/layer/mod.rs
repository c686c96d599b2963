//! The tower layers of every request.
//!
//! From the outside in: the observer (metrics), the [`Fence`] of the lease, the rate limit, the user agent,
//! and the bounds of the response (deadline and size). They wrap the connection, which is private to this
//! crate.

mod bounds;
mod fence;
mod observe;
mod throttle;

use std::sync::Arc;

use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response};
use kube::client::Body;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt as _, service_fn};

pub use bounds::Limits;
pub(crate) use bounds::{Bounded, OutOfBounds};
pub use fence::Fence;
pub(crate) use fence::Fenced;
pub use observe::Observer;
pub(crate) use throttle::Throttle;

use crate::Shutdown;

const AGENT: &str = concat!("fluorite/", env!("CARGO_PKG_VERSION"));

/// Settings of requests to one API server.
#[derive(Clone, Default)]
pub struct Settings {
    pub limits: Limits,
    /// Rejects writes once the lease of this process has expired.
    pub fence: Option<Fence>,
    /// Rate limit: `--kube-api-qps`, `--kube-api-burst`.
    pub rate: Option<(f32, u32)>,
    pub observer: Option<Arc<dyn Observer>>,
    /// After the shutdown has started, requests end within a few seconds.
    pub stop: Option<Shutdown>,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("limits", &self.limits)
            .field("rate", &self.rate)
            .finish_non_exhaustive()
    }
}

/// A connection behind its layers.
pub(crate) type Stack = BoxCloneSyncService<Request<Body>, Response<Bounded>, BoxError>;

/// Puts the layers around a connection.
pub(crate) fn stack(connection: kube::Client, settings: &Settings) -> Stack {
    let rate = settings.rate.filter(|(qps, _)| *qps > 0.0);
    let throttle = rate.map(|(qps, burst)| Arc::new(Throttle::new(qps, burst)));
    let connection = service_fn(move |request: Request<Body>| {
        let connection = connection.clone();
        async move { connection.send(request).await.map_err(BoxError::from) }
    });
    let service = ServiceBuilder::new()
        .layer_fn(|inner| observe::Observed::new(inner, settings.observer.clone()))
        .layer_fn(|inner| fence::FenceService::new(inner, settings.fence.clone()))
        .layer_fn(|inner| throttle::Throttled::new(inner, throttle.clone()))
        .map_request(with_agent)
        .layer_fn(|inner| bounds::Bounds::new(inner, settings.limits, settings.stop.clone()))
        .service(connection);
    BoxCloneSyncService::new(service)
}

/// Sends one request.
pub(crate) async fn send(stack: &Stack, request: Request<Body>) -> Result<Response<Bounded>, BoxError> {
    stack.clone().oneshot(request).await
}

fn with_agent(mut request: Request<Body>) -> Request<Body> {
    request.headers_mut().entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
    request
}
