//! Whether an applied configuration fits the type; nothing is merged that does not.

use serde_json::Value;

use super::{Items, Kind, Scalar, Ty};
use crate::path::PathElement;

/// One thing that does not fit, with the path to it.
struct Misfit {
    path: String,
    text: String,
}

/// The complaint about an object, as the reference words it; `None` when it fits.
pub(crate) fn check(value: &Value, ty: Ty<'_>) -> Option<String> {
    let mut found = Vec::new();
    visit(value, ty, &mut String::new(), &mut found);
    let print =
        |m: &Misfit| if m.path.is_empty() { m.text.clone() } else { format!("{}: {}", m.path, m.text) };
    match found.as_slice() {
        [] => None,
        [one] => Some(print(one)),
        many => Some(format!(
            "errors:\n{}",
            many.iter().map(|m| format!("  {}", print(m))).collect::<Vec<_>>().join("\n")
        )),
    }
}

fn visit(value: &Value, ty: Ty<'_>, path: &mut String, found: &mut Vec<Misfit>) {
    let mut complain = |text: String| found.push(Misfit { path: path.clone(), text });
    match ty.kind(Some(value)) {
        Kind::Invalid => complain("schema error: invalid atom: inlined".to_owned()),
        Kind::Scalar(scalar) => {
            if let Some(text) = scalar_misfit(scalar, value) {
                complain(text);
            }
        }
        Kind::Map { ty, .. } => match value {
            Value::Null => {}
            Value::Object(map) => {
                for (name, below) in map {
                    let (member, _) = ty.member(name);
                    let mark = path.len();
                    path.push('.');
                    path.push_str(name);
                    if matches!(member, Ty::Missing) {
                        found.push(Misfit {
                            path: path.clone(),
                            text: "field not declared in schema".to_owned(),
                        });
                        path.truncate(mark);
                        return;
                    }
                    visit(below, member, path, found);
                    path.truncate(mark);
                }
            }
            other => complain(format!("expected map, got &{{{}}}", fl_golang::plain(other))),
        },
        Kind::List { items, element } => match value {
            Value::Null => {}
            Value::Array(list) => check_items(list, items, element, path, found),
            other => complain(format!("expected list, got &{{{}}}", fl_golang::plain(other))),
        },
    }
}

fn check_items(
    list: &[Value],
    items: Items<'_>,
    element: Ty<'_>,
    path: &mut String,
    found: &mut Vec<Misfit>,
) {
    let mut seen: Vec<PathElement> = Vec::new();
    for (index, item) in list.iter().enumerate() {
        let at = match items {
            Items::Atomic => PathElement::Index(index as i64),
            _ => match items.element(item) {
                Ok(at) => at,
                Err(text) => {
                    found.push(Misfit { path: path.clone(), text: format!("element {index}: {text}") });
                    return;
                }
            },
        };
        if !matches!(items, Items::Atomic) {
            match seen.binary_search(&at) {
                Ok(_) => {
                    found
                        .push(Misfit { path: path.clone(), text: format!("duplicate entries for key {at}") });
                }
                Err(place) => seen.insert(place, at.clone()),
            }
        }
        let mark = path.len();
        path.push_str(&at.to_string());
        visit(item, element, path, found);
        path.truncate(mark);
    }
}

pub(crate) fn scalar_fits(scalar: Scalar, value: &Value) -> bool {
    matches!(
        (scalar, value),
        (_, Value::Null)
            | (Scalar::Number, Value::Number(_))
            | (Scalar::Text, Value::String(_))
            | (Scalar::Flag, Value::Bool(_))
            | (Scalar::Any, Value::Number(_) | Value::String(_) | Value::Bool(_))
    )
}

fn scalar_misfit(scalar: Scalar, value: &Value) -> Option<String> {
    if scalar_fits(scalar, value) {
        return None;
    }
    match (scalar, value) {
        (Scalar::Number, other) => {
            Some(format!("expected numeric (int or float), got {}", fl_golang::type_name(other)))
        }
        (Scalar::Text, other) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(other)))
        }
        (Scalar::Flag, other) => Some(format!("expected boolean, got &{{{}}}", fl_golang::plain(other))),
        (Scalar::Any, other) => Some(format!("expected any scalar, got &{{{}}}", fl_golang::plain(other))),
    }
}

/// Go's `%#v`.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => fl_golang::quote(text),
        Value::Array(list) => {
            format!("[]interface {{}}{{{}}}", list.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let parts: Vec<String> =
                map.iter().map(|(k, v)| format!("{}:{}", fl_golang::quote(k), go_syntax(v))).collect();
            format!("map[string]interface {{}}{{{}}}", parts.join(", "))
        }
        other => other.to_string(),
    }
}
