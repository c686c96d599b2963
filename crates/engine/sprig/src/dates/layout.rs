//! Go's reference layouts: `Mon Jan 2 15:04:05 MST 2006` and its parts.

/// An element of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Std {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekDay,
    WeekDay,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    Pm,
    LowerPm,
    Tz,
    /// A numeric zone: `Z` for UTC, colons, seconds, only hours.
    Offset {
        z: bool,
        colon: bool,
        seconds: bool,
        short: bool,
    },
    /// Fraction with that many digits, always written.
    Fraction0(usize),
    /// Fraction without trailing zeros.
    Fraction9(usize),
}

fn starts_lower(s: &[u8]) -> bool {
    s.first().is_some_and(u8::is_ascii_lowercase)
}

/// Text before the first element, the element with its spelling, and the text after it.
pub(super) type Chunk<'l> = (&'l [u8], Option<(Std, &'l [u8])>, &'l [u8]);

/// Splits a layout at its first element.
pub(super) fn next_chunk(layout: &[u8]) -> Chunk<'_> {
    for i in 0..layout.len() {
        let rest = &layout[i..];
        let found = match rest[0] {
            b'J' if rest.starts_with(b"January") => Some((Std::LongMonth, 7)),
            b'J' if rest.starts_with(b"Jan") && !starts_lower(&rest[3..]) => Some((Std::Month, 3)),
            b'M' if rest.starts_with(b"Monday") => Some((Std::LongWeekDay, 6)),
            b'M' if rest.starts_with(b"Mon") && !starts_lower(&rest[3..]) => Some((Std::WeekDay, 3)),
            b'M' if rest.starts_with(b"MST") => Some((Std::Tz, 3)),
            b'0' => zero(rest),
            b'1' if rest.starts_with(b"15") => Some((Std::Hour, 2)),
            b'1' => Some((Std::NumMonth, 1)),
            b'2' if rest.starts_with(b"2006") => Some((Std::LongYear, 4)),
            b'2' => Some((Std::Day, 1)),
            b'_' if rest.starts_with(b"_2006") => {
                // The underscore is literal text before the year.
                return (&layout[..=i], Some((Std::LongYear, &rest[1..5])), &rest[5..]);
            }
            b'_' if rest.starts_with(b"_2") => Some((Std::UnderDay, 2)),
            b'_' if rest.starts_with(b"__2") => Some((Std::UnderYearDay, 3)),
            b'3' => Some((Std::Hour12, 1)),
            b'4' => Some((Std::Minute, 1)),
            b'5' => Some((Std::Second, 1)),
            b'P' if rest.starts_with(b"PM") => Some((Std::Pm, 2)),
            b'p' if rest.starts_with(b"pm") => Some((Std::LowerPm, 2)),
            b'-' | b'Z' => offset(rest),
            b'.' | b',' => fraction(rest),
            _ => None,
        };
        if let Some((std, length)) = found {
            return (&layout[..i], Some((std, &rest[..length])), &rest[length..]);
        }
    }
    (layout, None, &[])
}

fn zero(rest: &[u8]) -> Option<(Std, usize)> {
    match rest.get(1)? {
        b'1' => Some((Std::ZeroMonth, 2)),
        b'2' => Some((Std::ZeroDay, 2)),
        b'3' => Some((Std::ZeroHour12, 2)),
        b'4' => Some((Std::ZeroMinute, 2)),
        b'5' => Some((Std::ZeroSecond, 2)),
        b'6' => Some((Std::Year, 2)),
        b'0' if rest.get(2) == Some(&b'2') => Some((Std::ZeroYearDay, 3)),
        _ => None,
    }
}

fn offset(rest: &[u8]) -> Option<(Std, usize)> {
    let z = rest[0] == b'Z';
    let forms: [(&[u8], bool, bool, bool); 5] = [
        (b"070000", false, true, false),
        (b"07:00:00", true, true, false),
        (b"0700", false, false, false),
        (b"07:00", true, false, false),
        (b"07", false, false, true),
    ];
    forms.iter().find(|(text, ..)| rest[1..].starts_with(text)).map(|(text, colon, seconds, short)| {
        (Std::Offset { z, colon: *colon, seconds: *seconds, short: *short }, text.len() + 1)
    })
}

fn fraction(rest: &[u8]) -> Option<(Std, usize)> {
    let digit = *rest.get(1).filter(|b| matches!(b, b'0' | b'9'))?;
    let count = rest[1..].iter().take_while(|b| **b == digit).count();
    // More digits make it literal text.
    if rest.get(count + 1).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let std = if digit == b'0' { Std::Fraction0(count) } else { Std::Fraction9(count) };
    Some((std, count + 1))
}
