//! Write deadlines: closes a socket whose writes make no progress, and resets an HTTP/2 stream whose window
//! stays full.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Sleep;

/// A socket on which a write without progress for `limit` is an error.
pub(super) struct WriteDeadline<S> {
    socket: S,
    limit: Duration,
    /// The deadline of a pending write.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteDeadline<S> {
    pub(super) fn new(socket: S, limit: Duration) -> Self {
        Self { socket, limit, waiting: None }
    }

    fn check<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.waiting = None;
            return result;
        }
        let limit = self.limit;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        match waiting.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client does not read its answer",
            ))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteDeadline<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteDeadline<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.check(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.socket).poll_write_vectored(cx, bytes);
        self.check(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.socket).poll_flush(cx);
        self.check(cx, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.socket).poll_shutdown(cx);
        self.check(cx, result)
    }
}

/// Whether a frame of a response waits for the client. HTTP/2 polls the body for the next frame once the
/// client has made room.
#[derive(Debug, Default)]
struct Progress {
    waiting: AtomicBool,
    pieces: AtomicU64,
    began: Notify,
}

impl Progress {
    /// Resolves when a frame has waited for `limit`.
    async fn stalled(&self, limit: Duration) {
        loop {
            self.began.notified().await;
            loop {
                let seen = self.pieces.load(Ordering::Relaxed);
                tokio::time::sleep(limit).await;
                if !self.waiting.load(Ordering::Relaxed) {
                    break;
                }
                if self.pieces.load(Ordering::Relaxed) == seen {
                    return;
                }
            }
        }
    }
}

tokio::task_local! {
    static PROGRESS: Arc<Progress>;
}

/// Runs each stream of an HTTP/2 connection as a task. The task is dropped, which resets the stream, if its
/// client leaves a frame unread for too long. Other streams of the connection continue.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamExecutor {
    pub(super) limit: Duration,
}

impl<F> hyper::rt::Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        let limit = self.limit;
        let progress = Arc::new(Progress::default());
        tokio::spawn(async move {
            let running = PROGRESS.scope(progress.clone(), stream);
            tokio::select! {
                _ = running => {}
                () = progress.stalled(limit) => {}
            }
        });
    }
}

/// A response body that records when a frame is handed over and when the next one is polled.
pub(super) struct Observed<B> {
    body: B,
    progress: Option<Arc<Progress>>,
}

impl<B> Observed<B> {
    /// Must be called in the task of the stream.
    pub(super) fn new(body: B) -> Self {
        Self { body, progress: PROGRESS.try_with(Arc::clone).ok() }
    }
}

impl<B> http_body::Body for Observed<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, B::Error>>> {
        if let Some(progress) = &self.progress {
            progress.waiting.store(false, Ordering::Relaxed);
            progress.pieces.fetch_add(1, Ordering::Relaxed);
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let (Some(progress), Poll::Ready(Some(_))) = (&self.progress, &polled) {
            progress.waiting.store(true, Ordering::Relaxed);
            progress.began.notify_one();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
