//! Go's `strconv`: parses numbers and quoted strings with Go's rules.

use std::borrow::Cow;

use crate::runes;

/// Error of parsing a number; Go has a message for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumError {
    Syntax,
    /// Out of range.
    Range,
}

impl NumError {
    /// Go's message.
    pub fn text(self) -> &'static str {
        match self {
            NumError::Syntax => "invalid syntax",
            NumError::Range => "value out of range",
        }
    }
}

fn underscores_ok(s: &[u8]) -> bool {
    let mut s = s;
    if matches!(s.first(), Some(b'+' | b'-')) {
        s = &s[1..];
    }
    let mut last = b'^';
    let mut hex = false;
    if s.len() >= 2 && s[0] == b'0' && matches!(s[1] | 0x20, b'b' | b'o' | b'x') {
        last = b'0';
        hex = s[1] | 0x20 == b'x';
        s = &s[2..];
    }
    for &c in s {
        if c.is_ascii_digit() || hex && c.is_ascii_hexdigit() {
            last = b'0';
        } else if c == b'_' {
            if last != b'0' {
                return false;
            }
            last = b'_';
        } else {
            if last == b'_' {
                return false;
            }
            last = b'!';
        }
    }
    last != b'_'
}

/// `strconv.ParseUint(s, base, 64)`; base 0 reads prefixes and underscores.
pub fn parse_uint(s: &[u8], base: u32) -> Result<u64, NumError> {
    let mut digits = s;
    let mut radix = base;
    if base == 0 {
        radix = 10;
        if s.len() >= 3 && s[0] == b'0' && matches!(s[1] | 0x20, b'b' | b'o' | b'x') {
            radix = match s[1] | 0x20 {
                b'b' => 2,
                b'o' => 8,
                _ => 16,
            };
            digits = &s[2..];
        } else if s.first() == Some(&b'0') {
            radix = 8;
            digits = &s[1..];
            if digits.is_empty() {
                return Ok(0);
            }
        }
    }
    if digits.is_empty() {
        return Err(NumError::Syntax);
    }
    let mut total: u64 = 0;
    let mut overflow = false;
    let mut underscores = false;
    for &c in digits {
        if c == b'_' && base == 0 {
            underscores = true;
            continue;
        }
        let digit = (c as char).to_digit(radix).ok_or(NumError::Syntax)?;
        match total.checked_mul(u64::from(radix)).and_then(|t| t.checked_add(u64::from(digit))) {
            Some(t) => total = t,
            None => overflow = true,
        }
    }
    if underscores && !underscores_ok(s) {
        return Err(NumError::Syntax);
    }
    if overflow { Err(NumError::Range) } else { Ok(total) }
}

/// `strconv.ParseInt(s, base, 64)`
pub fn parse_int(s: &[u8], base: u32) -> Result<i64, NumError> {
    let (negative, body) = match s.first() {
        Some(b'-') => (true, &s[1..]),
        Some(b'+') => (false, &s[1..]),
        _ => (false, s),
    };
    let magnitude = parse_uint(body, base)?;
    if negative {
        if magnitude > 1 << 63 {
            return Err(NumError::Range);
        }
        return Ok((magnitude as i64).wrapping_neg());
    }
    i64::try_from(magnitude).map_err(|_| NumError::Range)
}

/// `strconv.ParseFloat(s, 64)`
pub fn parse_float(s: &[u8]) -> Result<f64, NumError> {
    let text = std::str::from_utf8(s).map_err(|_| NumError::Syntax)?;
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    if body.len() >= 2 && body.as_bytes()[0] == b'0' && body.as_bytes()[1] | 0x20 == b'x' {
        let value = parse_hex_float(&body[2..], s)?;
        return Ok(if text.starts_with('-') { -value } else { value });
    }
    let cleaned: String;
    let mut text = text;
    if text.contains('_') {
        if !underscores_ok(s) {
            return Err(NumError::Syntax);
        }
        cleaned = text.replace('_', "");
        text = &cleaned;
    }
    let value: f64 = text.parse().map_err(|_| NumError::Syntax)?;
    if value.is_infinite() && !text.bytes().any(|b| b | 0x20 == b'i') {
        return Err(NumError::Range);
    }
    Ok(value)
}

