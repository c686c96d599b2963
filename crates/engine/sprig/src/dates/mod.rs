//! Dates: Go's layouts, zones and durations.

mod civil;
mod layout;
mod parse;
mod time;
mod zone;

use fl_gotemplate::{CallError, Context, Functions, IntKind, Type, Value};
use fl_types::Duration;

use crate::args::{A, Out, S, bytes, fixed, string, text};
use crate::host::HostContext;
pub use time::Time;
use zone::Zone;

const TIME: Type = Type::Named("time.Time");

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "now", &[], |cx, _| Ok(now(cx)?.into()));
    fixed(f, "date", &[S, A], |cx, a| date_in_zone(cx, bytes(a, 0), &a[1], "Local"));
    fixed(f, "htmlDate", &[A], |cx, a| date_in_zone(cx, b"2006-01-02", &a[0], "Local"));
    fixed(f, "htmlDateInZone", &[A, S], |cx, a| date_in_zone(cx, b"2006-01-02", &a[0], &text(a, 1)));
    for name in ["dateInZone", "date_in_zone"] {
        fixed(f, name, &[S, A, S], |cx, a| date_in_zone(cx, bytes(a, 0), &a[1], &text(a, 2)));
    }
    for name in ["dateModify", "date_modify"] {
        fixed(f, name, &[S, TIME], |_, a| {
            let time = time_arg(a, 1);
            Ok(match text(a, 0).parse::<Duration>() {
                Ok(by) => time.add(by.as_nanos()).into(),
                Err(_) => time.into(),
            })
        });
    }
    for name in ["mustDateModify", "must_date_modify"] {
        fixed(f, name, &[S, TIME], |_, a| {
            let by = text(a, 0).parse::<Duration>().map_err(|e| CallError::new(e.to_string()))?;
            Ok(time_arg(a, 1).add(by.as_nanos()).into())
        });
    }
    fixed(f, "ago", &[A], |cx, a| {
        let since = time_of(cx, &a[0], false)?;
        let passed = now(cx)?.since(&since);
        Ok(Duration::from_nanos(time::round(passed, 1_000_000_000)).to_string().into())
    });
    fixed(f, "duration", &[A], |_, a| {
        let seconds = match &a[0] {
            Value::Str(text) => {
                fl_gotemplate::strconv::parse_int(text, 10).unwrap_or_else(|e| overflow(e, text))
            }
            Value::Int(IntKind::Int64, n) => *n,
            _ => 0,
        };
        Ok(Duration::from_nanos(seconds.wrapping_mul(1_000_000_000)).to_string().into())
    });
    fixed(f, "durationRound", &[A], duration_round);
    fixed(f, "toDate", &[S, S], |cx, a| {
        let local = local(cx)?;
        Ok(parse::parse(bytes(a, 0), bytes(a, 1), &local).unwrap_or_else(|_| Time::zero()).into())
    });
    fixed(f, "mustToDate", &[S, S], |cx, a| {
        let local = local(cx)?;
        Ok(parse::parse(bytes(a, 0), bytes(a, 1), &local).map_err(CallError::new)?.into())
    });
    fixed(f, "unixEpoch", &[TIME], |_, a| Ok(time_arg(a, 0).unix().to_string().into()));
}

/// The value that `strconv` returns with its range error.
fn overflow(error: fl_gotemplate::strconv::NumError, text: &[u8]) -> i64 {
    match error {
        fl_gotemplate::strconv::NumError::Syntax => 0,
        fl_gotemplate::strconv::NumError::Range if text.starts_with(b"-") => i64::MIN,
        fl_gotemplate::strconv::NumError::Range => i64::MAX,
    }
}

fn local(cx: &Context<'_>) -> Result<Zone, CallError> {
    Ok(Zone::local(HostContext::of(cx)?.host().local_zone()))
}

