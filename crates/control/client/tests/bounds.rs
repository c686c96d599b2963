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
async fn an_answer_that_never_comes_is_an_error_after_a_minute() {
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
async fn a_step_ends_its_requests_with_its_deadline() {
    let begin = Instant::now();
    let client = silent(&Settings::default());
    let deadline = begin + Duration::from_secs(7);
    let error = within(deadline, client.get(&Kind::secret(), Some("a"), "b")).await.unwrap_err();
    assert!(matches!(error, Error::Deadline { .. }), "{error}");
    assert_eq!(begin.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn bytes_that_trickle_in_do_not_put_the_deadline_off() {
    let begin = Instant::now();
    let client = endless(1, Duration::from_secs(1), &Settings::default());
    let error = client.get(&Kind::secret(), Some("a"), "b").await.unwrap_err();
    assert!(matches!(error, Error::Deadline { .. }), "{error}");
    assert!(begin.elapsed() <= Duration::from_secs(61), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_end_is_cut_off() {
    let settings = Settings { limits: Limits::REMOTE, ..Settings::default() };
    let client = endless(1 << 20, Duration::from_millis(1), &settings);
    let error = client.get(&Kind::secret(), Some("a"), "b").await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert!(error.to_string().ends_with("is larger than 32 MiB"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_has_a_limit_for_each_event() {
    let settings = Settings { limits: Limits::REMOTE, ..Settings::default() };
    let client = endless(1 << 20, Duration::from_millis(1), &settings);
    let query = [("watch", "true".to_owned())];
    let request = fl_client::Request::new(http::Method::GET, "/api/v1/secrets", &query);
    let mut lines = client.lines(&request).await.expect("a stream");
    assert!(matches!(lines.next().await, Some(Err(Error::TooLarge { .. }))));
}

#[tokio::test(start_paused = true)]
async fn requests_end_soon_after_a_stop() {
    let stop = fl_client::Stop::default();
    let settings = Settings { stop: Some(stop.clone()), ..Settings::default() };
    let client = silent(&settings);
    stop.now();
    let begin = Instant::now();
    assert!(client.get(&Kind::secret(), Some("a"), "b").await.is_err());
    assert_eq!(begin.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_behind_a_closed_fence() {
    let fence = Fence::default();
    fence.lost("lease");
    let client = silent(&Settings { fence: Some(fence), ..Settings::default() });
    let write = Write::by("test");
    let refused = client.create(&Kind::config_map(), Some("a"), &json!({}), &write).await;
    assert!(matches!(refused, Err(Error::Fenced)), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_user_that_is_no_header_is_never_sent_as_somebody_else() {
    let client = silent(&Settings::default()).impersonating("a\nb");
    let error = client.get(&Kind::secret(), Some("a"), "b").await.unwrap_err();
    assert!(matches!(error, Error::Request { .. }), "{error}");
}
