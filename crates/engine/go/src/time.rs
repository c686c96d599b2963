//! Times as Go writes them in JSON.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time as Go's `time.Time` prints it: RFC 3339 with as many digits as needed and its original zone. The
/// text is kept as read, because digests depend on it. Empty is Go's zero time, which Helm omits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GoTime(String);

const ZERO: &str = "0001-01-01T00:00:00Z";

impl GoTime {
    /// A time in UTC.
    pub fn at(moment: Timestamp) -> Self {
        Self(moment.to_string())
    }

    /// Whether this is the zero time.
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// The time, if it is set and valid.
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.0.parse().ok()
    }

    /// The time in whole seconds, as Kubernetes stores times; Go's zero time if it is not set.
    pub fn seconds(&self) -> Option<Timestamp> {
        let moment = self.timestamp()?;
        Timestamp::from_second(moment.as_second()).ok()
    }

    /// The text as read.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl Serialize for GoTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if self.is_zero() { ZERO } else { &self.0 })
    }
}

impl<'de> Deserialize<'de> for GoTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
        Ok(Self(if text == ZERO { String::new() } else { text }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_time_is_empty() {
        let zero: GoTime = serde_json::from_str("\"0001-01-01T00:00:00Z\"").expect("a time");
        assert!(zero.is_zero());
        let empty: GoTime = serde_json::from_str("\"\"").expect("a time");
        assert!(empty.is_zero());
        let kept: GoTime = serde_json::from_str("\"2026-01-02T03:04:05.120+02:00\"").expect("a time");
        assert_eq!(kept.text(), "2026-01-02T03:04:05.120+02:00");
        assert_eq!(kept.seconds().map(|t| t.to_string()).as_deref(), Some("2026-01-02T01:04:05Z"));
    }

    #[test]
    fn fraction_has_no_trailing_zeros() {
        let at = Timestamp::new(5, 120_000_000).expect("a moment");
        assert_eq!(GoTime::at(at).text(), "1970-01-01T00:00:05.12Z");
    }
}
