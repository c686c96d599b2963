//! Operators.

use std::cmp::Ordering;

use crate::error::EvalError;
use crate::eval::{Eval, Scope, items};
use crate::functions::bool_of;
use crate::value::{List, Value};

const SECOND: i128 = 1_000_000_000;

pub(super) fn call<'a>(scope: &mut Scope<'a, '_>, name: &str, args: &[Value<'a>]) -> Option<Eval<'a>> {
    let none = || Some(Err(EvalError::no_overload()));
    match (name, args) {
        ("!_", [Value::Bool(b)]) => bool_of(!b),
        ("-_", [Value::Int(n)]) => Some(n.checked_neg().map(Value::Int).ok_or_else(overflow)),
        ("-_", [Value::Double(n)]) => Some(Ok(Value::Double(-n))),
        ("_==_", [a, b]) => Some(charge_compare(scope, a, b).map(|()| Value::Bool(a.equals(b)))),
        ("_!=_", [a, b]) => Some(charge_compare(scope, a, b).map(|()| Value::Bool(!a.equals(b)))),
        ("_<_", [a, b]) => Some(order(scope, a, b, |o| o == Ordering::Less)),
        ("_<=_", [a, b]) => Some(order(scope, a, b, |o| o != Ordering::Greater)),
        ("_>_", [a, b]) => Some(order(scope, a, b, |o| o == Ordering::Greater)),
        ("_>=_", [a, b]) => Some(order(scope, a, b, |o| o != Ordering::Less)),
        ("_+_", [a, b]) => Some(add(scope, a, b)),
        ("_-_", [a, b]) => Some(subtract(a, b)),
        ("_*_" | "_/_" | "_%_", [a, b]) => Some(multiply(name, a, b)),
        ("_[_]", [base, key]) => Some(index(base, key)),
        ("_[?_]", [base, key]) => Some(match index(base, key) {
            Ok(Value::Optional(inner)) => Ok(Value::Optional(inner)),
            Ok(value) => Ok(Value::some(value)),
            Err(EvalError::Message(text))
                if text.starts_with("no such key") || text.starts_with("index out of bounds") =>
            {
                Ok(Value::Optional(None))
            }
            Err(error) => Err(error),
        }),
        ("@in", [item, Value::List(list)]) => {
            Some(scope.charge(list.len() as u64).map(|()| Value::Bool(list.iter().any(|v| v.equals(item)))))
        }
        ("@in", [key, Value::Map(map)]) => bool_of(map.get(key).is_some()),
        ("!_" | "-_" | "@in", _) => none(),
        _ => None,
    }
}

fn overflow() -> EvalError {
    EvalError::new("integer overflow")
}

fn size(value: &Value<'_>) -> u64 {
    match value {
        Value::Text(text) => text.len() as u64 / 10,
        Value::Bytes(bytes) => bytes.len() as u64 / 10,
        Value::List(list) => list.len() as u64,
        Value::Map(map) => map.len() as u64,
        _ => 0,
    }
}

fn charge_compare<'a>(scope: &mut Scope<'a, '_>, a: &Value<'a>, b: &Value<'a>) -> Result<(), EvalError> {
    // Unordered lists compare every item with every other.
    let cost = match (a, b) {
        (Value::List(List::Json(x, Some(_))), Value::List(y)) if x.len() == y.len() => {
            (x.len() as u64).saturating_mul(x.len() as u64) / 10
        }
        _ => size(a).min(size(b)),
    };
    scope.charge(cost)
}

fn order<'a>(
    scope: &mut Scope<'a, '_>,
    a: &Value<'a>,
    b: &Value<'a>,
    test: impl Fn(Ordering) -> bool,
) -> Eval<'a> {
    scope.charge(size(a).min(size(b)))?;
    let nan = |v: &Value<'_>| matches!(v, Value::Double(n) if n.is_nan());
    match a.compare(b) {
        Some(found) => Ok(Value::Bool(test(found))),
        None if nan(a) || nan(b) => Ok(Value::Bool(false)),
        None => Err(EvalError::no_overload()),
    }
}

fn add<'a>(scope: &mut Scope<'a, '_>, a: &Value<'a>, b: &Value<'a>) -> Eval<'a> {
    scope.charge(size(a) + size(b))?;
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => x.checked_add(*y).map(Value::Int).ok_or_else(overflow),
        (Value::Uint(x), Value::Uint(y)) => {
            x.checked_add(*y).map(Value::Uint).ok_or_else(|| EvalError::new("unsigned integer overflow"))
        }
        (Value::Double(x), Value::Double(y)) => Ok(Value::Double(x + y)),
        (Value::Text(x), Value::Text(y)) => Ok(Value::text(format!("{x}{y}"))),
        (Value::Bytes(x), Value::Bytes(y)) => Ok(Value::Bytes([x.as_ref(), y.as_ref()].concat().into())),
        (Value::List(x), Value::List(y)) => {
            let mut out = items(x);
            out.extend(y.iter());
            Ok(Value::list(out))
        }
        (Value::Timestamp(t), Value::Duration(d)) | (Value::Duration(d), Value::Timestamp(t)) => {
            in_range(t + i128::from(*d))
        }
        (Value::Duration(x), Value::Duration(y)) => {
            x.checked_add(*y).map(Value::Duration).ok_or_else(|| EvalError::new("duration overflow"))
        }
        _ => Err(EvalError::no_overload()),
    }
}

