//! Cron schedules in the dialect of Kubernetes' CronJobs, with the error messages of its parser.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// The range of a field and the names of its values.
struct Bounds {
    min: u32,
    max: u32,
    names: &'static [&'static str],
    first_name: u32,
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [Bounds; 5] = [
    Bounds { min: 0, max: 59, names: &[], first_name: 0 },
    Bounds { min: 0, max: 23, names: &[], first_name: 0 },
    Bounds { min: 1, max: 31, names: &[], first_name: 0 },
    Bounds { min: 1, max: 12, names: MONTHS, first_name: 1 },
    Bounds { min: 0, max: 6, names: DAYS, first_name: 0 },
];

/// A parsed schedule.
#[derive(Debug, Clone)]
pub struct Schedule(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Times(Box<Times>),
    /// An interval in seconds.
    Every(i64),
}

/// The times of a schedule with five fields, one bit for each value of a field.
#[derive(Debug, Clone)]
struct Times {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Both the day of the month and the day of the week are restricted: a day that fits either is due.
    either_day: bool,
    zone: Option<TimeZone>,
}

/// Days searched for the next time. A schedule without a time in this period has none (the 30th of February).
const MAX_SEARCH_DAYS: usize = 5 * 366;

/// Why a schedule cannot be parsed, with the messages of Kubernetes' parser.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseScheduleError {
    #[error("empty spec string")]
    Empty,
    #[error("provided bad location {0}: unknown time zone {0}")]
    UnknownTimeZone(String),
    #[error("expected exactly 5 fields, found {}: [{}]", .0.len(), .0.join(" "))]
    FieldCount(Vec<String>),
    #[error("unrecognized descriptor: {0}")]
    UnknownDescriptor(String),
    #[error("failed to parse duration {descriptor}: {source}")]
    Duration { descriptor: String, source: fl_types::DurationError },
    #[error("negative number ({value}) not allowed: {text}")]
    Negative { value: i64, text: String },
    #[error("failed to parse int from {0}: value out of range")]
    OutOfRange(String),
    #[error("failed to parse int from {0}: strconv.Atoi: parsing {0:?}: invalid syntax")]
    NotANumber(String),
    #[error("too many hyphens: {0}")]
    TooManyHyphens(String),
    #[error("too many slashes: {0}")]
    TooManySlashes(String),
    #[error("beginning of range ({start}) below minimum ({min}): {range}")]
    BelowMinimum { start: u32, min: u32, range: String },
    #[error("end of range ({end}) above maximum ({max}): {range}")]
    AboveMaximum { end: u32, max: u32, range: String },
    #[error("beginning of range ({start}) beyond end of range ({end}): {range}")]
    Reversed { start: u32, end: u32, range: String },
    #[error("step of range should be a positive number: {0}")]
    ZeroStep(String),
}

impl Schedule {
    /// Parses a schedule.
    ///
    /// # Errors
    /// If it is not a schedule of Kubernetes' dialect.
    pub fn parse(schedule: &str) -> Result<Self, ParseScheduleError> {
        if schedule.is_empty() {
            return Err(ParseScheduleError::Empty);
        }
        let (mut rest, mut zone) = (schedule, None);
        if rest.starts_with("TZ=") || rest.starts_with("CRON_TZ=") {
            let (name, after) = rest.split_once(' ').unwrap_or((rest, ""));
            let name = name.split_once('=').map_or("", |(_, name)| name);
            zone = match name {
                "" | "UTC" => Some(TimeZone::UTC),
                name => match TimeZone::get(name) {
                    Ok(zone) => Some(zone),
                    Err(_) => return Err(ParseScheduleError::UnknownTimeZone(name.to_owned())),
                },
            };
            rest = after.trim();
        }
        if let Some(descriptor) = rest.strip_prefix('@') {
            return from_descriptor(rest, descriptor, zone);
        }
        let fields: Vec<&str> = rest.split_whitespace().collect();
        if fields.len() != 5 {
            return Err(ParseScheduleError::FieldCount(fields.into_iter().map(str::to_owned).collect()));
        }
        let mut bits = [0; 5];
        let mut any = [false; 5];
        for (i, (field, bounds)) in fields.iter().zip(&FIELDS).enumerate() {
            for part in field.split(',').filter(|part| !part.is_empty()) {
                let (set, all) = range(part, bounds)?;
                bits[i] |= set;
                any[i] |= all;
            }
        }
        let [minutes, hours, days, months, weekdays] = bits;
        let either_day = !any[2] && !any[4];
        let times = Times { minutes, hours, days, months, weekdays, either_day, zone };
        Ok(Self(Kind::Times(Box::new(times))))
    }

