//! Webhook calls: one POST of a JSON document over TLS, to a URL or an endpoint of a service.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;

use crate::object;
use crate::server::Inner;
use crate::verbs::decode;

/// Maximum bytes of a response.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// The `clientConfig` of a webhook.
#[derive(Debug)]
pub(crate) struct Remote {
    endpoint: Endpoint,
    ca: Vec<u8>,
    tls: OnceLock<Result<Arc<rustls::ClientConfig>, String>>,
}

#[derive(Debug)]
enum Endpoint {
    Url(String),
    Service { namespace: String, name: String, port: u64, path: String },
}

impl Remote {
    pub(crate) fn read(config: &Value) -> Self {
        let text =
            |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let endpoint = match config.get("url").and_then(Value::as_str) {
            Some(url) => Endpoint::Url(url.to_owned()),
            None => Endpoint::Service {
                namespace: text("/service/namespace"),
                name: text("/service/name"),
                port: config.pointer("/service/port").and_then(Value::as_u64).unwrap_or(443),
                path: text("/service/path").trim_start_matches('/').to_owned(),
            },
        };
        let ca = base64::engine::general_purpose::STANDARD.decode(text("/caBundle")).unwrap_or_default();
        Self { endpoint, ca, tls: OnceLock::new() }
    }

    /// The URL for requests and messages.
    fn url(&self) -> String {
        match &self.endpoint {
            Endpoint::Url(url) => url.clone(),
            Endpoint::Service { namespace, name, port, path } => {
                format!("https://{name}.{namespace}.svc:{port}/{path}")
            }
        }
    }

    /// Posts a document and reads the JSON response, within a timeout that is sent along.
    pub(crate) async fn post(
        &self,
        inner: &Inner,
        document: &Value,
        limit: Duration,
    ) -> Result<Value, String> {
        let mut url = self.url();
        let sign = if url.contains('?') { '&' } else { '?' };
        url.push_str(&format!("{sign}timeout={}s", limit.as_secs()));
        let answered = match tokio::time::timeout(limit, self.exchange(inner, &url, document)).await {
            Ok(answered) => answered.map_err(CallError::text),
            Err(_) => Err((true, "context deadline exceeded".to_owned())),
        };
        // Connection errors are reported with the URL, errors of the response without it.
        answered.map_err(|(on_the_way, why)| if on_the_way { format!("Post {url:?}: {why}") } else { why })
    }

