//! Hosts that asked to be left alone. One budget for the whole process: ten objects on one registry must not each find out anew.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use tokio::time::Instant;
use url::Url;

/// No host can stop us for longer than this.
const LONGEST: Duration = Duration::from_secs(15 * 60);

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
    // Only the form in seconds: a date would need both clocks to agree.
    let seconds =
        headers.get(RETRY_AFTER).and_then(|v| v.to_str().ok()).and_then(|v| v.trim().parse::<u64>().ok());
    if let Some(seconds) = seconds.filter(|s| *s > 0) {
        let at = Instant::now() + Duration::from_secs(seconds).min(LONGEST);
        UNTIL.lock().unwrap_or_else(PoisonError::into_inner).insert(host(url), at);
    }
}
