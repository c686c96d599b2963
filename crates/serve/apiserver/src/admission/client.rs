//! One POST of a JSON document over TLS.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;

/// Largest answer that is read.
const MAX_ANSWER: usize = 4 << 20;

/// Posts a document and reads the JSON answer.
pub(crate) async fn post_json(
    url: &str,
    ca: Option<&[u8]>,
    server_name: Option<&str>,
    document: &Value,
    timeout: Duration,
) -> Result<Value, String> {
    match tokio::time::timeout(timeout, post(url, ca, server_name, document)).await {
        Ok(answer) => answer,
        Err(_) => Err("context deadline exceeded".to_owned()),
    }
}

async fn post(
    url: &str,
    ca: Option<&[u8]>,
    server_name: Option<&str>,
    document: &Value,
) -> Result<Value, String> {
    let uri: http::Uri = url.parse().map_err(|e| format!("invalid URL: {e}"))?;
    let host = uri.host().ok_or("the URL has no host")?.trim_matches(['[', ']']).to_owned();
    if uri.scheme_str() != Some("https") {
        return Err("the URL is not https".to_owned());
    }
    let port = uri.port_u16().unwrap_or(443);
    let stream = TcpStream::connect((host.as_str(), port))
        .await
        .map_err(|e| format!("dial tcp {host}:{port}: {e}"))?;
    let name = ServerName::try_from(server_name.unwrap_or(&host).to_owned()).map_err(|e| e.to_string())?;
    let tls = tokio_rustls::TlsConnector::from(Arc::new(tls_config(ca)?));
    let stream = tls.connect(name, stream).await.map_err(|e| format!("tls: {e}"))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
    let driver = tokio::spawn(connection);
    let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let request = http::Request::post(path)
        .header("host", uri.authority().map_or(host.as_str(), http::uri::Authority::as_str))
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .header("user-agent", "kube-apiserver-admission")
        .body(Full::new(Bytes::from(document.to_string())))
        .map_err(|e| e.to_string())?;
    let response = sender.send_request(request).await.map_err(|e| e.to_string());
    let answer = match response {
        Ok(response) => {
            let code = response.status();
            let body =
                Limited::new(response.into_body(), MAX_ANSWER).collect().await.map_err(|e| e.to_string())?;
            let bytes = body.to_bytes();
            if code.is_success() {
                serde_json::from_slice(&bytes).map_err(|e| format!("the answer is not JSON: {e}"))
            } else {
                Err(format!("the server answered {code}"))
            }
        }
        Err(why) => Err(why),
    };
    driver.abort();
    answer
}

fn tls_config(ca: Option<&[u8]>) -> Result<rustls::ClientConfig, String> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca.unwrap_or_default()) {
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
