//! JSON as Go's encoding/json writes and reads it.

mod decode;
mod encode;

pub use decode::decode;
pub use encode::encode;
pub(crate) use encode::{float_text, indent};

use fl_gotemplate::{CallError, Context, Entries, Functions, Map, Value};

use crate::args::{A, Out, S, bytes, fixed, string};

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "toJson", &[A], |cx, a| swallow(cx, encode(&a[0], true)));
    fixed(f, "mustToJson", &[A], |cx, a| string(cx, encode(&a[0], true)?));
    fixed(f, "toPrettyJson", &[A], |cx, a| swallow(cx, encode(&a[0], true).map(|t| indent(&t))));
    fixed(f, "mustToPrettyJson", &[A], |cx, a| string(cx, indent(&encode(&a[0], true)?)));
    for name in ["toRawJson", "mustToRawJson"] {
        fixed(f, name, &[A], |cx, a| string(cx, encode(&a[0], false)?));
    }
    fixed(f, "mustFromJson", &[S], |_, a| Ok(decode(bytes(a, 0))?));
    fixed(f, "fromJson", &[S], |_, a| {
        Ok(match decode(bytes(a, 0)).and_then(|v| as_dict(v, "map[string]interface {}")) {
            Ok(value) => value,
            Err(error) => error_dict(error),
        })
    });
    fixed(f, "fromJsonArray", &[S], |_, a| {
        Ok(match decode(bytes(a, 0)).and_then(as_list) {
            Ok(value) => value,
            Err(error) => Value::list(vec![error.into()]),
        })
    });
}

/// Helm's `toJson` hides what cannot be written; a budget still counts.
fn swallow(cx: &mut Context<'_>, text: Result<Vec<u8>, CallError>) -> Out {
    match text {
        Ok(text) => string(cx, text),
        Err(error) if error.is_budget() => Err(error),
        Err(_) => Ok("".into()),
    }
}

/// What the functions that never fail return for a bad text.
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

/// Decoding into a map: `null` leaves an empty one.
pub(crate) fn as_dict(value: Value, target: &str) -> Result<Value, String> {
    match value {
        Value::Map(_) => Ok(value),
        Value::Nil => Ok(Value::Map(Map::nil(fl_gotemplate::MapType::Any))),
        other => Err(format!("json: cannot unmarshal {} into Go value of type {target}", kind_word(&other))),
    }
}

/// Decoding into a list.
pub(crate) fn as_list(value: Value) -> Result<Value, String> {
    match value {
        Value::List(_) => Ok(value),
        Value::Nil => Ok(Value::List(fl_gotemplate::List::nil(fl_gotemplate::ListType::Any))),
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type []interface {{}}",
            kind_word(&other)
        )),
    }
}
