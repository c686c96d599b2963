//! Floats as Go prints them.

/// Go's `%v` of a float64.
#[must_use]
pub fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let mut out = String::new();
    push_g(&mut out, value);
    out
}

/// The digits and the exponent of a number that is formatted with `{:e}`.
fn split_exponent(text: &str) -> (String, i32) {
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

/// Writes `FormatFloat(value, 'g', -1, 64)` of a finite value.
pub fn push_g(out: &mut String, value: f64) {
    push_general(out, value.is_sign_negative(), &format!("{:e}", value.abs()));
}

/// Writes `FormatFloat(value, 'g', -1, 32)` of a finite value.
pub fn push_g32(out: &mut String, value: f32) {
    push_general(out, value.is_sign_negative(), &format!("{:e}", value.abs()));
}

fn push_general(out: &mut String, negative: bool, scientific: &str) {
    if negative {
        out.push('-');
    }
    let (digits, exponent) = split_exponent(scientific);
    // With the shortest representation Go decides as if the precision were 6.
    if (-4..6).contains(&exponent) {
        push_fixed(out, &digits, exponent);
    } else {
        push_exponent(out, &digits, exponent, 2);
    }
}

/// Writes a finite float64 as Go's `encoding/json` does.
pub fn push_json(out: &mut String, value: f64) {
    if value.is_sign_negative() {
        out.push('-');
    }
    let magnitude = value.abs();
    let (digits, exponent) = split_exponent(&format!("{magnitude:e}"));
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        push_fixed(out, &digits, exponent);
    } else {
        // JSON has no zero that pads a negative one-digit exponent; positive ones are at least 21.
        push_exponent(out, &digits, exponent, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_printed_as_go_does() {
        for (value, general, json) in [
            (0.0, "0", "0"),
            (-0.0, "-0", "-0"),
            (1.5, "1.5", "1.5"),
            (100_000.0, "100000", "100000"),
            (1_000_000.0, "1e+06", "1000000"),
            (-0.000_01, "-1e-05", "-0.00001"),
            (1e-7, "1e-07", "1e-7"),
            (1.25e21, "1.25e+21", "1.25e+21"),
        ] {
            assert_eq!(float(value), general);
            let mut text = String::new();
            push_json(&mut text, value);
            assert_eq!(text, json);
        }
        assert_eq!([float(f64::NAN), float(f64::INFINITY)], ["NaN", "+Inf"]);
        let mut text = String::new();
        push_g32(&mut text, 0.1);
        assert_eq!(text, "0.1");
    }
}