    /// The first time after `after`, in `zone` unless the schedule has a time zone of its own.
    #[must_use]
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match &self.0 {
            Kind::Every(seconds) => after.checked_add(seconds.seconds()).ok(),
            Kind::Times(times) => times.next(after, zone),
        }
    }
}

fn has(bits: u64, value: i8) -> bool {
    u32::try_from(value).is_ok_and(|value| bits >> value & 1 == 1)
}

impl Times {
    fn includes(&self, date: Date) -> bool {
        let (day, weekday) =
            (has(self.days, date.day()), has(self.weekdays, date.weekday().to_sunday_zero_offset()));
        has(self.months, date.month()) && if self.either_day { day || weekday } else { day && weekday }
    }

    fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let zone = self.zone.as_ref().unwrap_or(zone);
        let start = after.to_zoned(zone.clone()).datetime();
        let days = start.date().series(1.day()).take(MAX_SEARCH_DAYS).filter(|date| self.includes(*date));
        for date in days {
            for hour in (0..24).filter(|h| has(self.hours, *h)) {
                for minute in (0..60).filter(|m| has(self.minutes, *m)) {
                    let time = DateTime::from_parts(date, jiff::civil::time(hour, minute, 0, 0));
                    if time <= start.saturating_sub(1.minute()) {
                        continue;
                    }
                    let found = time.to_zoned(zone.clone()).map(|z| z.timestamp());
                    if let Ok(found) = found
                        && found > after
                    {
                        return Some(found);
                    }
                }
            }
        }
        None
    }
}

fn from_descriptor(
    whole: &str,
    descriptor: &str,
    zone: Option<TimeZone>,
) -> Result<Schedule, ParseScheduleError> {
    let times = match descriptor {
        "yearly" | "annually" => "0 0 1 1 *",
        "monthly" => "0 0 1 * *",
        "weekly" => "0 0 * * 0",
        "daily" | "midnight" => "0 0 * * *",
        "hourly" => "0 * * * *",
        other => {
            let Some(duration) = other.strip_prefix("every ") else {
                return Err(ParseScheduleError::UnknownDescriptor(whole.to_owned()));
            };
            return match duration.parse::<fl_types::Duration>() {
                Ok(duration) => Ok(Schedule(Kind::Every((duration.as_nanos() / 1_000_000_000).max(1)))),
                Err(source) => Err(ParseScheduleError::Duration { descriptor: whole.to_owned(), source }),
            };
        }
    };
    let mut schedule = Schedule::parse(times)?;
    if let Kind::Times(times) = &mut schedule.0 {
        times.zone = zone;
    }
    Ok(schedule)
}

fn number(text: &str, bounds: &Bounds) -> Result<u32, ParseScheduleError> {
    let lower = text.to_lowercase();
    if let Some(at) = bounds.names.iter().position(|name| *name == lower) {
        return Ok(bounds.first_name + u32::try_from(at).unwrap_or(0));
    }
    match text.parse::<i64>() {
        Ok(value) if value < 0 => Err(ParseScheduleError::Negative { value, text: text.to_owned() }),
        Ok(value) => u32::try_from(value).map_err(|_| ParseScheduleError::OutOfRange(text.to_owned())),
        Err(_) => Err(ParseScheduleError::NotANumber(text.to_owned())),
    }
}

