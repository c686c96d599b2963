//! Deadline and size limit of every response.
//!
//! An API server that never answers must not block a worker, and one that sends without end must not exhaust
//! memory: the kubeconfig of a tenant names a server that the tenant controls.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use http_body::{Body as HttpBody, Frame};
use kube::client::Body;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::{BoxError, Service};

use crate::{Deadline, Shutdown};

/// How long a request may go on after the shutdown has started.
const STOPPING: Duration = Duration::from_secs(5);

/// Limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Until the answer is complete; for a watch, until it begins.
    pub answer: Duration,
    /// A watch with bookmarks that is silent for longer is broken: bookmarks come about once a minute.
    pub silence: Duration,
    /// Bytes of an answer; for a watch, of one event.
    pub bytes: usize,
}

impl Limits {
    /// For the engine's own API server, whose lists may be long.
    pub const OWN: Limits =
        Limits { answer: Duration::from_secs(60), silence: Duration::from_secs(330), bytes: 256 << 20 };

    /// For an API server that a tenant names.
    pub const REMOTE: Limits = Limits { bytes: 32 << 20, ..Limits::OWN };
}

impl Default for Limits {
    fn default() -> Self {
        Limits::OWN
    }
}

/// The error of a response that was cut off.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum OutOfBounds {
    #[error("no answer within {0:?}")]
    Deadline(Duration),
    #[error("an answer of more than {0} bytes")]
    Size(usize),
}

#[derive(Clone)]
pub(super) struct Bounds<S> {
    inner: S,
    limits: Limits,
    stop: Option<Shutdown>,
}

impl<S> Bounds<S> {
    pub(super) fn new(inner: S, limits: Limits, stop: Option<Shutdown>) -> Self {
        Bounds { inner, limits, stop }
    }
}

/// Whether the response is a stream, and whether it has bookmarks.
fn stream(uri: &Uri) -> Option<Stream> {
    let mut pairs = uri.query().unwrap_or_default().split('&');
    let endless = pairs.any(|pair| matches!(pair, "watch=true" | "watch=1" | "follow=true"));
    let bookmarks = || uri.query().is_some_and(|q| q.contains("allowWatchBookmarks=true"));
    endless.then(|| if bookmarks() { Stream::Bookmarks } else { Stream::Plain })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Bookmarks,
    Plain,
}

impl<S> Service<Request<Body>> for Bounds<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<Bounded>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Bounded>, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let limits = self.limits;
        let stream = stream(request.uri());
        // The earlier of the request's own deadline and that of the step it belongs to.
        let own = Deadline { at: Instant::now() + limits.answer, limit: limits.answer };
        let step = request.extensions().get::<Deadline>().copied();
        let Deadline { at: until, limit } = step.filter(|step| step.at < own.at).unwrap_or(own);
        let stop = self.stop.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = tokio::select! {
                biased;
                answer = answer => answer?,
                () = sleep_until(until) => return Err(OutOfBounds::Deadline(limit).into()),
                () = stopping(stop) => return Err(OutOfBounds::Deadline(STOPPING).into()),
            };
            let timer = match stream {
                None => Some(Box::pin(sleep_until(until))),
                Some(Stream::Bookmarks) => Some(Box::pin(tokio::time::sleep(limits.silence))),
                Some(Stream::Plain) => None,
            };
            let limit = if stream.is_none() { limit } else { limits.silence };
            Ok(response.map(|inner| Bounded { inner, timer, limit, stream, bytes: limits.bytes, seen: 0 }))
        })
    }
}

/// Resolves a little after the shutdown has started.
async fn stopping(stop: Option<Shutdown>) {
    match stop {
        Some(stop) => {
            stop.stopped().await;
            tokio::time::sleep(STOPPING).await;
        }
        None => std::future::pending().await,
    }
}

/// The body of an answer within its bounds.
pub(crate) struct Bounded {
    inner: Body,
    timer: Option<Pin<Box<Sleep>>>,
    limit: Duration,
    stream: Option<Stream>,
    bytes: usize,
    /// Bytes so far; in a stream, since the end of the last line.
    seen: usize,
}

impl Bounded {
    fn count(&mut self, data: &Bytes) -> Result<(), OutOfBounds> {
        match data.iter().rposition(|b| *b == b'\n').filter(|_| self.stream.is_some()) {
            Some(end) => self.seen = data.len() - end - 1,
            None => self.seen += data.len(),
        }
        if self.seen > self.bytes { Err(OutOfBounds::Size(self.bytes)) } else { Ok(()) }
    }
}

impl HttpBody for Bounded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        // Polled first: a slow body must not extend the deadline.
        if let Some(Poll::Ready(())) = this.timer.as_mut().map(|timer| timer.as_mut().poll(cx)) {
            return Poll::Ready(Some(Err(OutOfBounds::Deadline(this.limit).into())));
        }
        match Pin::new(&mut this.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref()
                    && let Err(error) = this.count(data)
                {
                    return Poll::Ready(Some(Err(error.into())));
                }
                if let Some(timer) = this.timer.as_mut().filter(|_| this.stream.is_some()) {
                    timer.as_mut().reset(Instant::now() + this.limit);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(other) => Poll::Ready(other.map(|frame| frame.map_err(BoxError::from))),
            Poll::Pending => Poll::Pending,
        }
    }
}
