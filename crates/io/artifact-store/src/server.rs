//! The store over plain HTTP: a file server with entity tags and ranges.

use std::convert::Infallible;
use std::future::Future;
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use futures::stream;
use http::header::{
    ACCEPT_RANGES, ALLOW, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH, LOCATION,
    RANGE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::net::TcpListener;

use crate::range::{self, Span};
use crate::{Store, directory_index, path};

type Body = BoxBody<Bytes, io::Error>;

/// A client that sends its request slower than this is cut off.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Which `Host` headers are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// All: the server of a cluster is reached by the names of its Service.
    Any,
    /// Only `localhost` and loopback addresses. A web page whose own name resolves to this machine (DNS rebinding) is refused.
    Loopback,
}

impl Hosts {
    fn allow(self, request: &Request<Incoming>) -> bool {
        match self {
            Hosts::Any => true,
            Hosts::Loopback => {
                let header = request.headers().get(HOST).and_then(|value| value.to_str().ok());
                // A request target may name a host, too; then it counts.
                let host = request.uri().authority().map(http::uri::Authority::as_str).or(header);
                host.is_some_and(is_loopback)
            }
        }
    }
}

/// Whether the host of `host:port` is this machine.
fn is_loopback(authority: &str) -> bool {
    let Ok(authority) = authority.parse::<http::uri::Authority>() else { return false };
    let host = authority.host();
    let address = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Serves the store until `stop` resolves. Running answers end with their connections.
pub async fn serve(store: &Store, listener: TcpListener, hosts: Hosts, stop: impl Future<Output = ()>) {
    let root: Arc<Path> = store.root().into();
    let mut stop = std::pin::pin!(stop);
    loop {
        let stream = tokio::select! {
            () = &mut stop => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    // Out of file descriptors: wait for some to come back instead of spinning.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let root = root.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request| {
                let root = root.clone();
                async move { Ok::<_, Infallible>(answer(&root, hosts, &request).await) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(root: &Path, hosts: Hosts, request: &Request<Incoming>) -> Response<Body> {
    if !hosts.allow(request) {
        return plain(StatusCode::FORBIDDEN, "the Host header does not name this machine\n");
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are served\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let path = request.uri().path();
    let Some(place) = resolve(root, path) else {
        return plain(StatusCode::NOT_FOUND, "404 page not found\n");
    };
    let meta = match tokio::fs::metadata(&place).await {
        Ok(meta) => meta,
        Err(_) => return plain(StatusCode::NOT_FOUND, "404 page not found\n"),
    };
    let head = request.method() == Method::HEAD;
    if meta.is_dir() {
        return directory(&place, path, head);
    }
    let conditions = match Conditions::read(request.headers()) {
        Ok(conditions) => conditions,
        Err(name) => return plain(StatusCode::BAD_REQUEST, &format!("the header {name} cannot be read\n")),
    };
    match file(&place, &meta, &conditions, head).await {
        Ok(response) => response,
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "the file cannot be read\n"),
    }
}

/// The file a request path means; none for a path that leaves the store or names an unfinished file.
fn resolve(root: &Path, path: &str) -> Option<PathBuf> {
    let mut place = root.to_owned();
    for part in path.split('/').filter(|p| !p.is_empty()) {
        let part = decode(part)?;
        path::check(&part).ok()?;
        if part.starts_with('.') {
            return None;
        }
        place.push(part);
    }
    Some(place)
}

/// Percent-decodes one segment, once.
fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            out.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

fn directory(place: &Path, path: &str, head: bool) -> Response<Body> {
    if !path.ends_with('/') {
        let mut moved = plain(StatusCode::MOVED_PERMANENTLY, "");
        let target = path.rsplit('/').next().unwrap_or_default();
        if let Ok(value) = HeaderValue::from_str(&format!("{target}/")) {
            moved.headers_mut().insert(LOCATION, value);
        }
        return moved;
    }
    match directory_index::page(place) {
        Ok(page) => {
            let mut response = plain(StatusCode::OK, if head { "" } else { &page });
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
            response
        }
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "the directory cannot be read\n"),
    }
}

/// The headers that decide what of a file is sent.
struct Conditions<'a> {
    if_none_match: Option<&'a str>,
    range: Option<&'a str>,
}

impl<'a> Conditions<'a> {
    /// Fails with the name of a header that is not printable ASCII: to leave it out would answer another request.
    fn read(headers: &'a HeaderMap) -> Result<Self, HeaderName> {
        let text = |name: HeaderName| match headers.get(&name).map(HeaderValue::to_str) {
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(_)) => Err(name),
            None => Ok(None),
        };
        Ok(Self { if_none_match: text(IF_NONE_MATCH)?, range: text(RANGE)? })
    }
}

async fn file(
    place: &Path,
    meta: &std::fs::Metadata,
    conditions: &Conditions<'_>,
    head: bool,
) -> io::Result<Response<Body>> {
    let size = meta.len();
    let modified = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let tag = format!("\"{:x}-{size:x}\"", modified.as_nanos());
    let known =
        conditions.if_none_match.is_some_and(|seen| seen == "*" || seen.split(',').any(|t| t.trim() == tag));
    let span = range::parse(conditions.range, size);
    let (status, from, length) = match span {
        _ if known => (StatusCode::NOT_MODIFIED, 0, 0),
        Span::Whole => (StatusCode::OK, 0, size),
        Span::Part(from, length) => (StatusCode::PARTIAL_CONTENT, from, length),
        Span::Unsatisfiable => (StatusCode::RANGE_NOT_SATISFIABLE, 0, 0),
    };
    let body = if head || length == 0 { empty() } else { content(place, from, length).await? };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(ETAG, HeaderValue::from_str(&tag).map_err(io::Error::other)?);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if !known {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type(place)));
        headers.insert(CONTENT_LENGTH, length.into());
    }
    let span = match span {
        Span::Part(from, length) if !known => Some(format!("bytes {from}-{}/{size}", from + length - 1)),
        Span::Unsatisfiable if !known => Some(format!("bytes */{size}")),
        _ => None,
    };
    if let Some(span) = span {
        headers.insert(CONTENT_RANGE, HeaderValue::from_str(&span).map_err(io::Error::other)?);
    }
    Ok(response)
}

