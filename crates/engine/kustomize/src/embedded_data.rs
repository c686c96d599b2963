//! Data inside of a string field, printed in its original style: order, quotes, flow collections and blocks
//! are kept.

use fl_yaml::{Dialect, Node, Style, Tag, Value};

use crate::tree::text;

/// Prints a tree in the style of its nodes, with two spaces per level and lists not indented.
pub(crate) fn to_text(node: &Node) -> String {
    let mut out = String::new();
    block(node, 0, &mut out);
    out.trim().to_owned()
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// Whether a node is printed on the line of its key: scalars, empty collections, flow collections.
fn is_inline(node: &Node) -> bool {
    match &node.value {
        Value::Scalar(_) => true,
        Value::Map(map) => node.style == Style::Flow || map.is_empty(),
        Value::Seq(items) => node.style == Style::Flow || items.is_empty(),
    }
}

fn block(node: &Node, indent: usize, out: &mut String) {
    if is_inline(node) {
        pad(indent, out);
        inline(node, indent, out);
        out.push('\n');
        return;
    }
    match &node.value {
        Value::Map(map) => {
            for entry in map {
                pad(indent, out);
                scalar(&entry.key, indent, out);
                out.push(':');
                if is_inline(&entry.value) {
                    out.push(' ');
                    inline(&entry.value, indent + 2, out);
                    out.push('\n');
                } else {
                    out.push('\n');
                    let deeper = if entry.value.as_seq().is_some() { indent } else { indent + 2 };
                    block(&entry.value, deeper, out);
                }
            }
        }
        Value::Seq(items) => {
            for item in items {
                let start = out.len();
                block(item, indent + 2, out);
                // The dash replaces the first two spaces of the item.
                out.replace_range(start + indent..start + indent + 2, "- ");
            }
        }
        Value::Scalar(_) => {}
    }
}

fn inline(node: &Node, indent: usize, out: &mut String) {
    match &node.value {
        Value::Scalar(_) => scalar(node, indent, out),
        Value::Map(map) => {
            out.push('{');
            for (i, entry) in map.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                scalar(&entry.key, indent, out);
                out.push_str(": ");
                inline(&entry.value, indent, out);
            }
            out.push('}');
        }
        Value::Seq(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                inline(item, indent, out);
            }
            out.push(']');
        }
    }
}

fn scalar(node: &Node, indent: usize, out: &mut String) {
    let text = text(node);
    match node.style {
        Style::DoubleQuoted => double_quoted(text, out),
        Style::SingleQuoted if !text.contains('\n') => {
            out.push('\'');
            out.push_str(&text.replace('\'', "''"));
            out.push('\'');
        }
        Style::Literal | Style::Folded => literal(text, indent, out),
        _ if text.contains('\n') => literal(text, indent, out),
        _ if node.tag == Tag::Str && Node::plain(text).as_str(Dialect::V3).is_none() => {
            double_quoted(text, out);
        }
        _ if needs_quotes(text) => {
            out.push('\'');
            out.push_str(&text.replace('\'', "''"));
            out.push('\'');
        }
        _ => out.push_str(text),
    }
}

/// Whether a plain scalar with this text would have another type.
fn needs_quotes(text: &str) -> bool {
    text.starts_with(['#', '&', '*', '!', '|', '>', '%', '@', '`', '[', ']', '{', '}', ',', '"', '\'', ' '])
        || text.starts_with("- ")
        || text.ends_with([' ', ':'])
        || text.contains(": ")
        || text.contains(" #")
}

fn double_quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\x{:02X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn literal(text: &str, indent: usize, out: &mut String) {
    out.push('|');
    let body = text.trim_end_matches('\n');
    match text.len() - body.len() {
        0 => out.push('-'),
        1 => {}
        _ => out.push('+'),
    }
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(indent.max(2), out);
            out.push_str(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip() {
        for yaml in [
            "b: 1\na: \"x\"\nc: 'y'\nd: {e: \"f\", g: [1, 2]}",
            "spec:\n  containers:\n  - name: app\n    image: nginx\n    args:\n    - a\n  - name: b",
            "- - a\n  - b\n- c: d",
            "a: |\n  line1\n  line2\nb: {}",
            "plain",
        ] {
            let node = fl_yaml::parse_first(yaml.as_bytes(), &fl_yaml::Options::editing()).unwrap().unwrap();
            assert_eq!(to_text(&node), yaml);
        }
    }
}
