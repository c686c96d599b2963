//! Values as upstream prints its internal types: Go's field names and order, what is not set written out.
//!
//! `internal.txt` has one line per type: `Shown=field:type`, where `s`, `b`, `i` are scalars, `m` maps, `j` values printed as
//! they are, `*` pointers, `[` lists, and `^` embedded types whose fields stand among the others.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::{Value, json};

/// One printed value.
enum Printed {
    Text(String),
    List(Vec<Printed>),
    Object(Vec<(String, Printed)>),
}

fn types() -> &'static HashMap<&'static str, Vec<&'static str>> {
    static TYPES: OnceLock<HashMap<&'static str, Vec<&'static str>>> = OnceLock::new();
    TYPES.get_or_init(|| {
        include_str!("internal.txt")
            .lines()
            .filter_map(|line| {
                let mut words = line.split(' ');
                Some((words.next()?, words.collect()))
            })
            .collect()
    })
}

/// On one line.
pub(super) fn compact(ty: &str, value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, &shown(ty, value), None);
    out
}

/// Over many lines, one space per level.
pub(super) fn indented(ty: &str, value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, &shown(ty, value), Some(0));
    out.push('\n');
    out
}

fn shown(ty: &str, value: &Value) -> Printed {
    if let Some(inner) = ty.strip_prefix('*') {
        return if value.is_null() { Printed::Text("null".to_owned()) } else { shown(inner, value) };
    }
    if let Some(inner) = ty.strip_prefix('[') {
        return match value.as_array() {
            Some(list) => Printed::List(list.iter().map(|item| shown(inner, item)).collect()),
            None => Printed::Text("null".to_owned()),
        };
    }
    let or = |default: Value| if value.is_null() { default } else { value.clone() };
    match ty {
        "s" => Printed::Text(or(json!("")).to_string()),
        "b" => Printed::Text(or(json!(false)).to_string()),
        "i" => Printed::Text(or(json!(0)).to_string()),
        "m" | "j" => Printed::Text(value.to_string()),
        _ => {
            let mut fields = Vec::new();
            members(ty, value, &mut fields);
            Printed::Object(fields)
        }
    }
}

/// Fields of a pod that the internal type keeps in its security context.
const MOVED: [&str; 5] = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];

fn members(ty: &str, value: &Value, out: &mut Vec<(String, Printed)>) {
    if ty == "o" {
        for key in ["name", "generateName", "namespace", "labels", "annotations", "finalizers"] {
            if let Some(found) = value["metadata"].get(key).filter(|v| !v.is_null()) {
                out.push((key.to_owned(), Printed::Text(found.to_string())));
            }
        }
        return;
    }
    let pod = ty == "PodSpec";
    for field in types().get(ty).into_iter().flatten() {
        if let Some(embedded) = field.strip_prefix('^') {
            members(embedded, value, out);
            continue;
        }
        let Some((name, below)) = field.split_once(':') else { continue };
        let Some((name, key)) = name.split_once('=') else { continue };
        if pod && key == "securityContext" {
            let mut context = value[key].clone();
            for moved in MOVED {
                if let (Some(context), Some(found)) = (context.as_object_mut(), value.get(moved)) {
                    context.insert(moved.to_owned(), found.clone());
                }
            }
            out.push((name.to_owned(), shown(below, &context)));
            continue;
        }
        out.push((name.to_owned(), shown(below, &value[key])));
    }
}

fn write(out: &mut String, printed: &Printed, depth: Option<usize>) {
    let line = |out: &mut String, depth: Option<usize>| {
        if let Some(depth) = depth {
            out.push('\n');
            out.push_str(&" ".repeat(depth));
        }
    };
    let deeper = depth.map(|d| d + 1);
    match printed {
        Printed::Text(text) => match (depth, serde_json::from_str::<Value>(text)) {
            // Maps and foreign types are spread over lines like everything else.
            (Some(depth), Ok(value @ (Value::Object(_) | Value::Array(_)))) => {
                out.push_str(&spread(&value, depth));
            }
            _ => out.push_str(text),
        },
        Printed::List(list) if list.is_empty() => out.push_str("[]"),
        Printed::List(list) => {
            out.push('[');
            for (at, item) in list.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                line(out, deeper);
                write(out, item, deeper);
            }
            line(out, depth);
            out.push(']');
        }
        Printed::Object(fields) if fields.is_empty() => out.push_str("{}"),
        Printed::Object(fields) => {
            out.push('{');
            for (at, (name, value)) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                line(out, deeper);
                out.push_str(&format!("{}:", json!(name)));
                if depth.is_some() {
                    out.push(' ');
                }
                write(out, value, deeper);
            }
            line(out, depth);
            out.push('}');
        }
    }
}

/// JSON over lines, below other lines.
fn spread(value: &Value, depth: usize) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut writer = serde_json::Serializer::with_formatter(&mut out, formatter);
    // Writing into memory cannot fail.
    let _ = serde::Serialize::serialize(value, &mut writer);
    String::from_utf8_lossy(&out).replace('\n', &format!("\n{}", " ".repeat(depth)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_order_and_zeros_are_gos() {
        let value = json!({"containerPort": 80, "protocol": "TCP"});
        assert_eq!(
            compact("ContainerPort", &value),
            r#"{"Name":"","HostPort":0,"ContainerPort":80,"Protocol":"TCP","HostIP":""}"#
        );
        let volume = json!({"name": "v", "emptyDir": {}});
        assert!(
            compact("Volume", &volume).starts_with(r#"{"Name":"v","HostPath":null,"EmptyDir":{"Medium":"","#)
        );
        let spec = json!({"securityContext": {}, "hostNetwork": true});
        assert!(
            compact("PodSpec", &spec).contains(r#""SecurityContext":{"HostNetwork":true,"HostPID":false"#)
        );
        assert!(indented("PodSpec", &spec).starts_with("{\n \"Volumes\": null,\n"));
    }
}
