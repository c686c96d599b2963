//! Tables of built-in kinds: columns and cells as kube-apiserver prints them.

mod cluster;
mod pods;
mod services;
mod workloads;

use fl_types::LabelSelector;
use serde_json::{Value, json};

use super::field::{entries, list, text};
use crate::resource::Column;

/// Columns in short form and the function that fills them. Columns are separated by `|`; `+` before a name means wide
/// output only, `#` after it an integer, `?` a boolean, `@` the name format.
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
        .or_else(|| cluster::printer(group, kind))
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

/// How long ago a time was, `<unknown>` when it is not set.
fn since(time: &Value, now: i64) -> Value {
    let Some(at) = seconds(time) else { return json!("<unknown>") };
    json!(human_duration(now - at))
}

fn seconds(time: &Value) -> Option<i64> {
    time.as_str()?.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
}

/// Kubernetes' short form of a duration: two units at most, fewer as it grows.
fn human_duration(seconds: i64) -> String {
    let two = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(days, "d", hours % 24, "h"),
        _ if days < 730 => format!("{days}d"),
        _ if days < 2920 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
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

/// A label selector as `kubectl` shows it; `<none>` when nothing is selected by.
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

/// A plain map of labels; `<none>` when empty.
fn labels(value: &Value, key: &str) -> Value {
    let pairs: Vec<String> =
        entries(value, key).iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect();
    json!(if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") })
}

/// At most `max` items, then how many more there are.
fn shortened(items: &[String], max: usize) -> String {
    let shown = items[..items.len().min(max)].join(",");
    if items.len() > max { format!("{shown} + {} more...", items.len() - max) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::human_duration;

    #[test]
    fn durations_shorten_as_they_grow() {
        for (seconds, text) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (130, "2m10s"),
            (600, "10m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 60, "3h1m"),
            (47 * 3600, "47h"),
            (49 * 3600, "2d1h"),
            (9 * 86400, "9d"),
            (800 * 86400, "2y70d"),
            (4000 * 86400, "10y"),
        ] {
            assert_eq!(human_duration(seconds), text);
        }
    }
}
