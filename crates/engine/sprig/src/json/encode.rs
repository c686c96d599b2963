//! JSON encoder.

use fl_gotemplate::{CallError, Kind, Value, fmt, runes};

/// Maximum depth of encoded values; a map can contain itself.
const MAX_DEPTH: usize = 100;

/// Maximum size of the text; the caller's limits are lower.
const MAX_TEXT: usize = 64 << 20;

/// `json.Marshal`; `html` escapes `<`, `>` and `&`.
///
/// # Errors
/// A number that JSON cannot represent, or a value nested too deeply.
pub fn encode(value: &Value, html: bool) -> Result<Vec<u8>, CallError> {
    let mut out = Vec::new();
    write(&mut out, value, html, 0)?;
    Ok(out)
}

fn write(out: &mut Vec<u8>, value: &Value, html: bool, depth: usize) -> Result<(), CallError> {
    if depth > MAX_DEPTH || out.len() > MAX_TEXT {
        return Err(CallError::budget("value is too large or too deeply nested for JSON"));
    }
    match value {
        Value::Nil => out.extend_from_slice(b"null"),
        Value::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
        Value::Int(kind, n) if kind.signed() => out.extend_from_slice(n.to_string().as_bytes()),
        Value::Int(_, n) => out.extend_from_slice((*n as u64).to_string().as_bytes()),
        Value::Float(x) => match float_text(*x) {
            Some(text) => out.extend_from_slice(text.as_bytes()),
            None => {
                let shown = fmt::format_float(*x, b'g', None);
                return Err(CallError::new(format!("json: unsupported value: {shown}")));
            }
        },
        Value::Complex(..) => return Err(CallError::new("json: unsupported type: complex128")),
        Value::Str(text) => write_string(out, text, html),
        Value::Bytes(bytes) => {
            out.push(b'"');
            out.extend_from_slice(crate::encoding::base64_encode(bytes).as_bytes());
            out.push(b'"');
        }
        Value::List(list) if list.is_nil() => out.extend_from_slice(b"null"),
        Value::List(list) => {
            out.push(b'[');
            for (i, item) in list.items().iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write(out, item, html, depth + 1)?;
            }
            out.push(b']');
        }
        Value::Map(map) if map.is_nil() => out.extend_from_slice(b"null"),
        Value::Map(map) => {
            out.push(b'{');
            for (i, (key, item)) in map.borrow().iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_string(out, key, html);
                out.push(b':');
                write(out, item, html, depth + 1)?;
            }
            out.push(b'}');
        }
        Value::Object(object) => {
            if object.is_nil() {
                out.extend_from_slice(b"null");
                return Ok(());
            }
            let named = object.json_fields();
            if named.is_none()
                && let Some(value) = object.json().or_else(|| object.plain())
            {
                return write(out, &value, html, depth + 1);
            }
            if object.kind() == Kind::Func {
                return Err(CallError::new(format!("json: unsupported type: {}", object.type_name())));
            }
            let pairs: Vec<(Vec<u8>, Value)> = match object.entries() {
                Some(entries) => {
                    entries.into_iter().filter_map(|(k, v)| Some((k.as_str()?.to_vec(), v))).collect()
                }
                None => named
                    .unwrap_or_else(|| object.fields())
                    .into_iter()
                    .map(|(k, v)| (k.as_bytes().to_vec(), v))
                    .collect(),
            };
            out.push(b'{');
            for (i, (key, item)) in pairs.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_string(out, key, html);
                out.push(b':');
                write(out, item, html, depth + 1)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

/// A float as JSON; `None` for infinities and NaN.
pub(crate) fn float_text(x: f64) -> Option<String> {
    if !x.is_finite() {
        return None;
    }
    let size = x.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = fmt::format_float(x, b'e', None);
        // `e-09` becomes `e-9`.
        return Some(match text.strip_suffix(|c: char| c.is_ascii_digit()) {
            Some(head) if head.ends_with("e-0") => {
                format!("{}{}", &head[..head.len() - 1], &text[text.len() - 1..])
            }
            _ => text,
        });
    }
    Some(fmt::format_float(x, b'f', None))
}

fn write_string(out: &mut Vec<u8>, bytes: &[u8], html: bool) {
    out.push(b'"');
    for (at, c, width) in runes::runes(bytes) {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            '<' | '>' | '&' if html => out.extend_from_slice(format!("\\u{:04x}", c as u32).as_bytes()),
            c if c < ' ' => out.extend_from_slice(format!("\\u{:04x}", c as u32).as_bytes()),
            '\u{2028}' => out.extend_from_slice(b"\\u2028"),
            '\u{2029}' => out.extend_from_slice(b"\\u2029"),
            runes::REPLACEMENT if width == 1 => out.extend_from_slice(b"\\ufffd"),
            _ => out.extend_from_slice(&bytes[at..at + width]),
        }
    }
    out.push(b'"');
}

/// `json.MarshalIndent(…, "", "  ")` of compact JSON.
pub(crate) fn indent(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    let newline = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.resize(out.len() + depth * 2, b' ');
    };
    for (i, &b) in json.iter().enumerate() {
        if in_string {
            out.push(b);
            if escaped {
                escaped = false;
            } else if b == b'\\' {
                escaped = true;
            } else if b == b'"' {
                in_string = false;
            }
            continue;
        }
        let closes_at_once = matches!(json.get(i + 1), Some(b'}' | b']'));
        match b {
            b'"' => {
                in_string = true;
                out.push(b);
            }
            b'{' | b'[' => {
                out.push(b);
                if !closes_at_once {
                    depth += 1;
                    newline(&mut out, depth);
                }
            }
            b'}' | b']' => {
                if !matches!(json.get(i.wrapping_sub(1)), Some(b'{' | b'[')) {
                    depth -= 1;
                    newline(&mut out, depth);
                }
                out.push(b);
            }
            b',' => {
                out.push(b);
                newline(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => out.push(b),
        }
    }
    out
}
