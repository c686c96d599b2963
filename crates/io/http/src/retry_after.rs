//! Hosts that answered with `Retry-After`, so that not each object of a tenant has to find out.
//!
//! They are kept by [`Route`], which includes the owner, and not for the whole process. A response is about the requests of one
//! owner over one route; a tenant can forge one with a proxy, on a path that it controls, or by using up the
//! budget of its own login, and could silence a host for all others if it counted for them.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use tokio::time::Instant;
use url::Url;

use crate::Route;

/// No host can stop requests for longer than this; the rate limits of the large Git hosts are reset every hour.
const MAX_WINDOW: Duration = Duration::from_secs(60 * 60);
/// Hosts that are kept; the one whose window ends first makes room.
const MAX_HOSTS: usize = 10_000;

static NEXT_REQUEST: LazyLock<Mutex<HashMap<(Route, String), Instant>>> = LazyLock::new(Mutex::default);

fn host(url: &Url) -> String {
    format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default())
}

/// How long no request may be sent to this host over this route.
pub(crate) fn wait(route: &Route, url: &Url) -> Option<Duration> {
    let mut all = NEXT_REQUEST.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    all.retain(|_, at| *at > now);
    if all.is_empty() {
        return None;
    }
    all.get(&(route.clone(), host(url))).map(|at| *at - now)
}

/// Records the `Retry-After` of a response.
pub(crate) fn note(route: &Route, url: &Url, status: StatusCode, headers: &HeaderMap) {
    if status != StatusCode::TOO_MANY_REQUESTS && status != StatusCode::SERVICE_UNAVAILABLE {
        return;
    }
    let Some(window) = window(headers).filter(|w| !w.is_zero()) else { return };
    let at = Instant::now() + window.min(MAX_WINDOW);
    let mut all = NEXT_REQUEST.lock().unwrap_or_else(PoisonError::into_inner);
    if all.len() >= MAX_HOSTS
        && let Some(first) = all.iter().min_by_key(|(_, at)| **at).map(|(key, _)| key.clone())
    {
        all.remove(&first);
    }
    let known = all.entry((route.clone(), host(url))).or_insert(at);
    // Responses may overtake each other; the longest window counts.
    *known = at.max(*known);
}

/// The window of a response: seconds, or a time on the clock of the host.
fn window(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim);
    let value = text(RETRY_AFTER)?;
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let time = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|time| time.timestamp());
    let until = time(value)?;
    // The host's own clock where it sends one: the two clocks need not agree.
    let now = text(DATE).and_then(time).unwrap_or_else(jiff::Timestamp::now);
    Duration::try_from(until.duration_since(now)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(http::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().expect("a value"))).collect()
    }

    #[test]
    fn seconds_and_dates_are_parsed() {
        let asked = |value: &str| {
            window(&headers(&[(RETRY_AFTER, value), (DATE, "Sun, 06 Nov 1994 08:49:37 GMT")]))
                .map(|w| w.as_secs())
        };
        assert_eq!(asked("120"), Some(120));
        assert_eq!(asked("Sun, 06 Nov 1994 08:51:37 GMT"), Some(120));
        assert_eq!(asked("Sun, 06 Nov 1994 08:40:00 GMT"), None);
        for nonsense in ["", "soon", "-5", "1.5", "99999999999999999999", "Sun, 99 Nov 1994"] {
            assert_eq!(asked(nonsense), None, "{nonsense}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn longest_retry_after_wins_and_expires() {
        let url: Url = "https://registry.example/v2/".parse().expect("an address");
        let route = Route::of(&crate::Settings::new(crate::Owner::namespace("a")));
        let other = Route::of(&crate::Settings::new(crate::Owner::namespace("b")));
        let busy = StatusCode::TOO_MANY_REQUESTS;
        note(&route, &url, StatusCode::OK, &headers(&[(RETRY_AFTER, "9")]));
        assert_eq!(wait(&route, &url), None);
        note(&route, &url, busy, &headers(&[(RETRY_AFTER, "60")]));
        note(&route, &url, busy, &headers(&[(RETRY_AFTER, "5")]));
        assert_eq!(wait(&route, &url), Some(Duration::from_secs(60)));
        assert_eq!(wait(&other, &url), None, "another tenant");
        assert_eq!(wait(&route, &"https://other.example/".parse().expect("an address")), None);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(wait(&route, &url), None);
        note(&route, &url, busy, &headers(&[(RETRY_AFTER, "999999999")]));
        assert_eq!(wait(&route, &url), Some(MAX_WINDOW));
    }
}
