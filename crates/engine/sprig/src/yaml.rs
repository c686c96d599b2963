//! YAML functions of Helm: through JSON, as in `sigs.k8s.io/yaml`.

use fl_gotemplate::{CallError, Entries, Functions, Map, Value};
use fl_yaml::{Dialect, Node, Options, Scalar};

use crate::args::{A, S, bytes, fixed, string};
use crate::error::DecodeError;
use crate::json::{as_dict, as_list, error_dict};

/// Additional functions of Helm 4: the same, but errors stop the template.
pub(crate) fn add_strict(f: &mut Functions) {
    fixed(f, "mustToYaml", &[A], |cx, a| {
        let text = to_yaml(&a[0])?;
        string(cx, text.strip_suffix('\n').unwrap_or(&text))
    });
}

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "toYaml", &[A], |cx, a| match to_yaml(&a[0]) {
        Ok(text) => string(cx, text.strip_suffix('\n').unwrap_or(&text)),
        Err(error) if error.is_budget() => Err(error),
        Err(_) => Ok("".into()),
    });
    fixed(f, "fromYaml", &[S], |_, a| {
        Ok(
            match from_yaml(bytes(a, 0))
                .and_then(|v| as_dict(v, "map[string]interface {}").map_err(unmarshal))
            {
                // An empty document leaves an empty map.
                Ok(Value::Map(map)) if map.is_nil() => Value::dict(),
                Ok(value) => value,
                Err(error) => error_dict(error.to_string()),
            },
        )
    });
    fixed(f, "fromYamlArray", &[S], |_, a| {
        Ok(match from_yaml(bytes(a, 0)).and_then(|v| as_list(v).map_err(unmarshal)) {
            Ok(Value::List(list)) if list.is_nil() => Value::list(Vec::new()),
            Ok(value) => value,
            Err(error) => Value::list(vec![error.to_string().into()]),
        })
    });
}

fn unmarshal(error: DecodeError) -> DecodeError {
    DecodeError::Unmarshal(Box::new(error))
}

/// Maximum depth of encoded values; a map can contain itself.
const MAX_DEPTH: usize = 100;

/// Encodes a value as YAML, with the final newline.
///
/// # Errors
/// A number that JSON cannot represent, or a value nested too deeply.
pub fn to_yaml(value: &Value) -> Result<String, CallError> {
    let node = to_node(value, 0)?;
    fl_yaml::to_sigs_yaml(&node, Dialect::Sigs).map_err(|e| CallError::new(e.to_string()))
}

fn to_node(value: &Value, depth: usize) -> Result<Node, CallError> {
    if depth > MAX_DEPTH {
        return Err(CallError::budget("value is nested too deeply for YAML"));
    }
    Ok(match value {
        Value::Nil => Node::null(),
        Value::Bool(b) => Node::bool(*b),
        Value::Int(kind, n) if kind.signed() => Node::int(*n),
        Value::Int(_, n) => Node::plain((*n as u64).to_string()),
        Value::Float(x) => match crate::json::float_text(*x) {
            Some(text) => Node::plain(text),
            None => return Err(CallError::new("json: unsupported value")),
        },
        Value::Complex(..) => return Err(CallError::new("json: unsupported type: complex128")),
        Value::Str(text) => Node::string(text.to_text()),
        Value::Bytes(data) => Node::string(crate::encoding::base64_encode(data)),
        Value::List(list) if list.is_nil() => Node::null(),
        Value::List(list) => {
            let items = list.items().iter().map(|v| to_node(v, depth + 1)).collect::<Result<Vec<_>, _>>()?;
            Node::seq(items)
        }
        Value::Map(map) if map.is_nil() => Node::null(),
        Value::Map(map) => {
            let mut out = fl_yaml::Map::with_capacity(map.len());
            for (key, item) in map.borrow().iter() {
                out.push(Node::string(key.to_text()), to_node(item, depth + 1)?);
            }
            Node::from(fl_yaml::Value::Map(out))
        }
        Value::Object(object) if object.is_nil() => Node::null(),
        Value::Object(object) => match object.json().or_else(|| object.plain()) {
            Some(value) => to_node(&value, depth + 1)?,
            // The JSON encoder has the remaining rules; objects are small.
            None => match crate::json::decode(&crate::json::encode(value, false)?) {
                Ok(value) => to_node(&value, depth + 1)?,
                Err(error) => return Err(error.into()),
            },
        },
    })
}

/// Parses the first document as `yaml.Unmarshal` of `sigs.k8s.io/yaml` does: numbers are float64, keys are
/// strings.
///
/// # Errors
/// Go's message.
pub fn from_yaml(text: &[u8]) -> Result<Value, DecodeError> {
    let node = fl_yaml::parse_first(text, &Options::sigs())
        .map_err(|e| DecodeError::Yaml(e.go_text(Dialect::Sigs)))?;
    match node {
        Some(node) => from_node(&node),
        None => Ok(Value::Nil),
    }
}

/// Converts a tree that was read with [`Options::sigs`] to a template value.
///
/// # Errors
/// A scalar that JSON cannot represent (`.inf`).
pub fn from_node(node: &Node) -> Result<Value, DecodeError> {
    match &node.value {
        fl_yaml::Value::Seq(items) => {
            Ok(Value::list(items.iter().map(from_node).collect::<Result<Vec<_>, _>>()?))
        }
        fl_yaml::Value::Map(map) => {
            let mut entries = Entries::new();
            for entry in map.iter() {
                let key = match entry.name() {
                    Some(name) => name.to_owned(),
                    None => key_text(&entry.key)?,
                };
                entries.insert(key.into(), from_node(&entry.value)?);
            }
            Ok(Map::new(entries).into())
        }
        _ => Ok(match node.scalar(Dialect::Sigs) {
            None | Some(Scalar::Null) => Value::Nil,
            Some(Scalar::Bool(b)) => Value::Bool(b),
            Some(Scalar::Int(n)) => Value::Float(n as f64),
            Some(Scalar::Uint(n)) => Value::Float(n as f64),
            Some(Scalar::Float(x)) if x.is_finite() => Value::Float(x),
            Some(Scalar::Float(x)) => {
                let shown = fl_gotemplate::fmt::format_float(x, b'g', None);
                return Err(DecodeError::UnsupportedValue(shown));
            }
            Some(Scalar::Str(text)) => Value::str(text),
            Some(Scalar::Timestamp(text)) => Value::str(text),
            Some(Scalar::Binary(data)) => Value::str(data),
        }),
    }
}

/// A key that is not a string, formatted as in `sigs.k8s.io/yaml`.
fn key_text(key: &Node) -> Result<String, DecodeError> {
    Ok(match key.scalar(Dialect::Sigs) {
        Some(Scalar::Str(text)) => text.to_owned(),
        Some(Scalar::Bool(b)) => b.to_string(),
        Some(Scalar::Int(n)) => n.to_string(),
        Some(Scalar::Uint(n)) => n.to_string(),
        Some(Scalar::Float(x)) => fl_gotemplate::fmt::format_float(x, b'g', None),
        Some(Scalar::Null) => "null".to_owned(),
        _ => return Err(DecodeError::MapKey),
    })
}
