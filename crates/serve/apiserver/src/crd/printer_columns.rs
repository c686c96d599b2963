//! Table columns of custom resources (`additionalPrinterColumns`).

use fl_builtin::Column;
use serde_json::{Value, json};

use super::jsonpath::JsonPath;

#[derive(Debug, Clone)]
pub(super) struct PrinterColumn {
    column: Column,
    path: JsonPath,
}

/// The columns of a version; the age, if it declares none.
pub(super) fn read(version: &Value) -> Vec<PrinterColumn> {
    let given =
        version.get("additionalPrinterColumns").and_then(Value::as_array).cloned().unwrap_or_default();
    let given = if given.is_empty() {
        vec![json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
            "description": "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"})]
    } else {
        given
    };
    given
        .iter()
        .map(|c| {
            let text = |field: &str| c.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            PrinterColumn {
                column: Column {
                    name: text("name"),
                    kind: text("type"),
                    format: text("format"),
                    description: text("description"),
                    priority: c.get("priority").and_then(Value::as_i64).unwrap_or(0) as i32,
                },
                path: JsonPath::parse(&text("jsonPath")),
            }
        })
        .collect()
}

pub(super) fn definitions(columns: &[PrinterColumn]) -> Vec<Column> {
    let name = Column {
        name: "Name".to_owned(),
        kind: "string".to_owned(),
        format: "name".to_owned(),
        description: "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names".to_owned(),
        priority: 0,
    };
    let mut out = vec![name];
    out.extend(columns.iter().map(|c| {
        let mut column = c.column.clone();
        if column.description.is_empty() {
            column.description =
                format!("Custom resource definition column (in JSONPath format): {}", c.path.text());
        }
        column
    }));
    out
}

pub(super) fn cells(columns: &[PrinterColumn], object: &Value, now: i64) -> Vec<Value> {
    let mut out = vec![json!(crate::object::name(object))];
    out.extend(columns.iter().map(|c| cell(&c.column, &c.path.find(object), now)));
    out
}

fn cell(column: &Column, found: &[&Value], now: i64) -> Value {
    let Some(first) = found.first() else { return Value::Null };
    match column.kind.as_str() {
        "integer" => match first {
            Value::Number(n) => {
                n.as_i64().or_else(|| n.as_f64().map(|f| f as i64)).map_or(Value::Null, |n| json!(n))
            }
            _ => Value::Null,
        },
        "number" => match first {
            Value::Number(_) => (*first).clone(),
            _ => Value::Null,
        },
        "boolean" => match first {
            Value::Bool(_) => (*first).clone(),
            _ => Value::Null,
        },
        "date" => match first.as_str() {
            Some(text) => match text.parse::<jiff::Timestamp>() {
                Ok(then) => json!(fl_builtin::human_duration(now - then.as_second())),
                Err(_) => json!("<unknown>"),
            },
            None => Value::Null,
        },
        _ => {
            // Of several matches the first is shown.
            json!(show(first))
        }
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}
