//! The server on a TCP socket.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use super::ApiServer;
use super::connection_threads::ConnectionThreads;
use super::dispatch::ConnectionInfo;
use super::limits::Limits;
use super::pki::Pki;
use super::tls::{ServingCertificate, Tls};
use super::write_deadline::{Observed, StreamExecutor, WriteDeadline};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    #[error("cannot listen on {address}")]
    Bind {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("plain HTTP is for loopback addresses only, {0} is not one")]
    PlainHttp(SocketAddr),
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

/// A bound socket.
pub struct Listener {
    socket: TcpListener,
    tls: Option<Tls>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("socket", &self.socket).field("tls", &self.tls.is_some()).finish()
    }
}

impl Listener {
    /// Binds with TLS; without certificates only a loopback address is allowed.
    pub async fn bind(address: SocketAddr, pki: Option<&Pki>) -> Result<Self, ListenError> {
        if pki.is_none() && !address.ip().is_loopback() {
            return Err(ListenError::PlainHttp(address));
        }
        let tls = match pki {
            Some(pki) => Some(Tls::new(pki)?),
            None => None,
        };
        let socket =
            TcpListener::bind(address).await.map_err(|source| ListenError::Bind { address, source })?;
        Ok(Self { socket, tls })
    }

    /// The serving certificate, which can be replaced when it is renewed; `None` without TLS.
    #[must_use]
    pub fn certificate(&self) -> Option<ServingCertificate> {
        self.tls.as_ref().map(|tls| tls.certificate.clone())
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        match self.socket.local_addr() {
            Ok(address) if address.ip().is_unspecified() => {
                format!("{scheme}://127.0.0.1:{}", address.port())
            }
            Ok(address) => format!("{scheme}://{address}"),
            Err(_) => format!("{scheme}://127.0.0.1"),
        }
    }

    /// Serves until the future is dropped, which also ends open connections.
    pub async fn serve(self, server: ApiServer) {
        let threads = ConnectionThreads::start();
        let limits = server.inner.options.limits.clone();
        let connections = Arc::new(tokio::sync::Semaphore::new(limits.connections));
        loop {
            let Ok((stream, _)) = self.socket.accept().await else {
                // Most likely out of file descriptors: wait until some are closed.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            };
            // Above the limit new connections are closed; open ones continue.
            let Ok(slot) = connections.clone().try_acquire_owned() else { continue };
            let _ = stream.set_nodelay(true);
            let (server, tls) = (server.clone(), self.tls.clone());
            // The socket is registered with the event loop that accepted it, and must be deregistered first.
            let Ok(stream) = stream.into_std() else { continue };
            threads.run(move || async move {
                if let Ok(stream) = TcpStream::from_std(stream) {
                    connection(stream, tls, server).await;
                }
                drop(slot);
            });
        }
    }
}

async fn connection(stream: TcpStream, tls: Option<Tls>, server: ApiServer) {
    let stream = WriteDeadline::new(stream, server.inner.options.limits.write_timeout);
    match tls {
        None => serve(stream, ConnectionInfo::default(), server).await,
        Some(tls) => {
            let handshake = tls.acceptor.accept(stream);
            let handshake = tokio::time::timeout(std::time::Duration::from_secs(10), handshake);
            let Ok(Ok(stream)) = handshake.await else { return };
            let user = tls.user(stream.get_ref().1.peer_certificates());
            serve(stream, ConnectionInfo { user }, server).await;
        }
    }
}

async fn serve<S>(stream: S, peer: ConnectionInfo, server: ApiServer)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let Limits { header_timeout, write_timeout, .. } = server.inner.options.limits;
    let service = hyper::service::service_fn(move |request| {
        let (server, peer) = (server.clone(), peer.clone());
        async move {
            let answer = server.handle(request, peer).await;
            Ok::<_, std::convert::Infallible>(answer.map(Observed::new))
        }
    });
    let mut builder = hyper_util::server::conn::auto::Builder::new(StreamExecutor { limit: write_timeout });
    builder.http1().timer(TokioTimer::new()).header_read_timeout(header_timeout).max_buf_size(64 << 10);
    // The windows bound the bytes that a client can make the server buffer. Small ones are sufficient on
    // local networks, and a body of the maximum size still takes only a few round trips.
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(250)
        .max_header_list_size(64 << 10)
        .initial_stream_window_size(256 << 10)
        .initial_connection_window_size(1 << 20)
        .max_send_buf_size(128 << 10)
        .keep_alive_interval(std::time::Duration::from_secs(60));
    // An error ends only the connection of this client.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}
