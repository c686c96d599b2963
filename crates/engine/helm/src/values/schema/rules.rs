//! Keywords that need only the value: types, equality, sizes and bounds.

use serde_json::{Map as Object, Value as Json};

use super::violation::{Violation, number, type_name};

pub(super) fn has_type(value: &Json, wanted: &str) -> bool {
    match wanted {
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        wanted => type_name(value) == wanted,
    }
}

/// JSON equality: numbers are compared by value, not by notation.
pub(super) fn equal(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

/// The first item that equals an earlier one.
pub(super) fn equal_items(items: &[Json]) -> Option<(usize, usize)> {
    // Only used for a message: very long lists are not compared completely.
    (1..items.len().min(1000)).find_map(|i| Some((items[..i].iter().position(|j| equal(j, &items[i]))?, i)))
}

/// A limit that is a count.
pub(super) fn count(limit: &Json) -> Option<usize> {
    limit.as_f64().filter(|limit| *limit >= 0.0).map(|limit| limit as usize)
}

pub(super) fn sized(
    schema: &Object<String, Json>,
    keyword: &str,
    size: usize,
    wrong: fn(usize, usize) -> bool,
    at: &str,
    failures: &mut Vec<Violation>,
) {
    if let Some(limit) = schema.get(keyword).and_then(count).filter(|limit| wrong(size, *limit)) {
        let [size, limit] = [size, limit].map(|count| number(&Json::from(count)));
        failures.push(Violation::new(at, format!("{keyword}: got {size}, want {limit}")));
    }
}

pub(super) fn bounds(
    schema: &Object<String, Json>,
    value: &Json,
    draft: u16,
    at: &str,
    failures: &mut Vec<Violation>,
) {
    let got = value.as_f64().unwrap_or_default();
    let mut bound = |keyword: &str, limit: &Json, wrong: bool| {
        if wrong {
            let words = format!("{keyword}: got {}, want {}", number(value), number(limit));
            failures.push(Violation::new(at, words));
        }
    };
    let limit = |keyword: &str| schema.get(keyword).and_then(|limit| Some((limit, limit.as_f64()?)));
    // In draft 4 this boolean makes the bound next to it exclusive.
    let exclusive = |keyword: &str| draft == 4 && schema.get(keyword) == Some(&Json::Bool(true));
    let [low, high] = ["exclusiveMinimum", "exclusiveMaximum"].map(exclusive);
    if let Some((limit, least)) = limit("minimum") {
        if low {
            bound("exclusiveMinimum", limit, got <= least);
        } else {
            bound("minimum", limit, got < least);
        }
    }
    if let Some((limit, most)) = limit("maximum") {
        if high {
            bound("exclusiveMaximum", limit, got >= most);
        } else {
            bound("maximum", limit, got > most);
        }
    }
    if let Some((limit, least)) = limit("exclusiveMinimum") {
        bound("exclusiveMinimum", limit, got <= least);
    }
    if let Some((limit, most)) = limit("exclusiveMaximum") {
        bound("exclusiveMaximum", limit, got >= most);
    }
    if let Some((limit, step)) = limit("multipleOf") {
        bound("multipleOf", limit, !is_multiple(value, limit).unwrap_or_else(|| (got / step).fract() == 0.0));
    }
}

/// Whether a number is a multiple of another, in decimal arithmetic.
fn is_multiple(value: &Json, step: &Json) -> Option<bool> {
    let parts = |number: &Json| {
        let text = number.to_string();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        Some((digits, u32::try_from(fraction.len()).ok()?))
    };
    let ((value, places), (step, step_places)) = (parts(value)?, parts(step)?);
    let most = places.max(step_places);
    let scaled = |number: i128, places: u32| number.checked_mul(10i128.checked_pow(most - places)?);
    let (value, step) = (scaled(value, places)?, scaled(step, step_places)?);
    (step != 0).then(|| value % step == 0)
}
