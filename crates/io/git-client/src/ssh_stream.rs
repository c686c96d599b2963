//! The TCP connection of an SSH session, with a deadline.
//!
//! The SSH library runs a session on a task of its own and keeps it as long as the server keeps the connection open, even
//! when the client has given up. A server that accepts and then sends nothing would hold a connection, a task and a
//! thread of the blocking pool for each attempt. Here the connection ends with the session, and at the latest shortly
//! after the deadline of the operation.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::Sleep;

/// How long a connection may outlive the deadline of its operation. The operation ends itself at its deadline and drops
/// the session; were the connection to end in the same instant, the error could be the lost connection instead of the
/// deadline.
const GRACE: Duration = Duration::from_secs(2);

/// Ends the connection when dropped.
#[derive(Debug)]
pub(crate) struct CloseOnDrop(#[expect(dead_code, reason = "only dropped")] oneshot::Sender<()>);

pub(crate) struct SessionStream {
    inner: TcpStream,
    deadline: Pin<Box<Sleep>>,
    closed: oneshot::Receiver<()>,
}

impl SessionStream {
    pub(crate) fn new(inner: TcpStream, timeout: Duration) -> (Self, CloseOnDrop) {
        let (sender, closed) = oneshot::channel();
        let deadline = Box::pin(tokio::time::sleep(timeout.saturating_add(GRACE)));
        (Self { inner, deadline, closed }, CloseOnDrop(sender))
    }

    /// An error once the session was dropped or its deadline has passed.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if Pin::new(&mut self.closed).poll(cx).is_ready() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if self.deadline.as_mut().poll(cx).is_ready() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "context deadline exceeded"));
        }
        Ok(())
    }
}

impl AsyncRead for SessionStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for SessionStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.inner).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
