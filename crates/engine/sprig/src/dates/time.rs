//! `time.Time` with the fields and methods that templates use.

use std::any::Any;
use std::borrow::Cow;

use fl_gotemplate::{CallError, Context, IntKind, Kind, Object, Signature, Type, Value};
use fl_types::{Duration, date_of_days, days_of_date};

use super::civil::{MONTHS, WEEKDAYS};
use super::layout::{Std, next_chunk};
use super::zone::Zone;

/// A point in time with its zone.
#[derive(Clone, Debug)]
pub struct Time {
    seconds: i64,
    nanos: u32,
    zone: Zone,
}

/// Unix seconds of Go's zero time, year 1.
const ZERO: i64 = -62_135_596_800;

/// Wall clock and calendar of a time.
pub(super) struct Wall {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    pub(super) weekday: usize,
    pub(super) year_day: i64,
    offset: i64,
    abbreviation: String,
}

impl Time {
    pub(super) fn new(seconds: i64, nanos: u32, zone: Zone) -> Self {
        Time { seconds, nanos, zone }
    }

    pub(super) fn zero() -> Self {
        Time::new(ZERO, 0, Zone::Utc)
    }

    pub(super) fn unix(&self) -> i64 {
        self.seconds
    }

    pub(super) fn in_zone(self, zone: Zone) -> Self {
        Time { zone, ..self }
    }

    /// Adds nanoseconds.
    pub(super) fn add(&self, nanos: i64) -> Self {
        let total = i64::from(self.nanos) + nanos.rem_euclid(1_000_000_000);
        let carry = total.div_euclid(1_000_000_000);
        let seconds = self.seconds.wrapping_add(nanos.div_euclid(1_000_000_000)).wrapping_add(carry);
        Time { seconds, nanos: total.rem_euclid(1_000_000_000) as u32, zone: self.zone.clone() }
    }

    /// Nanoseconds since another time, saturating as Go's `Sub`.
    pub(super) fn since(&self, other: &Time) -> i64 {
        let nanos = (i128::from(self.seconds) - i128::from(other.seconds)) * 1_000_000_000
            + i128::from(self.nanos)
            - i128::from(other.nanos);
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }

    pub(super) fn wall(&self) -> Wall {
        let (offset, abbreviation) = self.zone.at(self.seconds);
        let local = self.seconds.saturating_add(offset);
        let days = local.div_euclid(86_400);
        let rest = local.rem_euclid(86_400);
        let (year, month, day) = date_of_days(days);
        Wall {
            year,
            month,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: (days + 4).rem_euclid(7) as usize,
            year_day: days - days_of_date(year, 1, 1) + 1,
            offset,
            abbreviation,
        }
    }

    /// `Time.Format`
    pub(super) fn format(&self, layout: &[u8]) -> Vec<u8> {
        let wall = self.wall();
        let mut out = Vec::with_capacity(layout.len() + 16);
        let mut layout = layout;
        loop {
            let (prefix, chunk, rest) = next_chunk(layout);
            out.extend_from_slice(prefix);
            let Some((std, spelled)) = chunk else { return out };
            self.format_chunk(&mut out, &wall, std, spelled);
            layout = rest;
        }
    }

    fn format_chunk(&self, out: &mut Vec<u8>, w: &Wall, std: Std, spelled: &[u8]) {
        let month = MONTHS[(w.month - 1) as usize];
        let weekday = WEEKDAYS[w.weekday];
        let hour12 = if w.hour % 12 == 0 { 12 } else { w.hour % 12 };
        let text = match std {
            Std::LongMonth => month.to_owned(),
            Std::Month => month[..3].to_owned(),
            Std::NumMonth => w.month.to_string(),
            Std::ZeroMonth => format!("{:02}", w.month),
            Std::LongWeekDay => weekday.to_owned(),
            Std::WeekDay => weekday[..3].to_owned(),
            Std::Day => w.day.to_string(),
            Std::UnderDay => format!("{:2}", w.day),
            Std::ZeroDay => format!("{:02}", w.day),
            Std::UnderYearDay => format!("{:3}", w.year_day),
            Std::ZeroYearDay => format!("{:03}", w.year_day),
            Std::Hour => format!("{:02}", w.hour),
            Std::Hour12 => hour12.to_string(),
            Std::ZeroHour12 => format!("{hour12:02}"),
            Std::Minute => w.minute.to_string(),
            Std::ZeroMinute => format!("{:02}", w.minute),
            Std::Second => w.second.to_string(),
            Std::ZeroSecond => format!("{:02}", w.second),
            Std::LongYear if w.year < 0 => format!("-{:04}", -w.year),
            Std::LongYear => format!("{:04}", w.year),
            Std::Year => format!("{:02}", w.year.max(0) % 100),
            Std::Pm => if w.hour >= 12 { "PM" } else { "AM" }.to_owned(),
            Std::LowerPm => if w.hour >= 12 { "pm" } else { "am" }.to_owned(),
            Std::Tz if !w.abbreviation.is_empty() => w.abbreviation.clone(),
            Std::Tz => offset_text(w.offset, false, false, false),
            Std::Offset { z: true, .. } if w.offset == 0 => "Z".to_owned(),
            Std::Offset { colon, seconds, short, .. } => offset_text(w.offset, colon, seconds, short),
            Std::Fraction0(digits) | Std::Fraction9(digits) => {
                let mut text = format!("{:09}", self.nanos);
                text.truncate(digits.min(9));
                for _ in 9..digits.min(32) {
                    text.push('0');
                }
                if let Std::Fraction9(_) = std {
                    text.truncate(text.trim_end_matches('0').len());
                }
                if text.is_empty() {
                    return;
                }
                format!("{}{text}", spelled[0] as char)
            }
        };
        out.extend_from_slice(text.as_bytes());
    }

