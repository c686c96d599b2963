//! Timestamps and durations.

use fl_types::{date_of_days, days_of_date};

use crate::error::EvalError;
use crate::eval::Eval;
use crate::value::Value;

const SECOND: i128 = 1_000_000_000;

pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Eval<'a>> {
    match args {
        [Value::Duration(d)] => {
            let unit = match name {
                "getHours" => 3_600_000_000_000,
                "getMinutes" => 60_000_000_000,
                "getSeconds" => 1_000_000_000,
                "getMilliseconds" => 1_000_000,
                _ => return None,
            };
            Some(Ok(Value::Int(d / unit)))
        }
        [Value::Timestamp(t)] => part(name, *t).map(|n| Ok(Value::Int(n))),
        [Value::Timestamp(t), Value::Text(zone)] => {
            part(name, *t)?;
            Some(match offset(zone) {
                Some(seconds) => {
                    Ok(Value::Int(part(name, t + i128::from(seconds) * SECOND).unwrap_or_default()))
                }
                None => Err(EvalError::new(format!("unknown time zone {zone}"))),
            })
        }
        _ => None,
    }
}

/// Seconds east of UTC of `UTC`, `+01:00`, `-08:30` or `01:00`.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "UTC" | "Z" | "" | "Etc/UTC") {
        return Some(0);
    }
    let (sign, rest) = match zone.as_bytes().first()? {
        b'-' => (-1, &zone[1..]),
        b'+' => (1, &zone[1..]),
        _ => (1, zone),
    };
    let (hours, minutes) = rest.split_once(':')?;
    Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60))
}

fn part(name: &str, nanos: i128) -> Option<i64> {
    let seconds = i64::try_from(nanos.div_euclid(SECOND)).ok()?;
    let days = seconds.div_euclid(86_400);
    let of_day = seconds.rem_euclid(86_400);
    let (year, month, day) = date_of_days(days);
    Some(match name {
        "getFullYear" => year,
        "getMonth" => month - 1,
        "getDate" => day,
        "getDayOfMonth" => day - 1,
        "getDayOfYear" => days - days_of_date(year, 1, 1),
        "getDayOfWeek" => (days + 4).rem_euclid(7),
        "getHours" => of_day / 3600,
        "getMinutes" => of_day / 60 % 60,
        "getSeconds" => of_day % 60,
        "getMilliseconds" => i64::try_from(nanos.rem_euclid(SECOND) / 1_000_000).ok()?,
        _ => return None,
    })
}

/// Nanoseconds since 1970 of an RFC 3339 text.
pub(crate) fn parse_timestamp(text: &str) -> Option<i128> {
    let bytes = text.as_bytes();
    if bytes.len() < 20
        || !text.is_ascii()
        || !matches!(bytes[10], b'T' | b't')
        || bytes[4] != b'-'
        || bytes[7] != b'-'
    {
        return None;
    }
    let field = |from: usize, to: usize| -> Option<i64> {
        let digits = &text[from..to];
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
    };
    let (year, month, day) = (field(0, 4)?, field(5, 7)?, field(8, 10)?);
    let (hour, minute, second) = (field(11, 13)?, field(14, 16)?, field(17, 19)?);
    if bytes[13] != b':' || bytes[16] != b':' || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    if date_of_days(days_of_date(year, month, day)) != (year, month, day) {
        return None;
    }
    let mut rest = &text[19..];
    let mut nanos = 0i128;
    if let Some(fraction) = rest.strip_prefix('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return None;
        }
        let mut padded = fraction[..digits.min(9)].to_owned();
        while padded.len() < 9 {
            padded.push('0');
        }
        nanos = padded.parse().ok()?;
        rest = &fraction[digits..];
    }
    let east = match rest {
        "Z" | "z" => 0,
        zone if zone.len() == 6 && zone.starts_with(['+', '-']) => offset(zone)?,
        _ => return None,
    };
    let seconds = days_of_date(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - east;
    Some(i128::from(seconds) * SECOND + nanos)
}

pub(crate) fn print_timestamp(nanos: i128) -> String {
    let seconds = i64::try_from(nanos.div_euclid(SECOND)).unwrap_or_default();
    let fraction = nanos.rem_euclid(SECOND);
    let (year, month, day) = date_of_days(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let mut text = format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    );
    if fraction != 0 {
        text.push_str(format!(".{fraction:09}").trim_end_matches('0'));
    }
    text.push('Z');
    text
}

pub(crate) fn print_duration(nanos: i64) -> String {
    format!("{}s", nanos as f64 / 1e9)
}

/// Go's duration syntax.
pub(crate) fn parse_go_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0i128;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let scale: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "m" => 60 * SECOND,
            "h" => 3600 * SECOND,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || whole.len() > 19 || fraction.contains('.') {
            return None;
        }
        total += whole.parse::<i128>().unwrap_or(0) * scale;
        let mut part = scale;
        let mut value = 0i128;
        for digit in fraction.bytes().take(18) {
            value = value * 10 + i128::from(digit - b'0');
            part *= 10;
        }
        if part > scale {
            total += value * scale / (part / scale);
        }
        rest = tail;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// Go's syntax, or the lenient one allowed for `format: duration` (`5 minutes`).
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    if let Some(exact) = parse_go_duration(text) {
        return Some(exact);
    }
    const UNITS: &[(&[&str], &str, i128)] = &[
        (&["ns"], "nano", 1),
        (&["us", "µs"], "micro", 1_000),
        (&["ms"], "milli", 1_000_000),
        (&["s"], "sec", SECOND),
        (&["m"], "min", 60 * SECOND),
        (&["h", "hr"], "hour", 3600 * SECOND),
        (&["d"], "day", 86_400 * SECOND),
        (&["w", "wk"], "week", 604_800 * SECOND),
    ];
    let mut total = 0i128;
    let mut any = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let count: i128 = rest[..digits].parse().ok()?;
        let tail = rest[digits..].trim_start();
        let end = tail.find(|c: char| !(c.is_ascii_alphabetic() || c == 'µ')).unwrap_or(tail.len());
        let unit = tail[..end].to_lowercase();
        if let Some((_, _, scale)) =
            UNITS.iter().find(|(exact, start, _)| exact.contains(&unit.as_str()) || unit.starts_with(start))
        {
            total += count * scale;
            any = true;
        }
        rest = &tail[end..];
    }
    any.then(|| i64::try_from(total).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_round_trip() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2024-02-29T23:59:59.123456789Z",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
        ] {
            assert_eq!(parse_timestamp(text).map(print_timestamp).as_deref(), Some(text));
        }
        assert_eq!(parse_timestamp("2024-01-01T01:00:00+01:00"), parse_timestamp("2024-01-01T00:00:00Z"));
        assert_eq!(parse_timestamp("2023-02-29T00:00:00Z"), None);
    }

    #[test]
    fn durations_are_parsed() {
        assert_eq!(parse_go_duration("1h30m"), Some(5_400_000_000_000));
        assert_eq!(parse_go_duration("-1.5s"), Some(-1_500_000_000));
        assert_eq!(parse_go_duration("5"), None);
        assert_eq!(parse_duration("5 minutes"), Some(300_000_000_000));
    }
}
