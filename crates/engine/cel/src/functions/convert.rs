//! Conversions between types.

use std::sync::Arc;

use super::{bytes, time};
use crate::error::EvalError;
use crate::eval::Eval;
use crate::value::{Opaque, Value};

pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Eval<'a>> {
    let [value] = args else { return None };
    Some(match name {
        "dyn" => Ok(value.clone()),
        "type" => Ok(Value::Type(Arc::from(value.type_name()))),
        "int" => int(value),
        "uint" => uint(value),
        "double" => double(value),
        "string" => text(value),
        "bool" => match value {
            Value::Bool(b) => Ok(Value::Bool(*b)),
            Value::Text(t) => match t.as_ref() {
                "1" | "t" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
                "0" | "f" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
                _ => Err(conversion_error("bool")),
            },
            _ => Err(EvalError::no_overload()),
        },
        "bytes" => match value {
            Value::Bytes(_) => Ok(value.clone()),
            Value::Text(t) => Ok(Value::Bytes(t.as_bytes().into())),
            _ => Err(EvalError::no_overload()),
        },
        "timestamp" => match value {
            Value::Timestamp(_) => Ok(value.clone()),
            Value::Int(seconds) => Ok(Value::Timestamp(i128::from(*seconds) * 1_000_000_000)),
            Value::Text(t) => time::parse_timestamp(t)
                .map(Value::Timestamp)
                .ok_or_else(|| conversion_error("google.protobuf.Timestamp")),
            _ => Err(EvalError::no_overload()),
        },
        "duration" => match value {
            Value::Duration(_) => Ok(value.clone()),
            Value::Text(t) => time::parse_go_duration(t)
                .map(Value::Duration)
                .ok_or_else(|| conversion_error("google.protobuf.Duration")),
            _ => Err(EvalError::no_overload()),
        },
        "base64.encode" => match value {
            Value::Bytes(data) => Ok(Value::text(bytes::encode_base64(data))),
            _ => Err(EvalError::no_overload()),
        },
        "base64.decode" => match value {
            Value::Text(t) => bytes::decode_base64(t)
                .map(|b| Value::Bytes(b.into()))
                .ok_or_else(|| EvalError::new("illegal base64 data")),
            _ => Err(EvalError::no_overload()),
        },
        _ => return None,
    })
}

fn range() -> EvalError {
    EvalError::new("integer overflow")
}

fn int<'a>(value: &Value<'a>) -> Eval<'a> {
    match value {
        Value::Int(n) => Ok(Value::Int(*n)),
        Value::Uint(n) => i64::try_from(*n).map(Value::Int).map_err(|_| range()),
        Value::Double(n)
            if n.is_finite() && *n > -9.223_372_036_854_776e18 && *n < 9.223_372_036_854_776e18 =>
        {
            Ok(Value::Int(*n as i64))
        }
        Value::Double(_) => Err(range()),
        Value::Text(t) => t.parse().map(Value::Int).map_err(|_| conversion_error("int")),
        Value::Timestamp(t) => {
            i64::try_from(t.div_euclid(1_000_000_000)).map(Value::Int).map_err(|_| range())
        }
        Value::Duration(d) => Ok(Value::Int(d / 1_000_000_000)),
        _ => Err(EvalError::no_overload()),
    }
}

/// Error of a string that cannot be converted to the type.
fn conversion_error(wanted: &str) -> EvalError {
    EvalError::new(format!("type conversion error from 'string' to '{wanted}'"))
}

fn uint<'a>(value: &Value<'a>) -> Eval<'a> {
    let overflow = || EvalError::new("unsigned integer overflow");
    match value {
        Value::Uint(n) => Ok(Value::Uint(*n)),
        Value::Int(n) => u64::try_from(*n).map(Value::Uint).map_err(|_| overflow()),
        Value::Double(n) if *n >= 0.0 && *n < 1.8446744073709552e19 => Ok(Value::Uint(*n as u64)),
        Value::Double(_) => Err(overflow()),
        Value::Text(t) => t.parse().map(Value::Uint).map_err(|_| conversion_error("uint")),
        _ => Err(EvalError::no_overload()),
    }
}

fn double<'a>(value: &Value<'a>) -> Eval<'a> {
    match value {
        Value::Double(n) => Ok(Value::Double(*n)),
        Value::Int(n) => Ok(Value::Double(*n as f64)),
        Value::Uint(n) => Ok(Value::Double(*n as f64)),
        Value::Text(t) => t.parse().map(Value::Double).map_err(|_| conversion_error("double")),
        _ => Err(EvalError::no_overload()),
    }
}

fn text<'a>(value: &Value<'a>) -> Eval<'a> {
    Ok(match value {
        Value::Text(_) => value.clone(),
        Value::Int(n) => Value::text(n.to_string()),
        Value::Uint(n) => Value::text(n.to_string()),
        Value::Double(n) => Value::text(print_double(*n)),
        Value::Bool(b) => Value::text(b.to_string()),
        Value::Bytes(data) => Value::text(
            String::from_utf8(data.to_vec())
                .map_err(|_| EvalError::new("invalid UTF-8 in bytes, cannot convert to string"))?,
        ),
        Value::Timestamp(t) => Value::text(time::print_timestamp(*t)),
        Value::Duration(d) => Value::text(time::print_duration(*d)),
        Value::Opaque(Opaque::Ip(ip)) => Value::text(ip.to_string()),
        Value::Opaque(Opaque::Cidr(ip, bits)) => Value::text(format!("{ip}/{bits}")),
        _ => return Err(EvalError::no_overload()),
    })
}

/// Go's shortest format of a float.
pub(super) fn print_double(n: f64) -> String {
    let scientific = format!("{n:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if n == 0.0 || (-4..21).contains(&exponent) {
        return format!("{n}");
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}