/// The values of one range as bits, and whether they are all values of the field.
fn range(text: &str, bounds: &Bounds) -> Result<(u64, bool), ParseScheduleError> {
    let steps: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = steps[0].split('-').collect();
    let single = ends.len() == 1;
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?"] => (bounds.min, bounds.max),
        [one] => (number(one, bounds)?, number(one, bounds)?),
        [from, to] => (number(from, bounds)?, number(to, bounds)?),
        _ => return Err(ParseScheduleError::TooManyHyphens(text.to_owned())),
    };
    let step = match steps.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = match step.parse::<i64>() {
                Ok(value) if value < 0 => {
                    return Err(ParseScheduleError::Negative { value, text: (*step).to_owned() });
                }
                Ok(value) => value,
                Err(_) => return Err(ParseScheduleError::NotANumber((*step).to_owned())),
            };
            if single {
                end = bounds.max;
            }
            step
        }
        _ => return Err(ParseScheduleError::TooManySlashes(text.to_owned())),
    };
    let Bounds { min, max, .. } = *bounds;
    let range = text.to_owned();
    if start < min {
        return Err(ParseScheduleError::BelowMinimum { start, min, range });
    }
    if end > max {
        return Err(ParseScheduleError::AboveMaximum { end, max, range });
    }
    if start > end {
        return Err(ParseScheduleError::Reversed { start, end, range });
    }
    if step == 0 {
        return Err(ParseScheduleError::ZeroStep(range));
    }
    let bits =
        (start..=end).step_by(usize::try_from(step).unwrap_or(usize::MAX)).fold(0, |bits, n| bits | 1 << n);
    Ok((bits, step == 1 && matches!(ends.as_slice(), ["*" | "?"])))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    use super::Schedule;

    fn check(schedule: &str) -> Result<(), String> {
        Schedule::parse(schedule).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn next_time_of_a_schedule() {
        let next = |schedule: &str, after: &str| {
            let after: Timestamp = after.parse().expect("a time");
            let schedule = Schedule::parse(schedule).expect("a schedule");
            schedule.next(after, &TimeZone::UTC).map(|t| t.to_string())
        };
        for (schedule, after, wanted) in [
            ("* * * * *", "2026-01-31T23:59:30Z", "2026-02-01T00:00:00Z"),
            ("* * * * *", "2026-01-31T23:58:00Z", "2026-01-31T23:59:00Z"),
            ("*/15 3 * * *", "2026-03-01T03:30:00Z", "2026-03-01T03:45:00Z"),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
            // Either the 13th or a Friday.
            ("0 0 13 * 5", "2026-02-01T00:00:00Z", "2026-02-06T00:00:00Z"),
            ("0 0 */2 * 5", "2026-02-01T00:00:00Z", "2026-02-03T00:00:00Z"),
            ("TZ=UTC 5 4 * * sun", "2026-02-02T00:00:00Z", "2026-02-08T04:05:00Z"),
            ("@hourly", "2026-02-02T00:00:00Z", "2026-02-02T01:00:00Z"),
            ("@every 90s", "2026-02-02T00:00:00Z", "2026-02-02T00:01:30Z"),
        ] {
            assert_eq!(next(schedule, after).as_deref(), Some(wanted), "{schedule} after {after}");
        }
        assert_eq!(next("0 0 30 2 *", "2026-01-01T00:00:00Z"), None);
    }

    #[test]
    fn parse_errors_match_kubernetes() {
        for good in
            ["* * * * *", "*/15 0 1,15 * 1-5", "@daily", "@every 1h30m", "0 0 * jan sun", "5/15 * * * *"]
        {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("every day", "expected exactly 5 fields, found 2: [every day]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("@often", "unrecognized descriptor: @often"),
        ] {
            assert_eq!(check(bad).expect_err("rejected"), why);
        }
    }
}
