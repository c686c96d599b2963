//! The server as a tower service, for a client in the same process.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};

use super::ApiServer;
use super::dispatch::ConnectionInfo;
use crate::auth::User;
use crate::body::Body;

/// A client connection without a socket: pass it to `kube::Client::new`.
#[derive(Debug, Clone)]
pub struct InProcess {
    server: ApiServer,
    user: User,
}

impl ApiServer {
    /// A service whose requests run as `user`.
    #[must_use]
    pub fn service(&self, user: User) -> InProcess {
        InProcess { server: self.clone(), user }
    }
}

impl<B> tower::Service<Request<B>> for InProcess
where
    B: http_body::Body<Data: Send> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (server, user) = (self.server.clone(), self.user.clone());
        Box::pin(async move { Ok(server.handle(request, ConnectionInfo { user: Some(user) }).await) })
    }
}
