//! `"…".format([…])`.

use super::convert::print_double;
use super::time;
use crate::error::EvalError;
use crate::eval::Eval;
use crate::value::{List, Value};

pub(super) fn format<'a>(pattern: &str, args: &List<'a>) -> Eval<'a> {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    let mut next = 0;
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.peek() == Some(&'%') {
            chars.next();
            out.push('%');
            continue;
        }
        let mut precision = None;
        if chars.peek() == Some(&'.') {
            chars.next();
            let mut digits = String::new();
            while let Some(d) = chars.peek().filter(|d| d.is_ascii_digit()) {
                digits.push(*d);
                chars.next();
            }
            precision = Some(digits.parse::<usize>().unwrap_or(6).min(100));
        }
        let verb = chars.next().ok_or_else(|| EvalError::new("unexpected end of string"))?;
        let value = args.get(next).ok_or_else(|| EvalError::new(format!("index {next} out of range")))?;
        next += 1;
        out.push_str(&clause(verb, precision, &value)?);
    }
    Ok(Value::text(out))
}

fn clause(verb: char, precision: Option<usize>, value: &Value<'_>) -> Result<String, EvalError> {
    let wrong = |clause: &str| {
        EvalError::new(format!(
            "error during formatting: {clause} clause can only be used on compatible values, was given {}",
            value.type_name()
        ))
    };
    Ok(match (verb, value) {
        ('s', _) => plain(value)?,
        ('d', Value::Int(n)) => n.to_string(),
        ('d', Value::Uint(n)) => n.to_string(),
        ('d', _) => {
            return Err(EvalError::new(format!(
                "error during formatting: decimal clause can only be used on integers, was given {}",
                value.type_name()
            )));
        }
        ('f', _) => {
            format!("{:.*}", precision.unwrap_or(6), number(value).ok_or_else(|| wrong("fixed-point"))?)
        }
        ('e', _) => {
            let text = format!(
                "{:.*e}",
                precision.unwrap_or(6),
                number(value).ok_or_else(|| wrong("scientific notation"))?
            );
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let exponent: i32 = exponent.parse().unwrap_or(0);
            format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
        ('b', Value::Int(n)) => signed(*n, |m| format!("{m:b}")),
        ('b', Value::Uint(n)) => format!("{n:b}"),
        ('b', Value::Bool(b)) => u8::from(*b).to_string(),
        ('o', Value::Int(n)) => signed(*n, |m| format!("{m:o}")),
        ('o', Value::Uint(n)) => format!("{n:o}"),
        ('x', Value::Int(n)) => signed(*n, |m| format!("{m:x}")),
        ('X', Value::Int(n)) => signed(*n, |m| format!("{m:X}")),
        ('x', Value::Uint(n)) => format!("{n:x}"),
        ('X', Value::Uint(n)) => format!("{n:X}"),
        ('x', Value::Text(text)) => text.bytes().map(|b| format!("{b:02x}")).collect(),
        ('X', Value::Text(text)) => text.bytes().map(|b| format!("{b:02X}")).collect(),
        ('x', Value::Bytes(bytes)) => bytes.iter().map(|b| format!("{b:02x}")).collect(),
        ('X', Value::Bytes(bytes)) => bytes.iter().map(|b| format!("{b:02X}")).collect(),
        ('b' | 'o' | 'x' | 'X', _) => return Err(wrong("integer")),
        (other, _) => {
            return Err(EvalError::new(format!(
                "could not parse formatting clause: unrecognized formatting clause \"{other}\""
            )));
        }
    })
}

fn signed(n: i64, print: impl Fn(u64) -> String) -> String {
    format!("{}{}", if n < 0 { "-" } else { "" }, print(n.unsigned_abs()))
}

fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(n) => Some(*n),
        Value::Int(n) => Some(*n as f64),
        Value::Uint(n) => Some(*n as f64),
        _ => None,
    }
}

fn plain(value: &Value<'_>) -> Result<String, EvalError> {
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Uint(n) => n.to_string(),
        Value::Double(n) => print_double(*n),
        Value::Text(text) => text.to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Timestamp(t) => time::print_timestamp(*t),
        Value::Duration(d) => time::print_duration(*d),
        Value::Type(name) => name.to_string(),
        Value::List(list) => {
            let parts = list.iter().map(|v| plain(&v)).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", parts.join(", "))
        }
        Value::Map(map) => {
            let mut parts = map
                .iter()
                .map(|(k, v)| Ok(format!("{}: {}", plain(&k)?, plain(&v)?)))
                .collect::<Result<Vec<_>, EvalError>>()?;
            parts.sort();
            format!("{{{}}}", parts.join(", "))
        }
        Value::Optional(_) | Value::Opaque(_) => {
            return Err(EvalError::new(format!(
                "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given {}",
                value.type_name()
            )));
        }
    })
}
