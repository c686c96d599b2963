//! Validation of bounds and multiples; integers are compared exactly.

use serde_json::{Number, Value};

use super::result::{ValidationError, ValidationResult};

use crate::structural::{Number as Bound, Rules};

/// Largest integer up to which floats represent every integer.
const MAX_EXACT_INTEGER: f64 = ((1_u64 << 53) - 1) as f64;

pub(super) fn check(number: &Number, rules: Option<&Rules>, path: &str) -> ValidationResult {
    let mut out = ValidationResult { matched: 1, ..ValidationResult::default() };
    let Some(rules) = rules else { return out };
    let value = Value::Number(number.clone());
    let whole = number.as_i64();
    let float = number.as_f64().unwrap_or_default();
    // An integer is compared with an integer bound; like the reference, a fractional bound is truncated.
    let shown =
        |bound: Bound| if whole.is_some() { (bound.0 as i64).to_string() } else { fl_go::float(bound.0) };
    if let Some(factor) = rules.multiple_of
        && whole.is_some()
        && (factor.0 as i64) <= 0
    {
        // For an integer a factor below one is truncated to zero and then reported as invalid.
        let cut = factor.0 as i64;
        let why = format!("factor MultipleOf declared for {path} must be positive: {cut}");
        out.push(ValidationError::invalid(path, &Value::from(cut), why));
    } else if let Some(factor) = rules.multiple_of
        && !is_multiple(whole, float, factor.0)
    {
        out.push(ValidationError::invalid(
            path,
            &value,
            format!("{path} in body should be a multiple of {}", shown(factor)),
        ));
    }
    if let Some(min) = rules.minimum {
        let (below, equal) = match whole {
            Some(n) => (n < min.0 as i64, n == min.0 as i64),
            None => (float < min.0, float == min.0),
        };
        if below || (equal && rules.exclusive_minimum) {
            let word = if rules.exclusive_minimum { "greater than" } else { "greater than or equal to" };
            out.push(ValidationError::invalid(
                path,
                &value,
                format!("{path} in body should be {word} {}", shown(min)),
            ));
        }
    }
    if let Some(max) = rules.maximum {
        let (above, equal) = match whole {
            Some(n) => (n > max.0 as i64, n == max.0 as i64),
            None => (float > max.0, float == max.0),
        };
        if above || (equal && rules.exclusive_maximum) {
            let word = if rules.exclusive_maximum { "less than" } else { "less than or equal to" };
            out.push(ValidationError::invalid(
                path,
                &value,
                format!("{path} in body should be {word} {}", shown(max)),
            ));
        }
    }
    out
}

fn is_multiple(whole: Option<i64>, float: f64, factor: f64) -> bool {
    match whole {
        Some(n) => {
            let step = factor as i64;
            step > 0 && n % step == 0
        }
        None if factor <= 0.0 => false,
        None => {
            let quotient = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
            // Larger quotients never count as integral.
            quotient.abs() <= MAX_EXACT_INTEGER && (quotient - quotient.round()).abs() < 1e-9
        }
    }
}
