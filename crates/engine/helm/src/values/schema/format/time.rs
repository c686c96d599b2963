//! Formats for dates, times and durations.

use super::fail;

pub(super) fn duration(text: &str) -> Result<(), String> {
    let Some(text) = text.strip_prefix('P') else { return fail("must start with P") };
    if text.is_empty() {
        return fail("nothing after P");
    }
    if let Some(weeks) = text.strip_suffix('W') {
        return match weeks {
            "" => fail("no number in week"),
            weeks if weeks.bytes().all(|b| b.is_ascii_digit()) => Ok(()),
            _ => fail("invalid week"),
        };
    }
    for (at, mut part) in text.split('T').enumerate() {
        if at > 0 && part.is_empty() {
            return fail("no time elements");
        }
        let Some(all) = ["YMD", "HMS"].get(at) else { return fail("more than one T") };
        let mut units = *all;
        while !part.is_empty() {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            if rest.len() == part.len() {
                return fail("missing number");
            }
            let Some(unit) = rest.chars().next() else { return fail("missing unit") };
            match units.find(unit) {
                Some(found) => units = &units[found + 1..],
                None if all.contains(unit) => return Err(format!("unit {unit:?} out of order")),
                None => return Err(format!("invalid unit {unit:?}")),
            }
            part = &rest[unit.len_utf8()..];
        }
    }
    Ok(())
}

/// A date as Go's `time.Parse` accepts it.
pub(super) fn date(text: &str) -> Result<(), String> {
    let quoted = |text: &str| fl_gotemplate::fmt::quoted(text.as_bytes());
    let whole = quoted(text);
    let fail = |rest: &str, part: &str| {
        let rest = quoted(rest);
        Err(format!("parsing time {whole} as \"2006-01-02\": cannot parse {rest} as \"{part}\""))
    };
    let mut rest = text;
    let mut numbers = [0u32; 3];
    for (at, (part, length)) in [("2006", 4), ("01", 2), ("02", 2)].into_iter().enumerate() {
        if at > 0 {
            match rest.strip_prefix('-') {
                Some(after) => rest = after,
                None => return fail(rest, "-"),
            }
        }
        match rest.get(..length).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit())) {
            Some(digits) => numbers[at] = digits.parse().unwrap_or_default(),
            None => return fail(rest, part),
        }
        rest = &rest[length..];
        if at == 1 && !(1..=12).contains(&numbers[1]) {
            return Err(format!("parsing time {whole}: month out of range"));
        }
    }
    if !rest.is_empty() {
        return Err(format!("parsing time {whole}: extra text: {}", quoted(rest)));
    }
    let [year, month, day] = numbers;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if (1..=days).contains(&day) { Ok(()) } else { Err(format!("parsing time {whole}: day out of range")) }
}

/// Parses two-digit numbers separated by colons; `what` is used in the message.
fn clock<const N: usize>(text: &str, what: &str) -> Result<[i64; N], String> {
    let mut numbers = [0; N];
    let mut parts = text.splitn(N, ':');
    for number in &mut numbers {
        let Some(part) = parts.next() else { return Err(format!("missing {what}")) };
        *number = part.parse().map_err(|_| format!("invalid {what}"))?;
        if *number < 0 {
            return Err(format!("non-positive {what}"));
        }
    }
    Ok(numbers)
}

pub(super) fn time(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    if bytes.len() < 9 {
        return fail("less than 9 characters long");
    }
    if bytes[2] != b':' || bytes[5] != b':' {
        return fail("missing colon in correct place");
    }
    let Some((start, mut rest)) = text.split_at_checked(8) else { return fail("invalid hour/min/sec") };
    let [mut hour, mut minute, second] = clock(start, "hour/min/sec")?;
    if hour > 23 || minute > 59 || second > 60 {
        return fail("hour/min/sec out of range");
    }
    if let Some(fraction) = rest.strip_prefix('.') {
        rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == fraction.len() {
            return fail("no digits in second fraction");
        }
    }
    if !matches!(rest, "z" | "Z") {
        if rest.len() != 6 {
            return fail("offset must be 6 characters long");
        }
        let sign = match rest.as_bytes()[0] {
            b'+' => -1,
            b'-' => 1,
            _ => return fail("offset must begin with plus/minus"),
        };
        if rest.as_bytes()[3] != b':' {
            return fail("missing colon in offset in correct place");
        }
        let [hours, minutes] = clock(&rest[1..], "hour/min in offset")?;
        if hours > 23 || minutes > 59 {
            return fail("hour/min in offset out of range");
        }
        let minutes = (hour * 60 + minute + sign * (hours * 60 + minutes)).rem_euclid(24 * 60);
        (hour, minute) = (minutes / 60, minutes % 60);
    }
    // A leap second is valid only at the end of a day.
    if second >= 60 && (hour, minute) != (23, 59) {
        return fail("invalid leap second");
    }
    Ok(())
}

pub(super) fn date_time(text: &str) -> Result<(), String> {
    if text.len() < 20 {
        return fail("less than 20 characters long");
    }
    if !matches!(text.as_bytes()[10], b't' | b'T') {
        return fail("11th character must be t or T");
    }
    date(&text[..10]).map_err(|why| format!("invalid date element: {why}"))?;
    time(&text[11..]).map_err(|why| format!("invalid time element: {why}"))
}

pub(super) fn period(text: &str) -> Result<(), String> {
    let Some((start, end)) = text.split_once('/') else { return fail("missing slash") };
    let invalid = |what: &'static str| move |why: String| format!("invalid {what}: {why}");
    if start.starts_with('P') {
        duration(start).map_err(invalid("start duration"))?;
        return date_time(end).map_err(invalid("end date-time"));
    }
    date_time(start).map_err(invalid("start date-time"))?;
    match end.starts_with('P') {
        true => duration(end).map_err(invalid("end duration")),
        false => date_time(end).map_err(invalid("end date-time")),
    }
}
