//! Lenient conversions to numbers, as in `spf13/cast`: what cannot be parsed is zero.

use fl_gotemplate::{Kind, Value, strconv};

/// `cast.ToInt64`, also `ToInt` on 64-bit machines.
pub(crate) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(_, n) => *n,
        Value::Float(x) => float_to_int(*x),
        Value::Str(text) => strconv::parse_int(trim_zero_decimal(text), 0).unwrap_or(0),
        Value::Bool(b) => i64::from(*b),
        Value::Object(object) => match (object.type_name().as_ref(), object.plain()) {
            ("time.Month" | "time.Weekday", Some(Value::Int(_, n))) => n,
            _ => 0,
        },
        _ => 0,
    }
}

/// `cast.ToFloat64`
pub(crate) fn to_float(value: &Value) -> f64 {
    match value {
        Value::Int(kind, n) if kind.signed() => *n as f64,
        Value::Int(_, n) => *n as u64 as f64,
        Value::Float(x) => *x,
        Value::Str(text) => strconv::parse_float(text).unwrap_or(0.0),
        Value::Bool(b) => f64::from(u8::from(*b)),
        Value::Object(_) => to_int(value) as f64,
        _ => 0.0,
    }
}

/// Go's conversion on amd64: out-of-range values become the smallest integer.
fn float_to_int(x: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x) { x as i64 } else { i64::MIN }
}

/// `12.00` is parsed as 12; other fractions are invalid.
fn trim_zero_decimal(s: &[u8]) -> &[u8] {
    let mut zero = false;
    for i in (0..s.len()).rev() {
        match s[i] {
            b'.' if zero => return &s[..i],
            b'.' => {}
            b'0' => zero = true,
            _ => return s,
        }
    }
    s
}

/// Sprig's `empty`: nil, zero or without content; structs are never empty.
pub(crate) fn empty(value: &Value) -> bool {
    match value {
        Value::Object(object) if matches!(object.kind(), Kind::Struct | Kind::Pointer) => object.is_nil(),
        other => !other.truth(),
    }
}