    fn text(&self) -> Vec<u8> {
        self.format(b"2006-01-02 15:04:05.999999999 -0700 MST")
    }

    fn add_date(&self, years: i64, months: i64, days: i64) -> Time {
        let w = self.wall();
        let wall_days = days_of_date(
            w.year.saturating_add(years.clamp(-1_000_000, 1_000_000)),
            w.month + months.clamp(-12_000_000, 12_000_000),
            w.day,
        )
        .saturating_add(days.clamp(-400_000_000, 400_000_000));
        let wall = wall_days * 86_400 + w.hour * 3600 + w.minute * 60 + w.second;
        let seconds = wall - self.zone.offset_of_wall(wall);
        Time { seconds, nanos: self.nanos, zone: self.zone.clone() }
    }
}

fn offset_text(offset: i64, colon: bool, seconds: bool, short: bool) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let size = offset.abs();
    let (hours, minutes) = (size / 3600, size / 60 % 60);
    let separator = if colon { ":" } else { "" };
    let mut text = format!("{sign}{hours:02}");
    if !short {
        text.push_str(&format!("{separator}{minutes:02}"));
    }
    if seconds {
        text.push_str(&format!("{separator}{:02}", size % 60));
    }
    text
}

/// `Duration.Round`: half away from zero.
pub(super) fn round(nanos: i64, to: i64) -> i64 {
    let rest = nanos % to;
    if rest.abs() * 2 >= to { nanos - rest + if nanos < 0 { -to } else { to } } else { nanos - rest }
}

impl From<Time> for Value {
    fn from(time: Time) -> Self {
        Value::object(time)
    }
}

const NONE: Signature = Signature::fixed(&[]);

impl Object for Time {
    fn type_name(&self) -> Cow<'static, str> {
        "time.Time".into()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn string(&self) -> Option<Vec<u8>> {
        Some(self.text())
    }

    fn json(&self) -> Option<Value> {
        Some(Value::str(self.format(b"2006-01-02T15:04:05.999999999Z07:00")))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        Some(match name {
            "Year" | "Month" | "Day" | "Hour" | "Minute" | "Second" | "Nanosecond" | "Weekday"
            | "YearDay" | "Unix" | "UnixMilli" | "UnixMicro" | "UnixNano" | "String" | "UTC" | "Local"
            | "IsZero" | "IsDST" => NONE,
            "Format" => Signature::fixed(&[Type::Str]),
            "AddDate" => Signature::fixed(&[Type::INT, Type::INT, Type::INT]),
            "Add" | "Round" | "Truncate" => Signature::fixed(&[Type::Named("time.Duration")]),
            "Sub" | "Before" | "After" | "Equal" | "Compare" => Signature::fixed(&[Type::Named("time.Time")]),
            _ => return None,
        })
    }

