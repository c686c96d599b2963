//! Hosts that asked to be left alone. One budget for the whole process: ten objects on one registry must not each find out anew.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use tokio::time::Instant;
use url::Url;

/// No host can stop us for longer than this; the budgets of the large Git hosts start anew every hour.
const LONGEST: Duration = Duration::from_secs(60 * 60);

static UNTIL: LazyLock<Mutex<HashMap<String, Instant>>> = LazyLock::new(Mutex::default);

fn host(url: &Url) -> String {
    format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default())
}

/// How long this host is still to be left alone.
pub(crate) fn wait(url: &Url) -> Option<Duration> {
    let mut until = UNTIL.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    until.retain(|_, at| *at > now);
    until.get(&host(url)).map(|at| *at - now)
}

/// Remembers what an answer says about the next request.
pub(crate) fn note(url: &Url, status: StatusCode, headers: &HeaderMap) {
    if status != StatusCode::TOO_MANY_REQUESTS && status != StatusCode::SERVICE_UNAVAILABLE {
        return;
    }
    let Some(window) = window(headers).filter(|w| !w.is_zero()) else { return };
    let at = Instant::now() + window.min(LONGEST);
    let mut until = UNTIL.lock().unwrap_or_else(PoisonError::into_inner);
    let known = until.entry(host(url)).or_insert(at);
    // Answers may overtake each other; the longest wish counts.
    *known = at.max(*known);
}

/// How long the host wants to be left alone: seconds, or a time on the clock of the host.
fn window(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim);
    let wish = text(RETRY_AFTER)?;
    if let Ok(seconds) = wish.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let time = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|time| time.timestamp());
    let until = time(wish)?;
    // Its own clock where it tells it: both need not agree.
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
    fn seconds_and_times_are_understood() {
        let asked = |wish: &str| {
            window(&headers(&[(RETRY_AFTER, wish), (DATE, "Sun, 06 Nov 1994 08:49:37 GMT")]))
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
    async fn the_longest_wish_counts_and_ends() {
        let url: Url = "https://registry.example/v2/".parse().expect("an address");
        let busy = StatusCode::TOO_MANY_REQUESTS;
        note(&url, StatusCode::OK, &headers(&[(RETRY_AFTER, "9")]));
        assert_eq!(wait(&url), None);
        note(&url, busy, &headers(&[(RETRY_AFTER, "60")]));
        note(&url, busy, &headers(&[(RETRY_AFTER, "5")]));
        assert_eq!(wait(&url), Some(Duration::from_secs(60)));
        assert_eq!(wait(&"https://other.example/".parse().expect("an address")), None);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(wait(&url), None);
        note(&url, busy, &headers(&[(RETRY_AFTER, "999999999")]));
        assert_eq!(wait(&url), Some(LONGEST));
    }
}
