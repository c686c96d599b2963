//! Health, readiness and metrics over HTTP.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
pub use http::StatusCode;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use fl_client::Shutdown;

const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// The handler of a path.
pub type Answer = Arc<dyn Fn(&str) -> (StatusCode, String) + Send + Sync>;

/// Serves until shutdown.
pub async fn serve(listener: TcpListener, answer: Answer, stop: Shutdown) {
    loop {
        let stream = tokio::select! {
            () = stop.stopped() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let answer = answer.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let (status, text) = answer(request.uri().path());
                let mut response = Response::new(Full::new(Bytes::from(text)));
                *response.status_mut() = status;
                let plain = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                response.headers_mut().insert(http::header::CONTENT_TYPE, plain);
                async move { Ok::<_, Infallible>(response) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
