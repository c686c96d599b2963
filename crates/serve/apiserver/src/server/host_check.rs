//! Rejects requests that a web page in the user's browser could send: a foreign Host (DNS rebinding), a
//! foreign Origin, a form.

use super::headers::RequestHeaders;
use crate::status::ApiError;

/// Host names that are accepted besides IP addresses.
const NAMES: [&str; 6] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    // In-process clients use this name; no socket is involved.
    "in-process",
];

fn host_of(authority: &str) -> &str {
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(host, _)| host);
    }
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

fn is_ours(host: &str) -> bool {
    NAMES.contains(&host.to_ascii_lowercase().as_str()) || host.parse::<std::net::IpAddr>().is_ok()
}

/// Checks Host and Origin of a request.
pub(crate) fn check(headers: &RequestHeaders, authority: Option<&str>) -> Result<(), ApiError> {
    if let Some(host) = authority.or(headers.host.as_deref())
        && !is_ours(host_of(host))
    {
        return Err(ApiError::new(
            403,
            "Forbidden",
            format!("this server does not answer to the host {host:?}"),
        ));
    }
    if let Some(origin) = &headers.origin {
        let host = origin.split_once("://").map_or("", |(_, rest)| host_of(rest));
        let loopback =
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if !loopback {
            return Err(ApiError::new(
                403,
                "Forbidden",
                format!("requests from the origin {origin:?} are refused"),
            ));
        }
    }
    if headers.sec_fetch_site.as_deref() == Some("cross-site") {
        return Err(ApiError::new(403, "Forbidden", "cross-site requests are refused"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> RequestHeaders {
        let map = pairs
            .iter()
            .map(|(k, v)| (http::HeaderName::from_static(k), http::HeaderValue::from_static(v)))
            .collect();
        RequestHeaders::read(&map).expect("readable headers")
    }

    #[test]
    fn foreign_hosts_and_origins_are_rejected() {
        for good in ["127.0.0.1:6443", "localhost", "[::1]:80", "10.0.0.1", "kubernetes.default.svc:443"] {
            assert!(check(&headers(&[]), Some(good)).is_ok(), "{good}");
        }
        for bad in ["evil.example", "localhost.evil.example:6443", "127.0.0.1.evil.example", ""] {
            assert!(check(&headers(&[]), Some(bad)).is_err(), "{bad}");
        }
        assert!(check(&headers(&[("origin", "https://evil.example")]), Some("127.0.0.1")).is_err());
        assert!(check(&headers(&[("origin", "null")]), Some("127.0.0.1")).is_err());
        assert!(check(&headers(&[("origin", "http://localhost:3000")]), Some("127.0.0.1")).is_ok());
        assert!(check(&headers(&[("sec-fetch-site", "cross-site")]), Some("127.0.0.1")).is_err());
    }
}
