//! The difference of two objects in the form people know from `flux diff`: the place, then what changed there.

mod compare;
mod lines;

use std::fmt::Write as _;

use serde_json::Value;

use compare::{Detail, Difference, Entries, scalar_text, sorted};

/// A terminal's width when there is none.
const WIDTH: usize = 80;

/// The report on two objects; it starts with an empty line and ends with one.
pub(crate) fn report(from: &Value, to: &Value) -> String {
    let mut out = String::new();
    for difference in compare::compare(&[], from, to) {
        write_difference(&mut out, &difference);
    }
    out.push('\n');
    out
}

fn write_difference(out: &mut String, difference: &Difference) {
    let path = if difference.path.is_empty() { "(root level)".to_owned() } else { difference.path.join(".") };
    let _ = write!(out, "\n{path}\n");
    let blocks: Vec<String> = difference.details.iter().map(detail).collect();
    out.push_str(&text_blocks(0, &blocks));
}

fn detail(detail: &Detail) -> String {
    match detail {
        Detail::Added(entries) => {
            let yaml = entries_yaml(entries);
            format!("+ {} added:\n{}", entries_text(entries), text_blocks(2, &[yaml]))
        }
        Detail::Removed(entries) => {
            let yaml = entries_yaml(entries);
            format!("- {} removed:\n{}", entries_text(entries), text_blocks(0, &[yaml]))
        }
        Detail::Changed(Value::String(from), Value::String(to)) => text_change(from, to),
        Detail::Changed(from, to) => value_change(from, to),
        Detail::Reordered(from, to) => order_change(from, to),
    }
}

fn entries_text(entries: &Entries) -> String {
    match entries {
        Entries::List(items) => plural(items.len(), "list entry", "list entries"),
        Entries::Map(items) => plural(items.len(), "map entry", "map entries"),
    }
}

fn plural(count: usize, one: &str, many: &str) -> String {
    const WORDS: [&str; 13] = [
        "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    let number = WORDS.get(count).map_or_else(|| count.to_string(), |w| (*w).to_owned());
    format!("{number} {}", if count == 1 { one } else { many })
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
    }
}

fn value_change(from: &Value, to: &Value) -> String {
    let (from_type, to_type) = (type_name(from), type_name(to));
    let head = if from_type == to_type {
        "± value change\n".to_owned()
    } else {
        format!("± type change from {from_type} to {to_type}\n")
    };
    let text = |value: &Value| match value {
        Value::Null => "<nil>".to_owned(),
        other => {
            let mut out = String::new();
            write_yaml(&mut out, "", false, other);
            out.trim_end_matches('\n').to_owned()
        }
    };
    format!("{head}{}{}", prefixed("- ", &text(from)), prefixed("+ ", &text(to)))
}

fn text_change(from: &str, to: &str) -> String {
    let trimmed = |text: &str| text.trim_matches([' ', '\n']).to_owned();
    if trimmed(from) == trimmed(to) {
        let shown = |text: &str| text.replace('\n', "↵\n").replace(' ', "·");
        let blocks = [prefixed("- ", &shown(from)), prefixed("+ ", &shown(to))];
        return format!("± whitespace only change\n{}", text_blocks(0, &blocks));
    }
    if from.contains('\n') || to.contains('\n') {
        return multiline_change(from, to);
    }
    format!("± value change\n{}{}", prefixed("- ", from), prefixed("+ ", to))
}

fn multiline_change(from: &str, to: &str) -> String {
    let (mut text, mut added, mut removed) = (String::new(), 0, 0);
    for (kind, piece) in lines::compare(from, to) {
        let sign = match kind {
            lines::Kind::Same => continue,
            lines::Kind::Added => {
                added += 1;
                "+ "
            }
            lines::Kind::Removed => {
                removed += 1;
                "- "
            }
        };
        for line in piece.strip_suffix('\n').unwrap_or(&piece).split('\n') {
            let _ = writeln!(text, "{sign}{line}");
        }
    }
    let (added, removed) = (plural(added, "insert", "inserts"), plural(removed, "deletion", "deletions"));
    format!("± value change in multiline text ({added}, {removed})\n{text}\n")
}

