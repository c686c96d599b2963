//! YAML without line folding.
//!
//! Helm parses the output of a post-renderer and writes it again, with an encoder that keeps the style of every scalar but does
//! not fold lines. A stored manifest is therefore formatted as by `sigs.k8s.io/yaml` without folding at column 80.

use fl_yaml::{Node, Options, parse_first};

/// The encoder folds lines after this column.
const WIDTH: usize = 80;

/// The same document with every folded scalar on one line.
pub(crate) fn unfolded(text: &str) -> String {
    // A broken line is longer than the width by its last word, at least.
    if text.lines().all(|line| line.len() < WIDTH) {
        return text.to_owned();
    }
    let joined = join(text);
    // If the result does not parse to the same document, the folded form is kept.
    if same(&joined, text) { joined } else { text.to_owned() }
}

fn same(a: &str, b: &str) -> bool {
    let read = |text: &str| -> Option<Node> { parse_first(text.as_bytes(), &Options::v3()).ok().flatten() };
    match (read(a), read(b)) {
        (Some(a), Some(b)) => {
            let json =
                |node: &Node| fl_yaml::to_json(node, fl_yaml::Dialect::V3, fl_yaml::JsonStyle::GO).ok();
            json(&a) == json(&b)
        }
        _ => false,
    }
}

fn join(text: &str) -> String {
    let mut lines = text.lines().peekable();
    let mut out = String::with_capacity(text.len());
    while let Some(line) = lines.next() {
        out.push_str(line);
        let (indent, value) = value_of(line);
        let deeper = |line: &&str| line.is_empty() || depth(line) > indent;
        match value.chars().next() {
            // Block scalars keep their lines.
            Some('|' | '>') => {
                while let Some(line) = lines.next_if(deeper) {
                    out.push('\n');
                    out.push_str(line);
                }
            }
            Some(quote @ ('"' | '\'')) => {
                let mut scalar = value.to_owned();
                while !is_closed(&scalar, quote) {
                    let Some(line) = lines.next_if(deeper) else { break };
                    add(&mut out, line, quote == '"');
                    add(&mut scalar, line, quote == '"');
                }
            }
            Some(_) => {
                while let Some(line) = lines.next_if(|line| !line.is_empty() && depth(line) > indent) {
                    add(&mut out, line, false);
                }
            }
            None => {}
        }
        out.push('\n');
    }
    out
}

/// A continued line: the break is one space, and a further space is escaped.
fn add(out: &mut String, line: &str, escapes: bool) {
    let rest = line.trim_start_matches(' ');
    out.push(' ');
    out.push_str(if escapes {
        rest.strip_prefix('\\').filter(|r| r.starts_with(' ')).unwrap_or(rest)
    } else {
        rest
    });
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The indentation of an entry, and the beginning of its value on this line.
fn value_of(line: &str) -> (usize, &str) {
    let mut indent = depth(line);
    let mut rest = &line[indent..];
    while let Some(item) = rest.strip_prefix("- ") {
        // A scalar after a dash is continued with a deeper indentation.
        if key_end(item).is_none() && !item.starts_with("- ") {
            return (indent, item);
        }
        (indent, rest) = (indent + 2, item);
    }
    match key_end(rest) {
        Some(end) => (indent, rest[end..].trim_start_matches(' ')),
        None => (indent, ""),
    }
}

/// Where the value of an entry begins, after the colon of its key.
fn key_end(entry: &str) -> Option<usize> {
    let quoted = match entry.chars().next()? {
        quote @ ('"' | '\'') => 1 + closing(&entry[1..], quote)? + 1,
        _ => 0,
    };
    let colon =
        entry[quoted..].find(": ").or_else(|| entry.ends_with(':').then(|| entry.len() - quoted - 1))?;
    (quoted == 0 || colon == 0).then_some(quoted + colon + 1)
}

/// Where the closing quote of a scalar is.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        if quote == '"' && c == '\\' {
            characters.next();
        } else if c == quote {
            if quote == '\'' && characters.peek().is_some_and(|(_, next)| *next == '\'') {
                characters.next();
                continue;
            }
            return Some(at);
        }
    }
    None
}

fn is_closed(scalar: &str, quote: char) -> bool {
    closing(&scalar[1..], quote).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_texts_become_one_line() {
        let long = "word ".repeat(40);
        let long = long.trim_end();
        let value = serde_json::json!({
            "plain": long, "colon": format!("{long} a: b"), "break": format!("{long} \n{long}  two"),
            "list": [long, {"in": format!("'{long}'"), "deep": [format!("{long}: x"), "short"]}],
            "block": format!("one\n  {long}\ntwo\n"), "number": 1, "empty": "", "quote\": key": long,
        });
        let node =
            parse_first(value.to_string().as_bytes(), &Options::v3()).expect("read").expect("a document");
        let folded = fl_yaml::to_sigs_yaml(&node, fl_yaml::Dialect::V3).expect("written");
        assert!(folded.lines().filter(|line| line.len() > 200).count() <= 1, "{folded}");
        let one = join(&folded);
        assert!(same(&one, &folded), "{one}");
        // Thirteen keys and items, and the three lines of the block.
        assert_eq!(one.lines().count(), 16, "{one}");
        assert_eq!(unfolded("a: b\n"), "a: b\n");
    }
}