/// The bytes of a span, read as the client takes them. An open file outlives its removal from the store.
async fn content(place: &Path, from: u64, length: u64) -> io::Result<Body> {
    let mut file = tokio::fs::File::open(place).await?;
    file.seek(SeekFrom::Start(from)).await?;
    let pieces = stream::try_unfold((file, length), |(mut file, left)| async move {
        if left == 0 {
            return Ok::<_, io::Error>(None);
        }
        let mut piece = vec![0; usize::try_from(left.min(64 * 1024)).unwrap_or(0)];
        let n = file.read(&mut piece).await?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        piece.truncate(n);
        Ok(Some((Frame::data(Bytes::from(piece)), (file, left - n as u64))))
    });
    Ok(BodyExt::boxed(SyncStream(std::sync::Mutex::new(Box::pin(StreamBody::new(pieces))))))
}

/// `BoxBody` wants `Sync`; the stream is only ever polled by one connection, so the lock is never contended.
struct SyncStream<S>(std::sync::Mutex<std::pin::Pin<Box<S>>>);

impl<S: hyper::body::Body<Data = Bytes, Error = io::Error>> hyper::body::Body for SyncStream<S> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut().0.get_mut() {
            Ok(inner) => inner.as_mut().poll_frame(cx),
            Err(_) => std::task::Poll::Ready(Some(Err(io::Error::other("an earlier read panicked")))),
        }
    }
}

fn content_type(place: &Path) -> &'static str {
    match place.extension().and_then(|e| e.to_str()) {
        Some("gz" | "tgz") => "application/gzip",
        Some("yaml" | "yml") => "application/yaml",
        _ => "application/octet-stream",
    }
}

fn empty() -> Body {
    Full::new(Bytes::new()).map_err(|never| match never {}).boxed()
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let body = Full::new(Bytes::copy_from_slice(text.as_bytes())).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
