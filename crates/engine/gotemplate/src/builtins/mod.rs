//! Built-in functions of Go templates.

mod compare;
mod escape;
mod index;

pub use compare::{compare_equal, less_than};
pub use escape::{html_escape, js_escape, query_escape};
pub(crate) use index::length;

use crate::exec::Context;
use crate::fmt;
use crate::func::{CallError, Function, NativeFn, Signature, Type};
use crate::value::{Str, Value};

type Result = std::result::Result<Value, CallError>;

const ANY: Signature = Signature::variadic(&[Type::Any]);
const ONE: Signature = Signature::fixed(&[Type::Reflect]);
const TWO: Signature = Signature::fixed(&[Type::Reflect, Type::Reflect]);
const SOME: Signature = Signature::variadic(&[Type::Reflect, Type::Reflect]);
const FORMAT: Signature = Signature::variadic(&[Type::Str, Type::Any]);

/// Looks up a built-in; `and`, `or`, `call` and `len` are implemented by the executor.
pub(crate) fn find(name: &str) -> Option<Function> {
    let (signature, code): (Signature, NativeFn) = match name {
        "eq" => (SOME, |_, args| compare::eq(args)),
        "ne" => (TWO, |_, args| compare::ne(args)),
        "lt" => (TWO, |_, args| compare::lt(args)),
        "le" => (TWO, |_, args| compare::le(args)),
        "gt" => (TWO, |_, args| compare::gt(args)),
        "ge" => (TWO, |_, args| compare::ge(args)),
        "index" => (SOME, |_, args| index::index(args)),
        "slice" => (SOME, |_, args| index::slice(args)),
        "not" => (ONE, |_, args| Ok(Value::Bool(!args[0].truth()))),
        "print" => (ANY, |cx, args| Ok(fmt::sprint(args, cx.max_value_bytes())?.into())),
        "println" => (ANY, |cx, args| Ok(fmt::sprintln(args, cx.max_value_bytes())?.into())),
        "printf" => (FORMAT, printf),
        "html" => (ANY, |cx, args| escaped(cx, args, html_escape)),
        "js" => (ANY, |cx, args| escaped(cx, args, js_escape)),
        "urlquery" => (ANY, |cx, args| escaped(cx, args, query_escape)),
        _ => return None,
    };
    Some(Function { signature, code })
}

fn printf(cx: &mut Context<'_>, args: &[Value]) -> Result {
    let format = args[0].as_str().map(Str::as_bytes).unwrap_or_default();
    let text = fmt::sprintf(format, &args[1..], cx.max_value_bytes())?;
    cx.reserve(text.len() as u64)?;
    Ok(text.into())
}

fn escaped(cx: &mut Context<'_>, args: &[Value], escape: fn(&[u8]) -> Vec<u8>) -> Result {
    let text = match args {
        [Value::Str(text)] => escape(text),
        _ => {
            // Arguments as a template prints them: `<no value>` instead of nil.
            let shown: Vec<Value> = args
                .iter()
                .map(|a| if let Value::Nil = a { Value::str("<no value>") } else { a.clone() })
                .collect();
            escape(&fmt::sprint(&shown, cx.max_value_bytes())?)
        }
    };
    cx.reserve(text.len() as u64)?;
    Ok(text.into())
}
