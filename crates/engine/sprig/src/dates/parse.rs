//! Parses a time by a layout, with Go's errors.

use std::rc::Rc;

use fl_types::{date_of_days, days_of_date};

use super::civil::{MONTHS, WEEKDAYS, days_in_month, is_leap};
use super::layout::{Std, next_chunk};
use super::time::Time;
use super::zone::Zone;

/// The elements parsed so far.
#[derive(Default)]
struct Parts {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: u32,
    am: bool,
    pm: bool,
    utc: bool,
    offset: Option<i64>,
    zone_name: Vec<u8>,
}

/// Error of parsing one element.
enum ElementError {
    Text,
    Range(&'static str),
}

/// `time.ParseInLocation`; the error is Go's message.
pub(super) fn parse(layout: &[u8], value: &[u8], local: &Zone) -> Result<Time, String> {
    let quote = go_quote;
    let cannot = |rest: &[u8], element: &[u8]| {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(value),
            quote(layout),
            quote(rest),
            quote(element)
        )
    };
    let mut parts = Parts::default();
    let mut rest = value;
    let mut layout_rest = layout;
    loop {
        let (prefix, chunk, after) = next_chunk(layout_rest);
        rest = match skip(rest, prefix) {
            Ok(rest) => rest,
            Err(at) => return Err(cannot(at, prefix)),
        };
        let Some((std, element)) = chunk else {
            if !rest.is_empty() {
                return Err(format!("parsing time {}: extra text: {}", quote(value), quote(rest)));
            }
            break;
        };
        layout_rest = after;
        match read(&mut parts, std, rest, layout_rest) {
            Ok(next) => rest = next,
            Err(ElementError::Text) => return Err(cannot(rest, element)),
            Err(ElementError::Range(what)) => {
                return Err(format!("parsing time {}: {what} out of range", quote(value)));
            }
        }
    }
    finish(parts, local).map_err(|what| format!("parsing time {}: {what}", quote(value)))
}

/// Go's quoting in these errors: quotes, backslashes and all non-ASCII bytes are escaped.
fn go_quote(s: &[u8]) -> String {
    let mut out = String::from("\"");
    for b in s {
        match b {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(*b as char);
            }
            b' '..=b'~' => out.push(*b as char),
            _ => out.push_str(&format!("\\x{b:02x}")),
        }
    }
    out.push('"');
    out
}

fn skip_spaces(s: &[u8]) -> &[u8] {
    &s[s.iter().take_while(|b| **b == b' ').count()..]
}

/// Skips literal text; runs of blanks match runs of blanks. The error is the unmatched rest.
fn skip<'v>(value: &'v [u8], prefix: &[u8]) -> Result<&'v [u8], &'v [u8]> {
    let (mut value, mut prefix) = (value, prefix);
    while let Some(&first) = prefix.first() {
        if first == b' ' {
            if value.first().is_some_and(|b| *b != b' ') {
                return Err(value);
            }
            prefix = skip_spaces(prefix);
            value = skip_spaces(value);
            continue;
        }
        if value.first() != Some(&first) {
            return Err(value);
        }
        prefix = &prefix[1..];
        value = &value[1..];
    }
    Ok(value)
}

fn digit(s: &[u8], i: usize) -> Option<i64> {
    s.get(i).filter(|b| b.is_ascii_digit()).map(|b| i64::from(b - b'0'))
}

/// Parses one or two digits; exactly two if `fixed`.
fn number(s: &[u8], fixed: bool) -> Result<(i64, &[u8]), ElementError> {
    let first = digit(s, 0).ok_or(ElementError::Text)?;
    match digit(s, 1) {
        Some(second) => Ok((first * 10 + second, &s[2..])),
        None if fixed => Err(ElementError::Text),
        None => Ok((first, &s[1..])),
    }
}

fn lookup<'v>(names: &[&str], length: Option<usize>, s: &'v [u8]) -> Result<(usize, &'v [u8]), ElementError> {
    for (i, name) in names.iter().enumerate() {
        let name = length.map_or(*name, |n| &name[..n]).as_bytes();
        if s.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name)) {
            return Ok((i, &s[name.len()..]));
        }
    }
    Err(ElementError::Text)
}

/// Checks the range of a parsed number.
fn check_range(n: i64, most: i64, what: &'static str) -> Result<i64, ElementError> {
    if n > most { Err(ElementError::Range(what)) } else { Ok(n) }
}

