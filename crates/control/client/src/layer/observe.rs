//! Counts requests.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use tower::Service;

/// Observes every request.
pub trait Observer: Send + Sync {
    /// A request was answered with this status; 0 without a response.
    fn answered(&self, method: &str, status: u16);
}

#[derive(Clone)]
pub(super) struct Observed<S> {
    inner: S,
    observer: Option<Arc<dyn Observer>>,
}

impl<S> Observed<S> {
    pub(super) fn new(inner: S, observer: Option<Arc<dyn Observer>>) -> Self {
        Observed { inner, observer }
    }
}

impl<S, A, B> Service<Request<A>> for Observed<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (method, observer) = (request.method().clone(), self.observer.clone());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if let Some(observer) = observer {
                observer.answered(method.as_str(), answer.as_ref().map_or(0, |a| a.status().as_u16()));
            }
            answer
        })
    }
}
