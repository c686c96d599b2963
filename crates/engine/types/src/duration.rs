//! Durations as Go's `time.Duration` reads and prints them.

use std::fmt;
use std::str::FromStr;

use crate::text_serde::text_serde;

/// A length of time in nanoseconds, signed, at most about 292 years. Reads `1h30m`, prints `1h30m0s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

/// Why a text is not a Go duration, with Go's messages.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DurationError {
    /// No number, a stray character, or a value beyond the range.
    #[error("time: invalid duration {0}")]
    Invalid(String),
    /// A number without a unit.
    #[error("time: missing unit in duration {0}")]
    MissingUnit(String),
    /// A unit that Go does not have.
    #[error("time: unknown unit {unit} in duration {text}")]
    UnknownUnit {
        /// The unknown unit.
        unit: String,
        /// The whole text.
        text: String,
    },
}

impl Duration {
    /// Zero.
    pub const ZERO: Duration = Duration(0);

    /// From nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Duration(nanos)
    }

    /// From milliseconds; saturates at the range.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Duration(millis.saturating_mul(1_000_000))
    }

    /// From seconds; saturates at the range.
    #[must_use]
    pub const fn from_secs(seconds: i64) -> Self {
        Duration(seconds.saturating_mul(1_000_000_000))
    }

    /// From minutes; saturates at the range.
    #[must_use]
    pub const fn from_mins(minutes: i64) -> Self {
        Duration::from_secs(minutes.saturating_mul(60))
    }

    /// The duration in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The duration in seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        // Split as Go does: whole seconds stay exact.
        (self.0 / 1_000_000_000) as f64 + (self.0 % 1_000_000_000) as f64 / 1e9
    }

    /// The duration as an unsigned `std` duration; `None` when negative.
    #[must_use]
    pub fn to_std(self) -> Option<std::time::Duration> {
        u64::try_from(self.0).ok().map(std::time::Duration::from_nanos)
    }
}

