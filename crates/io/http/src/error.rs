//! Errors of requests. Addresses are shown without user, password and query.

use std::time::Duration;

use url::Url;

/// Why a request gave no usable response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("`{url}` is not an address that can be fetched: {problem}")]
    Address { url: String, problem: String },
    #[error("the {what} cannot be used: {problem}")]
    Settings { what: &'static str, problem: String },
    /// With the message of Go's client: `Get "https://…": dial tcp …`.
    #[error("{method} \"{url}\": {problem}")]
    Request { method: String, url: String, problem: String },
    /// The host answered an earlier request with `Retry-After`; nothing was sent.
    #[error("{url} is throttled: its Retry-After ends in {wait:?}")]
    RetryAfter { url: String, wait: Duration },
    #[error("{0}")]
    Budget(#[from] crate::BudgetError),
    #[error("the answer of {url} is larger than {limit} bytes")]
    TooLarge { url: String, limit: u64 },
    #[error("{url} redirects {problem}")]
    Redirect { url: String, problem: String },
}

/// The query of a Git server, which has no secrets.
const GIT_SERVICE: &str = "service=git-upload-pack";

/// An address as it may be shown: no user, no password, no query that could hold a secret.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    if url.query() != Some(GIT_SERVICE) {
        url.set_query(None);
    }
    url.set_fragment(None);
    url.into()
}

/// The message of Go's client for a failed request. `proxy` is the address of the proxy.
pub(crate) fn problem(error: &reqwest::Error, proxy: Option<&str>) -> String {
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
    if !error.is_connect() || cause.contains("alert") {
        return cause;
    }
    let proxy = proxy.and_then(|address| Url::parse(address).ok());
    let dialled = proxy.as_ref().or(error.url());
    let through = if proxy.is_some() { "proxyconnect tcp: " } else { "" };
    match dial(error) {
        Some(refused) => {
            let at = dialled.and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
            let at = at.map(|(host, port)| format!(" {host}:{port}")).unwrap_or_default();
            format!("{through}dial tcp{at}: connect: {refused}")
        }
        None => format!("{through}dial tcp: {cause}"),
    }
}

/// The system's error of a connection, without its number.
fn dial(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(at) = next {
        if let Some(io) = at.downcast_ref::<std::io::Error>()
            && io.raw_os_error().is_some()
        {
            let text = io.to_string();
            return Some(text.split(" (os error").next().unwrap_or_default().to_lowercase());
        }
        next = at.source();
    }
    None
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
