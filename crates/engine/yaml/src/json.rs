//! Conversion to JSON as Go's encoding/json writes it, and from JSON.

mod parse;

pub use parse::from_json;

use crate::error::{Error, Stage};
use crate::node::{Node, Value};
use crate::resolve::{Dialect, Scalar, resolve_node};

/// Options for writing JSON.
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonStyle {
    /// Escape `<`, `>` and `&`, as Go's `json.Marshal` does by default.
    pub escape_html: bool,
    /// Keep the order of keys instead of sorting them like Go.
    pub keep_order: bool,
}

impl JsonStyle {
    /// The style of `json.Marshal`: sorted keys, HTML escaped.
    pub const GO: Self = Self { escape_html: true, keep_order: false };
}

/// Compact JSON of a tree, as Go's `json.Marshal` prints the decoded values.
///
/// # Errors
/// A value that JSON cannot represent (`.inf`, a key that is not a string in [`Dialect::V3`]).
pub fn to_json(node: &Node, dialect: Dialect, style: JsonStyle) -> Result<String, Error> {
    let mut out = String::new();
    write_json(&mut out, node, dialect, style)?;
    Ok(out)
}

/// Appends [`to_json`] to `out`.
///
/// # Errors
/// See [`to_json`].
pub fn write_json(out: &mut String, node: &Node, dialect: Dialect, style: JsonStyle) -> Result<(), Error> {
    write_node(out, node, dialect, style, true)
}

fn write_node(
    out: &mut String,
    node: &Node,
    dialect: Dialect,
    style: JsonStyle,
    root: bool,
) -> Result<(), Error> {
    match &node.value {
        Value::Scalar(_) => write_scalar(out, node, dialect, style),
        Value::Seq(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_node(out, item, dialect, style, false)?;
            }
            out.push(']');
            Ok(())
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for entry in map {
                entries.push((key_text(&entry.key, dialect, root)?, &entry.value));
            }
            if !style.keep_order {
                entries.sort_by(|a, b| a.0.cmp(b.0));
            }
            out.push('{');
            for (i, (key, value)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                push_json_string(out, key, style.escape_html);
                out.push(':');
                write_node(out, value, dialect, style, false)?;
            }
            out.push('}');
            Ok(())
        }
    }
}

/// The name of a key. `yaml.v3` accepts any scalar for keys of the root, but only strings below.
pub(crate) fn key_text(key: &Node, dialect: Dialect, root: bool) -> Result<&str, Error> {
    let refuse = |message| Err(at(key, message));
    match key.as_text() {
        None => refuse("invalid map key: only scalars can be keys"),
        Some(text) if text.is_empty() || dialect == Dialect::Sigs => Ok(text),
        Some(text) if root && !key.is_null(dialect) => Ok(text),
        Some(text) => match resolve_node(key, dialect)? {
            Scalar::Str(_) => Ok(text),
            _ => refuse("json: unsupported type: map[interface {}]interface {} (a key that is no string)"),
        },
    }
}

pub(crate) fn at(node: &Node, message: impl Into<String>) -> Error {
    Error::at(Stage::Emitter, node.line().saturating_sub(1), node.column().saturating_sub(1), message)
}

pub(crate) fn unsupported_float(node: &Node, value: f64) -> Error {
    let name = if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    };
    at(node, format!("json: unsupported value: {name}"))
}

fn write_scalar(out: &mut String, node: &Node, dialect: Dialect, style: JsonStyle) -> Result<(), Error> {
    use std::fmt::Write;
    match resolve_node(node, dialect)? {
        Scalar::Null => out.push_str("null"),
        Scalar::Bool(b) => out.push_str(if b { "true" } else { "false" }),
        Scalar::Int(i) => drop(write!(out, "{i}")),
        Scalar::Uint(u) => drop(write!(out, "{u}")),
        Scalar::Float(f) if f.is_finite() => fl_go::float::push_json(out, f),
        Scalar::Float(f) => return Err(unsupported_float(node, f)),
        Scalar::Str(s) => push_json_string(out, s, style.escape_html),
        Scalar::Timestamp(t) => push_json_string(out, &t, style.escape_html),
        Scalar::Binary(bytes) => {
            // Go writes invalid UTF-8 as an escaped replacement character.
            out.push('"');
            for chunk in bytes.utf8_chunks() {
                push_escaped(out, chunk.valid(), style.escape_html);
                out.extend(std::iter::repeat_n("\\ufffd", chunk.invalid().len()));
            }
            out.push('"');
        }
    }
    Ok(())
}

/// Appends a JSON string with Go's escapes.
pub(crate) fn push_json_string(out: &mut String, text: &str, escape_html: bool) {
    out.push('"');
    push_escaped(out, text, escape_html);
    out.push('"');
}

fn push_escaped(out: &mut String, text: &str, escape_html: bool) {
    use std::fmt::Write;
    let bytes = text.as_bytes();
    let (mut clean, mut i) = (0, 0);
    while let Some(step) = bytes[i..].iter().position(|b| MAY_ESCAPE[*b as usize]) {
        i += step;
        let b = bytes[i];
        let escape: &str = match b {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..0x20 => "",
            b'<' | b'>' | b'&' if escape_html => "",
            // Line and paragraph separators are valid JSON but not valid JavaScript; Go always escapes them.
            0xE2 if matches!(bytes[i..], [_, 0x80, 0xA8 | 0xA9, ..]) => {
                out.push_str(&text[clean..i]);
                out.push_str(if bytes[i + 2] == 0xA8 { "\\u2028" } else { "\\u2029" });
                i += 3;
                clean = i;
                continue;
            }
            _ => {
                i += 1;
                continue;
            }
        };
        out.push_str(&text[clean..i]);
        if escape.is_empty() {
            let _ = write!(out, "\\u{b:04x}");
        } else {
            out.push_str(escape);
        }
        i += 1;
        clean = i;
    }
    out.push_str(&text[clean..]);
}

/// Bytes that may need an escape; all others are copied in runs.
static MAY_ESCAPE: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 256 {
        table[b] = b < 0x20 || matches!(b as u8, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xE2);
        b += 1;
    }
    table
};
