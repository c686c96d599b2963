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
            Ok(Scalar::Binary(bytes)) => quote(out, &String::from_utf8_lossy(&bytes)),
            Ok(Scalar::Str(_) | Scalar::Timestamp(_)) | Err(_) => quote(out, text),
        },
    }
}

fn separate(out: &mut String, place: usize) {
    if place > 0 {
        out.push_str(", ");
    }
}

/// `strconv.Quote`
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x80 && c.is_control() => _ = write!(out, "\\x{:02x}", c as u32),
            c if c.is_control() || (c.is_whitespace() && c != ' ') => {
                _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
