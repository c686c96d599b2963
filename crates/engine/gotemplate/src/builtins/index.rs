//! `index`, `slice` and `len`.

use super::Result;
use crate::func::CallError;
use crate::value::{IntKind, Kind, List, Map, MapType, Str, Value};

fn fail<T>(message: impl Into<String>) -> std::result::Result<T, CallError> {
    Err(CallError::new(message))
}

/// Unwraps an object over a slice; objects over maps look up their keys themselves.
fn unwrapped(value: &Value) -> Value {
    match value {
        Value::Object(object) if matches!(object.kind(), Kind::Slice | Kind::String) => {
            object.plain().unwrap_or_else(|| value.clone())
        }
        _ => value.clone(),
    }
}

fn index_arg(index: &Value, capacity: usize) -> std::result::Result<usize, CallError> {
    let n = match index {
        Value::Int(_, n) => *n,
        Value::Nil => return fail("cannot index slice/array with nil"),
        other => return fail(format!("cannot index slice/array with type {}", other.type_name())),
    };
    match usize::try_from(n) {
        Ok(i) if i <= capacity => Ok(i),
        _ => fail(format!("index out of range: {n}")),
    }
}

/// The message of `reflect`'s panic for an index equal to the length.
fn past_end(what: &str) -> CallError {
    CallError::new(format!("reflect: {what} index out of range"))
}

pub(super) fn index(args: &[Value]) -> Result {
    if let Value::Nil = args[0] {
        return fail("index of untyped nil");
    }
    let mut item = unwrapped(&args[0]);
    for key in &args[1..] {
        item = match &item {
            Value::Nil => return fail("index of nil pointer"),
            Value::List(list) => {
                let i = index_arg(key, list.len())?;
                list.items().get(i).cloned().ok_or_else(|| past_end("slice"))?
            }
            Value::Str(text) => byte_at(text, key, "string")?,
            Value::Bytes(bytes) => byte_at(bytes, key, "slice")?,
            Value::Map(map) => map_item(map, key)?,
            Value::Object(object) if object.kind() == Kind::Map => {
                let Value::Str(name) = key else { return fail(wrong_key(key)) };
                let entries = object.entries().unwrap_or_default();
                let found = entries.into_iter().find(|(k, _)| k.as_str() == Some(name)).map(|(_, v)| v);
                found.or_else(|| object.field(&name.to_text())).unwrap_or(Value::Nil)
            }
            // Pointers are dereferenced first.
            other => {
                let ty = other.type_name();
                return fail(format!("can't index item of type {}", ty.strip_prefix('*').unwrap_or(&ty)));
            }
        };
        item = unwrapped(&item);
    }
    Ok(item)
}

fn byte_at(bytes: &Str, key: &Value, what: &str) -> Result {
    let i = index_arg(key, bytes.len())?;
    let byte = bytes.get(i).ok_or_else(|| past_end(what))?;
    Ok(Value::Int(IntKind::Uint8, i64::from(*byte)))
}

fn wrong_key(key: &Value) -> String {
    match key {
        Value::Nil => "value is nil; should be of type string".to_owned(),
        other => format!("value has type {}; should be string", other.type_name()),
    }
}

fn map_item(map: &Map, key: &Value) -> Result {
    let Value::Str(name) = key else { return fail(wrong_key(key)) };
    Ok(match (map.get(name), map.ty()) {
        (Some(value), _) => value,
        (None, MapType::Str) => Value::str(""),
        (None, _) => Value::Nil,
    })
}

pub(super) fn slice(args: &[Value]) -> Result {
    let item = unwrapped(&args[0]);
    let indexes = &args[1..];
    if let Value::Nil = item {
        return fail("slice of untyped nil");
    }
    if indexes.len() > 3 {
        return fail(format!("too many slice indexes: {}", indexes.len()));
    }
    let length = match &item {
        Value::Str(_) if indexes.len() == 3 => return fail("cannot 3-index slice a string"),
        Value::Str(text) | Value::Bytes(text) => text.len(),
        Value::List(list) => list.len(),
        other => return fail(format!("can't slice item of type {}", other.type_name())),
    };
    let mut bounds = [0, length, length];
    for (slot, index) in bounds.iter_mut().zip(indexes) {
        *slot = index_arg(index, length)?;
    }
    let [from, to, cap] = bounds;
    if from > to {
        return fail(format!("invalid slice index: {from} > {to}"));
    }
    if indexes.len() == 3 && to > cap {
        return fail(format!("invalid slice index: {to} > {cap}"));
    }
    Ok(match item {
        Value::Str(text) => Value::Str(Str::from(&text[from..to])),
        Value::Bytes(bytes) => Value::Bytes(Str::from(&bytes[from..to])),
        Value::List(list) => Value::List(List::with_type(list.ty(), list.items()[from..to].to_vec())),
        other => other,
    })
}

/// Error of `len`, with Go's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LenError {
    #[error("len of nil pointer")]
    NilPointer,
    #[error("reflect: call of reflect.Value.Type on zero Value")]
    ZeroValue,
    #[error("len of type {0}")]
    Type(String),
}

/// `len`; `wrapped` distinguishes a nil inside an `interface {}` from no value.
pub(crate) fn length(value: &Value, wrapped: bool) -> std::result::Result<usize, LenError> {
    match value {
        Value::Nil if wrapped => Err(LenError::NilPointer),
        Value::Nil => Err(LenError::ZeroValue),
        Value::Str(text) | Value::Bytes(text) => Ok(text.len()),
        Value::List(list) => Ok(list.len()),
        Value::Map(map) => Ok(map.len()),
        Value::Object(object) => match (object.plain(), object.entries()) {
            (Some(Value::Object(_)), _) => Err(LenError::Type(object.type_name().into_owned())),
            (Some(plain), _) => {
                length(&plain, false).map_err(|_| LenError::Type(object.type_name().into_owned()))
            }
            (None, Some(entries)) => Ok(entries.len()),
            (None, None) => Err(LenError::Type(object.type_name().into_owned())),
        },
        other => Err(LenError::Type(other.type_name().into_owned())),
    }
}