fn order_change(from: &[Value], to: &[Value]) -> String {
    let texts = |list: &[Value]| -> Vec<String> {
        let text = |value: &Value| {
            let plain =
                if value.is_object() || value.is_array() { String::new() } else { scalar_text(value) };
            if !plain.is_empty() {
                return plain;
            }
            let mut out = String::new();
            write_yaml(&mut out, "", false, value);
            out
        };
        list.iter().map(text).collect()
    };
    let (from, to) = (texts(from), texts(to));
    let length = |list: &[String]| {
        list.iter().map(|t| t.chars().count()).sum::<usize>() + 2 * list.len().saturating_sub(1)
    };
    let mut out = "⇆ order changed\n".to_owned();
    if length(&from).max(length(&to)) < WIDTH / 2 {
        let _ = write!(out, "- {}\n+ {}\n", from.join(", "), to.join(", "));
    } else {
        out.push_str(&columns(" ", 2, &[from.join("\n"), to.join("\n")]));
    }
    out
}

/// The sign before the first line, blanks before the others.
fn prefixed(sign: &str, text: &str) -> String {
    let mut out = String::new();
    for (i, line) in text.split('\n').enumerate() {
        let _ = writeln!(out, "{}{line}", if i == 0 { sign } else { "  " });
    }
    out
}

fn width(line: &str) -> usize {
    line.chars().count()
}

/// Blocks side by side where they fit a line, else one below the other.
fn text_blocks(indent: usize, blocks: &[String]) -> String {
    const SEPARATOR: &str = "   ";
    let widest = |block: &String| block.split('\n').map(width).max().unwrap_or(0);
    let total =
        indent + blocks.len().saturating_sub(1) * SEPARATOR.len() + blocks.iter().map(widest).sum::<usize>();
    if total <= WIDTH {
        return columns(SEPARATOR, indent, blocks);
    }
    let mut out = String::new();
    for line in blocks.iter().flat_map(|block| block.split('\n')) {
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
    out
}

fn columns(separator: &str, indent: usize, blocks: &[String]) -> String {
    let blocks: Vec<Vec<&str>> = blocks.iter().map(|block| block.split('\n').collect()).collect();
    let height = blocks.iter().map(Vec::len).max().unwrap_or(0);
    let rows: Vec<String> = (0..height)
        .map(|row| {
            let cells: Vec<String> = blocks
                .iter()
                .map(|lines| {
                    let widest = lines.iter().map(|l| width(l)).max().unwrap_or(0);
                    let line = lines.get(row).copied().unwrap_or_default();
                    format!("{:indent$}{line}{:pad$}", "", "", pad = widest - width(line))
                })
                .collect();
            cells.join(separator).trim_end_matches(' ').to_owned()
        })
        .collect();
    rows.join("\n")
}

fn entries_yaml(entries: &Entries) -> String {
    let mut out = String::new();
    match entries {
        Entries::List(items) => write_list(&mut out, "", false, items),
        Entries::Map(items) => {
            let items: Vec<(&String, &Value)> = items.iter().map(|(k, v)| (k, v)).collect();
            write_map(&mut out, "", false, readable(items));
        }
    }
    out
}

/// Keys in the order people read them: known leaders first, then what is shallow, then what is deep.
fn readable<'a>(mut entries: Vec<(&'a String, &'a Value)>) -> Vec<(&'a String, &'a Value)> {
    const ORDERS: [&[&str]; 12] = [
        &[
            "name",
            "director_uuid",
            "releases",
            "instance_groups",
            "networks",
            "resource_pools",
            "compilation",
        ],
        &["name", "url", "version", "sha1"],
        &["jobs", "resources", "resource_types"],
        &["name", "type", "source"],
        &["get"],
        &["put"],
        &["task"],
        &["releases", "instance_groups", "configuration", "variables"],
        &["auth", "templates"],
        &["name"],
        &["key"],
        &["id"],
    ];
    let hits = |order: &[&str]| order.iter().filter(|key| entries.iter().any(|(k, _)| k == *key)).count();
    let mut best: Option<(&[&str], usize)> = None;
    for order in ORDERS {
        let count = hits(order);
        if count > best.map_or(0, |(_, most)| most) {
            best = Some((order, count));
        }
    }
    let Some((order, _)) = best else { return entries };
    let rank = |key: &str| order.iter().position(|k| *k == key);
    entries.sort_by_key(|(key, value)| match rank(key) {
        Some(at) => (0, at),
        None => (1, depth(value)),
    });
    entries
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.values().map(|v| depth(v) + 1).max().unwrap_or(0),
        Value::Array(list) => list.iter().map(|v| depth(v) + 1).max().unwrap_or(0),
        _ => 0,
    }
}

