//! Raw requests: the only place that sends a method and a path.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{HeaderValue, Method, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use tower::BoxError;

use crate::layer::{self, Bounded, Fenced, OutOfBounds};
use crate::path::with_query;
use crate::{ApiError, Client, Error, Patch};

/// Delay of a retry.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(250), Duration::from_millis(1000)];
/// A longer Retry-After is not waited for: the caller retries later.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const JSON: &str = "application/json";

/// A request; `path` is encoded already.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub method: Method,
    pub path: &'a str,
    pub query: &'a [(&'a str, String)],
    pub body: Option<Bytes>,
    pub content_type: &'a str,
    pub accept: &'a str,
}

impl<'a> Request<'a> {
    /// A request without a body.
    pub fn new(method: Method, path: &'a str, query: &'a [(&'a str, String)]) -> Self {
        Request { method, path, query, body: None, content_type: "", accept: JSON }
    }

    /// With a body.
    #[must_use]
    pub fn body(self, content_type: &'a str, body: Bytes) -> Self {
        Request { content_type, body: Some(body), ..self }
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.body(JSON, Bytes::from(body.to_string()))
    }

    /// With an `Accept` header.
    #[must_use]
    pub fn accept(self, accept: &'a str) -> Self {
        Request { accept, ..self }
    }

    /// Whether the request is idempotent.
    fn is_repeatable(&self) -> bool {
        self.method != Method::POST
            && self.method != Method::PUT
            && self.content_type != Patch::Json.content_type()
    }

    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// A response.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The object, list or status.
    pub body: Value,
    /// Whether the object is new: status 201.
    pub created: bool,
}

impl Answer {
    /// The version of the object; empty in the answer to a dry-run that would create it.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.body.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default()
    }
}

/// A response that is not parsed yet.
#[derive(Clone, Debug)]
pub struct Raw {
    request: String,
    pub body: Bytes,
    /// Whether the object is new: status 201.
    pub created: bool,
}

impl Raw {
    /// The body as a type.
    ///
    /// # Errors
    /// It is not JSON of that type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.read_as(|body| serde_json::from_slice(body))
    }

    /// The body by a reader of the caller.
    ///
    /// # Errors
    /// The reader's.
    pub fn read_as<T>(&self, read: impl FnOnce(&Bytes) -> Result<T, serde_json::Error>) -> Result<T, Error> {
        read(&self.body).map_err(|e| Error::Decode { request: self.request.clone(), cause: e.to_string() })
    }
}

/// The type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
}

/// A watch event; its object is parsed by the caller.
#[derive(Clone, Debug)]
pub struct Event {
    pub event: EventType,
    pub object: Box<RawValue>,
}

/// The events of a watch. An `ERROR` event is an error.
pub type Events = BoxStream<'static, Result<Event, Error>>;