fn now(cx: &Context<'_>) -> Result<Time, CallError> {
    let (seconds, nanos) = HostContext::of(cx)?.host().now();
    Ok(Time::new(seconds, nanos, local(cx)?))
}

fn time_arg(a: &[Value], i: usize) -> Time {
    a[i].as_object::<Time>().cloned().unwrap_or_else(Time::zero)
}

/// A time from a template value: a time or seconds; anything else is the current time.
fn time_of(cx: &Context<'_>, value: &Value, int32: bool) -> Result<Time, CallError> {
    match value {
        Value::Object(_) => match value.as_object::<Time>() {
            Some(time) => Ok(time.clone()),
            None => now(cx),
        },
        Value::Int(IntKind::Int | IntKind::Int64, n) => Ok(Time::new(*n, 0, local(cx)?)),
        Value::Int(IntKind::Int32, n) if int32 => Ok(Time::new(*n, 0, local(cx)?)),
        _ => now(cx),
    }
}

fn date_in_zone(cx: &mut Context<'_>, format: &[u8], date: &Value, zone: &str) -> Out {
    let time = time_of(cx, date, true)?;
    let zone = match zone {
        "Local" => local(cx)?,
        name => Zone::load(name).unwrap_or(Zone::Utc),
    };
    cx.reserve(format.len() as u64 * 8)?;
    string(cx, time.in_zone(zone).format(format))
}

fn duration_round(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let nanos = match &a[0] {
        Value::Str(text) => text.to_text().parse::<Duration>().map_or(0, Duration::as_nanos),
        Value::Int(IntKind::Int64, n) => *n,
        value => match value.as_object::<Time>() {
            Some(time) => now(cx)?.since(time),
            None => 0,
        },
    };
    let size = nanos.unsigned_abs();
    const SECOND: u64 = 1_000_000_000;
    const DAY: u64 = 86_400 * SECOND;
    let units = [
        (365 * DAY, "y"),
        (30 * DAY, "mo"),
        (DAY, "d"),
        (3600 * SECOND, "h"),
        (60 * SECOND, "m"),
        (SECOND, "s"),
    ];
    let text =
        units.iter().find(|(unit, _)| size > *unit).map(|(unit, letter)| format!("{}{letter}", size / unit));
    Ok(text.unwrap_or_else(|| "0s".to_owned()).into())
}

/// A TOML date or time as `time.Time`; without a zone it is UTC.
pub(crate) fn from_toml(text: &str) -> Option<Value> {
    // Values without offset get a zone whose name records what was written.
    let layouts: [(&[u8], Option<&str>); 7] = [
        (b"2006-01-02T15:04:05.999999999Z07:00", None),
        (b"2006-01-02T15:04:05.999999999", Some("datetime-local")),
        (b"2006-01-02", Some("date-local")),
        (b"15:04:05.999999999", Some("time-local")),
        (b"2006-01-02T15:04Z07:00", None),
        (b"2006-01-02T15:04", Some("datetime-local")),
        (b"15:04", Some("time-local")),
    ];
    let (time, layout, zone) = layouts.iter().find_map(|(layout, zone)| {
        Some((parse::parse(layout, text.as_bytes(), &Zone::Utc).ok()?, *layout, *zone))
    })?;
    // Leading zeros are required, though Go's parser accepts single digits.
    let fixed = layout.iter().take_while(|b| !matches!(b, b'.' | b'Z'));
    if !fixed.zip(text.as_bytes()).all(|(l, b)| l.is_ascii_digit() || l == b) {
        return None;
    }
    Some(match zone {
        Some(name) => time.in_zone(Zone::Fixed(name.into(), 0)).into(),
        None => time.into(),
    })
}

/// A time in UTC as `YYYYMMDDhhmmss`.
pub(crate) fn utc_digits(unix: i64) -> String {
    String::from_utf8_lossy(&Time::new(unix, 0, Zone::Utc).format(b"20060102150405")).into_owned()
}
