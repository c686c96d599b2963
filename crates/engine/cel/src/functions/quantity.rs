//! Kubernetes quantities.

use crate::error::EvalError;
use crate::eval::Eval;
use crate::functions::{bool_of, opaque};
use crate::value::{Opaque, Value};

/// Nano-units: smaller fractions are rounded up, as in Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(i128);

const UNIT: i128 = 1_000_000_000;

impl Quantity {
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || whole.len() > 26 {
            return None;
        }
        let (numerator, denominator) = scale(suffix)?;
        let digits = &fraction[..fraction.len().min(18)];
        let mantissa: i128 = format!("{whole}{digits}").parse().ok()?;
        let divisor = 10i128.checked_pow(u32::try_from(digits.len()).ok()?)?.checked_mul(denominator)?;
        let scaled = mantissa.checked_mul(numerator)?.checked_mul(UNIT)?;
        let value = scaled / divisor + i128::from(scaled % divisor != 0);
        Some(Quantity(if negative { -value } else { value }))
    }

    fn whole(self) -> Option<i64> {
        (self.0 % UNIT == 0).then(|| i64::try_from(self.0 / UNIT).ok()).flatten()
    }
}

/// Multiplier and divisor of a suffix.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    let binary = |n: u32| Some((1i128 << (10 * n), 1));
    let decimal = |n: u32| Some((10i128.pow(n), 1));
    match suffix {
        "" => Some((1, 1)),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1_000)),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            match exponent {
                0..=18 => decimal(exponent.unsigned_abs()),
                -18..0 => Some((1, 10i128.pow(exponent.unsigned_abs()))),
                _ => None,
            }
        }
    }
}

pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Eval<'a>> {
    const SYNTAX: &str =
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    match (name, args) {
        ("isQuantity", [Value::Text(text)]) => return bool_of(Quantity::parse(text).is_some()),
        ("quantity", [Value::Text(text)]) => {
            return Some(
                Quantity::parse(text)
                    .map(|q| opaque(Opaque::Quantity(q)))
                    .ok_or_else(|| EvalError::new(SYNTAX)),
            );
        }
        _ => {}
    }
    let (Value::Opaque(Opaque::Quantity(q)), rest) = args.split_first()? else { return None };
    let other = match rest {
        [Value::Opaque(Opaque::Quantity(other))] => Some(*other),
        [Value::Int(n)] => Some(Quantity(i128::from(*n) * UNIT)),
        _ => None,
    };
    Some(Ok(match (name, other) {
        ("sign", None) => Value::Int(q.0.signum() as i64),
        ("isInteger", None) => Value::Bool(q.whole().is_some()),
        ("asInteger", None) => match q.whole() {
            Some(n) => Value::Int(n),
            None => return Some(Err(EvalError::new("cannot convert value to integer"))),
        },
        ("asApproximateFloat", None) => Value::Double(q.0 as f64 / UNIT as f64),
        ("add", Some(o)) => opaque(Opaque::Quantity(Quantity(q.0 + o.0))),
        ("sub", Some(o)) => opaque(Opaque::Quantity(Quantity(q.0 - o.0))),
        ("isLessThan", Some(o)) => Value::Bool(*q < o),
        ("isGreaterThan", Some(o)) => Value::Bool(*q > o),
        ("compareTo", Some(o)) => Value::Int(q.cmp(&o) as i64),
        _ => return None,
    }))
}
