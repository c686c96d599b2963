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
    #[error("{method} {url} failed: {problem}")]
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

/// The innermost cause of a client error, which is what a person can act on.
pub(crate) fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(next) = innermost.source() {
        innermost = next;
    }
    innermost.to_string()
}
