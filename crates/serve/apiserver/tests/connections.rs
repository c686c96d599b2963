//! Cost limits of a connection: unread bodies, deadlines of requests and responses, watches whose client does
//! not read.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fl_apiserver::store::Store;
use fl_apiserver::{ApiServer, ConnectionInfo, Limits, Listener, Options, User};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TOKEN: &str = "secret";

/// A server with short deadlines.
fn options() -> Options {
    let limits = Limits {
        body_timeout: Duration::from_secs(1),
        write_timeout: Duration::from_secs(3),
        header_timeout: Duration::from_secs(5),
        ..Limits::default()
    };
    Options { tokens: [(TOKEN.to_owned(), User::superuser("admin"))].into(), limits, ..Options::default() }
}

async fn serve(options: Options) -> (SocketAddr, ApiServer) {
    let server = ApiServer::new(Store::in_memory(), options).await.expect("the server starts");
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), None).await.expect("a socket");
    let address = listener.url().trim_start_matches("http://").parse().expect("an address");
    tokio::spawn(listener.serve(server.clone()));
    (address, server)
}

/// An endless body that counts how often it is polled.
struct Endless(Arc<AtomicUsize>);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from_static(&[b' '; 1024])))))
    }
}

async fn frames_read(server: &ApiServer, method: &str, path: &str) -> (u16, usize) {
    let read = Arc::new(AtomicUsize::new(0));
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(Endless(read.clone()))
        .expect("a request");
    let response = server.handle(request, ConnectionInfo { user: Some(User::superuser("admin")) }).await;
    (response.status().as_u16(), read.load(Ordering::Relaxed))
}

#[tokio::test]
async fn body_of_a_get_is_not_read() {
    let server = ApiServer::in_memory().await.expect("the server starts");
    for (method, path, code) in [
        ("GET", MAPS, 200),
        ("GET", &format!("{MAPS}/kube-root-ca.crt"), 200),
        ("GET", &format!("{MAPS}?watch=1&timeoutSeconds=1"), 200),
        ("GET", "/readyz", 200),
        ("GET", "/version", 200),
        ("POST", "/version", 405),
        ("HEAD", MAPS, 405),
        ("OPTIONS", MAPS, 405),
    ] {
        let (got, read) = frames_read(&server, method, path).await;
        assert_eq!(read, 0, "{method} {path} read {read} KiB");
        if path != format!("{MAPS}/kube-root-ca.crt") {
            assert_eq!(got, code, "{method} {path}");
        }
    }
    // `DeleteOptions` are short; the body of a write may be as large as an object.
    let (code, read) = frames_read(&server, "DELETE", &format!("{MAPS}/a")).await;
    assert!(code == 413 && read <= 65, "{code}, {read} KiB");
    let (code, read) = frames_read(&server, "POST", MAPS).await;
    assert!(code == 413 && read <= (3 << 10) + 1, "{code}, {read} KiB");
}

fn write_head(method: &str, path: &str, extra: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n{extra}\r\n")
}

async fn put_map(server: &ApiServer, name: &str, bytes: usize) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "x".repeat(bytes)}});
    let request = Request::post(MAPS).header("host", "localhost").header("content-type", "application/json");
    let request = request.body(Full::new(Bytes::from(map.to_string()))).expect("a request");
    let response = server.handle(request, ConnectionInfo { user: Some(User::superuser("admin")) }).await;
    assert_eq!(response.status(), 201);
}

