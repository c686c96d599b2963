//! JSON as Go's `encoding/json` reads and writes it.

mod decode;
mod encode;

pub use decode::decode;
pub use encode::encode;
pub(crate) use encode::{float_text, indent};

use fl_gotemplate::{CallError, Context, Entries, Functions, Map, Value};

use crate::args::{A, Out, S, bytes, fixed, string};
use crate::error::DecodeError;

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "toJson", &[A], |cx, a| ignore_error(cx, encode(&a[0], true)));
    fixed(f, "mustToJson", &[A], |cx, a| string(cx, encode(&a[0], true)?));
    fixed(f, "toPrettyJson", &[A], |cx, a| ignore_error(cx, encode(&a[0], true).map(|t| indent(&t))));
    fixed(f, "mustToPrettyJson", &[A], |cx, a| string(cx, indent(&encode(&a[0], true)?)));
    for name in ["toRawJson", "mustToRawJson"] {
        fixed(f, name, &[A], |cx, a| string(cx, encode(&a[0], false)?));
    }
    fixed(f, "mustFromJson", &[S], |_, a| Ok(decode(bytes(a, 0))?));
    fixed(f, "fromJson", &[S], |_, a| {
        Ok(match decode(bytes(a, 0)).and_then(|v| as_dict(v, "map[string]interface {}")) {
            Ok(value) => value,
            Err(error) => error_dict(error.to_string()),
        })
    });
    fixed(f, "fromJsonArray", &[S], |_, a| {
        Ok(match decode(bytes(a, 0)).and_then(as_list) {
            Ok(value) => value,
            Err(error) => Value::list(vec![error.to_string().into()]),
        })
    });
}

/// Helm's `toJson` ignores errors of encoding; a reached limit is still an error.
fn ignore_error(cx: &mut Context<'_>, text: Result<Vec<u8>, CallError>) -> Out {
    match text {
        Ok(text) => string(cx, text),
        Err(error) if error.is_budget() => Err(error),
        Err(_) => Ok("".into()),
    }
}

/// The result of functions that never fail for invalid text.
pub(crate) fn error_dict(error: String) -> Value {
    Map::new(Entries::from([("Error".into(), error.into())])).into()
}

fn kind_word(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::Str(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
        _ => "number",
    }
}

/// Decodes into a map: `null` leaves an empty one.
pub(crate) fn as_dict(value: Value, target: &'static str) -> Result<Value, DecodeError> {
    match value {
        Value::Map(_) => Ok(value),
        Value::Nil => Ok(Value::Map(Map::nil(fl_gotemplate::MapType::Any))),
        other => Err(DecodeError::Type { found: kind_word(&other), target }),
    }
}

/// Decodes into a list.
pub(crate) fn as_list(value: Value) -> Result<Value, DecodeError> {
    match value {
        Value::List(_) => Ok(value),
        Value::Nil => Ok(Value::List(fl_gotemplate::List::nil(fl_gotemplate::ListType::Any))),
        other => Err(DecodeError::Type { found: kind_word(&other), target: "[]interface {}" }),
    }
}
