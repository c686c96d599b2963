//! Runs the cases of the comparison with Go (see `tests/golden/README.md`): one `mode base64` line in, one
//! line out.

use std::fmt::Write as _;
use std::io::{BufRead, Write};

use fl_yaml::{Dialect, JsonStyle, Map, Node, Options, Style, Tag, Value};

pub(crate) fn run(mode: &str, input: &[u8]) -> Result<String, String> {
    let dialect = if matches!(mode, "tree" | "kust") { Dialect::V3 } else { Dialect::Sigs };
    let text = |e: fl_yaml::Error| e.go_text(dialect);
    let json = |options: &Options| {
        let node = fl_yaml::parse_first(input, options).map_err(text)?.unwrap_or_default();
        fl_yaml::to_json(&node, options.dialect, JsonStyle::GO).map_err(text)
    };
    match mode {
        "emit" => {
            let s = String::from_utf8_lossy(input).into_owned();
            let deep: Map = [("deep", Node::string(s.as_str()))].into_iter().collect();
            let n: Map = [("n", Node::from(Value::Map(deep)))].into_iter().collect();
            let items = Node::seq([Node::string(s.as_str()), Node::from(Value::Map(n))]);
            let mut map: Map = [("k", Node::string(s.as_str())), ("l", items)].into_iter().collect();
            map.insert(s.as_str(), Node::string("v"));
            fl_yaml::to_sigs_yaml(&Node::from(Value::Map(map)), Dialect::V3).map_err(text)
        }
        "json" => json(&Options::sigs()),
        "jsonstrict" => json(&Options::sigs_strict()),
        "jsonyaml" => {
            let node = fl_yaml::parse_first(input, &Options::sigs()).map_err(text)?.unwrap_or_default();
            fl_yaml::to_sigs_yaml(&node, Dialect::Sigs).map_err(text)
        }
        "tree" => {
            let mut out = String::new();
            for document in fl_yaml::parse_all(input, &Options::editing()).map_err(text)? {
                out.push_str("doc ");
                dump(&document, &mut out);
                out.push('\n');
            }
            Ok(out)
        }
        "kust" => {
            let node = fl_yaml::parse_first(input, &Options::v3()).map_err(text)?.ok_or("EOF")?;
            if node.is_scalar() {
                return Err("not an object".to_owned());
            }
            fl_yaml::to_sigs_yaml(&node, Dialect::V3).map_err(text)
        }
        _ => Err("mode?".to_owned()),
    }
}

fn dump(node: &Node, out: &mut String) {
    let place = format!("{}:{}", node.line(), node.column());
    match &node.value {
        Value::Scalar(name) if node.style == Style::Alias => drop(write!(out, "*{name}")),
        Value::Scalar(text) => {
            let tag = match node.short_tag(Dialect::V3) {
                Tag::Custom => node.custom_tag().unwrap_or_default(),
                Tag::Str if text == "<<" && node.tag == Tag::Auto && !node.is_quoted() => "!!merge",
                tag => tag.as_str(),
            };
            let style = match node.style {
                Style::DoubleQuoted => 2,
                Style::SingleQuoted => 4,
                Style::Literal => 8,
                Style::Folded => 16,
                _ => 0,
            };
            let _ = write!(out, "{tag} {place} {style} {}", fl_go::quote(text));
        }
        Value::Seq(items) => {
            let _ = write!(out, "{place} [");
            for item in items {
                dump(item, out);
                out.push_str(", ");
            }
            out.push(']');
        }
        Value::Map(map) => {
            let _ = write!(out, "{place} {{");
            for entry in map {
                dump(&entry.key, out);
                out.push_str(", ");
                dump(&entry.value, out);
                out.push_str(", ");
            }
            out.push('}');
        }
    }
    if let Some(extra) = node.extra().filter(|e| !e.anchor.is_empty()) {
        let _ = write!(out, "&{}", extra.anchor);
    }
}

fn main() {
    let stdout = std::io::stdout();
    let mut out = std::io::BufWriter::new(stdout.lock());
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("stdin is readable");
        let (mode, code) = line.split_once(' ').unwrap_or((&line, ""));
        let input = base64_decode(code);
        let (word, result) = match run(mode, &input) {
            Ok(text) => ("OK", text),
            Err(text) => ("ERR", text),
        };
        writeln!(out, "{word} {}", base64_encode(result.as_bytes())).expect("stdout is writable");
    }
}

const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64_decode(code: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for group in code.as_bytes().chunks(4) {
        let word =
            group.iter().fold(0u32, |w, b| w << 6 | ALPHABET.iter().position(|a| a == b).unwrap_or(0) as u32);
        let padding = group.iter().filter(|b| **b == b'=').count();
        out.extend_from_slice(&word.to_be_bytes()[1..4 - padding]);
    }
    out
}

fn base64_encode(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            out.push(if i <= chunk.len() {
                char::from(ALPHABET[(word >> (18 - 6 * i) & 63) as usize])
            } else {
                '='
            });
        }
    }
    out
}
