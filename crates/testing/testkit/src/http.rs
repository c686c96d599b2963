//! A minimal HTTP client for tests: one request per connection, over TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

/// An answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The `Warning` headers.
    pub warnings: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// Whether the status is 2xx.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as JSON; null when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The message of an error, or the whole body.
    #[must_use]
    pub fn message(&self) -> String {
        match self.json()["message"].as_str() {
            Some(message) => message.to_owned(),
            None => String::from_utf8_lossy(&self.body).into_owned(),
        }
    }
}

/// TLS that trusts one authority.
pub(crate) fn tls(authority_der: &[u8]) -> anyhow::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(authority_der.to_vec()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// One request.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) token: &'a str,
    pub(crate) content_type: &'a str,
    pub(crate) body: &'a [u8],
}

/// Sends a request to a port of this machine and reads the answer to its end.
pub(crate) fn send(tls: &Arc<ClientConfig>, port: u16, request: &Request<'_>) -> anyhow::Result<Response> {
    let socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    let connection = ClientConnection::new(Arc::clone(tls), ServerName::try_from("localhost")?)?;
    let mut stream = StreamOwned::new(connection, socket);
    let head = format!(
        "{} {} HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer {}\r\nAccept: application/json\r\n\
         Content-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        request.method,
        request.path,
        request.token,
        request.content_type,
        request.body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(request.body)?;
    stream.flush()?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // The server may close without TLS's goodbye; the framing below tells whether something is missing.
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => Err(error.into()),
        _ => parse(&answer),
    }
}

fn parse(answer: &[u8]) -> anyhow::Result<Response> {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").context("the answer has no end of headers")?;
    let head = std::str::from_utf8(&answer[..end])?;
    let body = &answer[end + 4..];
    let mut lines = head.split("\r\n");
    let status =
        lines.next().and_then(|l| l.split(' ').nth(1)).context("the answer has no status")?.parse()?;
    let headers = lines.filter_map(|l| l.split_once(':')).map(|(k, v)| (k.to_ascii_lowercase(), v.trim()));
    let headers = headers.collect::<Vec<_>>();
    let header = |name: &str| headers.iter().find(|(k, _)| k == name).map(|(_, v)| *v);
    let body = if header("transfer-encoding") == Some("chunked") {
        unchunk(body)?
    } else {
        let length = header("content-length").map(str::parse::<usize>).transpose()?;
        if length.is_some_and(|l| l > body.len()) {
            bail!("the answer ended early");
        }
        body.to_vec()
    };
    let warnings = headers.iter().filter(|(k, _)| k == "warning").map(|(_, v)| (*v).to_owned()).collect();
    Ok(Response { status, warnings, body })
}

fn unchunk(mut rest: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|w| w == b"\r\n").context("the answer ended early")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line])?.trim(), 16)?;
        rest = &rest[line + 2..];
        if size == 0 {
            return Ok(body);
        }
        body.extend(rest.get(..size).context("the answer ended early")?);
        rest = rest.get(size + 2..).context("the answer ended early")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_framings() {
        let plain = parse(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nWarning: 299 - \"old\"\r\n\r\n{}")
            .expect("plain");
        assert_eq!((plain.status, plain.body.as_slice()), (200, &b"{}"[..]));
        assert_eq!(plain.warnings, ["299 - \"old\""]);
        let chunked =
            b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
        let chunked = parse(chunked).expect("chunked");
        assert_eq!((chunked.status, chunked.body.as_slice()), (404, &b"abcd"[..]));
        assert!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}").is_err());
    }
}
