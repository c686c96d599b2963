//! Request headers that affect a decision, read once and before anything else.
//!
//! A header that cannot be read rejects the request. Ignoring it would answer as if it had not been sent, and
//! a dropped `Impersonate-User` would run the request with the rights of the caller.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue};

use crate::request_info::decode;
use crate::status::{ApiError, ApiResult};

/// The headers that this server acts on. Others are ignored.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestHeaders {
    pub(crate) host: Option<String>,
    pub(crate) origin: Option<String>,
    pub(crate) sec_fetch_site: Option<String>,
    pub(crate) authorization: Option<String>,
    pub(crate) accept: String,
    pub(crate) content_type: String,
    pub(crate) user_agent: String,
    pub(crate) if_none_match: String,
    pub(crate) impersonate: Impersonate,
}

/// The `Impersonate-*` headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Impersonate {
    pub(crate) user: Option<String>,
    pub(crate) uid: Option<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl RequestHeaders {
    pub(crate) fn read(headers: &HeaderMap) -> ApiResult<Self> {
        Ok(Self {
            host: single(headers, "host")?,
            origin: single(headers, "origin")?,
            sec_fetch_site: single(headers, "sec-fetch-site")?,
            authorization: single(headers, "authorization")?,
            accept: first(headers, "accept")?,
            content_type: single(headers, "content-type")?.unwrap_or_default(),
            user_agent: first(headers, "user-agent")?,
            if_none_match: first(headers, "if-none-match")?,
            impersonate: Impersonate::read(headers)?,
        })
    }
}

impl Impersonate {
    fn read(headers: &HeaderMap) -> ApiResult<Self> {
        let mut extra = BTreeMap::<String, Vec<String>>::new();
        for (name, value) in headers {
            if let Some(key) = name.as_str().strip_prefix("impersonate-extra-") {
                extra.entry(decode(key, false)).or_default().push(text(name.as_str(), value)?.to_owned());
            }
        }
        Ok(Self {
            user: identity(headers, "impersonate-user")?,
            uid: identity(headers, "impersonate-uid")?,
            groups: all(headers, "impersonate-group")?,
            extra,
        })
    }

    /// Whether the caller wants to impersonate another user.
    pub(crate) fn is_requested(&self) -> bool {
        *self != Self::default()
    }
}

fn text<'a>(name: &str, value: &'a HeaderValue) -> ApiResult<&'a str> {
    value.to_str().map_err(|_| {
        ApiError::bad_request(format!("the header {name} holds bytes that are not printable ASCII"))
    })
}

fn all(headers: &HeaderMap, name: &str) -> ApiResult<Vec<String>> {
    headers.get_all(name).iter().map(|value| text(name, value).map(str::to_owned)).collect()
}

/// The first value, as Go's `Header.Get`, of a header that may be sent more than once.
fn first(headers: &HeaderMap, name: &str) -> ApiResult<String> {
    Ok(all(headers, name)?.into_iter().next().unwrap_or_default())
}

/// The value of a header that may be sent only once: with two of them, a check and its effect might use
/// different ones.
fn single(headers: &HeaderMap, name: &str) -> ApiResult<Option<String>> {
    let mut values = all(headers, name)?;
    if values.len() > 1 {
        return Err(ApiError::bad_request(format!("the header {name} is sent {} times", values.len())));
    }
    Ok(values.pop())
}

/// A header that names an identity. An empty value is an error: it must not mean the caller.
fn identity(headers: &HeaderMap, name: &str) -> ApiResult<Option<String>> {
    match single(headers, name)? {
        Some(value) if value.trim().is_empty() => {
            Err(ApiError::bad_request(format!("the header {name} is empty")))
        }
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &[u8])]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_bytes(value).expect("a header value"));
        }
        map
    }

    #[test]
    fn unreadable_headers_are_rejected() {
        let names = [
            "host",
            "origin",
            "sec-fetch-site",
            "authorization",
            "accept",
            "content-type",
            "user-agent",
            "if-none-match",
            "impersonate-user",
            "impersonate-uid",
            "impersonate-group",
            "impersonate-extra-scopes",
        ];
        for name in names {
            for value in ["jürgen".as_bytes(), b"j\xfcrgen", b"\xff"] {
                let refused = RequestHeaders::read(&headers(&[(name, value)])).expect_err(name);
                assert_eq!(refused.code, 400, "{name}");
                assert!(refused.message.contains(name), "{}", refused.message);
            }
        }
        // Headers without effect are not checked.
        RequestHeaders::read(&headers(&[("x-note", "jürgen".as_bytes())])).expect("read");
    }

    #[test]
    fn one_unreadable_value_rejects_the_request() {
        let mixed = headers(&[("impersonate-group", b"a"), ("impersonate-group", b"\xff")]);
        assert_eq!(RequestHeaders::read(&mixed).expect_err("refused").code, 400);
    }

    #[test]
    fn identity_headers_are_single_and_not_empty() {
        for name in ["impersonate-user", "impersonate-uid", "authorization", "host", "content-type"] {
            let twice = headers(&[(name, b"a"), (name, b"b")]);
            assert_eq!(RequestHeaders::read(&twice).expect_err(name).code, 400);
        }
        for name in ["impersonate-user", "impersonate-uid"] {
            assert_eq!(RequestHeaders::read(&headers(&[(name, b"")])).expect_err(name).code, 400);
        }
        let read = RequestHeaders::read(&headers(&[
            ("impersonate-user", b"jane"),
            ("impersonate-group", b"a"),
            ("impersonate-group", b"b"),
            ("impersonate-extra-scopes", b"view"),
        ]))
        .expect("read")
        .impersonate;
        assert_eq!(
            (read.user.as_deref(), read.groups.as_slice()),
            (Some("jane"), &["a", "b"].map(str::to_owned)[..])
        );
        assert_eq!(read.extra["scopes"], ["view"]);
        assert!(read.is_requested() && !Impersonate::default().is_requested());
    }
}
