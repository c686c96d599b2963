//! Timestamps in plain scalars, as `yaml.v3` recognises them.

/// Parses one of Go's four formats (`2001-12-14`, with `T` or `t` and a zone, with a space and no zone) and
/// prints it in RFC 3339 like Go's JSON.
pub(crate) fn parse(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let year_digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    if year_digits != 4 || bytes.get(4) != Some(&b'-') {
        return None;
    }
    let year: u32 = text[..4].parse().ok()?;
    let mut rest = &bytes[5..];
    let month = number(&mut rest)?;
    expect(&mut rest, b'-')?;
    let day = number(&mut rest)?;
    if !(1..=12).contains(&month) || day < 1 || day > days_in(month, year) {
        return None;
    }
    let date = format!("{year:04}-{month:02}-{day:02}");
    match rest {
        [] => Some(format!("{date}T00:00:00Z")),
        [b'T' | b't', clock @ ..] => {
            let (clock, zone) = time_of_day(clock)?;
            Some(format!("{date}T{clock}{}", offset(zone)?))
        }
        [b' ', ..] => {
            let spaces = rest.iter().take_while(|b| **b == b' ').count();
            let (clock, zone) = time_of_day(&rest[spaces..])?;
            zone.is_empty().then(|| format!("{date}T{clock}Z"))
        }
        _ => None,
    }
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let digit = |b: Option<&u8>| b.filter(|b| b.is_ascii_digit()).map(|b| u32::from(b - b'0'));
    let first = digit(rest.first())?;
    let (value, used) = digit(rest.get(1)).map_or((first, 1), |second| (first * 10 + second, 2));
    *rest = &rest[used..];
    Some(value)
}

fn expect(rest: &mut &[u8], wanted: u8) -> Option<()> {
    *rest = rest.strip_prefix(&[wanted])?;
    Some(())
}

fn days_in(month: u32, year: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Parses `15:4:5.999999999`; returns the formatted time and the rest.
fn time_of_day(mut rest: &[u8]) -> Option<(String, &[u8])> {
    let hour = number(&mut rest)?;
    expect(&mut rest, b':')?;
    let minute = number(&mut rest)?;
    expect(&mut rest, b':')?;
    let second = number(&mut rest)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut clock = format!("{hour:02}:{minute:02}:{second:02}");
    if let [b'.' | b',', digits @ ..] = rest {
        let count = digits.iter().take_while(|b| b.is_ascii_digit()).count();
        if count > 0 {
            let kept = std::str::from_utf8(&digits[..count.min(9)]).ok()?.trim_end_matches('0');
            if !kept.is_empty() {
                clock.push('.');
                clock.push_str(kept);
            }
            rest = &digits[count..];
        }
    }
    Some((clock, rest))
}

fn offset(zone: &[u8]) -> Option<String> {
    if zone == b"Z" {
        return Some("Z".to_owned());
    }
    let [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] = zone else { return None };
    let two = |a: &u8, b: &u8| {
        (a.is_ascii_digit() && b.is_ascii_digit()).then(|| u32::from(a - b'0') * 10 + u32::from(b - b'0'))
    };
    let (hours, minutes) = (two(h1, h2)?, two(m1, m2)?);
    if hours > 24 || minutes > 60 {
        return None;
    }
    // Go prints the sum, so `+00:60` becomes `+01:00`.
    let total = hours * 60 + minutes;
    Some(if total == 0 {
        "Z".to_owned()
    } else {
        format!("{}{:02}:{:02}", char::from(*sign), total / 60, total % 60)
    })
}
