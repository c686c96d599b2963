//! Parses files into trees.

use fl_yaml::{Dialect, Node};

use crate::Format;
use crate::error::LoadError;
use crate::tree::Item;

/// The documents of a file; all formats except YAML have one.
pub(crate) fn branches(bytes: &[u8], format: Format) -> Result<Vec<Item>, LoadError> {
    if format == Format::Yaml {
        let nodes =
            fl_yaml::parse_all(bytes, &fl_yaml::Options::v3()).map_err(|e| LoadError::Yaml(e.line))?;
        return Ok(nodes.iter().map(|n| item(n, Dialect::V3)).collect());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| LoadError::NotText)?;
    let branch = match format {
        Format::Dotenv => dotenv(text)?,
        Format::Ini => ini(text)?,
        _ => {
            let node = fl_yaml::from_json(text).map_err(|e| LoadError::Json(e.line))?;
            item(&node, Dialect::V3)
        }
    };
    Ok(vec![branch])
}

/// Removes the `sops` metadata from a document.
pub(crate) fn metadata(branch: &mut Item, format: Format) -> Option<Item> {
    match format {
        Format::Dotenv => Some(unflatten(branch, "sops_")),
        Format::Ini => branch.remove("sops").map(|mut flat| unflatten(&mut flat, "")),
        _ => branch.remove("sops"),
    }
}

fn item(node: &Node, dialect: Dialect) -> Item {
    use fl_yaml::{Scalar, Value};
    match &node.value {
        Value::Seq(items) => Item::List(items.iter().map(|n| item(n, dialect)).collect()),
        Value::Map(map) => Item::Map(
            map.iter()
                .map(|e| (e.key.as_text().unwrap_or_default().to_owned(), item(&e.value, dialect)))
                .collect(),
        ),
        _ => match node.scalar(dialect) {
            Some(Scalar::Null) => Item::Null,
            Some(Scalar::Bool(value)) => Item::Bool(value),
            Some(Scalar::Int(number)) => Item::Int(number),
            Some(Scalar::Float(number)) => Item::Float(number),
            _ => Item::Text(node.as_text().unwrap_or_default().to_owned()),
        },
    }
}

fn dotenv(text: &str) -> Result<Item, LoadError> {
    let mut entries = Vec::new();
    for (number, line) in text.split('\n').enumerate() {
        if let Some(comment) = line.strip_prefix('#') {
            entries.push((String::new(), Item::Comment(comment.to_owned())));
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let (key, value) = line.split_once('=').ok_or(LoadError::Dotenv(number + 1))?;
        entries.push((key.to_owned(), Item::Text(value.replace("\\n", "\n"))));
    }
    Ok(Item::Map(entries))
}

/// Parses INI like SOPS' library: a comment belongs to the entry after it, and follows it in the tree.
fn ini(text: &str) -> Result<Item, LoadError> {
    let comment_of = |lines: &mut Vec<&str>| {
        let text = std::mem::take(lines).join("\n");
        let first = text.chars().next()?;
        Some((String::new(), Item::Comment(text.trim_start_matches([first, ' ']).to_owned())))
    };
    let mut sections: Vec<(String, Vec<(String, Item)>)> = vec![("DEFAULT".to_owned(), Vec::new())];
    let mut comments = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if line.starts_with(['#', ';']) {
            comments.push(line);
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.split_once(']')) {
            sections.push((name.0.trim().to_owned(), comment_of(&mut comments).into_iter().collect()));
            continue;
        }
        let (key, value) = line.split_once(['=', ':']).ok_or(LoadError::Ini(number + 1))?;
        let mut value = value.trim().to_owned();
        for quote in ["\"\"\"", "`"] {
            let Some(start) = value.strip_prefix(quote) else { continue };
            let mut inside = start.to_owned();
            while !inside.contains(quote) {
                let (_, line) = lines.next().ok_or(LoadError::IniQuote(number + 1))?;
                inside.push('\n');
                inside.push_str(line);
            }
            value = inside.split_once(quote).map(|(v, _)| format!("`{v}")).unwrap_or_default();
            break;
        }
        let value = match value.strip_prefix('`') {
            Some(raw) => raw.to_owned(),
            None => {
                let value = value.split(['#', ';']).next().unwrap_or_default().trim();
                let bare = |q: char| value.strip_prefix(q).and_then(|v| v.strip_suffix(q));
                bare('"').or_else(|| bare('\'')).unwrap_or(value).to_owned()
            }
        };
        if let Some((_, entries)) = sections.last_mut() {
            entries.push((key.trim().to_owned(), Item::Text(value)));
            entries.extend(comment_of(&mut comments));
        }
    }
    Ok(Item::Map(sections.into_iter().map(|(name, entries)| (name, Item::Map(entries))).collect()))
}

/// Converts keys like `age__list_0__map_enc` back into lists and maps. Keys without the prefix are kept.
fn unflatten(from: &mut Item, prefix: &str) -> Item {
    let Item::Map(entries) = from else { return Item::Null };
    let ours = |(key, value): &(String, Item)| key.starts_with(prefix) && !matches!(value, Item::Comment(_));
    let (flat, rest): (Vec<_>, Vec<_>) = std::mem::take(entries).into_iter().partition(ours);
    *entries = rest;
    let mut root = Item::Map(Vec::new());
    for (key, value) in flat {
        let mut parts: Vec<String> = Vec::new();
        let mut rest = &key[prefix.len()..];
        loop {
            let next = [rest.find("__list_"), rest.find("__map_")].into_iter().flatten().min();
            let Some(at) = next else {
                parts.push(rest.to_owned());
                break;
            };
            parts.push(rest[..at].to_owned());
            let list = rest[at..].starts_with("__list_");
            parts.push(if list { "[]" } else { "{}" }.to_owned());
            rest = &rest[at + if list { "__list_".len() } else { "__map_".len() }..];
        }
        let text = match value {
            Item::Text(text) => Item::Text(text.replace("\\n", "\n")),
            other => other,
        };
        place(&mut root, &parts, text);
    }
    root
}

fn place(at: &mut Item, parts: &[String], value: Item) {
    let [name, rest @ ..] = parts else { return };
    let slot = match at {
        Item::List(items) => {
            let index = name.parse::<usize>().unwrap_or_default().min(1024);
            while items.len() <= index {
                items.push(Item::Null);
            }
            &mut items[index]
        }
        other => {
            if !matches!(other, Item::Map(_)) {
                *other = Item::Map(Vec::new());
            }
            let Item::Map(entries) = other else { return };
            let index = entries.iter().position(|(k, _)| k == name).unwrap_or_else(|| {
                entries.push((name.clone(), Item::Null));
                entries.len() - 1
            });
            &mut entries[index].1
        }
    };
    match rest {
        [] => *slot = value,
        [how, rest @ ..] => {
            if matches!(slot, Item::Null) {
                *slot = if how == "[]" { Item::List(Vec::new()) } else { Item::Map(Vec::new()) };
            }
            place(slot, rest, value);
        }
    }
}