impl Client {
    /// Sends a request and reads the response. Idempotent requests are retried if the server was busy or the
    /// connection was lost.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn execute(&self, request: &Request<'_>) -> Result<Raw, Error> {
        let mut pauses = if request.is_repeatable() { PAUSES.as_slice() } else { &[] }.iter();
        loop {
            let error = match Box::pin(self.once(request)).await {
                Ok(answer) => return Ok(answer),
                // No retry after the deadline.
                Err(error @ Error::Deadline { .. }) => return Err(error),
                Err(error) => error,
            };
            let Some(pause) = pauses.next().filter(|_| error.is_transient()) else { return Err(error) };
            let asked = error.api().and_then(|e| e.retry_after_seconds).map(Duration::from_secs);
            let pause = asked.unwrap_or(*pause).min(LONGEST_PAUSE);
            if crate::remaining().is_some_and(|deadline| {
                deadline.at.saturating_duration_since(tokio::time::Instant::now()) < pause
            }) {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// [`Client::execute`] with the answer read as JSON.
    ///
    /// # Errors
    /// When the server refuses, does not answer, or answers with something else.
    pub async fn json(&self, request: &Request<'_>) -> Result<Answer, Error> {
        let raw = self.execute(request).await?;
        Ok(Answer { body: raw.read()?, created: raw.created })
    }

    async fn once(&self, request: &Request<'_>) -> Result<Raw, Error> {
        let _permit = self.permit(request).await?;
        let answer = self.send(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await;
        let body = body.map_err(|e| self.failure(request, e))?.to_bytes();
        if !status.is_success() {
            return Err(ApiError::from_body(status.as_u16(), &body).into());
        }
        Ok(Raw { request: request.name(), body, created: status == http::StatusCode::CREATED })
    }

    async fn permit(&self, request: &Request<'_>) -> Result<tokio::sync::SemaphorePermit<'_>, Error> {
        let permit = self.shared.parallel.acquire();
        let permit = match crate::remaining() {
            Some(deadline) => tokio::time::timeout_at(deadline.at, permit)
                .await
                .map_err(|_| Error::Deadline { request: request.name(), limit: deadline.limit })?,
            None => permit.await,
        };
        permit.map_err(|e| Error::Transport { request: request.name(), cause: e.to_string() })
    }

    /// A request whose answer comes line by line: a watch or a log.
    ///
    /// # Errors
    /// When the server refuses or does not answer. Not counted among the parallel requests: such an answer is mostly idle.
    pub async fn lines(
        &self,
        request: &Request<'_>,
    ) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
        let answer = self.send(request).await?;
        let status = answer.status();
        if !status.is_success() {
            let body = answer.into_body().collect().await.map_err(|e| self.failure(request, e))?.to_bytes();
            return Err(ApiError::from_body(status.as_u16(), &body).into());
        }
        let (client, name) = (self.clone(), request.name());
        let frames = answer.into_body().into_data_stream().boxed();
        let lines = futures::stream::unfold(Some((frames, BytesMut::new())), move |state| {
            let (client, name) = (client.clone(), name.clone());
            async move {
                let (mut frames, mut buffer) = state?;
                let mut searched = 0;
                loop {
                    if let Some(end) = buffer[searched..].iter().position(|b| *b == b'\n') {
                        let line = buffer.split_to(searched + end + 1).freeze();
                        let line = line.slice(..line.len() - 1);
                        return Some((Ok(line), Some((frames, buffer))));
                    }
                    searched = buffer.len();
                    match frames.next().await {
                        Some(Ok(data)) => buffer.extend_from_slice(&data),
                        Some(Err(error)) => return Some((Err(client.failed(&name, error)), None)),
                        None if buffer.is_empty() => return None,
                        None => return Some((Ok(buffer.freeze()), None)),
                    }
                }
            }
        });
        Ok(lines.boxed())
    }

    /// The events of a watch; `request` asks for one.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn events(&self, request: &Request<'_>) -> Result<Events, Error> {
        let name = request.name();
        let lines = self.lines(request).await?;
        let events = lines.filter_map(move |line| {
            let event = match line {
                Ok(line) if line.is_empty() => None,
                Ok(line) => read_event(&name, &line),
                Err(error) => Some(Err(error)),
            };
            std::future::ready(event)
        });
        Ok(events.boxed())
    }

    async fn send(&self, request: &Request<'_>) -> Result<http::Response<Bounded>, Error> {
        let cannot =
            |e: &dyn std::fmt::Display| Error::Request { request: request.name(), cause: e.to_string() };
        let mut built = http::Request::builder()
            .method(&request.method)
            .uri(with_query(request.path, request.query))
            .header(header::ACCEPT, request.accept);
        if request.body.is_some() {
            built = built.header(header::CONTENT_TYPE, request.content_type);
        }
        if let Some(user) = self.user() {
            // A user name that is not a valid header must not become a request with the engine's identity.
            built = built.header("impersonate-user", HeaderValue::from_str(user).map_err(|e| cannot(&e))?);
        }
        if let Some(deadline) = crate::remaining() {
            built = built.extension(deadline);
        }
        let built =
            built.body(Body::from(request.body.clone().unwrap_or_default())).map_err(|e| cannot(&e))?;
        layer::send(&self.stack, built).await.map_err(|e| self.failure(request, e))
    }

    fn failure(&self, request: &Request<'_>, error: BoxError) -> Error {
        self.failed(&request.name(), error)
    }

    fn failed(&self, request: &str, error: BoxError) -> Error {
        let request = request.to_owned();
        let mut chain =
            std::iter::successors(Some(&*error as &(dyn std::error::Error + 'static)), |e| e.source());
        if let Some(found) = chain.clone().find_map(|e| e.downcast_ref::<OutOfBounds>()) {
            return match *found {
                OutOfBounds::Deadline(limit) => Error::Deadline { request, limit },
                OutOfBounds::Size(limit) => Error::TooLarge { request, limit },
            };
        }
        if chain.any(<dyn std::error::Error>::is::<Fenced>) {
            return Error::Fenced;
        }
        Error::Transport { request, cause: self.cause(&*error) }
    }

    /// The error of a failed connection; a refused one with Go's message, which operators know.
    fn cause(&self, error: &(dyn std::error::Error + 'static)) -> String {
        let refused = |e: &(dyn std::error::Error + 'static)| {
            let io = e.downcast_ref::<std::io::Error>();
            io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused)
        };
        let host = self.address().split_once("://").map_or("", |(_, rest)| rest);
        if !host.is_empty() && std::iter::successors(Some(error), |e| e.source()).any(refused) {
            let host = host.split('/').next().unwrap_or_default();
            return format!("dial tcp {host}: connect: connection refused");
        }
        causes(error)
    }
}

/// A line of a watch.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    event: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

fn read_event(request: &str, line: &[u8]) -> Option<Result<Event, Error>> {
    let Line { event, object } = match serde_json::from_slice(line) {
        Ok(line) => line,
        Err(e) => return Some(Err(Error::Decode { request: request.to_owned(), cause: e.to_string() })),
    };
    let event = match event {
        "ADDED" => EventType::Added,
        "MODIFIED" => EventType::Modified,
        "DELETED" => EventType::Deleted,
        "BOOKMARK" => EventType::Bookmark,
        "ERROR" => {
            let status: Value = serde_json::from_str(object.get()).unwrap_or_default();
            let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
            return Some(Err(ApiError::from_status(code, &status).into()));
        }
        _ => return None,
    };
    Some(Ok(Event { event, object: object.to_owned() }))
}

/// An error with everything that led to it, each text once.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}
