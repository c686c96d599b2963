//! Numbers as Go reads and prints them.

use crate::resolve::{Dialect, Scalar};

/// A scalar that starts with a digit or a sign: the integers Go's `ParseInt` takes with base 0 (`0x1F`, `0b1`, `0o7`,
/// `017`), 64 bits without sign, then floats. Underscores do not count anywhere.
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
        // Go calls a number out of range an error and goes on as a string.
        if let Some(float) = plain.parse::<f64>().ok().filter(|f| f.is_finite()) {
            return Some(Scalar::Float(float));
        }
    }
    // A sign behind the prefix is read by these two forms only.
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

/// A scalar that starts with a dot.
pub(crate) fn parse_dotted(text: &str) -> Option<f64> {
    is_yaml_float(text).then(|| text.parse().ok()).flatten().filter(|f: &f64| f.is_finite())
}

/// The shortest decimal digits that read back as `value` (not zero, finite), and the exponent of the first one.
fn shortest(value: f64) -> (String, i32) {
    let text = format!("{:e}", value.abs());
    let (mantissa, exponent) = text.split_once('e').expect("{:e} always prints an exponent");
    (mantissa.replace('.', ""), exponent.parse().expect("{:e} prints a decimal exponent"))
}

fn push_fixed(out: &mut String, digits: &str, exponent: i32) {
    let point = exponent + 1;
    if point <= 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', point.unsigned_abs() as usize));
        out.push_str(digits);
    } else {
        let point = point as usize;
        if digits.len() <= point {
            out.push_str(digits);
            out.extend(std::iter::repeat_n('0', point - digits.len()));
        } else {
            out.push_str(&digits[..point]);
            out.push('.');
            out.push_str(&digits[point..]);
        }
    }
}

fn push_exponent(out: &mut String, digits: &str, exponent: i32, least_width: usize) {
    out.push_str(&digits[..1]);
    if digits.len() > 1 {
        out.push('.');
        out.push_str(&digits[1..]);
    }
    out.push('e');
    out.push(if exponent < 0 { '-' } else { '+' });
    let exponent = exponent.unsigned_abs().to_string();
    out.extend(std::iter::repeat_n('0', least_width.saturating_sub(exponent.len())));
    out.push_str(&exponent);
}

/// Go's `FormatFloat(value, 'g', -1, 64)`: how its YAML library prints floats.
pub(crate) fn push_g_float(out: &mut String, value: f64) {
    if value.is_nan() {
        return out.push_str(".nan");
    }
    if value.is_sign_negative() {
        out.push('-');
    }
    if value.is_infinite() {
        return out.push_str(".inf");
    }
    if value == 0.0 {
        return out.push('0');
    }
    let (digits, exponent) = shortest(value);
    // With the shortest digits Go decides as if the precision were 6, however many digits there are.
    if (-4..6).contains(&exponent) {
        push_fixed(out, &digits, exponent);
    } else {
        push_exponent(out, &digits, exponent, 2);
    }
}

/// Go's `FormatFloat(value, 'g', -1, 32)`: how `sigs.k8s.io/yaml` prints a float that is a key.
pub(crate) fn push_g_float32(out: &mut String, value: f64) {
    let short = value as f32;
    if !short.is_finite() || short == 0.0 {
        // Keys keep the plus sign away too: `+Inf` becomes `.inf`.
        return push_g_float(out, f64::from(short));
    }
    if short < 0.0 {
        out.push('-');
    }
    let text = format!("{:e}", short.abs());
    let (mantissa, exponent) = text.split_once('e').expect("{:e} always prints an exponent");
    let (digits, exponent) = (mantissa.replace('.', ""), exponent.parse().expect("a decimal exponent"));
    if (-4..6).contains(&exponent) {
        push_fixed(out, &digits, exponent);
    } else {
        push_exponent(out, &digits, exponent, 2);
    }
}

/// How Go's encoding/json prints a float64.
pub(crate) fn push_json_float(out: &mut String, value: f64) {
    if value == 0.0 {
        return out.push_str(if value.is_sign_negative() { "-0" } else { "0" });
    }
    if value.is_sign_negative() {
        out.push('-');
    }
    let (digits, exponent) = shortest(value);
    let magnitude = value.abs();
    if (1e-6..1e21).contains(&magnitude) {
        push_fixed(out, &digits, exponent);
    } else {
        // JSON drops the zero that pads a negative one-digit exponent; positive ones are never below 21.
        push_exponent(out, &digits, exponent, 1);
    }
}
