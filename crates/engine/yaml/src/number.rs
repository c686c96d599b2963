//! Numbers as Go's libraries parse and print them.

use crate::resolve::{Dialect, Scalar};

/// Parses a scalar that starts with a digit or sign: integers of Go's `ParseInt` with base 0 (`0x1F`, `0b1`,
/// `0o7`, `017`), unsigned 64-bit integers, then floats. Underscores are ignored.
pub(crate) fn parse(text: &str, dialect: Dialect) -> Option<Scalar<'static>> {
    let without;
    let plain = if text.contains('_') {
        without = text.replace('_', "");
        &without
    } else {
        text
    };
    if let Some(int) = parse_int_any_base(plain) {
        return Some(int);
    }
    if is_yaml_float(plain) {
        // In Go a number out of range is an error, and the scalar remains a string.
        if let Some(float) = plain.parse::<f64>().ok().filter(|f| f.is_finite()) {
            return Some(Scalar::Float(float));
        }
    }
    // Only these two forms allow a sign after the prefix.
    signed_behind_prefix(plain, "0b", 2)
        .or_else(|| if dialect == Dialect::V3 { signed_behind_prefix(plain, "0o", 8) } else { None })
}

fn parse_int_any_base(s: &str) -> Option<Scalar<'static>> {
    let (negative, digits, signed) = match s.as_bytes().first()? {
        b'-' => (true, &s[1..], true),
        b'+' => (false, &s[1..], true),
        _ => (false, s, false),
    };
    let magnitude = parse_uint_any_base(digits)?;
    match (negative, magnitude) {
        (false, m) if m <= i64::MAX as u64 => Some(Scalar::Int(m as i64)),
        (false, m) if !signed => Some(Scalar::Uint(m)),
        (true, m) if m <= 1 << 63 => Some(Scalar::Int((m as i64).wrapping_neg())),
        _ => None,
    }
}

fn parse_uint_any_base(s: &str) -> Option<u64> {
    let bytes = s.as_bytes();
    match *bytes {
        [] => None,
        [b'0', b'b' | b'B', _, ..] => digits(&bytes[2..], 2),
        [b'0', b'o' | b'O', _, ..] => digits(&bytes[2..], 8),
        [b'0', b'x' | b'X', _, ..] => digits(&bytes[2..], 16),
        [b'0', ..] => digits(&bytes[1..], 8),
        _ => digits(bytes, 10),
    }
}

fn digits(bytes: &[u8], base: u32) -> Option<u64> {
    bytes.iter().try_fold(0u64, |n, &b| {
        let digit = char::from(b).to_digit(base)?;
        n.checked_mul(u64::from(base))?.checked_add(u64::from(digit))
    })
}

fn signed_behind_prefix(s: &str, prefix: &str, base: u32) -> Option<Scalar<'static>> {
    let rest = s.strip_prefix(prefix)?;
    let (negative, bytes) = match rest.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if bytes.is_empty() {
        return None;
    }
    let magnitude = i64::try_from(digits(bytes, base)?).ok()?;
    Some(Scalar::Int(if negative { -magnitude } else { magnitude }))
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_yaml_float(s: &str) -> bool {
    let b = s.strip_prefix(['-', '+']).unwrap_or(s).as_bytes();
    let run = |b: &[u8]| b.iter().take_while(|c| c.is_ascii_digit()).count();
    let whole = run(b);
    let mut rest = &b[whole..];
    if let [b'.', after @ ..] = rest {
        let fraction = run(after);
        if whole == 0 && fraction == 0 {
            return false;
        }
        rest = &after[fraction..];
    } else if whole == 0 {
        return false;
    }
    match rest {
        [] => true,
        [b'e' | b'E', after @ ..] => {
            let after = after.strip_prefix(b"-").or_else(|| after.strip_prefix(b"+")).unwrap_or(after);
            !after.is_empty() && run(after) == after.len()
        }
        _ => false,
    }
}

/// Parses a scalar that starts with a dot.
pub(crate) fn parse_dotted(text: &str) -> Option<f64> {
    is_yaml_float(text).then(|| text.parse().ok()).flatten().filter(|f: &f64| f.is_finite())
}

/// Writes a float as Go's YAML libraries do.
pub(crate) fn push_float(out: &mut String, value: f64) {
    if value.is_finite() {
        fl_go::float::push_g(out, value);
    } else {
        push_non_finite(out, value);
    }
}

/// Writes a float that is a key as `sigs.k8s.io/yaml` does: with 32 bits.
pub(crate) fn push_float32(out: &mut String, value: f64) {
    let short = value as f32;
    if short.is_finite() {
        fl_go::float::push_g32(out, short);
    } else {
        push_non_finite(out, f64::from(short));
    }
}

fn push_non_finite(out: &mut String, value: f64) {
    out.push_str(if value.is_nan() {
        ".nan"
    } else if value > 0.0 {
        ".inf"
    } else {
        "-.inf"
    });
}
