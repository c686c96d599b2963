//! `eq` and its relatives: comparison by basic kind, with Go's errors.

use super::Result;
use crate::fmt::display;
use crate::func::CallError;
use crate::value::{Kind, Value};

/// A value reduced to its basic kind.
enum Basic<'v> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Complex(f64, f64),
    Str(&'v [u8]),
    Other,
}

fn basic(value: &Value) -> Basic<'_> {
    match value {
        Value::Bool(b) => Basic::Bool(*b),
        Value::Int(kind, n) if kind.signed() => Basic::Int(*n),
        Value::Int(_, n) => Basic::Uint(*n as u64),
        Value::Float(x) => Basic::Float(*x),
        Value::Complex(re, im) => Basic::Complex(*re, *im),
        Value::Str(text) => Basic::Str(text),
        Value::Object(object) => match object.plain() {
            Some(Value::Int(kind, n)) if kind.signed() => Basic::Int(n),
            Some(Value::Int(_, n)) => Basic::Uint(n as u64),
            Some(Value::Float(x)) => Basic::Float(x),
            Some(Value::Bool(b)) => Basic::Bool(b),
            _ => Basic::Other,
        },
        Value::Nil | Value::Bytes(_) | Value::List(_) | Value::Map(_) => Basic::Other,
    }
}

fn incompatible(a: &Value, b: &Value) -> CallError {
    CallError::new(format!("incompatible types for comparison: {} and {}", a.type_name(), b.type_name()))
}

/// `eq` for two values.
///
/// # Errors
/// The values cannot be compared; the message is Go's.
pub fn compare_equal(a: &Value, b: &Value) -> std::result::Result<bool, CallError> {
    use Basic as B;
    Ok(match (basic(a), basic(b)) {
        (B::Bool(x), B::Bool(y)) => x == y,
        (B::Int(x), B::Int(y)) => x == y,
        (B::Uint(x), B::Uint(y)) => x == y,
        (B::Float(x), B::Float(y)) => x == y,
        (B::Complex(a, b), B::Complex(c, d)) => a == c && b == d,
        (B::Str(x), B::Str(y)) => x == y,
        (B::Int(x), B::Uint(y)) | (B::Uint(y), B::Int(x)) => u64::try_from(x) == Ok(y),
        (B::Other, B::Other) => return equal_others(a, b),
        _ => {
            if !matches!(a, Value::Nil) && !matches!(b, Value::Nil) {
                return Err(incompatible(a, b));
            }
            false
        }
    })
}

/// Equality of values without order: nil, slices, maps, structs.
fn equal_others(a: &Value, b: &Value) -> std::result::Result<bool, CallError> {
    let (ka, kb) = (a.kind(), b.kind());
    if ka != kb && ka != Kind::Invalid && kb != Kind::Invalid {
        return Err(CallError::new(format!(
            "non-comparable types {}: {}, {}: {}",
            reflected(a),
            a.type_name(),
            b.type_name(),
            display(b)
        )));
    }
    if a.is_nil() || b.is_nil() {
        return Ok(a.is_nil() == b.is_nil());
    }
    match (a, b) {
        (Value::Object(x), Value::Object(y)) if kb != Kind::Map && kb != Kind::Slice => {
            if kb == Kind::Pointer {
                return Ok(std::rc::Rc::ptr_eq(x, y));
            }
            Ok(x.type_name() == y.type_name() && display(a) == display(b))
        }
        _ => Err(CallError::new(format!("non-comparable type {}: {}", reflected(b), b.type_name()))),
    }
}

/// A `reflect.Value` formatted with `%s`.
fn reflected(value: &Value) -> String {
    let text = crate::fmt::sprintf(b"%s", std::slice::from_ref(value), 4096).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

/// `lt` for two values.
///
/// # Errors
/// The values have no order; the message is Go's.
pub fn less_than(a: &Value, b: &Value) -> std::result::Result<bool, CallError> {
    use Basic as B;
    let invalid = || CallError::new("invalid type for comparison");
    Ok(match (basic(a), basic(b)) {
        (B::Other, _) | (_, B::Other) => return Err(invalid()),
        (B::Int(x), B::Int(y)) => x < y,
        (B::Uint(x), B::Uint(y)) => x < y,
        (B::Float(x), B::Float(y)) => x < y,
        (B::Str(x), B::Str(y)) => x < y,
        (B::Int(x), B::Uint(y)) => x < 0 || (x as u64) < y,
        (B::Uint(x), B::Int(y)) => y >= 0 && x < y as u64,
        (B::Bool(_), B::Bool(_)) | (B::Complex(..), B::Complex(..)) => return Err(invalid()),
        _ => return Err(incompatible(a, b)),
    })
}

pub(super) fn eq(args: &[Value]) -> Result {
    if args.len() < 2 {
        return Err(CallError::new("missing argument for comparison"));
    }
    for other in &args[1..] {
        if compare_equal(&args[0], other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

pub(super) fn ne(args: &[Value]) -> Result {
    Ok(Value::Bool(!compare_equal(&args[0], &args[1])?))
}

pub(super) fn lt(args: &[Value]) -> Result {
    Ok(Value::Bool(less_than(&args[0], &args[1])?))
}

fn less_or_equal(args: &[Value]) -> std::result::Result<bool, CallError> {
    Ok(less_than(&args[0], &args[1])? || compare_equal(&args[0], &args[1])?)
}

pub(super) fn le(args: &[Value]) -> Result {
    Ok(Value::Bool(less_or_equal(args)?))
}

pub(super) fn gt(args: &[Value]) -> Result {
    Ok(Value::Bool(!less_or_equal(args)?))
}

pub(super) fn ge(args: &[Value]) -> Result {
    Ok(Value::Bool(!less_than(&args[0], &args[1])?))
}