fn read<'v>(p: &mut Parts, std: Std, s: &'v [u8], layout: &[u8]) -> Result<&'v [u8], ElementError> {
    let rest;
    match std {
        Std::Year => {
            let (a, b) = (digit(s, 0).ok_or(ElementError::Text)?, digit(s, 1).ok_or(ElementError::Text)?);
            let year = a * 10 + b;
            p.year = if year >= 69 { year + 1900 } else { year + 2000 };
            rest = &s[2..];
        }
        Std::LongYear => {
            let digits = s.get(..4).filter(|d| d.iter().all(u8::is_ascii_digit)).ok_or(ElementError::Text)?;
            p.year = digits.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0'));
            rest = &s[4..];
        }
        Std::Month | Std::LongMonth => {
            let (i, after) = lookup(&MONTHS, (std == Std::Month).then_some(3), s)?;
            p.month = Some(i as i64 + 1);
            rest = after;
        }
        Std::NumMonth | Std::ZeroMonth => {
            let (n, after) = number(s, std == Std::ZeroMonth)?;
            if n == 0 || n > 12 {
                return Err(ElementError::Range("month"));
            }
            p.month = Some(n);
            rest = after;
        }
        Std::WeekDay | Std::LongWeekDay => rest = lookup(&WEEKDAYS, (std == Std::WeekDay).then_some(3), s)?.1,
        Std::Day | Std::UnderDay | Std::ZeroDay => {
            let s = if std == Std::UnderDay { s.strip_prefix(b" ").unwrap_or(s) } else { s };
            let (n, after) = number(s, std == Std::ZeroDay)?;
            p.day = Some(n);
            rest = after;
        }
        Std::UnderYearDay | Std::ZeroYearDay => {
            let mut s = s;
            if std == Std::UnderYearDay {
                s = s.strip_prefix(b" ").unwrap_or(s);
                s = s.strip_prefix(b" ").unwrap_or(s);
            }
            let count = s.iter().take(3).take_while(|b| b.is_ascii_digit()).count();
            if count == 0 || std == Std::ZeroYearDay && count != 3 {
                return Err(ElementError::Text);
            }
            p.year_day = Some(s[..count].iter().fold(0, |n, b| n * 10 + i64::from(b - b'0')));
            rest = &s[count..];
        }
        Std::Hour => {
            let (n, after) = number(s, false)?;
            p.hour = check_range(n, 23, "hour")?;
            rest = after;
        }
        Std::Hour12 | Std::ZeroHour12 => {
            let (n, after) = number(s, std == Std::ZeroHour12)?;
            p.hour = check_range(n, 12, "hour")?;
            rest = after;
        }
        Std::Minute | Std::ZeroMinute => {
            let (n, after) = number(s, std == Std::ZeroMinute)?;
            p.minute = check_range(n, 59, "minute")?;
            rest = after;
        }
        Std::Second | Std::ZeroSecond => {
            let (n, after) = number(s, std == Std::ZeroSecond)?;
            p.second = check_range(n, 59, "second")?;
            rest = implicit_fraction(p, after, layout)?;
        }
        Std::Pm | Std::LowerPm => {
            let (pm, am): (&[u8], &[u8]) = if std == Std::Pm { (b"PM", b"AM") } else { (b"pm", b"am") };
            let word = s.get(..2).ok_or(ElementError::Text)?;
            p.pm |= word == pm;
            p.am |= word == am;
            if word != pm && word != am {
                return Err(ElementError::Text);
            }
            rest = &s[2..];
        }
        Std::Offset { z: true, .. } if s.first() == Some(&b'Z') => {
            p.utc = true;
            rest = &s[1..];
        }
        Std::Offset { colon, seconds, short, .. } => rest = numeric_offset(p, s, colon, seconds, short)?,
        Std::Tz if s.starts_with(b"UTC") => {
            p.utc = true;
            rest = &s[3..];
        }
        Std::Tz => {
            let length = zone_length(s).ok_or(ElementError::Text)?;
            p.zone_name = s[..length].to_vec();
            rest = &s[length..];
        }
        Std::Fraction0(digits) => {
            if s.len() < digits + 1 {
                return Err(ElementError::Text);
            }
            p.nanos = nanos(&s[..=digits])?;
            rest = &s[digits + 1..];
        }
        Std::Fraction9(_) => {
            if !matches!(s.first(), Some(b'.' | b',')) || digit(s, 1).is_none() {
                return Ok(s);
            }
            let count = s[1..].iter().take_while(|b| b.is_ascii_digit()).count();
            p.nanos = nanos(&s[..=count])?;
            rest = &s[count + 1..];
        }
    }
    Ok(rest)
}

/// Seconds may have a fraction that the layout does not contain.
fn implicit_fraction<'v>(p: &mut Parts, s: &'v [u8], layout: &[u8]) -> Result<&'v [u8], ElementError> {
    if !matches!(s.first(), Some(b'.' | b',')) || digit(s, 1).is_none() {
        return Ok(s);
    }
    if let (_, Some((Std::Fraction0(_) | Std::Fraction9(_), _)), _) = next_chunk(layout) {
        return Ok(s);
    }
    let count = s[1..].iter().take_while(|b| b.is_ascii_digit()).count();
    p.nanos = nanos(&s[..=count])?;
    Ok(&s[count + 1..])
}

