//! Writes plain files as SOPS' stores do.

use fl_yaml::Node;

use crate::tree::Item;
use crate::{Error, Format};

pub(crate) fn emit(branches: &[Item], input: Format, output: Format) -> Result<Vec<u8>, Error> {
    let refuse = |problem| Error::Emit { input: input.as_str(), output: output.as_str(), problem };
    let first = branches.first().ok_or_else(|| refuse("there is nothing in it"))?;
    match output {
        Format::Binary => match first.get("data") {
            Some(Item::Text(text)) => Ok(text.clone().into_bytes()),
            Some(Item::Bytes(bytes)) => Ok(bytes.clone()),
            _ => Err(refuse("no binary data found in tree")),
        },
        Format::Json => {
            let mut out = String::new();
            json(&mut out, first, 0);
            out.push('\n');
            Ok(out.into_bytes())
        }
        Format::Yaml => {
            let mut out = String::new();
            for (i, branch) in branches.iter().enumerate() {
                if i > 0 {
                    out.push_str("---\n");
                }
                fl_yaml::write_v3_yaml(&mut out, &node(branch), 4).map_err(|_| refuse("not YAML"))?;
            }
            Ok(out.into_bytes())
        }
        Format::Dotenv => dotenv(first).map_err(refuse),
        Format::Ini => ini(first).map_err(refuse),
    }
}

/// Writes the entries of a map or items of a list, without comments.
fn json(out: &mut String, item: &Item, depth: usize) {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"\t".repeat(depth));
    };
    let shown = |value: &Item| !matches!(value, Item::Comment(_));
    match item {
        Item::Map(entries) => {
            out.push('{');
            for (i, (key, value)) in entries.iter().filter(|(_, v)| shown(v)).enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                line(out, depth + 1);
                quote(out, key);
                out.push_str(": ");
                json(out, value, depth + 1);
            }
            if entries.iter().any(|(_, v)| shown(v)) {
                line(out, depth);
            }
            out.push('}');
        }
        Item::List(items) => {
            out.push('[');
            for (i, value) in items.iter().filter(|v| shown(v)).enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                line(out, depth + 1);
                json(out, value, depth + 1);
            }
            if items.iter().any(shown) {
                line(out, depth);
            }
            out.push(']');
        }
        Item::Text(text) => quote(out, text),
        Item::Bytes(bytes) => quote(out, &String::from_utf8_lossy(bytes)),
        Item::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Item::Int(number) => out.push_str(&number.to_string()),
        Item::Float(number) => out.push_str(&serde_json::Value::from(*number).to_string()),
        Item::Null | Item::Comment(_) => out.push_str("null"),
    }
}

/// Go's JSON quoting, safe inside HTML.
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

fn node(item: &Item) -> Node {
    match item {
        Item::Null | Item::Comment(_) => Node::null(),
        Item::Bool(value) => Node::bool(*value),
        Item::Int(number) => Node::int(*number),
        Item::Float(number) => Node::float(*number),
        Item::Text(text) => Node::string(text.as_str()),
        Item::Bytes(bytes) => Node::string(String::from_utf8_lossy(bytes).as_ref()),
        Item::List(items) => Node::seq(items.iter().filter(|i| !matches!(i, Item::Comment(_))).map(node)),
        Item::Map(entries) => {
            let mut map = Node::map();
            if let Some(inside) = map.as_map_mut() {
                for (key, value) in entries.iter().filter(|(_, v)| !matches!(v, Item::Comment(_))) {
                    inside.push(Node::string(key.as_str()), node(value));
                }
            }
            map
        }
    }
}

fn dotenv(branch: &Item) -> Result<Vec<u8>, &'static str> {
    let Item::Map(entries) = branch else { return Err("it is no map") };
    let mut out = String::new();
    for (key, value) in entries {
        if let Item::Comment(text) = value {
            out.push_str(&format!("#{text}\n"));
            continue;
        }
        let value = value.plain_text().ok_or("cannot use complex value in dotenv file")?.replace('\n', "\\n");
        out.push_str(&format!("{key}={value}\n"));
    }
    Ok(out.into_bytes())
}

fn ini(branch: &Item) -> Result<Vec<u8>, &'static str> {
    let Item::Map(sections) = branch else { return Err("it is no map") };
    let sections: Vec<_> = sections.iter().filter(|(_, v)| !matches!(v, Item::Comment(_))).collect();
    let mut out = String::new();
    for (i, (name, section)) in sections.iter().enumerate() {
        let Item::Map(entries) = section else { return Err("a section is no map") };
        let mut entries = entries.as_slice();
        if let [(_, Item::Comment(text)), rest @ ..] = entries {
            comment(&mut out, text);
            entries = rest;
        }
        let keys = || entries.iter().filter(|(_, v)| !matches!(v, Item::Comment(_)));
        if i > 0 || !name.eq_ignore_ascii_case("DEFAULT") {
            out.push_str(&format!("[{name}]\n"));
        } else if keys().next().is_none() {
            continue;
        }
        let width = keys().map(|(key, _)| quoted_key(key).len()).max().unwrap_or_default();
        for (at, (key, value)) in entries.iter().enumerate() {
            if matches!(value, Item::Comment(_)) {
                continue;
            }
            // A comment is written before its key, but follows it in the tree.
            if let Some((_, Item::Comment(text))) = entries.get(at + 1) {
                comment(&mut out, text);
            }
            let value = value.plain_text().ok_or("a value is no text")?;
            out.push_str(&format!("{:width$} = {}\n", quoted_key(key), quoted_value(&value)));
        }
        if i + 1 < sections.len() {
            out.push('\n');
        }
    }
    Ok(out.into_bytes())
}

fn comment(out: &mut String, text: &str) {
    for line in text.split('\n').filter(|l| !l.is_empty()) {
        match line.chars().next() {
            Some(mark @ ('#' | ';')) => out.push_str(&format!("{mark} {}\n", line[1..].trim())),
            _ => out.push_str(&format!("; {}\n", line.trim())),
        }
    }
}

fn quoted_key(key: &str) -> String {
    if key.contains(['"', '=', ':']) {
        format!("`{key}`")
    } else if key.contains('`') {
        format!("\"\"\"{key}\"\"\"")
    } else {
        key.to_owned()
    }
}

fn quoted_value(value: &str) -> String {
    if value.contains(['\n', '`']) {
        format!("\"\"\"{value}\"\"\"")
    } else if value.contains(['#', ';']) {
        format!("`{value}`")
    } else if value.trim() != value {
        format!("\"{value}\"")
    } else {
        value.to_owned()
    }
}
