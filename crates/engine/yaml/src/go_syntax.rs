//! Values as Go's `%#v` shows them: errors about keys quote what they refuse.

use std::fmt::Write;

use crate::node::{Node, Value};
use crate::number;
use crate::resolve::{Dialect, Scalar, resolve_node};

/// How much of a refused value is shown; Go shows all of it.
const MOST: usize = 64 << 10;

/// A value by itself: nothing is `<nil>`.
pub(crate) fn go_syntax(node: &Node) -> String {
    if node.is_scalar() && matches!(resolve_node(node, Dialect::Sigs), Ok(Scalar::Null)) {
        return "<nil>".to_owned();
    }
    let mut out = String::new();
    write(&mut out, node);
    out
}

fn write(out: &mut String, node: &Node) {
    if out.len() > MOST {
        return;
    }
    match &node.value {
        Value::Seq(items) => {
            out.push_str("[]interface {}{");
            for (i, item) in items.iter().enumerate() {
                separate(out, i);
                write(out, item);
            }
            out.push('}');
        }
        Value::Map(map) => {
            out.push_str("map[interface {}]interface {}{");
            // The keys are strings already, and Go sorts what it prints.
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|a, b| a.name().cmp(&b.name()));
            for (i, entry) in entries.into_iter().enumerate() {
                separate(out, i);
                write(out, &entry.key);
                out.push(':');
                write(out, &entry.value);
            }
            out.push('}');
        }
        Value::Scalar(text) => match resolve_node(node, Dialect::Sigs) {
            Ok(Scalar::Null) => out.push_str("interface {}(nil)"),
            Ok(Scalar::Bool(value)) => out.push_str(if value { "true" } else { "false" }),
            Ok(Scalar::Int(value)) => _ = write!(out, "{value}"),
            Ok(Scalar::Uint(value)) => _ = write!(out, "{value:#x}"),
            Ok(Scalar::Float(value)) if value.is_nan() => out.push_str("NaN"),
            Ok(Scalar::Float(value)) if value.is_infinite() => {
                out.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
            }
            Ok(Scalar::Float(value)) => number::push_g_float(out, value),
            Ok(Scalar::Binary(bytes)) => out.push_str(&fl_golang::quote(&String::from_utf8_lossy(&bytes))),
            Ok(Scalar::Str(_) | Scalar::Timestamp(_)) | Err(_) => out.push_str(&fl_golang::quote(text)),
        },
    }
}

fn separate(out: &mut String, place: usize) {
    if place > 0 {
        out.push_str(", ");
    }
}
