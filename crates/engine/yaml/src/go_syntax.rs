//! Nodes as Go's `%#v` prints them, for errors about keys. Here and not in `fl-go`, because it needs the
//! tree.

use std::fmt::Write;

use crate::node::{Node, Value};
use crate::number;
use crate::resolve::{Dialect, Scalar, resolve_node};

/// Maximum length of a printed value; Go has no limit.
const MAX_PRINTED_BYTES: usize = 64 << 10;

/// A value at the top level, where null is `<nil>`.
pub(crate) fn go_syntax(node: &Node) -> String {
    if node.is_scalar() && matches!(resolve_node(node, Dialect::Sigs), Ok(Scalar::Null)) {
        return "<nil>".to_owned();
    }
    let mut out = String::new();
    write(&mut out, node);
    out
}

fn write(out: &mut String, node: &Node) {
    if out.len() > MAX_PRINTED_BYTES {
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
            // Keys are strings already, and Go prints maps sorted.
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
            Ok(Scalar::Float(value)) => number::push_float(out, value),
            Ok(Scalar::Binary(bytes)) => out.push_str(&fl_go::quote(&String::from_utf8_lossy(&bytes))),
            Ok(Scalar::Str(_) | Scalar::Timestamp(_)) | Err(_) => out.push_str(&fl_go::quote(text)),
        },
    }
}

fn separate(out: &mut String, place: usize) {
    if place > 0 {
        out.push_str(", ");
    }
}
