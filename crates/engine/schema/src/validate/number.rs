//! Bounds and multiples; integers are compared as integers.

use serde_json::{Number, Value};

use super::outcome::{Found, Outcome};
use crate::golang;
use crate::model::{Number as Bound, Rules};

/// The largest float below which every whole number has one of its own.
const LARGEST_WHOLE: f64 = ((1_u64 << 53) - 1) as f64;

pub(super) fn check(number: &Number, rules: Option<&Rules>, path: &str) -> Outcome {
    let mut out = Outcome { matched: 1, ..Outcome::default() };
    let Some(rules) = rules else { return out };
    let value = Value::Number(number.clone());
    let whole = number.as_i64();
    let float = number.as_f64().unwrap_or_default();
    // An integer meets an integer bound exactly; a fractional bound is cut as the reference does.
    let shown =
        |bound: Bound| if whole.is_some() { (bound.0 as i64).to_string() } else { golang::float(bound.0) };
    if let Some(factor) = rules.multiple_of
        && whole.is_some()
        && (factor.0 as i64) <= 0
    {
        // A factor below one is cut to zero for an integer, and then blamed.
        let cut = factor.0 as i64;
        let why = format!("factor MultipleOf declared for {path} must be positive: {cut}");
        out.push(Found::invalid(path, &Value::from(cut), why));
    } else if let Some(factor) = rules.multiple_of
        && !is_multiple(whole, float, factor.0)
    {
        out.push(Found::invalid(
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
            out.push(Found::invalid(path, &value, format!("{path} in body should be {word} {}", shown(min))));
        }
    }
    if let Some(max) = rules.maximum {
        let (above, equal) = match whole {
            Some(n) => (n > max.0 as i64, n == max.0 as i64),
            None => (float > max.0, float == max.0),
        };
        if above || (equal && rules.exclusive_maximum) {
            let word = if rules.exclusive_maximum { "less than" } else { "less than or equal to" };
            out.push(Found::invalid(path, &value, format!("{path} in body should be {word} {}", shown(max))));
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
            // Beyond this no number counts as whole.
            quotient.abs() <= LARGEST_WHOLE && (quotient - quotient.round()).abs() < 1e-9
        }
    }
}
