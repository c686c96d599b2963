//! `toYamlPretty`: the layout of `yaml.v3` with two blanks of indentation, directly from the values.

use fl_gotemplate::{CallError, Functions, Value, fmt};
use fl_yaml::{Node, Tag, compare_keys_v3, write_v3_yaml};

use crate::args::{A, fixed, items, string};

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "toYamlPretty", &[A], |cx, a| {
        let mut out = String::new();
        let written = node(&a[0], 0)
            .map(|node| write_v3_yaml(&mut out, &node, 2).map_err(|e| CallError::new(e.to_string())));
        match written {
            Ok(Ok(())) => string(cx, out.strip_suffix('\n').unwrap_or(&out)),
            Err(error) if error.is_budget() => Err(error),
            Ok(Err(_)) | Err(_) => Ok("".into()),
        }
    });
}

/// Maximum depth of encoded values; a map can contain itself.
const MAX_DEPTH: usize = 100;

/// Converts a value to a node. Unlike conversion through JSON, numbers keep their type and keys the library's
/// order.
fn node(value: &Value, depth: usize) -> Result<Node, CallError> {
    if depth > MAX_DEPTH {
        return Err(CallError::budget("value is nested too deeply for YAML"));
    }
    Ok(match value {
        Value::Nil => Node::null(),
        Value::Bool(b) => Node::bool(*b),
        Value::Str(text) => match std::str::from_utf8(text) {
            Ok(text) => Node::string(text),
            Err(_) => tagged(Tag::Binary, crate::encoding::base64_encode(text)),
        },
        Value::Float(x) => tagged(Tag::Float, float_text(*x)),
        Value::Int(..) => tagged(Tag::Int, fmt::display(value)),
        Value::Complex(..) => Node::plain(fmt::display(value)),
        Value::List(_) | Value::Bytes(_) => {
            let items = items(value).unwrap_or_default();
            Node::seq(items.iter().map(|item| node(item, depth + 1)).collect::<Result<Vec<_>, _>>()?)
        }
        Value::Map(map) => {
            let mut entries: Vec<(String, Value)> =
                map.snapshot().into_iter().map(|(k, v)| (k.to_text().into_owned(), v)).collect();
            entries.sort_by(|a, b| compare_keys_v3(&a.0, &b.0));
            let mut out = fl_yaml::Map::with_capacity(entries.len());
            for (key, item) in entries {
                out.push(Node::string(key), node(&item, depth + 1)?);
            }
            Node::from(fl_yaml::Value::Map(out))
        }
        Value::Object(object) => match object.json().or_else(|| object.plain()) {
            // A time is a scalar of its own type, so it is not quoted.
            Some(Value::Str(time)) if object.type_name() == "time.Time" => {
                tagged(Tag::Timestamp, time.to_text().into_owned())
            }
            Some(plain) => node(&plain, depth + 1)?,
            None => {
                let read = crate::json::decode(&crate::json::encode(value, false)?);
                node(&read?, depth + 1)?
            }
        },
    })
}

fn tagged(tag: Tag, text: String) -> Node {
    let mut node = Node::plain(text);
    node.tag = tag;
    node
}

fn float_text(x: f64) -> String {
    if x.is_nan() {
        ".nan".to_owned()
    } else if x.is_infinite() {
        if x > 0.0 { ".inf" } else { "-.inf" }.to_owned()
    } else if x == 0.0 && x.is_sign_negative() {
        // `-0` alone would be an integer.
        "-0.0".to_owned()
    } else {
        fmt::format_float(x, b'g', None)
    }
}