fn parse_hex_float(body: &str, whole: &[u8]) -> Result<f64, NumError> {
    if body.contains('_') && !underscores_ok(whole) {
        return Err(NumError::Syntax);
    }
    let body: String = body.chars().filter(|c| *c != '_').collect();
    let (mantissa, exponent) = body.split_once(['p', 'P']).ok_or(NumError::Syntax)?;
    let exponent: i32 = exponent.parse().map_err(|_| NumError::Syntax)?;
    let (whole_part, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole_part.is_empty() && fraction.is_empty() {
        return Err(NumError::Syntax);
    }
    let mut value = 0f64;
    for c in whole_part.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(c.to_digit(16).ok_or(NumError::Syntax)?);
    }
    let scale = exponent.saturating_sub(4 * i32::try_from(fraction.len()).unwrap_or(i32::MAX));
    let value = value * 2f64.powi(scale);
    if value.is_infinite() { Err(NumError::Range) } else { Ok(value) }
}

/// Parses one, possibly escaped, character of a quoted string: the rune (or byte), whether it is a rune, and
/// the rest.
fn unquote_char(s: &[u8], quote: u8) -> Option<(u32, bool, &[u8])> {
    let (c, width) = runes::decode(s)?;
    if c as u32 == u32::from(quote) && (quote == b'\'' || quote == b'"') {
        return None;
    }
    if c != '\\' {
        return Some((c as u32, !c.is_ascii(), &s[width..]));
    }
    let code = *s.get(1)?;
    let rest = &s[2..];
    let simple = |b: u8| Some((u32::from(b), false, rest));
    match code {
        b'a' => simple(7),
        b'b' => simple(8),
        b'f' => simple(12),
        b'n' => simple(b'\n'),
        b'r' => simple(b'\r'),
        b't' => simple(b'\t'),
        b'v' => simple(11),
        b'\\' => simple(b'\\'),
        b'\'' | b'"' => {
            if code != quote {
                return None;
            }
            simple(code)
        }
        b'x' | b'u' | b'U' => {
            let n = match code {
                b'x' => 2,
                b'u' => 4,
                _ => 8,
            };
            let digits = rest.get(..n)?;
            if !digits.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            let value = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
            if code == b'x' {
                return Some((value, false, &rest[n..]));
            }
            char::from_u32(value)?;
            Some((value, true, &rest[n..]))
        }
        b'0'..=b'7' => {
            let digits = s.get(1..4)?;
            let mut value = 0u32;
            for d in digits {
                if !(b'0'..=b'7').contains(d) {
                    return None;
                }
                value = value * 8 + u32::from(d - b'0');
            }
            (value <= 255).then_some((value, false, &s[4..]))
        }
        _ => None,
    }
}

/// `strconv.Unquote`: a string in double quotes or back quotes, or a character in single quotes. `None` is
/// "invalid syntax".
pub fn unquote(s: &[u8]) -> Option<Cow<'_, [u8]>> {
    let (&quote, rest) = s.split_first()?;
    let (&last, body) = rest.split_last()?;
    if quote != last {
        return None;
    }
    match quote {
        b'`' => {
            if memchr::memchr(b'`', body).is_some() {
                return None;
            }
            Some(match memchr::memchr(b'\r', body) {
                Some(_) => body.iter().copied().filter(|b| *b != b'\r').collect(),
                None => Cow::Borrowed(body),
            })
        }
        b'"' | b'\'' => {
            if memchr::memchr(b'\n', body).is_some() {
                return None;
            }
            if quote == b'"'
                && memchr::memchr2(b'\\', b'"', body).is_none()
                && std::str::from_utf8(body).is_ok()
            {
                return Some(Cow::Borrowed(body));
            }
            let mut out = Vec::with_capacity(body.len());
            let mut rest = body;
            let mut count = 0;
            while !rest.is_empty() {
                let (value, rune, tail) = unquote_char(rest, quote)?;
                if rune {
                    runes::push(&mut out, char::from_u32(value)?);
                } else {
                    out.push(value as u8);
                }
                rest = tail;
                count += 1;
            }
            if quote == b'\'' && count != 1 {
                return None;
            }
            Some(Cow::Owned(out))
        }
        _ => None,
    }
}

/// Parses the character constant `'x'`: its rune, or `None` for invalid syntax; the flag says whether more
/// text follows before the closing quote.
pub fn unquote_char_constant(s: &[u8]) -> Option<(u32, bool)> {
    let (value, _, tail) = unquote_char(s.get(1..)?, b'\'')?;
    Some((value, tail == b"'"))
}
