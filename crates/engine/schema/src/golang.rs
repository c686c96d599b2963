//! How Go prints what error texts quote.

use serde_json::Value;

/// Go's `%v` of a float64.
pub(crate) fn float(value: f64) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    if !value.is_finite() {
        let word = if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "+Inf"
        } else {
            "-Inf"
        };
        return word.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // The shortest form switches to an exponent at a million.
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// A value as `%v` prints it inside messages.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(s) => s.clone(),
        Value::Number(n) if n.is_f64() => float(n.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

/// Go's word for the kind of a decoded JSON value.
pub(crate) fn schema_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        // Go reads whole numbers beyond 64 bits as floats.
        Value::Number(n) if n.as_i64().is_none() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// JSON as Go writes it: `<`, `>` and `&` are escaped.
pub(crate) fn escape_html(json: &str) -> String {
    if !json.contains(['<', '>', '&']) {
        return json.to_owned();
    }
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
