//! Prints values as upstream prints its internal Go types: Go's field names and order, unset fields written
//! out.
//!
//! `go_print.txt` has one line per type: `Shown=field:type`, where `s`, `b`, `i` are scalars, `m` maps, `j`
//! values printed as JSON, `*` pointers, `[` lists, and `^` embedded types whose fields are inlined.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::{Value, json};

/// A value to print.
enum PrintValue {
    Text(String),
    List(Vec<PrintValue>),
    Object(Vec<(String, PrintValue)>),
}

fn types() -> &'static HashMap<&'static str, Vec<&'static str>> {
    static TYPES: OnceLock<HashMap<&'static str, Vec<&'static str>>> = OnceLock::new();
    TYPES.get_or_init(|| {
        include_str!("go_print.txt")
            .lines()
            .filter_map(|line| {
                let mut words = line.split(' ');
                Some((words.next()?, words.collect()))
            })
            .collect()
    })
}

/// Prints a value on one line.
pub(crate) fn compact(ty: &str, value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, &print_value(ty, value), None);
    out
}

/// Prints a value over several lines, indented by one space per level.
pub(crate) fn indented(ty: &str, value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, &print_value(ty, value), Some(0));
    out.push('\n');
    out
}

fn print_value(ty: &str, value: &Value) -> PrintValue {
    if let Some(inner) = ty.strip_prefix('*') {
        return if value.is_null() { PrintValue::Text("null".to_owned()) } else { print_value(inner, value) };
    }
    if let Some(inner) = ty.strip_prefix('[') {
        return match value.as_array() {
            Some(list) => PrintValue::List(list.iter().map(|item| print_value(inner, item)).collect()),
            None => PrintValue::Text("null".to_owned()),
        };
    }
    let or = |default: Value| if value.is_null() { default } else { value.clone() };
    match ty {
        "s" => PrintValue::Text(or(json!("")).to_string()),
        "b" => PrintValue::Text(or(json!(false)).to_string()),
        "i" => PrintValue::Text(or(json!(0)).to_string()),
        "m" | "j" => PrintValue::Text(value.to_string()),
        _ => {
            let mut fields = Vec::new();
            print_fields(ty, value, &mut fields);
            PrintValue::Object(fields)
        }
    }
}

/// Fields of a pod spec that the internal type has in its security context.
const SECURITY_CONTEXT_FIELDS: [&str; 5] =
    ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];

fn print_fields(ty: &str, value: &Value, out: &mut Vec<(String, PrintValue)>) {
    if ty == "o" {
        for key in ["name", "generateName", "namespace", "labels", "annotations", "finalizers"] {
            if let Some(found) = value["metadata"].get(key).filter(|v| !v.is_null()) {
                out.push((key.to_owned(), PrintValue::Text(found.to_string())));
            }
        }
        return;
    }
    let pod = ty == "PodSpec";
    for field in types().get(ty).into_iter().flatten() {
        if let Some(embedded) = field.strip_prefix('^') {
            print_fields(embedded, value, out);
            continue;
        }
        let Some((name, below)) = field.split_once(':') else { continue };
        let Some((name, key)) = name.split_once('=') else { continue };
        if pod && key == "securityContext" {
            let mut context = value[key].clone();
            for moved in SECURITY_CONTEXT_FIELDS {
                if let (Some(context), Some(found)) = (context.as_object_mut(), value.get(moved)) {
                    context.insert(moved.to_owned(), found.clone());
                }
            }
            out.push((name.to_owned(), print_value(below, &context)));
            continue;
        }
        out.push((name.to_owned(), print_value(below, &value[key])));
    }
}

fn write(out: &mut String, printed: &PrintValue, depth: Option<usize>) {
    let line = |out: &mut String, depth: Option<usize>| {
        if let Some(depth) = depth {
            out.push('\n');
            out.push_str(&" ".repeat(depth));
        }
    };
    let deeper = depth.map(|d| d + 1);
    match printed {
        PrintValue::Text(text) => match (depth, serde_json::from_str::<Value>(text)) {
            // Maps and foreign types are indented like the rest.
            (Some(depth), Ok(value @ (Value::Object(_) | Value::Array(_)))) => {
                out.push_str(&indent_json(&value, depth));
            }
            _ => out.push_str(text),
        },
        PrintValue::List(list) if list.is_empty() => out.push_str("[]"),
        PrintValue::List(list) => {
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
        PrintValue::Object(fields) if fields.is_empty() => out.push_str("{}"),
        PrintValue::Object(fields) => {
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

/// JSON over several lines, indented below other lines.
fn indent_json(value: &Value, depth: usize) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut writer = serde_json::Serializer::with_formatter(&mut out, formatter);
    // Writing to memory cannot fail.
    let _ = serde::Serialize::serialize(value, &mut writer);
    String::from_utf8_lossy(&out).replace('\n', &format!("\n{}", " ".repeat(depth)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_order_and_zero_values_match_go() {
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
