//! Requests as bytes: one place where a method and a path become an answer.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{HeaderValue, Method, Request, header};
use kube::client::Body;
use kube::core::WatchEvent;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Cluster;
use crate::{ApiError, Error};

/// How long to wait before a request is repeated.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(250), Duration::from_millis(1000)];
/// A server that wants more is believed to be down: the caller comes back later.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
pub(super) const JSON_PATCH: &str = "application/json-patch+json";

/// Changes of objects; whoever wants one reads it.
pub(crate) type Events = BoxStream<'static, Result<WatchEvent<Box<RawValue>>, Error>>;

/// What the server answered.
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

/// An answer as it came.
pub(super) struct Raw {
    request: String,
    body: Bytes,
    pub(super) created: bool,
}

impl Raw {
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.read_as(|body| serde_json::from_slice(body))
    }

    pub(super) fn read_as<T>(
        &self,
        read: impl FnOnce(&Bytes) -> Result<T, serde_json::Error>,
    ) -> Result<T, Error> {
        read(&self.body).map_err(|e| Error::Answer { request: self.request.clone(), cause: e.to_string() })
    }
}

/// What is asked of the server; `path` is encoded already.
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) query: &'a [(&'static str, String)],
    pub(super) body: Option<Bytes>,
    pub(super) content_type: &'a str,
}

impl Ask<'_> {
    /// Whether doing it twice has the effect of doing it once.
    fn is_repeatable(&self) -> bool {
        self.method != Method::POST && self.method != Method::PUT && self.content_type != JSON_PATCH
    }

    fn writes(&self) -> bool {
        [Method::POST, Method::PUT, Method::PATCH].contains(&self.method)
            && !self.query.iter().any(|(key, _)| *key == "dryRun")
    }
}

impl Cluster {
    /// Any request; `path` is encoded already. One that may be repeated without a second effect is, when the server was busy or the
    /// answer was lost.
    pub(crate) async fn request(
        &self,
        method: Method,
        path: &str,
        query: &[(&'static str, String)],
        body: Option<Bytes>,
        content_type: &str,
    ) -> Result<Answer, Error> {
        let ask = Ask { method, path, query, body, content_type };
        let raw = self.raw(&ask).await?;
        let answer = Answer { body: raw.read()?, created: raw.created };
        if let Some(observer) = self.observer.as_ref().filter(|_| ask.writes()) {
            observer.wrote(&answer.body);
        }
        Ok(answer)
    }

    /// [`Cluster::request`], with the answer unread.
    pub(super) async fn raw(&self, ask: &Ask<'_>) -> Result<Raw, Error> {
        let mut pauses = if ask.is_repeatable() { PAUSES.as_slice() } else { &[] }.iter();
        loop {
            let error = match self.once(ask).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(pause) = pauses.next().filter(|_| error.is_transient()) else { return Err(error) };
            let asked = error.api().and_then(|e| e.retry_after_seconds).map(Duration::from_secs);
            tokio::time::sleep(asked.unwrap_or(*pause).min(LONGEST_PAUSE)).await;
        }
    }

    async fn once(&self, ask: &Ask<'_>) -> Result<Raw, Error> {
        let what = format!("{} {}", ask.method, ask.path);
        let broken = |cause: String| Error::Transport { request: what.clone(), cause };
        let request = self.build(ask).map_err(|e| broken(e.to_string()))?;
        let _slot = self.shared.budget.acquire().await.map_err(|e| broken(e.to_string()))?;
        let answer = self.client.send(request).await;
        if let Some(observer) = &self.observer {
            observer
                .answered(ask.method.as_str(), answer.as_ref().map_or(0, |answer| answer.status().as_u16()));
        }
        let answer = answer.map_err(|e| broken(self.cause(&e)))?;
        let status = answer.status();
        let body = answer.into_body().collect_bytes().await.map_err(|e| broken(causes(&e)))?;
        if !status.is_success() {
            return Err(ApiError::from_body(status.as_u16(), &body).into());
        }
        Ok(Raw { request: what, body, created: status == http::StatusCode::CREATED })
    }

    /// Why there is no connection; one that was refused is told in the words that operators search for.
    fn cause(&self, error: &(dyn std::error::Error + 'static)) -> String {
        let refused = |e: &(dyn std::error::Error + 'static)| {
            let io = e.downcast_ref::<std::io::Error>();
            io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused)
        };
        let host = self.address.split_once("://").map_or("", |(_, rest)| rest);
        if !host.is_empty() && std::iter::successors(Some(error), |e| e.source()).any(refused) {
            let host = host.split('/').next().unwrap_or_default();
            return format!("dial tcp {host}: connect: connection refused");
        }
        causes(error)
    }

    pub(super) async fn events(&self, path: &str, query: &[(&'static str, String)]) -> Result<Events, Error> {
        let what = format!("WATCH {path}");
        let broken = {
            let what = what.clone();
            move |e: kube::Error| match e {
                kube::Error::Api(status) => Error::Api(ApiError {
                    code: status.code,
                    reason: status.reason.clone(),
                    message: status.message.clone(),
                    causes: Vec::new(),
                    retry_after_seconds: None,
                }),
                other => Error::Transport { request: what.clone(), cause: causes(&other) },
            }
        };
        let ask = Ask { method: Method::GET, path, query, body: None, content_type: "" };
        let request =
            self.build(&ask).map_err(|e| Error::Transport { request: what.clone(), cause: e.to_string() })?;
        let (parts, _) = request.into_parts();
        let request = Request::from_parts(parts, Vec::new());
        let events = self.client.request_events::<Box<RawValue>>(request).await.map_err(&broken);
        if let Some(observer) = &self.observer {
            let status = match &events {
                Ok(_) => 200,
                Err(error) => error.api().map_or(0, |e| e.code),
            };
            observer.answered("GET", status);
        }
        let events = events?;
        Ok(events.map(move |event| event.map_err(&broken)).boxed())
    }

    fn build(&self, ask: &Ask<'_>) -> Result<Request<Body>, http::Error> {
        let mut uri = ask.path.to_owned();
        for (i, (key, value)) in ask.query.iter().enumerate() {
            uri.push(if i == 0 { '?' } else { '&' });
            uri.push_str(key);
            uri.push('=');
            push_segment(&mut uri, value);
        }
        let mut request =
            Request::builder().method(&ask.method).uri(uri).header(header::ACCEPT, "application/json");
        if ask.body.is_some() {
            request = request.header(header::CONTENT_TYPE, ask.content_type);
        }
        if let Some(user) = self.user() {
            request = request.header("impersonate-user", HeaderValue::from_str(user)?);
        }
        request.body(Body::from(ask.body.clone().unwrap_or_default()))
    }
}

/// Appends text as one segment of a path or one value of a query: nothing in it can be read as structure.
pub(crate) fn push_segment(out: &mut String, text: &str) {
    // A segment of dots would be resolved away by servers and proxies.
    let dots = text == "." || text == "..";
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b':');
        if plain && !dots {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}

/// An error with everything that led to it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_segment() {
        let encoded = |text: &str| {
            let mut out = String::new();
            push_segment(&mut out, text);
            out
        };
        assert_eq!(encoded("system:x"), "system:x");
        assert_eq!(encoded("../a?b#c%"), "..%2Fa%3Fb%23c%25");
        assert_eq!(encoded(".."), "%2E%2E");
        assert_eq!(encoded("a=b,c"), "a%3Db%2Cc");
    }
}
