//! Errors of requests to an API server.

use std::time::Duration;

use serde_json::Value;

use crate::kind::Kind;

/// The `Status` that an API server answered with. Its text is the server's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status.
    pub code: u16,
    /// `NotFound`, `Invalid`, …; empty when the server gave none.
    pub reason: String,
    pub message: String,
    /// The reasons of `details.causes`.
    pub causes: Vec<String>,
    /// Whether `details` name an object or a kind; a path that is not served at all has neither.
    pub names_object: bool,
    pub retry_after_seconds: Option<u64>,
}

impl ApiError {
    /// Reads a `Status` body; a body that is none becomes the message.
    #[must_use]
    pub fn from_body(code: u16, body: &[u8]) -> Self {
        let status: Value = serde_json::from_slice(body).unwrap_or_default();
        let mut error = ApiError::from_status(code, &status);
        if error.message.is_empty() {
            error.message = String::from_utf8_lossy(body).trim().to_owned();
        }
        if error.message.is_empty() {
            error.message = match http::StatusCode::from_u16(code) {
                Ok(status) => status.to_string(),
                Err(_) => format!("the server answered with status {code}"),
            };
        }
        error
    }

    /// Reads a `Status`, as it comes in a body or in an event of a watch.
    #[must_use]
    pub fn from_status(code: u16, status: &Value) -> Self {
        let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
        let details = &status["details"];
        let causes = details["causes"].as_array().into_iter().flatten();
        ApiError {
            code,
            reason: text("reason"),
            message: text("message"),
            causes: causes.filter_map(|c| c["reason"].as_str().map(str::to_owned)).collect(),
            names_object: details.get("name").is_some() || details.get("kind").is_some(),
            retry_after_seconds: details["retryAfterSeconds"].as_u64().filter(|s| *s > 0),
        }
    }

    /// An error made locally, where the server's answer is known.
    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        ApiError {
            code: 404,
            reason: "NotFound".to_owned(),
            message: message.into(),
            causes: Vec::new(),
            names_object: true,
            retry_after_seconds: None,
        }
    }

    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// Whether the path is not served at all. That says nothing about the object: for a missing one servers give a reason.
    #[must_use]
    pub fn is_unserved(&self) -> bool {
        self.code == 404 && self.reason.is_empty()
    }

    /// Whether another writer or field manager conflicts.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code == 409 && self.reason != "AlreadyExists"
    }

    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.code == 403
    }

    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.code == 422
    }

    /// Whether a retry may succeed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self.code, 408 | 429 | 500 | 502 | 503 | 504)
            && !self.message.contains("failed to create typed patch")
    }

    /// Whether recreating the object may help. Flux reads every `Invalid` and every conflict so.
    #[must_use]
    pub fn is_immutable(&self) -> bool {
        self.is_conflict()
            || self.is_invalid()
            || self.message.contains("is immutable")
            || self.message.contains("immutable field")
    }
}

/// An error of a request.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API server returned an error.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The server does not serve the kind.
    #[error("no matches for kind \"{kind}\" in version \"{api_version}\"")]
    NoKind { kind: String, api_version: String },
    /// The connection failed or was lost.
    #[error("no answer from the API server to {request}: {cause}")]
    Transport {
        /// Method and path.
        request: String,
        cause: String,
    },
    /// The deadline passed.
    #[error("no answer from the API server to {request} within {}", fl_types::Duration::from(*.limit))]
    Deadline { request: String, limit: Duration },
    /// The response exceeds the size limit.
    #[error("the answer of the API server to {request} is larger than {} MiB", .limit >> 20)]
    TooLarge { request: String, limit: usize },
    /// Discovery failed.
    #[error("failed to get server groups: {0}")]
    Groups(String),
    /// An invalid response.
    #[error("cannot read the answer of the API server to {request}: {cause}")]
    Decode { request: String, cause: String },
    /// An invalid request.
    #[error("cannot make the request {request}: {cause}")]
    Request { request: String, cause: String },
    /// This process no longer holds its lease.
    #[error("the lease of this process has run out; nothing is written")]
    Fenced,
}

impl Error {
    pub(crate) fn unreadable(kind: &Kind, name: &str, error: &serde_json::Error) -> Self {
        Error::Decode { request: format!("{} {name}", kind.kind()), cause: error.to_string() }
    }

    /// A `NotFound` error as the API server words it, for objects known to be missing.
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        ApiError::not_found(format!("{} \"{name}\" not found", kind.resource_name())).into()
    }

    /// The message of Flux's controllers for an object that is missing from their cache: the kind in place of the resource.
    pub fn absent(kind: &Kind, name: &str) -> Self {
        let place = if kind.group().is_empty() {
            kind.kind().to_owned()
        } else {
            format!("{}.{}", kind.kind(), kind.group())
        };
        ApiError::not_found(format!("{place} \"{name}\" not found")).into()
    }

    /// The API error behind this error.
    #[must_use]
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Error::Api(error) => Some(error),
            _ => None,
        }
    }

    /// The HTTP status, when there was an answer.
    pub fn code(&self) -> Option<u16> {
        self.api().map(|error| error.code)
    }

    pub fn reason(&self) -> &str {
        self.api().map_or("", |error| &error.reason)
    }

    /// Whether the object (or its namespace) does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    pub fn is_conflict(&self) -> bool {
        self.api().is_some_and(ApiError::is_conflict)
    }

    pub fn already_exists(&self) -> bool {
        self.code() == Some(409) && self.reason() == "AlreadyExists"
    }

    /// A list or watch from a version the server no longer has.
    pub fn is_gone(&self) -> bool {
        self.code() == Some(410)
    }

    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// Whether a retry may succeed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Api(error) => error.is_transient(),
            Error::Transport { .. } | Error::Deadline { .. } | Error::Groups(_) | Error::Decode { .. } => {
                true
            }
            _ => false,
        }
    }
}
