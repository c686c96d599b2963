//! The server on a socket.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::ApiServer;
use super::dispatch::Peer;
use super::lanes::Lanes;
use super::pki::Pki;
use crate::auth::User;

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
    tls: Option<TlsAcceptor>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("socket", &self.socket).field("tls", &self.tls.is_some()).finish()
    }
}

impl Listener {
    /// Binds with TLS, or without on a loopback address when there are no certificates.
    pub async fn bind(address: SocketAddr, pki: Option<&Pki>) -> Result<Self, ListenError> {
        if pki.is_none() && !address.ip().is_loopback() {
            return Err(ListenError::PlainHttp(address));
        }
        let tls = match pki {
            Some(pki) => Some(TlsAcceptor::from(Arc::new(pki.server_config()?))),
            None => None,
        };
        let socket =
            TcpListener::bind(address).await.map_err(|source| ListenError::Bind { address, source })?;
        Ok(Self { socket, tls })
    }

    /// Where clients find it.
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

    /// Serves until the future is dropped; open connections end with it.
    pub async fn serve(self, server: ApiServer) {
        let lanes = Lanes::start();
        loop {
            let Ok((stream, _)) = self.socket.accept().await else {
                // Out of file descriptors, most likely: let some close.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            };
            let _ = stream.set_nodelay(true);
            let (server, tls) = (server.clone(), self.tls.clone());
            // The socket belongs to the event loop that accepted it: it is taken out of that one first.
            let Ok(stream) = stream.into_std() else { continue };
            lanes.run(move || async move {
                if let Ok(stream) = TcpStream::from_std(stream) {
                    connection(stream, tls, server).await;
                }
            });
        }
    }
}

impl Pki {
    /// How the server speaks TLS: certificates of clients are verified where they come with one.
    pub fn server_config(&self) -> Result<rustls::ServerConfig, ListenError> {
        let text = |e: rustls::pki_types::pem::Error| ListenError::Tls(e.to_string());
        let refused = |e: rustls::Error| ListenError::Tls(e.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.ca.certificate.as_bytes()).map_err(text)?)
            .map_err(refused)?;
        let verifier =
            rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .allow_unauthenticated()
                .build()
                .map_err(|e| ListenError::Tls(e.to_string()))?;
        let chain = vec![CertificateDer::from_pem_slice(self.server.certificate.as_bytes()).map_err(text)?];
        let key = PrivateKeyDer::from_pem_slice(self.server.key.as_bytes()).map_err(text)?;
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(refused)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(refused)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, server: ApiServer) {
    match tls {
        None => serve(stream, Peer::default(), server).await,
        Some(acceptor) => {
            let handshake = tokio::time::timeout(std::time::Duration::from_secs(10), acceptor.accept(stream));
            let Ok(Ok(stream)) = handshake.await else { return };
            let user =
                stream.get_ref().1.peer_certificates().and_then(<[_]>::first).and_then(certificate_user);
            serve(stream, Peer { user }, server).await;
        }
    }
}

async fn serve<S>(stream: S, peer: Peer, server: ApiServer)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = hyper::service::service_fn(move |request| {
        let (server, peer) = (server.clone(), peer.clone());
        async move {
            let answer = server.handle(request, peer).await;
            super::lanes::answered();
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(std::time::Duration::from_secs(30))
        .max_buf_size(64 << 10);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(250)
        .max_header_list_size(64 << 10)
        .keep_alive_interval(std::time::Duration::from_secs(60));
    // A client that goes away or misbehaves ends its own connection only.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

/// Common name and organizations of a verified certificate are user and groups.
fn certificate_user(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let mut groups: Vec<String> =
        subject.iter_organization().filter_map(|o| o.as_str().ok()).map(str::to_owned).collect();
    groups.push("system:authenticated".to_owned());
    Some(User { name, groups, ..User::default() })
}