/// `.123` as nanoseconds; digits beyond nine are dropped.
fn nanos(s: &[u8]) -> Result<u32, ElementError> {
    if !matches!(s.first(), Some(b'.' | b',')) || !s[1..].iter().all(u8::is_ascii_digit) {
        return Err(ElementError::Text);
    }
    let digits = &s[1..s.len().min(10)];
    let value = digits.iter().fold(0u32, |n, b| n * 10 + u32::from(b - b'0'));
    Ok(value * 10u32.pow(9 - digits.len() as u32))
}

fn numeric_offset<'v>(
    p: &mut Parts,
    s: &'v [u8],
    colon: bool,
    seconds: bool,
    short: bool,
) -> Result<&'v [u8], ElementError> {
    let fields = if short { 1 } else { 2 + usize::from(seconds) };
    let gap = usize::from(colon);
    let length = 1 + fields * 2 + (fields - 1) * gap;
    let text = s.get(..length).ok_or(ElementError::Text)?;
    let mut values = [0i64; 3];
    for (i, slot) in values.iter_mut().take(fields).enumerate() {
        let at = 1 + i * (2 + gap);
        if colon && i > 0 && text[at - 1] != b':' {
            return Err(ElementError::Text);
        }
        *slot = number(&text[at..at + 2], true)?.0;
    }
    let [hours, minutes, secs] = values;
    check_range(hours, 24, "time zone offset hour")?;
    check_range(minutes, 60, "time zone offset minute")?;
    check_range(secs, 60, "time zone offset second")?;
    let offset = (hours * 60 + minutes) * 60 + secs;
    p.offset = Some(match text[0] {
        b'+' => offset,
        b'-' => -offset,
        _ => return Err(ElementError::Text),
    });
    Ok(&s[length..])
}

/// Length of a zone abbreviation.
fn zone_length(s: &[u8]) -> Option<usize> {
    if s.len() < 3 {
        return None;
    }
    if s.starts_with(b"ChST") || s.starts_with(b"MeST") {
        return Some(4);
    }
    if let Some(rest) = s.strip_prefix(b"GMT") {
        return Some(3 + signed_length(rest));
    }
    if matches!(s[0], b'+' | b'-') {
        return Some(signed_length(s)).filter(|n| *n > 0);
    }
    match s.iter().take(6).take_while(|b| b.is_ascii_uppercase()).count() {
        5 if s[4] == b'T' => Some(5),
        4 if s[3] == b'T' || s.starts_with(b"WITA") => Some(4),
        3 => Some(3),
        _ => None,
    }
}

fn signed_length(s: &[u8]) -> usize {
    if !matches!(s.first(), Some(b'+' | b'-')) {
        return 0;
    }
    let count = s[1..].iter().take_while(|b| b.is_ascii_digit()).count();
    let value = s[1..=count].iter().fold(0u64, |n, b| (n * 10 + u64::from(b - b'0')).min(1000));
    if count == 0 || value > 23 { 0 } else { count + 1 }
}

fn finish(mut p: Parts, local: &Zone) -> Result<Time, &'static str> {
    if p.pm && p.hour < 12 {
        p.hour += 12;
    } else if p.am && p.hour == 12 {
        p.hour = 0;
    }
    if let Some(year_day) = p.year_day {
        if year_day < 1 || year_day > 365 + i64::from(is_leap(p.year)) {
            return Err("day-of-year out of range");
        }
        let (_, month, day) = date_of_days(days_of_date(p.year, 1, 1) + year_day - 1);
        if p.month.is_some_and(|m| m != month) {
            return Err("day-of-year does not match month");
        }
        if p.day.is_some_and(|d| d != day) {
            return Err("day-of-year does not match day");
        }
        p.month = Some(month);
        p.day = Some(day);
    }
    let (month, day) = (p.month.unwrap_or(1), p.day.unwrap_or(1));
    if day < 1 || day > days_in_month(p.year, month) {
        return Err("day out of range");
    }
    let wall = days_of_date(p.year, month, day) * 86_400 + p.hour * 3600 + p.minute * 60 + p.second;
    if p.utc {
        return Ok(Time::new(wall, p.nanos, Zone::Utc));
    }
    let name = String::from_utf8_lossy(&p.zone_name).into_owned();
    if let Some(offset) = p.offset {
        let seconds = wall - offset;
        let (here, here_name) = local.at(seconds);
        let zone = if here == offset && (name.is_empty() || name == here_name) {
            local.clone()
        } else {
            Zone::Fixed(Rc::from(name), offset)
        };
        return Ok(Time::new(seconds, p.nanos, zone));
    }
    if !name.is_empty() {
        let (here, here_name) = local.at(wall);
        if here_name == name {
            return Ok(Time::new(wall - here, p.nanos, local.clone()));
        }
        let offset = match name.strip_prefix("GMT") {
            Some(hours) if !hours.is_empty() => hours.parse::<i64>().unwrap_or(0) * 3600,
            _ => 0,
        };
        // Go keeps the wall clock and gives the invented zone its offset afterwards.
        return Ok(Time::new(wall, p.nanos, Zone::Fixed(Rc::from(name), offset)));
    }
    Ok(Time::new(wall - local.offset_of_wall(wall), p.nanos, local.clone()))
}
