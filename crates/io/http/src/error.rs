//! Errors of requests. Addresses are shown without user, password and query.

use std::time::Duration;

use url::Url;

/// Why a request gave no answer that can be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("`{url}` is not an address that can be fetched: {problem}")]
    Address { url: String, problem: String },
    #[error("the {what} cannot be used: {problem}")]
    Settings { what: &'static str, problem: String },
    /// The words are those of Go's client, which users of Flux know: `Get "https://…": dial tcp …`.
    #[error("{method} \"{url}\": {problem}")]
    Request { method: String, url: String, problem: String },
    #[error("{url} asked to be left alone for another {wait:?}")]
    Calm { url: String, wait: Duration },
    #[error("the answer of {url} is larger than {limit} bytes")]
    TooLarge { url: String, limit: u64 },
    #[error("{url} redirects {problem}")]
    Redirect { url: String, problem: String },
}

/// An address as it may be shown: no user, no password, no query.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// What a failed request is called, in the words of Go's client.
pub(crate) fn problem(error: &reqwest::Error) -> String {
    let cause = cause(error);
    if error.is_timeout() {
        return "context deadline exceeded".to_owned();
    }
    if let Some(certificate) = cause.strip_prefix("invalid peer certificate: ") {
        let why = match certificate {
            "UnknownIssuer" => "x509: certificate signed by unknown authority",
            other => other,
        };
        return format!("tls: failed to verify certificate: {why}");
    }
    if error.is_connect() && !cause.contains("alert") { format!("dial tcp: {cause}") } else { cause }
}

/// `Get`, as Go writes a method in an error.
pub(crate) fn verb(method: &http::Method) -> String {
    let mut letters = method.as_str().chars();
    letters.next().map_or_else(String::new, |first| format!("{first}{}", letters.as_str().to_lowercase()))
}

/// The innermost cause of a client error, which is what a person can act on.
pub(crate) fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(next) = innermost.source() {
        innermost = next;
    }
    innermost.to_string()
}
