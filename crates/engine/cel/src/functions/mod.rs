//! Operators and the function library: standard CEL, its string, list, set and optional extensions, and Kubernetes'.

pub(crate) mod bytes;
mod convert;
mod format;
mod ip;
pub(crate) mod lists;
mod named_formats;
mod operators;
pub(crate) mod quantity;
pub(crate) mod semver;
mod strings;
pub(crate) mod time;
pub(crate) mod url;

use std::sync::Arc;

use crate::error::EvalError;
use crate::eval::{Eval, Scope};
use crate::value::{Opaque, Value};

/// Namespaces of functions.
pub(crate) fn is_namespace(name: &str) -> bool {
    matches!(name, "sets" | "optional" | "ip" | "strings" | "format" | "cidr" | "base64")
}

/// Types as values.
pub(crate) fn type_named<'a>(name: &str) -> Option<Value<'a>> {
    const NAMES: &[&str] = &[
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
        "type",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
        "optional_type",
        "net.IP",
        "net.CIDR",
        "kubernetes.Quantity",
        "kubernetes.URL",
    ];
    NAMES.iter().find(|n| **n == name).map(|n| Value::Type(Arc::from(*n)))
}

/// Runs an operator or function on evaluated arguments, the receiver first.
pub(crate) fn call<'a>(scope: &mut Scope<'a, '_>, name: &str, args: &[Value<'a>]) -> Eval<'a> {
    if let Some(result) = operators::call(scope, name, args) {
        return result;
    }
    if let Some(result) = optional(name, args) {
        return result;
    }
    match args.first() {
        Some(Value::Text(text)) => {
            // String functions read their whole receiver.
            scope.charge(text.len() as u64 / 10)?;
        }
        Some(Value::List(list)) => scope.charge(list.len() as u64 / 10)?,
        _ => {}
    }
    let found = convert::call(name, args)
        .or_else(|| strings::call(scope, name, args))
        .or_else(|| lists::call(scope, name, args))
        .or_else(|| time::call(name, args))
        .or_else(|| quantity::call(name, args))
        .or_else(|| ip::call(name, args))
        .or_else(|| url::call(name, args))
        .or_else(|| semver::call(name, args))
        .or_else(|| named_formats::call(name, args));
    found.unwrap_or_else(|| Err(EvalError::no_overload()))
}

fn optional<'a>(name: &str, args: &[Value<'a>]) -> Option<Eval<'a>> {
    Some(Ok(match (name, args) {
        ("optional.none", []) => Value::Optional(None),
        ("optional.of", [value]) => Value::some(value.clone()),
        ("optional.ofNonZeroValue", [value]) => {
            if value.is_zero() {
                Value::Optional(None)
            } else {
                Value::some(value.clone())
            }
        }
        ("hasValue", [Value::Optional(inner)]) => Value::Bool(inner.is_some()),
        ("value", [Value::Optional(inner)]) => match inner {
            Some(value) => (**value).clone(),
            None => return Some(Err(EvalError::new("optional.none() dereference"))),
        },
        ("orValue", [Value::Optional(inner), fallback]) => {
            inner.as_ref().map_or_else(|| fallback.clone(), |v| (**v).clone())
        }
        ("or", [Value::Optional(inner), other]) => match inner {
            Some(_) => args[0].clone(),
            None => other.clone(),
        },
        _ => return None,
    }))
}

/// Whether a text is a valid regular expression.
pub(crate) fn is_pattern(text: &str) -> bool {
    pattern_error(text).is_none()
}

/// The error of an invalid regular expression.
pub(crate) fn pattern_error(text: &str) -> Option<String> {
    strings::compiled(text).err().map(|why| why.to_string())
}

pub(crate) fn bool_of<'a>(b: bool) -> Option<Eval<'a>> {
    Some(Ok(Value::Bool(b)))
}

pub(crate) fn opaque<'a>(opaque: Opaque) -> Value<'a> {
    Value::Opaque(opaque)
}