fn write_yaml(out: &mut String, prefix: &str, skip_first: bool, value: &Value) {
    match value {
        Value::Object(map) => write_map(out, prefix, skip_first, readable(sorted(map))),
        Value::Array(items) => write_list(out, prefix, skip_first, items),
        scalar => write_scalar(out, prefix, scalar),
    }
}

fn write_list(out: &mut String, prefix: &str, skip_first: bool, items: &[Value]) {
    for (i, item) in items.iter().enumerate() {
        if i > 0 || !skip_first {
            out.push_str(prefix);
        }
        out.push_str("- ");
        write_yaml(out, &format!("{prefix}  "), true, item);
    }
}

fn write_map(out: &mut String, prefix: &str, skip_first: bool, entries: Vec<(&String, &Value)>) {
    for (i, (key, value)) in entries.into_iter().enumerate() {
        if i > 0 || !skip_first {
            out.push_str(prefix);
        }
        let _ = write!(out, "{key}:");
        match value {
            Value::Object(map) if map.is_empty() => out.push_str(" {}\n"),
            Value::Array(items) if items.is_empty() => out.push_str(" []\n"),
            Value::Object(_) => {
                out.push('\n');
                write_yaml(out, &format!("{prefix}  "), false, value);
            }
            Value::Array(_) => {
                out.push('\n');
                write_yaml(out, prefix, false, value);
            }
            scalar => {
                out.push(' ');
                write_scalar(out, &format!("{prefix}  "), scalar);
            }
        }
    }
}

fn write_scalar(out: &mut String, prefix: &str, value: &Value) {
    let text = scalar_text(value);
    let lines: Vec<&str> = text.split('\n').collect();
    if lines.len() > 1 {
        out.push_str("|\n");
        for (i, line) in lines.iter().enumerate() {
            let _ = write!(out, "{prefix}{line}");
            if i + 1 < lines.len() {
                out.push('\n');
            }
        }
    } else if value.is_string() && needs_quotes(&text) {
        let _ = write!(out, "{text:?}");
    } else {
        out.push_str(&text);
    }
    out.push('\n');
}

fn needs_quotes(text: &str) -> bool {
    ["true", "false", "null"].contains(&text)
        || text.starts_with('-')
        || text.contains([' ', '*', '&', ':', ','])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn changes_are_shown_with_their_path() {
        let from = json!({"spec": {"replicas": 2, "list": [{"name": "a", "v": 1}], "gone": {"x": "true"}}});
        let to = json!({"spec": {"replicas": "2", "list": [{"name": "a", "v": 2}], "new": [1]}});
        assert_eq!(
            report(&from, &to),
            "\nspec\n- one map entry removed:   + one map entry added:\ngone:                        new:\n  x: \"true\"                  - 1\n\
             \nspec.list.a.v\n± value change\n- 1\n+ 2\n\nspec.replicas\n± type change from int to string\n- 2\n+ 2\n\n"
        );
    }

    #[test]
    fn lists_without_names_lose_and_gain_whole_entries() {
        let from = json!({"args": ["a", "b", "c"]});
        assert_eq!(
            report(&from, &json!({"args": ["c", "b", "a"]})),
            "\nargs\n⇆ order changed\n- a, b, c\n+ c, b, a\n\n"
        );
        assert_eq!(report(&from, &json!({"args": ["a", "c"]})), "\nargs\n- one list entry removed:\n- b\n\n");
    }

    #[test]
    fn multi_line_strings_show_changed_lines() {
        let report_of = |a: &str, b: &str| report(&json!({"t": a}), &json!({"t": b}));
        assert_eq!(report_of("alpha", "alpha\n"), "\nt\n± whitespace only change\n- alpha   + alpha↵\n\n\n");
        assert_eq!(
            report_of("one\ntwo\n", "one\n2\n"),
            "\nt\n± value change in multiline text (one insert, one deletion)\n- two\n+ 2\n\n\n"
        );
    }
}
