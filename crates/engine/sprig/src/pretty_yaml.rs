//! `toYamlPretty`: the layout of `yaml.v3` with two blanks of indentation, straight from the values.

use fl_gotemplate::{CallError, Functions, Value, fmt};
use fl_yaml::{Dialect, Node, compare_keys};

use crate::args::{A, fixed, string};

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "toYamlPretty", &[A], |cx, a| {
        let mut out = String::new();
        match write(&mut out, &a[0], 0, Place::Line) {
            Ok(()) => string(cx, out.strip_suffix('\n').unwrap_or(&out)),
            Err(error) if error.is_budget() => Err(error),
            Err(_) => Ok("".into()),
        }
    });
}

/// How deep values are written; a map can contain itself.
const MAX_DEPTH: usize = 100;

/// What stands before a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing: the start of a line.
    Line,
    /// `key:`
    Key,
    /// `- `
    Dash,
}

fn write(out: &mut String, value: &Value, depth: usize, place: Place) -> Result<(), CallError> {
    if depth > MAX_DEPTH {
        return Err(CallError::budget("value is nested too deeply for YAML"));
    }
    match value {
        Value::List(list) if !list.is_empty() => {
            if place == Place::Key {
                out.push('\n');
            }
            for (i, item) in list.items().iter().enumerate() {
                if i > 0 || place != Place::Dash {
                    indent(out, depth);
                }
                out.push_str("- ");
                write(out, item, depth + 1, Place::Dash)?;
            }
            Ok(())
        }
        Value::Map(map) if !map.is_empty() => {
            if place == Place::Key {
                out.push('\n');
            }
            let mut entries: Vec<(String, Value)> =
                map.snapshot().into_iter().map(|(k, v)| (k.to_text().into_owned(), v)).collect();
            entries.sort_by(|a, b| compare_keys(&a.0, &b.0));
            for (i, (key, item)) in entries.iter().enumerate() {
                if i > 0 || place != Place::Dash {
                    indent(out, depth);
                }
                text(out, key, depth)?;
                out.push(':');
                write(out, item, depth + 1, Place::Key)?;
            }
            Ok(())
        }
        Value::Object(object) => match object.json().or_else(|| object.plain()) {
            // A time is a scalar of its own type, so its text stays plain.
            Some(Value::Str(time)) if object.type_name() == "time.Time" => {
                if place == Place::Key {
                    out.push(' ');
                }
                out.push_str(&time.to_text());
                out.push('\n');
                Ok(())
            }
            Some(plain) => write(out, &plain, depth, place),
            None => {
                let read = crate::json::decode(&crate::json::encode(value, false)?);
                write(out, &read.map_err(CallError::new)?, depth, place)
            }
        },
        _ => {
            if place == Place::Key {
                out.push(' ');
            }
            scalar(out, value, depth)?;
            if !out.ends_with('\n') {
                out.push('\n');
            }
            Ok(())
        }
    }
}

fn indent(out: &mut String, depth: usize) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

fn scalar(out: &mut String, value: &Value, depth: usize) -> Result<(), CallError> {
    match value {
        Value::Nil => out.push_str("null"),
        Value::List(_) => out.push_str("[]"),
        Value::Map(_) => out.push_str("{}"),
        Value::Str(string) => return text(out, &string.to_text(), depth),
        Value::Float(x) if x.is_nan() => out.push_str(".nan"),
        Value::Float(x) if x.is_infinite() => out.push_str(if *x > 0.0 { ".inf" } else { "-.inf" }),
        Value::Float(x) => out.push_str(&fmt::format_float(*x, b'g', None)),
        other => out.push_str(&fmt::display(other)),
    }
    Ok(())
}

/// A string in the style the emitter chooses, without folding long lines.
fn text(out: &mut String, string: &str, depth: usize) -> Result<(), CallError> {
    let mut probe = fl_yaml::Map::with_capacity(1);
    probe.push(Node::string("k"), Node::string(string));
    let emitted = fl_yaml::to_sigs_yaml(&Node::from(fl_yaml::Value::Map(probe)), Dialect::Sigs)
        .map_err(|e| CallError::new(e.to_string()))?;
    let body = emitted.strip_prefix("k: ").unwrap_or(&emitted);
    let Some((first, rest)) = body.split_once('\n').filter(|(_, rest)| !rest.is_empty()) else {
        out.push_str(body.strip_suffix('\n').unwrap_or(body));
        return Ok(());
    };
    if first.starts_with('|') {
        out.push_str(first);
        for line in rest.strip_suffix('\n').unwrap_or(rest).split('\n') {
            out.push('\n');
            if let Some(content) = line.strip_prefix("  ") {
                indent(out, depth.max(1));
                out.push_str(content);
            }
        }
        if rest.ends_with('\n') {
            out.push('\n');
        }
        return Ok(());
    }
    // Folded by the emitter: the same style on one line.
    match first.as_bytes().first() {
        Some(b'\'') => {
            out.push('\'');
            out.push_str(&string.replace('\'', "''"));
            out.push('\'');
        }
        Some(b'"') => out.push_str(&fmt::quoted(string.as_bytes())),
        _ => out.push_str(string),
    }
    Ok(())
}