    async fn exchange(&self, inner: &Inner, url: &str, document: &Value) -> Result<Value, CallError> {
        let uri: http::Uri = url.parse().map_err(|e| CallError::unreachable(format!("invalid URL: {e}")))?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        if uri.scheme_str() != Some("https") || host.is_empty() {
            return Err(CallError::unreachable("the URL is not https".to_owned()));
        }
        let (address, port) = self.address(inner, &host, uri.port_u16().unwrap_or(443))?;
        let stream = TcpStream::connect((address.as_str(), port))
            .await
            .map_err(|e| CallError::unreachable(format!("dial tcp {address}:{port}: {}", dial_error(&e))))?;
        let name = ServerName::try_from(host.clone()).map_err(|e| CallError::unreachable(e.to_string()))?;
        let tls = self.tls.get_or_init(|| tls_config(&self.ca).map(Arc::new)).clone();
        let tls = tokio_rustls::TlsConnector::from(tls.map_err(CallError::unreachable)?);
        let stream =
            tls.connect(name, stream).await.map_err(|e| CallError::unreachable(tls_error(&e, &host)))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|e| CallError::unreachable(e.to_string()))?;
        let _driver = AbortOnDrop(tokio::spawn(async move {
            let _ = connection.await;
        }));
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let request = http::Request::post(path)
            .header("host", uri.authority().map_or(host.as_str(), http::uri::Authority::as_str))
            .header("content-type", "application/json")
            .header("accept", "application/json, */*")
            .header("user-agent", "kube-apiserver-admission")
            .body(Full::new(Bytes::from(document.to_string())))
            .map_err(|e| CallError::unreachable(e.to_string()))?;
        let response =
            sender.send_request(request).await.map_err(|_| CallError::unreachable("EOF".to_owned()))?;
        let code = response.status();
        let kind = response.headers().get(http::header::CONTENT_TYPE);
        let is_text = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/"));
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES)
            .collect()
            .await
            .map_err(|e| CallError::unreachable(e.to_string()))?
            .to_bytes();
        if !code.is_success() {
            return Err(CallError::InvalidResponse(refusal(code, is_text, &body)));
        }
        // Upstream reads invalid JSON as YAML, where any text is at least a string.
        serde_json::from_slice(&body).map_err(|_| CallError::InvalidResponse(decode::not_a_type("string")))
    }

    /// The address to connect to. There is no cluster network: an endpoint of a service is contacted
    /// directly.
    fn address(&self, inner: &Inner, host: &str, port: u16) -> Result<(String, u16), CallError> {
        let Endpoint::Service { namespace, name, port, .. } = &self.endpoint else {
            return Ok((host.to_owned(), port));
        };
        let key = object::key(namespace, name);
        let Some(service) = inner.store.get("/services", &key) else {
            return Err(CallError::unreachable(format!("service {name:?} not found")));
        };
        let service = service.value();
        if service.pointer("/spec/type").and_then(Value::as_str) == Some("ExternalName") {
            let host = service.pointer("/spec/externalName").and_then(Value::as_str).unwrap_or_default();
            return Ok((host.to_owned(), u16::try_from(*port).unwrap_or(443)));
        }
        let ports = service.pointer("/spec/ports").and_then(Value::as_array).cloned().unwrap_or_default();
        let Some(wanted) = ports.iter().find(|p| p["port"].as_u64() == Some(*port)) else {
            return Err(CallError::unreachable(format!("no service port {port} found for service {name:?}")));
        };
        let endpoints = inner.store.get("/endpoints", &key).map(|e| e.value()).unwrap_or_default();
        for subset in endpoints.get("subsets").and_then(Value::as_array).into_iter().flatten() {
            let address = subset.pointer("/addresses/0/ip").and_then(Value::as_str);
            let target = subset.get("ports").and_then(Value::as_array).into_iter().flatten().find(|p| {
                p.get("name").unwrap_or(&Value::Null) == wanted.get("name").unwrap_or(&Value::Null)
            });
            let target = target.and_then(|p| p["port"].as_u64()).and_then(|p| u16::try_from(p).ok());
            if let (Some(address), Some(target)) = (address, target) {
                return Ok((address.to_owned(), target));
            }
        }
        Err(CallError::unreachable(format!("no endpoints available for service {name:?}")))
    }
}

/// Why a call failed.
enum CallError {
    /// The webhook could not be reached.
    Unreachable(String),
    /// The response is not valid.
    InvalidResponse(String),
}

impl CallError {
    fn unreachable(why: String) -> Self {
        Self::Unreachable(why)
    }

    fn text(self) -> (bool, String) {
        match self {
            Self::Unreachable(why) => (true, why),
            Self::InvalidResponse(why) => (false, why),
        }
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn dial_error(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        std::io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        std::io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}

fn tls_error(error: &std::io::Error, host: &str) -> String {
    use rustls::CertificateError as Bad;
    let inner = error.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(why)) = inner else { return format!("tls: {error}") };
    let why = match why {
        Bad::UnknownIssuer => "certificate signed by unknown authority".to_owned(),
        Bad::Expired | Bad::ExpiredContext { .. } | Bad::NotValidYet | Bad::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
            format!("certificate is not valid for any names, but wanted to match {host}")
        }
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}

/// Go's error message for a response that is neither a success nor a Status.
fn refusal(code: StatusCode, is_text: bool, body: &[u8]) -> String {
    let said = if is_text {
        String::from_utf8_lossy(&body[..body.len().min(2048)]).trim().to_owned()
    } else {
        "unknown".to_owned()
    };
    if let Ok(status) = serde_json::from_slice::<Value>(body)
        && status["kind"] == "Status"
        && let Some(message) = status["message"].as_str()
    {
        return message.to_owned();
    }
    match code.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => said,
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        code if code >= 500 => {
            format!("an error on the server ({said:?}) has prevented the request from succeeding")
        }
        code => {
            format!("the server responded with the status code {code} but did not return more information")
        }
    }
}

fn tls_config(ca: &[u8]) -> Result<rustls::ClientConfig, String> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca) {
        let certificate = certificate.map_err(|e| format!("unable to load root certificates: {e}"))?;
        roots.add(certificate).map_err(|e| format!("unable to load root certificates: {e}"))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
