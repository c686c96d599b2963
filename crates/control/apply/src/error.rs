//! What can go wrong between this process and an API server.

use serde_json::Value;

/// A refusal: the `Status` an API server answered with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status.
    pub code: u16,
    /// `NotFound`, `Invalid`, ...; empty when the server gave none.
    pub reason: String,
    /// The text.
    pub message: String,
    /// The reasons of its causes.
    pub causes: Vec<String>,
    /// How long the server asks to be left alone.
    pub retry_after_seconds: Option<u64>,
}

impl ApiError {
    /// Reads a `Status` body; a body that is none becomes the message.
    #[must_use]
    pub fn from_body(code: u16, body: &[u8]) -> Self {
        let status: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
        let mut message = text("message");
        if message.is_empty() {
            message = String::from_utf8_lossy(body).trim().to_owned();
        }
        if message.is_empty() {
            message = format!("the server answered with status {code}");
        }
        let details = &status["details"];
        let causes = details["causes"].as_array().into_iter().flatten();
        ApiError {
            code,
            reason: text("reason"),
            message,
            causes: causes.filter_map(|c| c["reason"].as_str().map(str::to_owned)).collect(),
            retry_after_seconds: details["retryAfterSeconds"].as_u64().filter(|s| *s > 0),
        }
    }

    /// A refusal made here, where the server's answer is known beforehand.
    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        ApiError {
            code: 404,
            reason: "NotFound".to_owned(),
            message: message.into(),
            causes: Vec::new(),
            retry_after_seconds: None,
        }
    }

    /// Whether what was asked for does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// Whether the path is not served at all. That says nothing about the object: servers tell of a missing one with a reason.
    #[must_use]
    pub fn is_unserved(&self) -> bool {
        self.code == 404 && self.reason.is_empty()
    }

    /// Whether a conflict with another writer or manager is the reason.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code == 409 && self.reason != "AlreadyExists"
    }

    /// Whether the identity lacks the right.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.code == 403
    }

    /// Whether the object was refused as a whole.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.code == 422
    }

    /// Whether trying again may help: the server is overloaded or between two states.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self.code, 429 | 500 | 502 | 503 | 504)
            && !self.message.contains("failed to create typed patch")
    }

    /// Whether the answer says nothing about the object: somebody in between gave it, or the server had no time to look.
    #[must_use]
    pub fn is_away(&self) -> bool {
        matches!(self.code, 429 | 502 | 503 | 504)
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

/// A request that gave no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server refused.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The server does not serve the kind.
    #[error("no matches for kind \"{kind}\" in version \"{api_version}\"")]
    NoKind {
        /// The kind.
        kind: String,
        /// `group/version`.
        api_version: String,
    },
    /// No answer, or half of one.
    #[error("no answer from the API server to {request}: {cause}")]
    Transport {
        /// Method and path.
        request: String,
        /// What broke.
        cause: String,
    },
    /// No answer to the question which kinds there are.
    #[error("failed to get server groups: {0}")]
    Groups(String),
    /// An answer that is not JSON.
    #[error("cannot read the answer of the API server to {request}: {cause}")]
    Answer {
        /// Method and path.
        request: String,
        /// What is wrong with it.
        cause: String,
    },
    /// An object without what every object has.
    #[error("an object without {missing} cannot be applied")]
    Incomplete {
        /// The missing field.
        missing: &'static str,
    },
    /// Managed fields that cannot be read.
    #[error("unable to merge managed fields: {0}")]
    ManagedFields(String),
    /// An ignore rule that does not fit the object.
    #[error("cannot apply ignore rule: {0}")]
    Ignore(String),
    /// A wait that took too long.
    #[error("{0}")]
    Timeout(String),
}

impl Error {
    /// The refusal behind the error.
    #[must_use]
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Error::Api(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the object (or its namespace) does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.api().is_some_and(ApiError::is_not_found)
    }

    /// Whether trying again may help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Api(error) => error.is_transient(),
            Error::Transport { .. } | Error::Groups(_) | Error::Answer { .. } => true,
            _ => false,
        }
    }
}
