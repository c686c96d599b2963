//! Load generator: sends the requests of the benchmark from several connections in one process, so that the
//! client is not the bottleneck. Prints one JSON line.
//!
//! `load URL TOKEN [REQUESTS] [CONNECTIONS]`

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use serde_json::{Value, json};

/// Accepts any server certificate: both servers of a comparison use self-signed ones.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    token: String,
}

impl Connection {
    async fn open(url: &str, token: &str) -> anyhow::Result<Self> {
        let uri: http::Uri = url.parse()?;
        let host = uri.authority().map(ToString::to_string).unwrap_or_default();
        let stream = tokio::net::TcpStream::connect(host.as_str()).await?;
        stream.set_nodelay(true)?;
        let config =
            rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()?
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate))
                .with_no_client_auth();
        let name = ServerName::try_from(uri.host().unwrap_or_default().to_owned())?;
        let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { sender, host, token: token.to_owned() })
    }

    async fn send(&mut self, method: &str, path: &str, kind: &str, body: &Value) -> anyhow::Result<()> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.host)
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", kind)
            .header("accept", "application/json")
            .body(Full::new(Bytes::from(body.to_string())))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let code = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        anyhow::ensure!(code.is_success(), "answered {code}: {}", String::from_utf8_lossy(&body));
        Ok(())
    }

    /// Sends one apply; returns its duration in milliseconds.
    async fn apply(&mut self, namespace: &str, name: &str, i: usize) -> anyhow::Result<f64> {
        let data: serde_json::Map<String, Value> =
            (0..5).map(|j| (format!("k{j}"), json!(format!("value-{i}-{j}")))).collect();
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": name, "labels": {"app": "bench"}}});
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}?fieldManager=bench&force=true");
        let started = Instant::now();
        self.send("PATCH", &path, "application/apply-patch+yaml", &object).await?;
        Ok(started.elapsed().as_secs_f64() * 1000.0)
    }
}

fn stats(mut times: Vec<f64>, seconds: f64) -> Value {
    times.sort_by(f64::total_cmp);
    let round = |x: f64| (x * 100.0).round() / 100.0;
    let at = |share: f64| round(times[(times.len() as f64 * share) as usize]);
    json!({"requests": times.len(), "req_per_s": round(times.len() as f64 / seconds), "p50_ms": at(0.5),
        "p99_ms": at(0.99), "max_ms": round(times[times.len() - 1])})
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, token, rest @ ..] = arguments.as_slice() else {
        anyhow::bail!("usage: load URL TOKEN [REQUESTS] [CONNECTIONS]");
    };
    let number = |i: usize, default: usize| rest.get(i).map_or(Ok(default), |n: &String| n.parse());
    let (requests, connections) = (number(0, 2000)?, number(1, 16)?);
    let namespace = format!("load-{}", std::process::id());
    let mut first = Connection::open(url, token).await?;
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    first.send("POST", "/api/v1/namespaces", "application/json", &object).await?;
    for i in 0..20 {
        first.apply(&namespace, "warm", i).await?;
    }
    let started = Instant::now();
    let mut times = Vec::new();
    for i in 0..requests {
        times.push(first.apply(&namespace, "seq", i).await?);
    }
    let one = stats(times, started.elapsed().as_secs_f64());
    let mut tasks = Vec::new();
    for k in 0..connections {
        let mut connection = Connection::open(url, token).await?;
        let namespace = namespace.clone();
        tasks.push(async move {
            let mut times = Vec::new();
            for i in 0..requests / connections {
                times.push(connection.apply(&namespace, &format!("w{k}"), i).await?);
            }
            anyhow::Ok(times)
        });
    }
    let started = Instant::now();
    let mut times = Vec::new();
    for task in tasks.into_iter().map(tokio::spawn).collect::<Vec<_>>() {
        times.extend(task.await??);
    }
    let many = stats(times, started.elapsed().as_secs_f64());
    println!("{}", json!({"sequential": one, (format!("concurrent_{connections}")): many}));
    Ok(())
}
