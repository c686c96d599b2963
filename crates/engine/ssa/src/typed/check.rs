//! Validation of an applied configuration against its type, before it is merged.

use serde_json::Value;

use super::{Items, Kind, Scalar, Ty};
use crate::path::PathElement;

/// A value that does not match its type.
struct TypeMismatch {
    path: String,
    text: String,
}

/// The error message of structured-merge-diff for an object; `None` when it matches its type.
pub(crate) fn check(value: &Value, ty: Ty<'_>) -> Option<String> {
    let mut found = Vec::new();
    visit(value, ty, &mut String::new(), &mut found);
    let print =
        |m: &TypeMismatch| if m.path.is_empty() { m.text.clone() } else { format!("{}: {}", m.path, m.text) };
    match found.as_slice() {
        [] => None,
        [one] => Some(print(one)),
        many => Some(format!(
            "errors:\n{}",
            many.iter().map(|m| format!("  {}", print(m))).collect::<Vec<_>>().join("\n")
        )),
    }
}

fn visit(value: &Value, ty: Ty<'_>, path: &mut String, found: &mut Vec<TypeMismatch>) {
    let mut report = |text: String| found.push(TypeMismatch { path: path.clone(), text });
    match ty.kind(Some(value)) {
        Kind::Invalid => report("schema error: invalid atom: inlined".to_owned()),
        Kind::Scalar(scalar) => {
            if let Some(text) = scalar_mismatch(scalar, value) {
                report(text);
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
                        found.push(TypeMismatch {
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
            other => report(format!("expected map, got &{{{}}}", fl_go::plain(other))),
        },
        Kind::List { items, element } => match value {
            Value::Null => {}
            Value::Array(list) => check_items(list, items, element, path, found),
            other => report(format!("expected list, got &{{{}}}", fl_go::plain(other))),
        },
    }
}

fn check_items(
    list: &[Value],
    items: Items<'_>,
    element: Ty<'_>,
    path: &mut String,
    found: &mut Vec<TypeMismatch>,
) {
    let mut seen: Vec<PathElement> = Vec::new();
    for (index, item) in list.iter().enumerate() {
        let at = match items {
            Items::Atomic => PathElement::Index(index as i64),
            _ => match items.element(item) {
                Ok(at) => at,
                Err(error) => {
                    found
                        .push(TypeMismatch { path: path.clone(), text: format!("element {index}: {error}") });
                    return;
                }
            },
        };
        if !matches!(items, Items::Atomic) {
            match seen.binary_search(&at) {
                Ok(_) => {
                    found.push(TypeMismatch {
                        path: path.clone(),
                        text: format!("duplicate entries for key {at}"),
                    });
                }
                Err(position) => seen.insert(position, at.clone()),
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

fn scalar_mismatch(scalar: Scalar, value: &Value) -> Option<String> {
    if scalar_fits(scalar, value) {
        return None;
    }
    match (scalar, value) {
        (Scalar::Number, other) => {
            Some(format!("expected numeric (int or float), got {}", fl_go::type_name(other)))
        }
        (Scalar::Text, other) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", fl_go::syntax(other)))
        }
        (Scalar::Flag, other) => Some(format!("expected boolean, got &{{{}}}", fl_go::plain(other))),
        (Scalar::Any, other) => Some(format!("expected any scalar, got &{{{}}}", fl_go::plain(other))),
    }
}