fn subtract<'a>(a: &Value<'a>, b: &Value<'a>) -> Eval<'a> {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => x.checked_sub(*y).map(Value::Int).ok_or_else(overflow),
        (Value::Uint(x), Value::Uint(y)) => {
            x.checked_sub(*y).map(Value::Uint).ok_or_else(|| EvalError::new("unsigned integer overflow"))
        }
        (Value::Double(x), Value::Double(y)) => Ok(Value::Double(x - y)),
        (Value::Timestamp(t), Value::Duration(d)) => in_range(t - i128::from(*d)),
        (Value::Timestamp(x), Value::Timestamp(y)) => {
            i64::try_from(x - y).map(Value::Duration).map_err(|_| EvalError::new("duration overflow"))
        }
        (Value::Duration(x), Value::Duration(y)) => {
            x.checked_sub(*y).map(Value::Duration).ok_or_else(|| EvalError::new("duration overflow"))
        }
        _ => Err(EvalError::no_overload()),
    }
}

/// Timestamps reach from year 1 to year 9999.
fn in_range<'a>(nanos: i128) -> Eval<'a> {
    if (-62_135_596_800 * SECOND..=253_402_300_799 * SECOND + SECOND - 1).contains(&nanos) {
        Ok(Value::Timestamp(nanos))
    } else {
        Err(EvalError::new("timestamp overflow"))
    }
}

fn multiply<'a>(name: &str, a: &Value<'a>, b: &Value<'a>) -> Eval<'a> {
    match (name, a, b) {
        ("_*_", Value::Int(x), Value::Int(y)) => x.checked_mul(*y).map(Value::Int).ok_or_else(overflow),
        ("_*_", Value::Uint(x), Value::Uint(y)) => {
            x.checked_mul(*y).map(Value::Uint).ok_or_else(|| EvalError::new("unsigned integer overflow"))
        }
        ("_*_", Value::Double(x), Value::Double(y)) => Ok(Value::Double(x * y)),
        ("_/_", Value::Double(x), Value::Double(y)) => Ok(Value::Double(x / y)),
        ("_/_", Value::Int(_), Value::Int(0)) | ("_/_", Value::Uint(_), Value::Uint(0)) => {
            Err(EvalError::new("division by zero"))
        }
        ("_%_", Value::Int(_), Value::Int(0)) | ("_%_", Value::Uint(_), Value::Uint(0)) => {
            Err(EvalError::new("modulus by zero"))
        }
        ("_/_", Value::Int(x), Value::Int(y)) => x.checked_div(*y).map(Value::Int).ok_or_else(overflow),
        ("_/_", Value::Uint(x), Value::Uint(y)) => Ok(Value::Uint(x / y)),
        ("_%_", Value::Int(x), Value::Int(y)) => x.checked_rem(*y).map(Value::Int).ok_or_else(overflow),
        ("_%_", Value::Uint(x), Value::Uint(y)) => Ok(Value::Uint(x % y)),
        _ => Err(EvalError::no_overload()),
    }
}

fn index<'a>(base: &Value<'a>, key: &Value<'a>) -> Eval<'a> {
    match (base, key) {
        (Value::Optional(None), _) => Ok(Value::Optional(None)),
        (Value::Optional(Some(inner)), key) => Ok(match index(inner, key) {
            Ok(value) => Value::some(value),
            Err(_) => Value::Optional(None),
        }),
        (Value::List(list), Value::Int(_) | Value::Uint(_) | Value::Double(_)) => {
            let place = match key {
                Value::Int(n) => *n,
                Value::Uint(n) => i64::try_from(*n).unwrap_or(-1),
                Value::Double(n) if n.fract() == 0.0 => *n as i64,
                _ => return Err(EvalError::new("unsupported index value")),
            };
            let found = usize::try_from(place).ok().and_then(|at| list.get(at));
            found.ok_or_else(|| EvalError::new(format!("index out of bounds: {place}")))
        }
        (Value::Map(map), key) => {
            map.get(key).ok_or_else(|| EvalError::new(format!("no such key: {}", print_key(key))))
        }
        _ => Err(EvalError::no_overload()),
    }
}

fn print_key(key: &Value<'_>) -> String {
    match key {
        Value::Text(text) => text.to_string(),
        other => other.to_json().to_string(),
    }
}