    fn call(&self, name: &str, args: &[Value], cx: &mut Context<'_>) -> Result<Value, CallError> {
        let w = self.wall();
        let number = |i: usize| match args.get(i) {
            Some(Value::Int(_, n)) => *n,
            Some(Value::Object(object)) => match object.plain() {
                Some(Value::Int(_, n)) => n,
                _ => 0,
            },
            _ => 0,
        };
        let other = || args.first().and_then(Value::as_object::<Time>).cloned().unwrap_or_else(Time::zero);
        // Go's numbers wrap around for distant dates.
        let since_1970 = |per_second: i64| {
            let rest = i64::from(self.nanos) / (1_000_000_000 / per_second);
            self.seconds.wrapping_mul(per_second).wrapping_add(rest)
        };
        Ok(match name {
            "Year" => Value::int(w.year),
            "Month" => named("time.Month", w.month, MONTHS[(w.month - 1) as usize]),
            "Day" => Value::int(w.day),
            "Hour" => Value::int(w.hour),
            "Minute" => Value::int(w.minute),
            "Second" => Value::int(w.second),
            "Nanosecond" => Value::int(i64::from(self.nanos)),
            "Weekday" => named("time.Weekday", w.weekday as i64, WEEKDAYS[w.weekday]),
            "YearDay" => Value::int(w.year_day),
            "Unix" => Value::int64(self.seconds),
            "UnixMilli" => Value::int64(since_1970(1_000)),
            "UnixMicro" => Value::int64(since_1970(1_000_000)),
            "UnixNano" => Value::int64(since_1970(1_000_000_000)),
            "String" => Value::str(self.text()),
            "UTC" => self.clone().in_zone(Zone::Utc).into(),
            "Local" => self.clone().in_zone(super::local(cx)?).into(),
            "IsZero" => (self.seconds == ZERO && self.nanos == 0).into(),
            "IsDST" => false.into(),
            "Format" => {
                let layout = args[0].as_str().map(|s| s.to_vec()).unwrap_or_default();
                cx.reserve(layout.len() as u64 * 8)?;
                Value::str(self.format(&layout))
            }
            "AddDate" => self.add_date(number(0), number(1), number(2)).into(),
            "Add" => self.add(number(0)).into(),
            "Truncate" | "Round" => {
                let unit = i128::from(number(0));
                if unit <= 0 {
                    return Ok(self.clone().into());
                }
                // Go counts from the year 1.
                let since =
                    (i128::from(self.seconds) - i128::from(ZERO)) * 1_000_000_000 + i128::from(self.nanos);
                let rest = since.rem_euclid(unit);
                let by = if name == "Round" && rest * 2 >= unit { unit - rest } else { -rest };
                self.add(i64::try_from(by).unwrap_or(0)).into()
            }
            "Sub" => GoDuration(self.since(&other())).into(),
            "Before" => (self.since(&other()) < 0).into(),
            "After" => (self.since(&other()) > 0).into(),
            "Equal" => (self.since(&other()) == 0).into(),
            "Compare" => Value::int(self.since(&other()).signum()),
            _ => return Err(CallError::new(format!("no method {name}"))),
        })
    }
}

fn named(type_name: &'static str, number: i64, text: &'static str) -> Value {
    Value::object(NamedNumber { type_name, number, text })
}

/// `time.Month` and `time.Weekday`: numbers with names.
#[derive(Debug)]
struct NamedNumber {
    type_name: &'static str,
    number: i64,
    text: &'static str,
}

impl Object for NamedNumber {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.into()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn kind(&self) -> Kind {
        Kind::Int(IntKind::Int)
    }

    fn string(&self) -> Option<Vec<u8>> {
        Some(self.text.as_bytes().to_vec())
    }

    fn plain(&self) -> Option<Value> {
        Some(Value::int(self.number))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "String").then_some(NONE)
    }

    fn call(&self, _: &str, _: &[Value], _: &mut Context<'_>) -> Result<Value, CallError> {
        Ok(self.text.into())
    }
}

/// `time.Duration`
#[derive(Debug)]
struct GoDuration(i64);

impl From<GoDuration> for Value {
    fn from(duration: GoDuration) -> Self {
        Value::object(duration)
    }
}

impl Object for GoDuration {
    fn type_name(&self) -> Cow<'static, str> {
        "time.Duration".into()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn kind(&self) -> Kind {
        Kind::Int(IntKind::Int64)
    }

    fn string(&self) -> Option<Vec<u8>> {
        Some(Duration::from_nanos(self.0).to_string().into_bytes())
    }

    fn plain(&self) -> Option<Value> {
        Some(Value::int64(self.0))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Hours" | "Minutes" | "Seconds" | "Milliseconds" | "Microseconds" | "Nanoseconds" | "String"
            | "Abs" => Some(NONE),
            "Round" | "Truncate" => Some(Signature::fixed(&[Type::Named("time.Duration")])),
            _ => None,
        }
    }

    fn call(&self, name: &str, args: &[Value], _: &mut Context<'_>) -> Result<Value, CallError> {
        let unit = |nanos: i64| (self.0 / nanos) as f64 + (self.0 % nanos) as f64 / nanos as f64;
        let to = match args.first() {
            Some(Value::Int(_, n)) => *n,
            Some(value) => value.as_object::<GoDuration>().map_or(0, |d| d.0),
            None => 0,
        };
        Ok(match name {
            "Hours" => Value::Float(unit(3_600_000_000_000)),
            "Minutes" => Value::Float(unit(60_000_000_000)),
            "Seconds" => Value::Float(unit(1_000_000_000)),
            "Milliseconds" => Value::int64(self.0 / 1_000_000),
            "Microseconds" => Value::int64(self.0 / 1_000),
            "Nanoseconds" => Value::int64(self.0),
            "Abs" => GoDuration(self.0.saturating_abs()).into(),
            "Round" if to > 0 => GoDuration(round(self.0, to)).into(),
            "Truncate" if to > 0 => GoDuration(self.0 - self.0 % to).into(),
            "Round" | "Truncate" => GoDuration(self.0).into(),
            _ => Value::str(self.string().unwrap_or_default()),
        })
    }
}
