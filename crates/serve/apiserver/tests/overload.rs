//! Malicious and careless clients (I06): other clients are still answered, and resources are bounded.
//!
//! `FLUORITE_IDLE_WATCHES=10000 cargo test --test overload` runs the long form.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fl_apiserver::{ApiServer, ConnectionInfo, Listener, User};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

async fn serve() -> SocketAddr {
    let server = ApiServer::in_memory().await.expect("the server starts");
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), None).await.expect("a socket");
    let url = listener.url();
    tokio::spawn(listener.serve(server));
    url.trim_start_matches("http://").parse().expect("an address")
}

/// The response time for another client.
async fn response_time(address: SocketAddr) -> Duration {
    let started = Instant::now();
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    started.elapsed()
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    let mut out = vec![length[1], length[2], length[3], kind, flags];
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// `GET /` or `POST /` with static table entries and a literal authority.
fn head(post: bool) -> Vec<u8> {
    let mut out = vec![if post { 0x83 } else { 0x82 }, 0x86, 0x84, 0x01, 9];
    out.extend_from_slice(b"localhost");
    out
}

/// Sends a flood until the server closes the connection or all of it is sent; meanwhile another client sends
/// a request.
async fn flood(first: Vec<u8>, chunk: impl Fn(u32) -> Vec<u8>, chunks: u32) -> Duration {
    let address = serve().await;
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[]), &first].concat()).await.expect("sent");
    let (mut reading, mut writing) = stream.into_split();
    let drain = tokio::spawn(async move {
        let mut buffer = [0; 4096];
        while reading.read(&mut buffer).await.is_ok_and(|n| n > 0) {}
    });
    let mut worst = Duration::ZERO;
    for i in 0..chunks {
        if writing.write_all(&chunk(i)).await.is_err() {
            break;
        }
        if i % (chunks / 10).max(1) == 0 {
            worst = worst.max(response_time(address).await);
        }
    }
    worst = worst.max(response_time(address).await);
    drain.abort();
    worst
}

/// A response within this time counts as responsive on a busy machine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn rapid_resets() {
    let worst = flood(
        Vec::new(),
        |i| {
            let stream = 1 + 2 * i;
            let open = frame(HEADERS, END_HEADERS | END_STREAM, stream, &head(false));
            [open, frame(RST_STREAM, 0, stream, &8u32.to_be_bytes())].concat()
        },
        5000,
    )
    .await;
    assert!(worst < RESPONSE_TIMEOUT, "{worst:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_headers() {
    // An endless sequence of literal headers without indexing.
    let literal = [&[0x00, 1, b'a', 100][..], &[b'b'; 100]].concat();
    let block = literal.repeat(100);
    let first = frame(HEADERS, 0, 1, &head(false));
    let worst = flood(first, |_| frame(CONTINUATION, 0, 1, &block), 2000).await;
    assert!(worst < RESPONSE_TIMEOUT, "{worst:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_data() {
    let first = frame(HEADERS, END_HEADERS, 1, &head(true));
    let many = frame(DATA, 0, 1, &[]).repeat(100);
    let worst = flood(first, |_| many.clone(), 500).await;
    assert!(worst < RESPONSE_TIMEOUT, "{worst:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_clients() {
    let address = serve().await;
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(b"GET /readyz HT").await.expect("sent");
        slow.push(stream);
    }
    assert!(response_time(address).await < RESPONSE_TIMEOUT);
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn idle_watches_use_little_memory() {
    let count: u64 = std::env::var("FLUORITE_IDLE_WATCHES").ok().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let server = ApiServer::in_memory().await.expect("the server starts");
    let peer = ConnectionInfo { user: Some(User::superuser("test")) };
    let path = "/api/v1/namespaces/default/configmaps";
    let ask = |method: &str, path: &str, body: &'static str| {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("host", "localhost").header("content-type", "application/json");
        server.handle(request.body(Full::new(Bytes::from(body))).expect("a request"), peer.clone())
    };
    let watch = format!("{path}?watch=1&resourceVersion={}&allowWatchBookmarks=true", server.revision());
    let before = resident_kib();
    let mut open = Vec::new();
    for _ in 0..count {
        let mut body = ask("GET", &watch, "").await.into_body();
        // Polled once, so that it waits as it would on a connection.
        let first = tokio::time::timeout(Duration::ZERO, body.frame()).await;
        assert!(first.is_err(), "nothing to tell yet");
        open.push(body);
    }
    let each = resident_kib().saturating_sub(before) / count.max(1);
    println!("{count} idle watches, {each} KiB each");
    assert!(each < 16, "{each} KiB per watch");
    let started = Instant::now();
    let map = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}"#;
    assert_eq!(ask("POST", path, map).await.status(), 201);
    assert!(started.elapsed() < RESPONSE_TIMEOUT);
    for body in &mut open {
        let event = tokio::time::timeout(Duration::from_secs(10), body.frame()).await.expect("in time");
        let bytes = event.expect("open").expect("fine").into_data().expect("data");
        assert!(bytes.starts_with(b"{\"type\":\"ADDED\""), "{bytes:?}");
    }
}
