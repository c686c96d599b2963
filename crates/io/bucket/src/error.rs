//! Errors of a bucket.

use fl_bucket_index::{IndexError, KeyError, ListError, Refusal};

/// Why a bucket gave no usable response, with Flux's messages where there are any.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{0}")]
    Http(#[from] fl_http::Error),
    /// The provider's own message, if it has one.
    #[error("{message}")]
    Refused { status: u16, code: String, message: String, region: String },
    #[error("{0}")]
    List(#[from] ListError),
    #[error("{0}")]
    Key(#[from] KeyError),
    #[error("{0}")]
    Index(#[from] IndexError),
    #[error("the listing does not advance: a page of it leads back to an earlier one")]
    Loop,
    #[error("the listing has more than {0} pages")]
    Pages(usize),
    #[error("the content is larger than {0} bytes")]
    TooLarge(u64),
    #[error("{0}")]
    Broken(String),
    #[error("the answer has no {0}")]
    Incomplete(&'static str),
    #[error("{0}")]
    Settings(String),
    #[error("{0}")]
    Login(String),
    #[error("cannot keep the object: {0}")]
    Spool(#[source] std::io::Error),
    #[error("{0}")]
    Budget(#[from] fl_http::BudgetError),
}

impl Error {
    /// The error of a response. `object`: whether an object was requested, rather than the bucket.
    pub(crate) fn refused(status: fl_http::StatusCode, body: &[u8], object: bool) -> Self {
        let number = status.as_u16();
        if let Some(Refusal { code, message, region }) = Refusal::read(body) {
            let message = if message.is_empty() { known(&code) } else { message };
            return Error::Refused { status: number, code, message, region };
        }
        let (code, message) = match number {
            404 if object => ("NoSuchKey".to_owned(), known("NoSuchKey")),
            404 => ("NoSuchBucket".to_owned(), known("NoSuchBucket")),
            403 => ("AccessDenied".to_owned(), known("AccessDenied")),
            412 => ("PreconditionFailed".to_owned(), known("PreconditionFailed")),
            _ => {
                let line = format!("{number} {}", status.canonical_reason().unwrap_or_default());
                let text = String::from_utf8_lossy(body);
                let text: String = text.trim().chars().take(1024).collect();
                (line.clone(), if text.is_empty() { line } else { text })
            }
        };
        Error::Refused { status: number, code, message, region: String::new() }
    }

    pub(crate) fn code(&self) -> &str {
        match self {
            Error::Refused { code, .. } => code,
            _ => "",
        }
    }

    /// Whether the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Error::Http(fl_http::Error::Request { problem, .. }) => {
                !problem.contains("certificate") && !problem.contains("deadline")
            }
            Error::Refused { status, code, .. } => {
                matches!(status, 408 | 429 | 499 | 500 | 502 | 503 | 504 | 520)
                    || matches!(
                        code.as_str(),
                        "RequestTimeout" | "InternalError" | "SlowDown" | "SlowDownRead" | "Throttling"
                    )
            }
            Error::Broken(_) => true,
            _ => false,
        }
    }
}

/// The message for a code without one.
fn known(code: &str) -> String {
    match code {
        "AccessDenied" => "Access Denied.".to_owned(),
        "NoSuchBucket" => "The specified bucket does not exist.".to_owned(),
        "NoSuchKey" => "The specified key does not exist.".to_owned(),
        "PreconditionFailed" => "At least one of the pre-conditions you specified did not hold".to_owned(),
        code => format!("Error response code {code}."),
    }
}