/// Reads until the server closes the connection, or the limit is over.
async fn closed_within(stream: &mut TcpStream, limit: Duration) -> bool {
    let mut buffer = vec![0; 1 << 16];
    let reading = async { while stream.read(&mut buffer).await.is_ok_and(|n| n > 0) {} };
    tokio::time::timeout(limit, reading).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_body_times_out() {
    let (address, _server) = serve(options()).await;
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let head = write_head("POST", MAPS, "content-type: application/json\r\ncontent-length: 1000\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    let started = Instant::now();
    assert!(closed_within(&mut stream, Duration::from_secs(20)).await, "still open");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}

async fn response_time(address: SocketAddr) -> Duration {
    let started = Instant::now();
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let head = "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    started.elapsed()
}

/// Watches and lists whose clients never read hold no copies of the objects, do not delay other clients, and
/// are closed.
#[tokio::test(flavor = "multi_thread")]
async fn client_that_does_not_read_is_disconnected() {
    let (address, server) = serve(options()).await;
    for i in 0..12 {
        put_map(&server, &format!("large-{i}"), 1 << 20).await;
    }
    let before = resident_kib();
    let mut lazy = Vec::new();
    for i in 0..20 {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let path = if i % 4 == 0 { MAPS.to_owned() } else { format!("{MAPS}?watch=1") };
        stream.write_all(write_head("GET", &path, "").as_bytes()).await.expect("sent");
        lazy.push(stream);
    }
    let mut worst = Duration::ZERO;
    for _ in 0..20 {
        worst = worst.max(response_time(address).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let grown = resident_kib().saturating_sub(before) / 1024;
    println!("{grown} MiB for 20 clients that do not read, /readyz within {worst:?}");
    assert!(grown < 60, "{grown} MiB for 20 clients that do not read");
    assert!(worst < Duration::from_secs(1), "/readyz took {worst:?}");
    // Longer than the write deadline. Bytes that the kernel holds can still be read before the end.
    tokio::time::sleep(Duration::from_secs(6)).await;
    for stream in &mut lazy {
        assert!(
            closed_within(stream, Duration::from_secs(5)).await,
            "a client that did not read is still served"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_above_the_limit_are_closed() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let (address, _server) = serve(Options { limits, ..options() }).await;
    let head = "GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut first = TcpStream::connect(address).await.expect("a connection");
    let mut second = TcpStream::connect(address).await.expect("a connection");
    let mut buffer = [0; 1024];
    for stream in [&mut first, &mut second] {
        stream.write_all(head.as_bytes()).await.expect("sent");
        assert!(stream.read(&mut buffer).await.is_ok_and(|n| n > 0));
    }
    let mut third = TcpStream::connect(address).await.expect("a connection");
    assert!(closed_within(&mut third, Duration::from_secs(5)).await, "a third connection is served");
    first.write_all(head.as_bytes()).await.expect("sent");
    assert!(first.read(&mut buffer).await.is_ok_and(|n| n > 0), "the first goes on");
    drop(second);
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let mut next = TcpStream::connect(address).await.expect("a connection");
        let sent = next.write_all(head.as_bytes()).await;
        if sent.is_ok() && next.read(&mut buffer).await.is_ok_and(|n| n > 0) {
            return;
        }
    }
    panic!("the place of the closed connection was not given away");
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_stream_is_reset_without_its_connection() {
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let (address, server) = serve(options()).await;
    for i in 0..8 {
        put_map(&server, &format!("large-{i}"), 1 << 20).await;
    }
    let stream = TcpStream::connect(address).await.expect("a connection");
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.expect("HTTP/2");
    tokio::spawn(connection);
    let request = |path: &str| {
        let request = Request::get(format!("http://localhost{path}"));
        let request = request.header("authorization", format!("Bearer {TOKEN}"));
        request.body(Full::<Bytes>::default()).expect("a request")
    };
    let watch = sender.send_request(request(&format!("{MAPS}?watch=1"))).await.expect("an answer");
    let mut idle =
        sender.send_request(request("/api/v1/secrets?watch=1")).await.expect("an answer").into_body();
    let mut unread = watch.into_body();
    tokio::time::sleep(Duration::from_secs(8)).await;
    let ready = sender.send_request(request("/readyz")).await.expect("the connection goes on");
    assert_eq!(ready.status(), 200);
    let reading = async {
        loop {
            match unread.frame().await {
                Some(Ok(_)) => {}
                ended => break ended.is_some(),
            }
        }
    };
    let reset = tokio::time::timeout(Duration::from_secs(5), reading).await;
    assert!(reset.expect("the stream was ended"), "the stream was reset");
    // A watch without events waits for them, not for its client.
    let idle = tokio::time::timeout(Duration::from_millis(200), idle.frame()).await;
    assert!(idle.is_err(), "a quiet watch goes on: {idle:?}");
}