impl From<std::time::Duration> for Duration {
    /// Saturates at Go's range.
    fn from(value: std::time::Duration) -> Self {
        Duration(i64::try_from(value.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// Nanoseconds of a unit.
fn unit_nanos(unit: &[u8]) -> Option<u64> {
    Some(match unit {
        b"ns" => 1,
        // U+00B5 (micro sign) and U+03BC (Greek mu).
        b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => 1_000,
        b"ms" => 1_000_000,
        b"s" => 1_000_000_000,
        b"m" => 60_000_000_000,
        b"h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Parses leading decimal digits; `None` when the number exceeds 2^63.
fn leading_int(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    let mut at = 0;
    while let Some(digit) = text.get(at).filter(|b| b.is_ascii_digit()) {
        if value > (1 << 63) / 10 {
            return None;
        }
        value = value * 10 + u64::from(digit - b'0');
        if value > 1 << 63 {
            return None;
        }
        at += 1;
    }
    Some((value, &text[at..]))
}

/// Parses leading digits after a point: value, scale (a power of ten as float, as in Go), rest. Excess digits
/// are dropped.
fn leading_fraction(text: &[u8]) -> (u64, f64, &[u8]) {
    let (mut value, mut scale, mut overflow, mut at) = (0u64, 1f64, false, 0);
    while let Some(digit) = text.get(at).filter(|b| b.is_ascii_digit()) {
        at += 1;
        if overflow {
            continue;
        }
        if value > ((1 << 63) - 1) / 10 {
            overflow = true;
            continue;
        }
        let next = value * 10 + u64::from(digit - b'0');
        if next > 1 << 63 {
            overflow = true;
            continue;
        }
        value = next;
        scale *= 10.0;
    }
    (value, scale, &text[at..])
}

/// Quotes a text as Go's `time` package does: bytes outside of printable ASCII as `\xNN`.
fn quote(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for &byte in text {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

fn parse(text: &[u8]) -> Result<i64, DurationError> {
    let invalid = || DurationError::Invalid(quote(text));
    let (negative, mut rest) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == b"0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0u64;
    while !rest.is_empty() {
        if !(rest[0] == b'.' || rest[0].is_ascii_digit()) {
            return Err(invalid());
        }
        let before = rest.len();
        let (mut value, after) = leading_int(rest).ok_or_else(invalid)?;
        let mut digits = before != after.len();
        rest = after;
        let (mut fraction, mut scale) = (0, 1.0);
        if rest.first() == Some(&b'.') {
            let before = rest.len() - 1;
            (fraction, scale, rest) = leading_fraction(&rest[1..]);
            digits |= before != rest.len();
        }
        if !digits {
            return Err(invalid());
        }
        let end = rest.iter().position(|b| *b == b'.' || b.is_ascii_digit()).unwrap_or(rest.len());
        let (unit, after) = rest.split_at(end);
        if unit.is_empty() {
            return Err(DurationError::MissingUnit(quote(text)));
        }
        let nanos = unit_nanos(unit)
            .ok_or_else(|| DurationError::UnknownUnit { unit: quote(unit), text: quote(text) })?;
        rest = after;
        if value > (1 << 63) / nanos {
            return Err(invalid());
        }
        value *= nanos;
        if fraction > 0 {
            // Float arithmetic, because Go rounds the same way.
            value += (fraction as f64 * (nanos as f64 / scale)) as u64;
            if value > 1 << 63 {
                return Err(invalid());
            }
        }
        total = total.checked_add(value).filter(|t| *t <= 1 << 63).ok_or_else(invalid)?;
    }
    if negative {
        return Ok((total as i64).wrapping_neg());
    }
    i64::try_from(total).map_err(|_| invalid())
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text.as_bytes()).map(Duration)
    }
}

/// `digits` as a fraction of `10^places`, without trailing zeros: `.5`, or nothing.
fn fraction(digits: u64, places: usize) -> String {
    if digits == 0 {
        return String::new();
    }
    let text = format!("{digits:0places$}");
    format!(".{}", text.trim_end_matches('0'))
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.0.unsigned_abs();
        if total == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_str("-")?;
        }
        // Below a second Go uses the largest unit with a non-zero integer part.
        if total < 1_000_000_000 {
            let (unit, places, name) = match total {
                0..1_000 => (1, 0, "ns"),
                1_000..1_000_000 => (1_000, 3, "µs"),
                _ => (1_000_000, 6, "ms"),
            };
            return write!(f, "{}{}{name}", total / unit, fraction(total % unit, places));
        }
        let (seconds, nanos) = (total / 1_000_000_000, total % 1_000_000_000);
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{}{}s", seconds % 60, fraction(nanos, 9))
    }
}

text_serde!(Duration, "a Go duration such as \"1h30m\"");

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<i64, String> {
        text.parse::<Duration>().map(Duration::as_nanos).map_err(|e| e.to_string())
    }

    #[test]
    fn parses_as_go() {
        let table = [
            ("0", 0),
            ("-0", 0),
            ("5s", 5_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5s", 1_500_000_000),
            ("-1.5h", -5_400_000_000_000),
            ("+5s", 5_000_000_000),
            (".5m", 30_000_000_000),
            ("5.s", 5_000_000_000),
            ("1us", 1_000),
            ("1µs", 1_000),
            ("1μs", 1_000),
            ("100ns", 100),
            ("3h2m1s4ms5us6ns", 10_921_004_005_006),
            ("0.3333333333333333333h", 1_200_000_000_000),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
            ("0.9223372036854775807h", 3_320_413_933_267),
        ];
        for (text, nanos) in table {
            assert_eq!(read(text), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn error_messages_match_go() {
        let table = [
            ("", "time: invalid duration \"\""),
            ("3", "time: missing unit in duration \"3\""),
            ("-", "time: invalid duration \"-\""),
            ("s", "time: invalid duration \"s\""),
            (".s", "time: invalid duration \".s\""),
            ("1d", "time: unknown unit \"d\" in duration \"1d\""),
            ("1é", "time: unknown unit \"\\xc3\\xa9\" in duration \"1\\xc3\\xa9\""),
            ("9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""),
            ("2562047h48m", "time: invalid duration \"2562047h48m\""),
            ("1h 2m", "time: unknown unit \"h \" in duration \"1h 2m\""),
        ];
        for (text, error) in table {
            assert_eq!(read(text), Err(error.to_owned()), "{text}");
        }
    }

    #[test]
    fn prints_as_go() {
        let table = [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (176_163_666, "176.163666ms"),
            (3_300_000_000, "3.3s"),
            (600_000_000_000, "10m0s"),
            (5_400_000_000_000, "1h30m0s"),
            (245_000_000_001, "4m5.000000001s"),
            (-1_500_000_000, "-1.5s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
            (i64::MAX, "2562047h47m16.854775807s"),
        ];
        for (nanos, text) in table {
            assert_eq!(Duration::from_nanos(nanos).to_string(), text);
            assert_eq!(read(text), Ok(nanos), "{text} read back");
        }
    }
}
