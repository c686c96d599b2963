//! Helpers for signatures and arguments. The executor has checked types, so a mismatch cannot occur here; the
//! fallbacks only keep the code free of panics.

use fl_gotemplate::{
    CallError, Context, Functions, Kind, List, Map, NativeFn, Signature, Str, Type, Value, fmt,
};

pub(crate) const A: Type = Type::Any;
pub(crate) const S: Type = Type::Str;
pub(crate) const I: Type = Type::INT;
pub(crate) const D: Type = Type::Dict;

pub(crate) type Out = Result<Value, CallError>;

/// Adds a function with exactly these parameters.
pub(crate) fn fixed(f: &mut Functions, name: &'static str, params: &'static [Type], code: NativeFn) {
    f.add(name, Signature::fixed(params), code);
}

/// Adds a function whose last parameter is variadic.
pub(crate) fn variadic(f: &mut Functions, name: &'static str, params: &'static [Type], code: NativeFn) {
    f.add(name, Signature::variadic(params), code);
}

/// The bytes of a string argument.
pub(crate) fn bytes(args: &[Value], i: usize) -> &[u8] {
    match args.get(i) {
        Some(Value::Str(text)) => text,
        _ => &[],
    }
}

/// A string argument as text; invalid UTF-8 is replaced.
pub(crate) fn text(args: &[Value], i: usize) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes(args, i))
}

/// An integer argument.
pub(crate) fn int(args: &[Value], i: usize) -> i64 {
    match args.get(i) {
        Some(Value::Int(_, n)) => *n,
        _ => 0,
    }
}

/// A map argument; `None` is Go's nil map.
pub(crate) fn dict(args: &[Value], i: usize) -> Option<&Map> {
    match args.get(i) {
        Some(Value::Map(map)) if !map.is_nil() => Some(map),
        _ => None,
    }
}

/// A string result, counted against the limits.
pub(crate) fn string(cx: &mut Context<'_>, text: impl Into<Str>) -> Out {
    let text = text.into();
    cx.reserve(text.len() as u64)?;
    Ok(Value::Str(text))
}

/// A list result, counted against the limits.
pub(crate) fn list(cx: &mut Context<'_>, items: Vec<Value>) -> Out {
    cx.reserve(items.len() as u64 * size_of::<Value>() as u64)?;
    cx.step(items.len() as u64)?;
    Ok(Value::List(List::new(items)))
}

/// Sprig's `strval`: strings and bytes unchanged, everything else as `%v`.
pub(crate) fn strval(cx: &Context<'_>, value: &Value) -> Result<Str, CallError> {
    match value {
        Value::Str(text) | Value::Bytes(text) => Ok(text.clone()),
        Value::Object(object) => match object.string() {
            Some(text) => Ok(text.into()),
            None => Ok(fmt::sprintf(b"%v", std::slice::from_ref(value), cx.max_value_bytes())?.into()),
        },
        other => Ok(fmt::sprintf(b"%v", std::slice::from_ref(other), cx.max_value_bytes())?.into()),
    }
}

/// The message of Go's runtime for a nil dereference, the result of `reflect.TypeOf(nil).Kind()`.
pub(crate) fn nil_dereference() -> CallError {
    CallError::new("runtime error: invalid memory address or nil pointer dereference")
}

/// The items of a slice value of any type; `Err` is the kind of another value.
pub(crate) fn items(value: &Value) -> Result<Vec<Value>, Kind> {
    match value {
        Value::List(list) => Ok(list.items().to_vec()),
        Value::Bytes(bytes) => {
            Ok(bytes.iter().map(|b| Value::Int(fl_gotemplate::IntKind::Uint8, i64::from(*b))).collect())
        }
        Value::Object(object) => match object.plain() {
            Some(plain @ (Value::List(_) | Value::Bytes(_))) => items(&plain),
            _ => Err(object.kind()),
        },
        other => Err(other.kind()),
    }
}

/// `s[from..to]` with Go's panics as errors; `None` is an open end.
pub(crate) fn slice_bytes(s: &[u8], from: Option<i64>, to: Option<i64>) -> Result<&[u8], CallError> {
    let length = s.len() as i64;
    let out_of_range =
        |text: String| Err(CallError::new(format!("runtime error: slice bounds out of range {text}")));
    let end = to.unwrap_or(length);
    if let Some(to) = to {
        if to < 0 {
            return out_of_range(format!("[:{to}]"));
        }
        if to > length {
            return out_of_range(format!("[:{to}] with length {length}"));
        }
    }
    let start = from.unwrap_or(0);
    if start < 0 {
        return out_of_range(format!("[{start}:]"));
    }
    if start > end {
        return out_of_range(format!("[{start}:{end}]"));
    }
    Ok(&s[start as usize..end as usize])
}
