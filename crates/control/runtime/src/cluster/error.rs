//! What a cluster answers when it does not do what it was asked.

use crate::kind::Kind;

/// A failed request. Its text is what Flux shows for the same failure: the server's own message where there is one.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The server refused.
    #[error("{message}")]
    Refused {
        code: u16,
        /// `NotFound`, `Conflict`, `Invalid`, …
        reason: String,
        message: String,
        /// Seconds the server asks to wait.
        retry_after: u32,
    },
    /// No answer came.
    #[error("the API server did not answer: {problem}")]
    Unreachable { problem: String },
    /// An answer that makes no sense.
    #[error("the answer to {path} cannot be read: {problem}")]
    Answer { path: String, problem: String },
    /// A request that cannot be made.
    #[error("a request cannot be made: {problem}")]
    Request { problem: String },
}

impl ApiError {
    pub(crate) fn unreadable(kind: &Kind, name: &str, error: &serde_json::Error) -> Self {
        ApiError::Answer { path: format!("{} {name}", kind.kind()), problem: error.to_string() }
    }

    /// A refusal as the server would word it, for what is found missing without asking.
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        ApiError::Refused {
            code: 404,
            reason: "NotFound".to_owned(),
            message: format!("{} \"{name}\" not found", kind.resource_name()),
            retry_after: 0,
        }
    }

    /// The words Flux's controllers have for an object that is missing from their cache: the kind in place of the resource.
    pub fn absent(kind: &Kind, name: &str) -> Self {
        let place = if kind.group().is_empty() {
            kind.kind().to_owned()
        } else {
            format!("{}.{}", kind.kind(), kind.group())
        };
        ApiError::Refused {
            code: 404,
            reason: "NotFound".to_owned(),
            message: format!("{place} \"{name}\" not found"),
            retry_after: 0,
        }
    }

    /// The HTTP status, when there was an answer.
    pub fn code(&self) -> Option<u16> {
        match self {
            ApiError::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    pub fn reason(&self) -> &str {
        match self {
            ApiError::Refused { reason, .. } => reason,
            _ => "",
        }
    }

    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Somebody else wrote in between.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409) && self.reason() != "AlreadyExists"
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

    /// Whether trying again may help without anybody doing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            ApiError::Refused { code, .. } => matches!(code, 408 | 429 | 500..=599),
            ApiError::Unreachable { .. } => true,
            _ => false,
        }
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => ApiError::Refused {
                code: status.code,
                reason: status.reason.clone(),
                message: status.message.clone(),
                retry_after: status.details.as_ref().map_or(0, |d| d.retry_after_seconds),
            },
            kube::Error::SerdeError(e) => {
                ApiError::Answer { path: "a request".to_owned(), problem: e.to_string() }
            }
            kube::Error::FromUtf8(e) => {
                ApiError::Answer { path: "a request".to_owned(), problem: e.to_string() }
            }
            other => {
                // The innermost cause is what a person can act on.
                let mut cause: &dyn std::error::Error = &other;
                while let Some(next) = cause.source() {
                    cause = next;
                }
                ApiError::Unreachable { problem: cause.to_string() }
            }
        }
    }
}

/// The answer to "is it there?". A failed read is *unknown*, never *absent*: nothing may be deleted on it.
#[derive(Clone, Debug)]
pub enum Known<T> {
    Present(T),
    Absent,
    Unknown(ApiError),
}

impl<T> Known<T> {
    /// The value or nothing, or the reason why that is not known.
    pub fn known(self) -> Result<Option<T>, ApiError> {
        match self {
            Known::Present(value) => Ok(Some(value)),
            Known::Absent => Ok(None),
            Known::Unknown(error) => Err(error),
        }
    }
}
