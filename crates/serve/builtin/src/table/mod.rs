//! Tables of built-in kinds: columns and cells as kube-apiserver prints them.

mod cluster_scoped;
mod pods;
mod services;
mod workloads;

use fl_types::LabelSelector;
use serde_json::{Value, json};

use crate::field::{entries, list, text};
use crate::human_duration::human_duration;
use crate::strategy::Column;

/// Columns in a short notation, and the function that fills them. Columns are separated by `|`; `+` before a
/// name means wide output only, `#` after it an integer, `?` a boolean, `@` the name format.
#[derive(Debug)]
pub(super) struct Printer {
    pub(super) columns: &'static str,
    pub(super) cells: fn(&Value, i64) -> Vec<Value>,
}

pub(super) fn printer(group: &str, kind: &str) -> Option<&'static Printer> {
    pods::printer(kind)
        .filter(|_| group.is_empty())
        .or_else(|| workloads::printer(group, kind))
        .or_else(|| services::printer(group, kind))
        .or_else(|| cluster_scoped::printer(group, kind))
}

pub(super) fn columns(printer: Option<&Printer>) -> Vec<Column> {
    let Some(printer) = printer else {
        return vec![column("Name@"), Column { kind: "date".into(), ..column("Created At") }];
    };
    printer.columns.split('|').map(column).collect()
}

fn column(spec: &str) -> Column {
    let (priority, spec) = spec.strip_prefix('+').map_or((0, spec), |rest| (1, rest));
    let (kind, format) = match spec.chars().last() {
        Some('#') => ("integer", ""),
        Some('?') => ("boolean", ""),
        Some('@') => ("string", "name"),
        _ => ("string", ""),
    };
    Column {
        name: spec.trim_end_matches(['#', '?', '@']).to_owned(),
        kind: kind.to_owned(),
        format: format.to_owned(),
        description: String::new(),
        priority,
    }
}

pub(super) fn cells(printer: Option<&Printer>, object: &Value, now: i64) -> Vec<Value> {
    match printer {
        Some(printer) => (printer.cells)(object, now),
        None => vec![name(object), object["metadata"]["creationTimestamp"].clone()],
    }
}

fn name(object: &Value) -> Value {
    json!(text(&object["metadata"], "name"))
}

fn age(object: &Value, now: i64) -> Value {
    since(&object["metadata"]["creationTimestamp"], now)
}

/// The age of a timestamp, `<unknown>` when it is not set.
fn since(time: &Value, now: i64) -> Value {
    let Some(at) = seconds(time) else { return json!("<unknown>") };
    json!(human_duration(now - at))
}

fn seconds(time: &Value) -> Option<i64> {
    time.as_str()?.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
}

fn int(value: &Value) -> Value {
    json!(value.as_i64().unwrap_or(0))
}

fn or<'a>(value: &'a Value, otherwise: &'a str) -> Value {
    json!(value.as_str().filter(|s| !s.is_empty()).unwrap_or(otherwise))
}

/// Names and images of containers, comma separated.
fn containers(spec: &Value) -> [Value; 2] {
    let join = |key: &str| {
        json!(list(spec, "containers").iter().map(|c| text(c, key)).collect::<Vec<_>>().join(","))
    };
    [join("name"), join("image")]
}

/// A label selector as `kubectl` prints it; `<none>` when empty.
fn selector(value: &Value) -> Value {
    let found =
        serde_json::from_value::<LabelSelector>(value.clone()).ok().and_then(|s| s.to_selector().ok());
    match found {
        Some(found) => {
            let text = found.to_string();
            json!(if text.is_empty() { "<none>" } else { &text })
        }
        None if value.is_null() => json!("<none>"),
        None => json!("<error>"),
    }
}

/// A map of labels; `<none>` when empty.
fn labels(value: &Value, key: &str) -> Value {
    let pairs: Vec<String> =
        entries(value, key).iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect();
    json!(if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") })
}

/// At most `max` items, then the number of the remaining ones.
fn shortened(items: &[String], max: usize) -> String {
    let shown = items[..items.len().min(max)].join(",");
    if items.len() > max { format!("{shown} + {} more...", items.len() - max) } else { shown }
}
