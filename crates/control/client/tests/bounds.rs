//! Deadlines, size limits, the fence and the rate limit hold for every request.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use fl_client::{Client, Error, Fence, Kind, Limits, Settings, Write, within};
use futures::StreamExt as _;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::client::Body;
use serde_json::json;
use tokio::time::Instant;

/// A server whose answer has a piece of this size every `pause`, without end.
fn endless(piece: usize, pause: Duration, settings: &Settings) -> Client {
    let service = tower::service_fn(move |_: Request<Body>| async move {
        let pieces = futures::stream::repeat(()).then(move |()| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, Infallible>(Frame::data(Bytes::from(vec![b' '; piece])))
        });
        Ok::<_, Infallible>(Response::new(StreamBody::new(Box::pin(pieces))))
    });
    Client::over(service, settings)
}

/// A server that never answers.
fn silent(settings: &Settings) -> Client {
    let service = tower::service_fn(|_: Request<Body>| async {
        std::future::pending::<Result<Response<http_body_util::Empty<Bytes>>, Infallible>>().await
    });
    Client::over(service, settings)
}

#[tokio::test(start_paused = true)]
async fn missing_response_is_an_error_after_the_deadline() {
    let begin = Instant::now();
    let error = silent(&Settings::default()).get(&Kind::secret(), Some("a"), "b").await.unwrap_err();
    assert!(matches!(error, Error::Deadline { .. }) && error.is_transient(), "{error}");
    assert_eq!(
        error.to_string(),
        "no answer from the API server to GET /api/v1/namespaces/a/secrets/b within 1m0s"
    );
    assert_eq!(begin.elapsed(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn requests_end_with_the_deadline_of_their_step() {
    let begin = Instant::now();
    let client = silent(&Settings::default());
    let deadline = begin + Duration::from_secs(7);
    let error = within(deadline, client.get(&Kind::secret(), Some("a"), "b")).await.unwrap_err();
    assert!(matches!(error, Error::Deadline { .. }), "{error}");
    assert_eq!(begin.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn slow_bodies_do_not_extend_the_deadline() {
    let begin = Instant::now();
    let client = endless(1, Duration::from_secs(1), &Settings::default());
    let error = client.get(&Kind::secret(), Some("a"), "b").await.unwrap_err();
    assert!(matches!(error, Error::Deadline { .. }), "{error}");
    assert!(begin.elapsed() <= Duration::from_secs(61), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn endless_response_is_cut_off() {
    let settings = Settings { limits: Limits::REMOTE, ..Settings::default() };
    let client = endless(1 << 20, Duration::from_millis(1), &settings);
    let error = client.get(&Kind::secret(), Some("a"), "b").await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert!(error.to_string().ends_with("is larger than 32 MiB"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn watch_events_have_a_size_limit() {
    let settings = Settings { limits: Limits::REMOTE, ..Settings::default() };
    let client = endless(1 << 20, Duration::from_millis(1), &settings);
    let query = [("watch", "true".to_owned())];
    let request = fl_client::Request::new(http::Method::GET, "/api/v1/secrets", &query);
    let mut lines = client.lines(&request).await.expect("a stream");
    assert!(matches!(lines.next().await, Some(Err(Error::TooLarge { .. }))));
}

#[tokio::test(start_paused = true)]
async fn shutdown_shortens_requests() {
    let stop = fl_client::Shutdown::default();
    let settings = Settings { stop: Some(stop.clone()), ..Settings::default() };
    let client = silent(&settings);
    stop.now();
    let begin = Instant::now();
    assert!(client.get(&Kind::secret(), Some("a"), "b").await.is_err());
    assert_eq!(begin.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn closed_fence_rejects_writes() {
    let fence = Fence::default();
    fence.lost("lease");
    let client = silent(&Settings { fence: Some(fence), ..Settings::default() });
    let write = Write::by("test");
    let refused = client.create(&Kind::config_map(), Some("a"), &json!({}), &write).await;
    assert!(matches!(refused, Err(Error::Fenced)), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn invalid_impersonated_user_is_rejected() {
    let client = silent(&Settings::default()).impersonating("a\nb");
    let error = client.get(&Kind::secret(), Some("a"), "b").await.unwrap_err();
    assert!(matches!(error, Error::Request { .. }), "{error}");
}
